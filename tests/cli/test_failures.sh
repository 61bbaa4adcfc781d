#!/bin/sh
# test_failures.sh MLACHECK ROOT [PYTHON]: what a failure looks like, its smallest case, the
# file that reproduces it, and the self-test.
set -u
mlacheck=$1
root=$2
python=${3-}
. "$(dirname "$0")/cli.sh"

planted() { # CODE OPTIONS WORDS...
  code=$1
  options=$2
  shift 2
  expect "$code" run --backend planted --options "$options" "$@"
}
one='decode:bf16:b4,h6,q1,page16,len=70+33+40+17,l64,r8'

# ---- explained, shrunk, and to be seen again
planted 0 fault=none --case "$one"
planted 1 'fault=yarn-factor;x=1.31' --case "$one"
has out "FAIL  $one"
has out '  looks like  YARN: the softmax scale is off by a factor 1.3'
has out '  smallest  decode:bf16:b1,h1,q1,page1,len='
rerun=$(sed -n 's/^  rerun  mlacheck //p' "$work/out")
code=0
eval "\"\$mlacheck\" $rerun" >"$work/again" 2>&1 || code=$?
[ $code = 1 ] || fail "the smallest case gives $code"
planted 1 'fault=yarn-factor;x=1.31' --case "$one" --no-shrink
lacks out '  smallest'
has out "--case '$one' --seed 42 -v"

# ---- a case by its name is the profile's: its hazards break the tie
planted 1 fault=headdim-tail --no-shrink \
  --case 'decode:f32:b2,h5,q1,page16,len=40+17,l64,r8'
has out 'hunts HEADDIM'
has out 'looks like  HEADDIM'

# ---- what an earlier call left is known by judging alone
planted 1 fault=plan-first --case "$one" "$one,scale=3.7"
has out '  why    it passes where no other call comes before it'
has out 'looks like  STALE-META: something of an earlier call is kept'
planted 1 'fault=yarn-factor;x=1.31' --case "$one,scale=3.7" "$one" --no-shrink
lacks out 'no other call'

# ---- figures of one line do not touch, whatever their size
planted 1 'fault=yarn-factor;x=7' --case "$one,amp=100" --no-shrink
has out 'x the budget'
! grep -E '^  decode:bf16 .*[0-9]\.[0-9]{4,}' "$work/out" ||
  fail 'figures touch'

# ---- one of each class is shrunk, not every failure
planted 1 fault=mtp-first --only decode:bf16
[ "$(grep -c '^  smallest' "$work/out")" -le 3 ] || fail 'too many are shrunk'

# ---- the same run says the same
planted 1 'fault=tail-v;head=1' --case "$one"
cp "$work/out" "$work/first"
planted 1 'fault=tail-v;head=1' --case "$one"
cmp -s "$work/first" "$work/out" || fail 'explanations differ from run to run'

# ---- a file that reproduces
planted 1 fault=page-edge --case "$one" --no-shrink --repro "$work/repro"
has out "  repro  $work/repro/decode_bf16-"
file=$(sed -n 's/^  repro  //p' "$work/out")
[ -s "$file" ] || fail "there is no $file"
planted 1 fault=page-edge --vectors "$file"
has out 'looks like  PAGE-SIZE'
expect 0 run --backend cpu --vectors "$file"
expect 0 run --backend ref --vectors "$work/repro"
head -c 6000 "$file" | tr '{,' '\n\n' >"$work/header"
for word in environment backend kernel arch looks_like got/out expected/out; do
  grep -q "$word" "$work/header" || fail "the file does not say $word"
done
for word in "$work" "$(uname -n)" "$(id -un)@"; do
  ! grep -qF "$word" "$file" || fail "the file says $word"
done
if [ -n "$python" ]; then
  "$python" - "$file" >"$work/vectors.json" <<'END' || fail 'no JSON within'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
print(json.loads(data[8:8 + size])["__metadata__"]["mla-vectors"])
END
  "$python" -B "$root/tests/cli/check_schema.py" \
    "$root/golden/schema/vectors-1.schema.json" "$work/vectors.json" ||
    fail 'the reproduction breaks its schema'
fi
planted 1 fault=honesty-refuse --case "$one" --no-shrink --repro "$work/repro"
has out '  repro' # inputs and expected values are all there is
printf 'x' >"$work/plain"
expect 3 run --backend planted --options fault=page-edge --case "$one" \
  --repro "$work/plain"

# ---- JSON says it too
planted 1 fault=page-edge --case "$one" --json "$work/report.json"
for word in looks_like '"PAGE-SIZE"' '"page-edge"' smallest; do
  grep -q "$word" "$work/report.json" || fail "the report does not say $word"
done

if [ -n "$python" ]; then
  "$python" -B "$root/tests/cli/check_schema.py" \
    "$root/golden/schema/report-1.schema.json" "$work/report.json" ||
    fail 'the report breaks its schema'
fi

# ---- the documentation knows every planted fault
sed -n 's/^ *X([A-Z0-9_]*, "\([a-z0-9-]*\)".*/\1/p' \
  "$root/judge/planted/planted_list.h" >"$work/names"
[ "$(wc -l <"$work/names")" -ge 90 ] || fail 'too few planted faults are read'
while read -r name; do
  grep -qF "\`$name\`:" "$root/docs/hazards.md" ||
    fail "docs/hazards.md does not know $name"
done <"$work/names"

# and has each class in its overview
for name in $(sed -n 's/^### //p' "$root/docs/hazards.md"); do
  grep -q "| \[$name\](#" "$root/docs/hazards.md" ||
    fail "the overview of docs/hazards.md does not know $name"
done

# ---- the self-test: classes, variants, deaths
printf '%s HEADS\n' "$one" 'decode:f32:b2,h5,q2,page4,len=9+6,l16,r8' \
  >"$work/few.txt"
expect 0 selftest --profile "$work/few.txt" --only YARN crash abort -v
has out 'yarn-factor;x=0.9          YARN           YARN'
has out '(killed, signal 6)'
has out '(killed, signal 11)'
has out 'catches 4 of 4 faults (needed: 4)'
has out 'looks like  YARN: the softmax scale is off by a factor 0.9'
has out 'BUILD         nothing planted: comes with the build matrix'
has out 'ref                        passes 2 cases'
expect 1 selftest --profile "$work/few.txt" --only sink-dropped
has out 'NOT CAUGHT by 2 cases'
has out 'FAIL  profile'
# what cannot be judged counts for nothing
printf 'x' >"$work/plain"
expect 3 selftest --profile "$work/few.txt" --only YARN --expected "$work/plain"
printf '%s HEADS\n' 'decode:bf16:b1,h4,q1,page4,len=7,l64,r8,gap=1000000000000000' \
  >"$work/vast.txt"
expect 1 selftest --profile "$work/vast.txt" --only YARN
has out 'NOT JUDGED'
has out 'catches 0 of 2 faults'
expect 2 selftest --only nobody
expect 2 selftest --only YARN nobody
has err 'no fault and no class is called "nobody"'
expect 2 selftest --nonsense
expect 3 selftest --profile nobody
expect 0 selftest --help
[ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'mlacheck-*' -newer \
  "$work/first" 2>/dev/null)" ] || fail 'the self-test leaves a folder behind'
# nor when it is ended amid its work, also by what cannot be caught
mkdir "$work/tmp"
for signal in HUP TERM KILL; do
  TMPDIR=$work/tmp "$mlacheck" selftest --jobs 1 >/dev/null 2>&1 &
  tries=0
  until ls "$work/tmp"/mlacheck-*/* >/dev/null 2>&1 || [ $tries = 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  [ $tries -lt 300 ] || fail 'the self-test keeps no answer in TMPDIR'
  kill -s $signal $!
  wait $! 2>/dev/null
  tries=0
  until rmdir "$work/tmp" 2>/dev/null || [ $tries = 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  [ ! -e "$work/tmp" ] || fail "SIG$signal leaves a folder behind"
  mkdir -p "$work/tmp"
done

finish
