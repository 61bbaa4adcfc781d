#!/bin/sh
# test_verdicts.sh MLACHECK PLUGIN: exit codes, and what a run says.
set -u
mlacheck=$1
plugin=$2
. "$(dirname "$0")/cli.sh"

wayward() { # CODE FAULT WORDS...
  code=$1
  fault=$2
  shift 2
  expect "$code" run --plugin "$plugin" --options "fault=$fault" "$@"
}
one='decode:bf16:b3,h4,q=2+0+1,page16,len=20+3+9,l64,r8'

# all_judged TEXT: TEXT, and then "N of N cases judged", N above 15
all_judged() {
  has out "$1"
  # shellcheck disable=SC2046 # two words are wanted
  set -- $(sed -n 's/^[A-Z]*  wayward.*: \([0-9]*\) of \([0-9]*\) cases.*/\1 \2/p' \
    "$work/out")
  [ "$#" = 2 ] && [ "$1" = "$2" ] && [ "$1" -gt 15 ] ||
    fail "not all cases are judged: $*"
}

# ---- a plugin that behaves: what was judged is said
wayward 0 none --only merge kv_copy
all_judged 'PASS  wayward on part of profile smoke: '
wayward 0 none --case "$one"
has out 'PASS  wayward: 1 of 1 cases judged, 1 passed'
lacks out 'PASS  decode'
wayward 0 none --case "$one" -v
has out 'PASS  decode:bf16:b3,h4,q=2+0+1'
has out 'again  2 more runs, the same bits'
has out 'kernel wayward_none'

# ---- a failure: where, how much, and how to see it again
wayward 1 value --case "$one" --no-shrink
has out "FAIL  $one"
has out '  out    1 of 768 values are wrong, worst '
has out '  where  request 0, token 0, head 0, dim 0'
has out '  worst  request 0, token 0, head 0, dim 0: expected '
has out '  lse    ok, worst '
has out '  kernel wayward_value'
has out "  rerun  mlacheck run --plugin $plugin --options 'fault=value' \
--case '$one' --seed 42 -v"
has out 'FAIL  wayward: 1 of 1 cases judged, 0 passed, 1 FAILED'
rerun=$(sed -n 's/^  rerun  mlacheck //p' "$work/out")
code=0
eval "\"\$mlacheck\" $rerun" >"$work/again" 2>&1 || code=$?
[ $code = 1 ] || fail "the rerun line gives $code"
grep -qF "FAIL  $one" "$work/again" || fail 'the rerun line fails otherwise'

wayward 1 idle --case "$one"
has out '768 were never written'
wayward 1 input --case "$one"
has out '  fence  input q was written, at byte 0'
wayward 1 before --case "$one"
has out '  fence  memory before out was written'
wayward 1 run --case "$one"
has out '  why    said yes, but the run fails with DEVICE_ERROR: it fell over'
wayward 1 flicker --case "$one"
has out 'a second run gave other bits'
# every failure is one verdict, and the run goes on
wayward 1 value --only merge kv_read:f16
has out 'FAIL  merge:f32:n5,h3,s2'
has out 'FAIL  kv_read:f16:b2'
all_judged 'FAIL  wayward on part of profile smoke: '

# ---- whatever ends the process of a case ends that case alone
each_once() { # COUNT TEXT: all cases fail, each once and so
  has out "FAIL  wayward"
  [ "$(grep -c "^FAIL  [a-z_]*:[a-z0-9]*:" "$work/out")" = "$1" ] ||
    fail "not $1 verdicts"
  [ "$(grep -cF -e "$2" "$work/out")" = "$1" ] || fail "not $1 times \"$2\""
}
printf '%s\n' 'merge:f32:n5,h3,s2' 'kv_read:bf16:b2,page4,len=3+5,l64,r8' \
  'merge:f32:n4,h2,s3,empty=some' 'merge:f32:n2,h1,s2' "$one" \
  >"$work/five.txt"
wayward 1 crash --profile "$work/five.txt" --no-shrink
each_once 5 'why    its process was killed by signal 11 (a bad address)'
wayward 1 abort --case "$one" 'merge:f32:n5,h3,s2' --no-shrink
each_once 2 'why    its process was killed by signal 6 (it aborted)'
wayward 1 exit --case "$one" 'merge:f32:n5,h3,s2' --no-shrink
each_once 2 'why    its process ended with code 7, saying nothing'
wayward 1 hang --case "$one" 'merge:f32:n5,h3,s2' --timeout 1
each_once 2 'why    it did not end: the time was up after 1 s (--timeout gives'
wayward 1 behind --profile "$work/five.txt" --no-shrink
each_once 5 'fence  memory behind '
wayward 1 peek-behind --case "$one" 'merge:f32:n5,h3,s2' --no-shrink
each_once 2 'fence  memory behind '
has out 'fence  memory behind q was read'
has out 'looks like  OOB-READ: memory behind q was read'
wayward 1 peek-before --case "$one" --no-shrink
each_once 1 'fence  memory before q was read, 1 byte ahead of it'
wayward 0 peek-behind --case "$one" --no-fork # nobody sees it there
wayward 1 value --case "$one" --no-fork
# the others are judged as if nothing had been
wayward 1 crash-merge --profile "$work/five.txt" --no-shrink
has out '5 of 5 cases judged, 2 passed, 3 FAILED'
wayward 1 hang-merge --case 'kv_read:bf16:b2,page4,len=3+5,l64,r8' \
  'merge:f32:n5,h3,s2' "$one" --timeout 4
has out '3 of 3 cases judged, 2 passed, 1 FAILED'
# what kills is shrunk and written down too
wayward 1 crash --case "$one" --repro "$work/dead"
has out '  smallest  decode:bf16:b1,h1,q1,page1,len='
expect 0 run --backend ref --vectors "$work/dead"

# ---- any number of children says the same
for jobs in 1 2 5; do
  wayward 1 crash-merge --profile "$work/five.txt" --jobs $jobs \
    --json "$work/jobs$jobs.json"
  cp "$work/out" "$work/jobs$jobs"
  cmp -s "$work/jobs1" "$work/jobs$jobs" || fail "--jobs $jobs differs"
  cmp -s "$work/jobs1.json" "$work/jobs$jobs.json" ||
    fail "--jobs $jobs differs in JSON"
done
expect 2 run --backend ref --jobs 0
expect 2 run --backend ref --jobs 33

# ---- who looked at the device judges on; and opens it once more, beside
wayward 0 open-says --only merge
[ "$(grep -c opened "$work/err")" = 2 ] || fail 'the device is not opened twice'
[ "$(sort -u "$work/err" | grep -c opened)" = 1 ] ||
  fail 'more than one child opens the device'

# ---- nothing passes by absence
wayward 1 nothing
has out 'required ones UNSUPPORTED'
has out 'this port does less  (required)'
wayward 77 nothing --case "$one"
has out 'NOTHING  wayward: 0 of 1 cases judged'
wayward 1 only-decode
has out 'A port that is meant to serve less says so: --only'
wayward 0 only-decode --only decode:bf16
has out 'PASS  wayward on part of profile smoke'
wayward 1 only-decode --only decode
# a word that no case begins with is said, also beside one that some do
for word in nobody kv_ decode:nobody; do
  wayward 2 none --only merge "$word"
  has err "no case begins with \"$word\" as a whole word; there are: decode"
done
# who refuses all that may be refused passes where he must refuse, and in that
# alone; of refusals alone nothing else is asked
wayward 77 only-decode --only index
has out 'Refusals alone satisfy nothing: no other case was judged.'
wayward 1 only-decode --only index --required
wayward 0 only-decode --profile invalid --only index
printf '# no case\n' >"$work/empty.txt"
wayward 77 none --profile "$work/empty.txt"
has out 'No case was judged'
printf '?%s\n' "$one" >"$work/may.txt"
wayward 77 nothing --profile "$work/may.txt"
printf '?%s\ndecode:f32:b1,h1,len=3\n' "$one" >"$work/may.txt"
wayward 0 none --profile "$work/may.txt"
has out "on profile $work/may.txt: 2 of 2 cases judged"

# ---- the environment
expect 3 run --plugin "$work/no-such.so"
has err 'no-such.so'
expect 3 run --backend nobody
has err 'there is no backend "nobody"'
expect 3 run --backend ref --vectors "$work/nowhere"
expect 3 run --backend ref --profile nobody
expect 3 run --backend ref --options nonsense=1
MLA_PLUGIN_PATH=$work/no-such.so
export MLA_PLUGIN_PATH
expect 3 run --backend ref --case "$one"
MLA_PLUGIN_PATH=$plugin
expect 0 run --backend wayward --case "$one"
unset MLA_PLUGIN_PATH

# ---- seeds, kept answers
expect 0 run --backend ref --case "$one" -v
cp "$work/out" "$work/seed42"
expect 0 run --backend ref --case "$one" -v --seed 42
cmp -s "$work/seed42" "$work/out" || fail 'seed 42 is not the default'
expect 0 run --backend ref --case "$one" -v --seed 7
cmp -s "$work/seed42" "$work/out" && fail 'the seed changes nothing'
for again in 1 2; do
  expect 0 run --backend ref --case "$one" -v --expected "$work/keep"
  cmp -s "$work/seed42" "$work/out" || fail "kept answers differ ($again)"
done
[ "$(find "$work/keep" -name '*.safetensors' | wc -l)" = 1 ] ||
  fail 'not one answer was kept'
# a damaged answer is computed anew
for file in "$work"/keep/*; do printf 'x' >"$file"; done
expect 0 run --backend ref --case "$one" -v --expected "$work/keep"
cmp -s "$work/seed42" "$work/out" || fail 'a damaged answer was used'
# other values are believed where they say that this reference made them (so
# the next lines can fail), and computed anew where another one did
file=$(find "$work/keep" -name '*.safetensors')
zero_half() { # all numbers of the file's second half
  half=$(($(wc -c <"$file") / 2))
  dd if=/dev/zero of="$file" bs=$half seek=1 count=1 conv=notrunc 2>/dev/null
}
cp "$file" "$work/answer"
zero_half
expect 1 run --backend ref --case "$one" -v --expected "$work/keep" --no-shrink
LC_ALL=C sed 's/"reference":"[0-9a-f]\{8\}/"reference":"00000000/' "$work/answer" \
  >"$file"
zero_half
expect 0 run --backend ref --case "$one" -v --expected "$work/keep"
cmp -s "$work/seed42" "$work/out" || fail "another reference's answer was used"
cmp -s "$work/answer" "$file" || fail 'an older answer was not replaced'
expect 3 run --backend ref --case "$one" --expected "$work/seed42"
finish
