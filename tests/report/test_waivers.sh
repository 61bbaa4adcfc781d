#!/bin/sh
# test_waivers.sh MLACHECK PLUGIN SOURCE [PYTHON]: failures that are known are
# counted and shown as waived, and never as passed.
set -u
mlacheck=$1
plugin=$2
source=$3
python=${4-}
. "$source/tests/cli/cli.sh"
SOURCE_DATE_EPOCH=1795910400 # 2026-11-29
export SOURCE_DATE_EPOCH

# Few cases, fixed there: profiles grow.
cp "$source/tests/report/few.txt" "$work/few.txt"

waive() { # ENTRY...: a file of waivers
  printf '{"format":"mla-waivers","version":1,"waivers":[%s]}' "$1" \
    >"$work/known.json"
}
wayward() { # CODE FAULT WORDS...
  code=$1
  fault=$2
  shift 2
  expect "$code" run --plugin "$plugin" --options "fault=$fault" --no-shrink \
    --waivers "$work/known.json" --profile "$work/few.txt" "$@"
}
link='"link":"https://example.org/7"'

# ---- some of the failures
waive "{\"case\":\"merge:f32:*\",$link,\"reason\":\"later\"}"
wayward 1 value
has out 'WAIVED  merge:f32:n5,h3,s2'
has out 'https://example.org/7  later'
has out '2 WAIVED'
has out 'FAIL  merge:bf16'
lacks out 'FAIL  merge:f32'
lacks out 'stale'

# ---- all of the failures: the run is satisfied by what passed
waive "{\"case\":\"*\",$link}"
wayward 0 value --json "$work/some.json"
has out '8 of 8 cases judged, 1 passed, 7 WAIVED'
lacks out 'FAILED'
wayward 0 value -v
has out 'WAIVED  merge:f32'
has out '  rerun  mlacheck run'

# ---- waivers alone satisfy nothing
wayward 1 idle --only merge:bf16
has out 'Waivers alone satisfy nothing'
has out ': 1 of 1 cases judged, 0 passed, 1 WAIVED'

# ---- what a claim requires and is not there
waive "{\"case\":\"merge:f16:*\",\"backend\":\"wayward\",$link}"
wayward 0 only-decode --only decode:f32 merge:f16
has out 'WAIVED  merge:f16'
has out '1 of 2 cases judged, 1 passed, 1 WAIVED'
waive "{\"case\":\"merge:f16:*\",\"backend\":\"another\",$link}"
wayward 1 only-decode --only decode:f32 merge:f16
lacks out 'stale'
lacks out 'WAIVED'

# ---- by class
waive "{\"class\":\"YARN\",$link}"
one='decode:bf16:b4,h6,q1,page16,len=70+33+40+17,l64,r8'
expect 0 run --backend planted --options 'fault=yarn-factor;x=1.31' \
  --case "$one" 'kv_copy:bf16:nb4,copies2,page16' --no-shrink \
  --waivers "$work/known.json" --json "$work/class.json"
has out 'WAIVED  decode'
expect 1 run --backend planted --options 'fault=page-edge' --case "$one" \
  --no-shrink --waivers "$work/known.json"
lacks out 'WAIVED  '
has out 'stale waivers'

# ---- stale, expired
waive "{\"case\":\"decode:f32:*\",\"class\":\"SINK-WIN\",$link}"
wayward 0 none --json "$work/stale.json"
has out '  stale waivers: nothing was waived by'
has out '      1  case decode:f32:*, class SINK-WIN  https://example.org/7'
waive "{\"case\":\"merge:*\",$link,\"until\":\"2026-11-29\"}"
wayward 0 value --only merge
has out 'WAIVED'
waive "{\"case\":\"merge:*\",$link,\"until\":\"2026-11-28\"}"
wayward 1 value --only merge --json "$work/expired.json"
has out 'case merge:*, until 2026-11-28'
lacks out 'WAIVED'

# ---- what is wrong with a file of waivers
bad() { # ENTRIES SENTENCE
  waive "$1"
  wayward 2 none --only merge:f16
  has err "$2"
  empty out
}
bad '{"case":"merge:*"}' 'waiver 1: it has no link'
bad "{\"case\":\"merge:*\",$link},{\"class\":\"YARN\"}" \
  'waiver 2: it has no link'
bad '{"case":"merge:*","link":""}' 'waiver 1: link must be a text'
bad '{"case":"merge:*","link":"later"}' 'link is no address'
bad "{$link}" 'neither a case nor a class'
bad "{\"case\":\"merge:*\",$link,\"untill\":\"2027-01-01\"}" \
  '"untill" is no member'
bad "{\"case\":\"merge:*\",$link,\"until\":\"soon\"}" 'until is no day'
bad "{\"case\":7,$link}" 'case must be a text'
bad '"merge"' 'it is no object'
printf '{"waivers":[]}' >"$work/known.json"
wayward 2 none --only merge:f16
has err 'mla-waivers'
rm "$work/known.json"
wayward 3 none --only merge:f16

if [ -n "$python" ]; then
  for report in some class stale expired; do
    "$python" -B "$source/tests/cli/check_schema.py" \
      "$source/golden/schema/report-1.schema.json" "$work/$report.json" ||
      fail "$report.json breaks its schema"
  done
  waive "{\"case\":\"merge:*\",$link,\"reason\":\"r\",\"until\":\"2027-01-31\"},
    {\"class\":\"YARN\",\"backend\":\"cpu\",$link}"
  waivers=$source/golden/schema/waivers-1.schema.json
  "$python" -B "$source/tests/cli/check_schema.py" "$waivers" \
    "$work/known.json" || fail 'good waivers break their schema'
  waive "{\"reason\":\"r\",$link}"
  ! "$python" -B "$source/tests/cli/check_schema.py" "$waivers" \
    "$work/known.json" >/dev/null || fail 'the schema takes anything'
fi
finish
