#!/bin/sh
# The HIP backend on an NVIDIA GPU, through the shim (build_hip_shim.sh):
#   tests/device/judge_hip_shim.sh MLACHECK PLUGIN OUT
# mlacheck must have no HIP backend inside (MLA_HIP=OFF). OUT gets the logs
# and a summary; exit 1 if anything is not satisfied.
set -u
mlacheck=${1:?mlacheck}
plugin=${2:?plugin}
out=${3:?folder}
root=$(cd "$(dirname "$0")/../.." && pwd)
summary=$out/summary.txt
failed=0
mkdir -p "$out"
{
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  $mlacheck info --plugin "$plugin"
} >"$summary" 2>&1

judge() { # NAME ARGUMENTS...
  name=$1
  shift
  start=$(date +%s)
  $mlacheck run --plugin "$plugin" "$@" >"$out/$name.txt" 2>&1
  status=$?
  [ $status = 0 ] || failed=1
  echo "$name: exit $status, $(($(date +%s) - start)) s," \
    "$(tail -n 1 "$out/$name.txt")" >>"$summary"
}

judge hip-smoke --profile smoke
judge hip-golden --vectors "$root/golden/v1"
judge hip-full --profile full
cat "$summary"
exit $failed
