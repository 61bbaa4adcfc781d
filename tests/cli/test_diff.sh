#!/bin/sh
# test_diff.sh MLACHECK PLUGIN: random cases. No backend that is right fails,
# what is wrong is shrunk and shown again, a seed says it all.
set -u
mlacheck=$1
plugin=$2
. "$(dirname "$0")/cli.sh"

# ---- what is right passes, and is said
expect 0 diff --backend cpu --cases 40 --seed 3
has out 'PASS  cpu: 40 of 40 cases judged, 40 passed'
has out '  seed 3: '
has out 'not claimed by cpu and ref'
has out 'worst error / budget'
expect 0 diff --backend ref --cases 25 --seed 4
has out 'PASS  ref: 25 of 25 cases judged'
expect 0 diff --backend planted --cases 30 --against cpu
has out 'not claimed by planted and cpu'
expect 0 diff --plugin "$plugin" --options fault=none --cases 30
expect 0 diff --time 1 --only kv_copy
has out 'PASS  cpu: '

# ---- the same seed, the same cases; another, others
cases() { expect 0 diff --cases 12 -v "$@" && grep '^PASS  .*:.*:' "$work/out"; }
cases --seed 9 >"$work/first"
cases --seed 9 >"$work/second"
cases --seed 10 >"$work/third"
[ "$(wc -l <"$work/first")" = 12 ] || fail 'not every case is shown'
cmp -s "$work/first" "$work/second" || fail 'a seed gives other cases'
! cmp -s "$work/first" "$work/third" || fail 'two seeds give the same cases'

# ---- shrunk, and to be seen again; each failure is explained, which takes its
# time, so there is one
expect 1 diff --backend planted --options fault=page-edge --only decode \
  --cases 4
has out '  smallest  decode:'
rerun=$(sed -n 's/^  rerun  mlacheck //p' "$work/out" | head -n 1)
code=0
eval "\"\$mlacheck\" $rerun" >"$work/again" 2>&1 || code=$?
[ $code = 1 ] || fail "the rerun line gives $code"

# ---- two backends: which of them it is
expect 1 diff --backend planted --options fault=page-edge --against cpu \
  --only decode --cases 4 --no-shrink
has out 'FAIL  planted: '
expect 1 diff --backend cpu --against wayward --plugin "$plugin" \
  --against-options fault=value --only merge --cases 5 --no-shrink
has out '  why    wayward fails here, cpu does not'

# ---- nothing passes by absence
expect 77 diff --plugin "$plugin" --options fault=nothing --only merge --cases 5
has out 'NOTHING  wayward: 0 of 0 cases judged'
expect 1 diff --plugin "$plugin" --options fault=nothing --only merge \
  --cases 5 --required
# a word that no case can begin with is no narrower question
for word in nobody kv_ decode:nobody 'decode_' ''; do
  expect 2 diff --only merge "$word" --cases 1
  has err "\"$word\" is no operation"
done
expect 0 diff --only merge:f32 kv_copy: --cases 2
expect 3 diff --backend nobody
expect 3 diff --against nobody
expect 2 diff --cases many

# ---- for programs
expect 0 diff --cases 10 --json "$work/report.json" --only matmul
grep -q '"id":.*"matmul:' "$work/report.json" || fail 'no case in the report'
expect 0 diff --cases 10 --json - --only matmul
lacks out PASS
finish
