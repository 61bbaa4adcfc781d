#!/bin/sh
# What the levels of the CPU backend that this machine runs are worth:
#   tests/device/judge_cpu.sh BUILD_FOLDER [OUT_FOLDER, else $OUT] [MINUTES]
# For each: its unit tests' kernels, the full profile (the reference computes
# once, for the first level), and the benchmark's sweeps but lengths (scale_cpu),
# alone on the machine. OUT gets summary.txt and logs.tar.gz. Some 10 minutes on
# 16 cores of Sapphire Rapids, half of them for each of STAGES, "speed full"
# unless told; what would take longer is cut off, and said so.
set -u
build=${1:?build folder}
out=${2:-${OUT:?folder for the results}}
minutes=${3:-12}
mlacheck=$build/tools/mlacheck
summary=$out/summary.txt
threads=$(nproc)
stages=${STAGES:-speed full}
start=$(date +%s)
logs=$(mktemp -d)
mkdir -p "$out"

left() { # seconds of all that may be used, at most $1 of them
  rest=$((start + minutes * 60 - $(date +%s)))
  [ $rest -lt "$1" ] || rest=$1
  [ "$rest" -gt 1 ] || rest=1
  echo "$rest"
}

levels=
for level in portable avx2 avx512 avx512_bf16 amx neon neon_bf16; do
  if "$mlacheck" info --cpu-mask $level >"$logs/info.txt" 2>&1; then
    levels="$levels $level"
  fi
done
{
  lscpu | grep -E 'Model name|^CPU\(s\)|Thread|L1d|L2|L3'
  grep -o -w -E 'avx512[a-z_0-9]*|amx_[a-z_0-9]*' /proc/cpuinfo | sort -u | xargs
  echo "levels:$levels"
} >"$summary" 2>&1

for name in test_cpu_kernels test_cpu_tiles; do
  kernels=$build/tests/unit/$name
  [ -x "$kernels" ] || continue
  "$kernels" >"$logs/$name.txt" 2>&1
  echo "$name: exit $?" >>"$summary"
done

judge() { # LEVEL
  begin=$(date +%s)
  OMP_NUM_THREADS=2 timeout "$(left 240)" "$mlacheck" run --backend cpu \
    --cpu-mask "$1" --profile full --jobs $(((threads + 1) / 2)) \
    --expected "$kept" >"$logs/full-$1.txt" 2>&1
  status=$?
  echo "full, $1: exit $status, $(($(date +%s) - begin)) s," \
    "$(tail -n 1 "$logs/full-$1.txt")" >>"$summary"
}

speed() { # LEVEL THREADS SWEEP...
  level=$1 n=$2
  shift 2
  log=$logs/bench-$level-$n-$1.txt
  OMP_PROC_BIND=close OMP_PLACES=cores timeout "$(left 60)" "$mlacheck" \
    bench --backend cpu --cpu-mask "$level" --options "threads=$n" \
    --milliseconds 60 --sweep "$@" >"$log" 2>&1
  status=$?
  {
    echo "--- $level, $n threads, $*: exit $status"
    cat "$log"
  } >>"$summary"
}

# Speed first: it wants the machine for itself.
if [ "${stages#*speed}" != "$stages" ]; then
  for level in $levels; do
    [ "$level" != portable ] || continue
    speed "$level" 1 decode prefill
    speed "$level" "$threads" decode prefill
    speed "$level" "$threads" memory ragged
    speed "$level" 2 formats
  done
fi

kept=$(mktemp -d)
if [ "${stages#*full}" != "$stages" ]; then
  for level in $levels; do
    judge "$level"
  done
fi
tar -C "$logs" -czf "$out/logs.tar.gz" .
rm -rf "$kept" "$logs"
echo "all: $(($(date +%s) - start)) s" >>"$summary"
cat "$summary"
