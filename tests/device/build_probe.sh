#!/bin/sh
# Builds decode_probe into a folder: tests/device/build_probe.sh OUT_DIR
set -e
out=${1:?folder}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out/include/mla"
sed 's/@PROJECT_VERSION[A-Z_]*@/0/' "$root/include/mla/version.h.in" \
  >"$out/include/mla/version.h"
flags="-I$root/include -I$out/include -I$root/common -I$root/common/gpu"
for f in error names problem dtype; do
  gcc -O2 -std=c11 $flags -c "$root/common/$f.c" -o "$out/$f.o"
done
nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a $flags \
  -I"$root/backends/cuda" -cudart static -o "$out/decode_probe" \
  "$root/tests/device/decode_probe.cu" "$root/backends/cuda/cuda_backend.cu" \
  "$root/backends/cuda/sm90_decode.cu" "$out"/*.o
