#!/bin/sh
# The verdicts of a machine with a GPU, in about 9 minutes on 16 cores:
#   tests/device/judge_gpu.sh MLACHECK OUT [PLUGIN]
# The profiles, the golden vectors, the full profile once more, random cases
# for two minutes, compute-sanitizer on smoke; PLUGIN, the HIP backend's shim
# (build_hip_shim.sh), is judged beside them. OUT gets summary.txt and
# logs.tar.gz; what was cut off for time says so by exit 124.
set -u
mlacheck=${1:?mlacheck}
out=${2:?folder}
plugin=${3:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
summary=$out/summary.txt
logs=$(mktemp -d)
kept=$(mktemp -d)
mkdir -p "$out"
{
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  $mlacheck info
  [ -z "$plugin" ] || $mlacheck info --plugin "$plugin"
} >"$summary" 2>&1

timed() { # NAME SECONDS COMMAND...
  name=$1 limit=$2
  shift 2
  start=$(date +%s)
  timeout "$limit" "$@" >"$logs/$name.txt" 2>&1
  status=$?
  echo "$name: exit $status, $(($(date +%s) - start)) s," \
    "$(tail -n 1 "$logs/$name.txt")" >>"$summary"
}

judge() { # NAME WHOM (two words) ARGUMENTS...
  name=$1
  shift
  timed "$name" 240 "$mlacheck" run "$@"
}

judge_cuda() {
  judge cuda-smoke --backend cuda --profile smoke
  judge cuda-golden --backend cuda --vectors "$root/golden/v1"
  judge cuda-full --backend cuda --profile full --jobs 6 --expected "$kept"
  judge cuda-again --backend cuda --profile full --jobs 6 --expected "$kept"
  cmp "$logs/cuda-full.txt" "$logs/cuda-again.txt" >>"$summary" 2>&1 &&
    echo "the full profile twice: the same report" >>"$summary"
}

judge_plugin() {
  judge plugin-smoke --plugin "$plugin" --profile smoke
  judge plugin-golden --plugin "$plugin" --vectors "$root/golden/v1"
  judge plugin-full --plugin "$plugin" --profile full --jobs 4
}

# Smoke in pieces beside each other, every 16th case one, the costly ones dealt
# out first: one process alone would take the minutes of all of them.
sanitize() { # TOOL
  pieces=16
  "$mlacheck" list cases --profile smoke | sort -rn |
    sed -n 's/^ *[0-9.]* MFLOP  *?* *\([^ ]*\).*/\1/p' >"$logs/cases"
  for piece in $(seq $pieces); do
    # shellcheck disable=SC2046
    timed "$1-$piece" 260 compute-sanitizer --tool "$1" --error-exitcode 9 \
      "$mlacheck" run --backend cuda --no-fork --no-shrink --case \
      $(awk -v n="$piece" -v of=$pieces 'NR % of == n % of' "$logs/cases") &
  done
  wait
}

judge_cuda &
timed diff 200 "$mlacheck" diff --backend cuda --against ref --time 120 \
  --jobs 4 &
[ -z "$plugin" ] || judge_plugin &
wait
if command -v compute-sanitizer >/dev/null; then
  sanitize memcheck
  sanitize racecheck
fi
tar -C "$logs" -czf "$out/logs.tar.gz" .
rm -rf "$kept" "$logs"
cat "$summary"
