#!/bin/sh
# Builds decode_probe, prefill_probe, codes_probe, ceiling_probe, layer_probe
# and start_probe into a folder: tests/device/build_probe.sh OUT_DIR
set -e
out=${1:?folder}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out/include/mla"
sed 's/@PROJECT_VERSION[A-Z_]*@/0/' "$root/include/mla/version.h.in" \
  >"$out/include/mla/version.h"
flags="-I$root/include -I$out/include -I$root/common -I$root/common/gpu"
# What the host side needs of common is found by the linker.
mkdir -p "$out/common"
for f in "$root"/common/*.c; do
  gcc -O2 -std=c11 $flags -c "$f" -o "$out/common/$(basename "$f").o"
done
rm -f "$out/libcommon.a"
ar rc "$out/libcommon.a" "$out"/common/*.o
compile="nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a $flags \
  -I$root/backends/cuda -cudart static"
for f in cuda_backend sm90_merge; do
  $compile -c "$root/backends/cuda/$f.cu" -o "$out/$f.cu.o"
done
$compile -DMLA_SM90_F16 -c "$root/backends/cuda/sm90_index.cu" \
  -o "$out/sm90_index.cu.o"
for f in decode narrow listed pages prefill prefill_parts product thin; do
  source=$root/backends/cuda/sm90_$f.cu
  $compile -c "$source" -o "$out/sm90_$f.cu.o"
  $compile -DMLA_SM90_F16 -c "$source" -o "$out/sm90_${f}_f16.cu.o"
done
for probe in decode_probe prefill_probe codes_probe ceiling_probe \
  layer_probe start_probe; do
  $compile -o "$out/$probe" "$root/tests/device/$probe.cu" "$out"/*.cu.o \
    "$out/libcommon.a"
done
