#!/bin/sh
# The verdicts of a machine with a GPU: tests/device/judge_gpu.sh MLACHECK OUT
# Runs every built-in profile that is asked of a backend, the golden vectors
# and the full profile once more; OUT gets the logs and a summary.
set -u
mlacheck=${1:?mlacheck}
out=${2:?folder}
summary=$out/summary.txt
mkdir -p "$out"
{
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  $mlacheck info
} >"$summary" 2>&1

judge() { # NAME ARGUMENTS...
  name=$1
  shift
  start=$(date +%s)
  $mlacheck run "$@" >"$out/$name.txt" 2>&1
  status=$?
  echo "$name: exit $status, $(($(date +%s) - start)) s," \
    "$(tail -n 1 "$out/$name.txt")" >>"$summary"
}

kept=$(mktemp -d)
for backend in cuda cpu; do
  judge $backend-smoke --backend $backend --profile smoke
  judge $backend-golden --backend $backend --vectors golden/v1
  judge $backend-full --backend $backend --profile full --expected "$kept"
done
judge cuda-again --backend cuda --profile full --expected "$kept"
cmp "$out/cuda-full.txt" "$out/cuda-again.txt" >>"$summary" 2>&1 &&
  echo "the full profile twice: the same report" >>"$summary"
rm -rf "$kept"
cat "$summary"
