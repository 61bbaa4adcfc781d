#!/bin/sh
# build_hip_shim.sh OUT_DIR [ARCHS]: the HIP backend's own sources for NVIDIA,
# by nvcc and the shim header, into OUT_DIR/hip_shim.so, a plugin. ARCHS:
# "80 90" unless given. Exit 77 without nvcc.
set -eu
out=${1:?usage: build_hip_shim.sh OUT_DIR [ARCHS]}
archs=${2:-80 90}
root=$(cd "$(dirname "$0")/../.." && pwd)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || {
  echo "build_hip_shim: no nvcc" >&2
  exit 77
}
mkdir -p "$out/include/mla"
sed 's/@PROJECT_VERSION[A-Z_]*@/0/' "$root/include/mla/version.h.in" \
  >"$out/include/mla/version.h"
flags="-I$root/include -I$out/include -I$root/common -I$root/common/gpu"
objects=
for f in common/error common/names common/problem common/dtype \
  common/cache_layout tests/device/hip_shim_plugin; do
  object=$out/$(basename $f).o
  # shellcheck disable=SC2086
  cc -O2 -std=c11 -fPIC -fvisibility=hidden $flags -c "$root/$f.c" -o "$object"
  objects="$objects $object"
done
targets=
for arch in $archs; do
  targets="$targets -gencode arch=compute_$arch,code=sm_$arch"
done
# shellcheck disable=SC2086
"$nvcc" -x cu -O3 -std=c++17 $targets -D__HIP_PLATFORM_NVIDIA__ \
  -I"$root/backends/hip/hip_shim" -I"$root/backends/hip" $flags \
  -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra \
  -Xcompiler=-fno-exceptions,-fno-rtti -c "$root/backends/hip/hip_backend.hip" \
  -o "$out/hip_backend.o"
# shellcheck disable=SC2086
"$nvcc" -shared -cudart static -Xlinker -z,defs -o "$out/hip_shim.so" "$out/hip_backend.o" \
  $objects
echo "build_hip_shim: $out/hip_shim.so for $archs"
