#!/bin/sh
# The verdicts of a machine with a GPU, in about 6 minutes on 16 cores:
#   tests/device/judge_gpu.sh MLACHECK OUT [PLUGIN]
# The full profile twice, and by PLUGIN (the HIP backend's shim, which
# build_hip_shim.sh makes); then smoke under racecheck, which gets the machine
# for itself, and under memcheck, beside it golden vectors and random cases for
# two minutes. OUT gets summary.txt and logs.tar.gz. SANITIZER_SECONDS is what
# each tool gets: what was cut off is counted. STAGES names what is wanted of
# "full plugin racecheck rest". Random cases are drawn twice, as always and from
# SEED (the day's), since equal seeds find nothing new.
set -u
mlacheck=${1:?mlacheck}
out=${2:?folder}
plugin=${3:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
summary=$out/summary.txt
logs=$(mktemp -d)
kept=$(mktemp -d)
jobs=$(($(nproc) - 1))
seconds=${SANITIZER_SECONDS:-240}
stages=${STAGES:-full plugin racecheck rest}
seed=${SEED:-$(date +%Y%m%d)}
gpus=$(nvidia-smi -L | wc -l)
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
  judge cuda-full --backend cuda --profile full --jobs "$jobs" \
    --expected "$kept"
  judge cuda-again --backend cuda --profile full --jobs "$jobs" \
    --expected "$kept"
  cmp "$logs/cuda-full.txt" "$logs/cuda-again.txt" >>"$summary" 2>&1 &&
    echo "the full profile twice: the same report" >>"$summary"
}

# More requests than the card has units, whose parts use a buffer again and
# again; keys for the kernel of long requests; rows that two blocks share, and
# eight.
more="decode:bf16:b140,h1,q1,page64,len=200,topk=192
decode:fp8_ds_mla:b140,h1,q1,page64,len=200,topk=192
decode:bf16:b140,h1,q1,page16,len=200
decode:bf16:b1,h64,q1,page64,len=200,limit=32768
index:fp8_index:b1,h1,q2,page64,len=20000,topk=300
index:fp8_index:b2,h1,q1,page64,len=9000+700,topk=512,limit=66000
index:fp8_index:b1,h1,q1,page64,len=9000,topk=512,dist=equal,limit=66000"

# These and smoke in pieces of six cases, the costly ones dealt out first.
# Racecheck does not end where two threads launch at once (crowd), and says
# itself that it lost track: those cases are memcheck's alone.
sanitize() { # TOOL
  until=$(($(date +%s) + seconds))
  # shellcheck disable=SC2016
  {
    echo "$more"
    "$mlacheck" list cases --profile smoke | sort -rn |
      sed -n 's/^ *[0-9.]* MFLOP  *?* *\([^ ]*\).*/\1/p'
  } |
    if [ "$1" = racecheck ]; then grep -v crowd; else cat; fi |
    awk '{ piece[NR % 77] = piece[NR % 77] " " $0 }
      END { for (n in piece) print n piece[n] }' |
    tool=$1 until=$until gpus=$gpus mlacheck=$mlacheck logs=$logs \
      xargs -P "$jobs" -L 1 sh -c '
        left=$((until - $(date +%s)))
        log=$logs/$tool-$1.txt
        export CUDA_VISIBLE_DEVICES=$(($1 % gpus))
        shift
        echo "$@" >"$log"
        [ $left -lt 5 ] || timeout $left compute-sanitizer --tool "$tool" \
          --error-exitcode 9 "$mlacheck" run --backend cuda --no-fork \
          --no-shrink --case "$@" >>"$log" 2>&1' piece
  echo "$1: of $(find "$logs" -name "$1-*" | wc -l) pieces" \
    "$(grep -l "SUMMARY: 0 " "$logs/$1"-*.txt | wc -l) without a finding," \
    "$(grep -L SUMMARY "$logs/$1"-*.txt | wc -l) cut off" >>"$summary"
}

wanted() { case " $stages " in *" $1 "*) ;; *) return 1 ;; esac; }

judge_plugin() {
  [ -z "$plugin" ] || judge plugin-full --plugin "$plugin" --profile full \
    --jobs "$jobs" --expected "$kept"
}

judge_rest() {
  judge cuda-golden --backend cuda --vectors "$root/golden/v1" &
  [ -z "$plugin" ] ||
    judge plugin-golden --plugin "$plugin" --vectors "$root/golden/v1" &
  for of in 1 "$seed"; do
    timed "diff-$of" 200 "$mlacheck" diff --backend cuda --against ref \
      --seed "$of" --time 120 --jobs 2 &
  done
  sanitize memcheck
  wait
}

wanted full && judge_cuda
wanted plugin && judge_plugin
wanted racecheck && sanitize racecheck
wanted rest && judge_rest
tar -C "$logs" -czf "$out/logs.tar.gz" .
rm -rf "$kept" "$logs"
cat "$summary"
