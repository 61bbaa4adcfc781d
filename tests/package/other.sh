#!/bin/sh
# other.sh SOURCE BUILD CC ON|OFF [OPTION...]: builds libmla alone, shared or
# not, with more options of cmake, and tests it as a package.
set -eu
source=$1
build=$2
cc=$3
shared=$4
shift 4
cmake --fresh -S "$source" -B "$build" -DCMAKE_C_COMPILER="$cc" \
  -DBUILD_SHARED_LIBS="$shared" "$@" -DBUILD_TESTING=OFF -DMLA_TOOL=OFF \
  -DMLA_CUDA=OFF -DMLA_HIP=OFF -DCMAKE_BUILD_TYPE=Release \
  >"$build.log" 2>&1 || {
  cat "$build.log"
  exit 1
}
cmake --build "$build" --parallel 2 >"$build.log" 2>&1 || {
  cat "$build.log"
  exit 1
}
exec sh "$source/tests/package/run.sh" "$source" "$build" "$cc"
