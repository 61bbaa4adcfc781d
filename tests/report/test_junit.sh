#!/bin/sh
# test_junit.sh MLACHECK PLUGIN SOURCE [PYTHON]: JUnit XML by its schema, and
# by the report of the same run. Exit status 77: no xmllint here.
set -u
mlacheck=$1
plugin=$2
source=$3
python=${4-}
. "$source/tests/cli/cli.sh"
if ! command -v xmllint >/dev/null; then
  echo 'skipped: xmllint is not installed (libxml2-utils)'
  exit 77
fi
schema=$source/tests/report/junit.xsd
valid() { xmllint --noout --nonet --schema "$schema" "$1" >"$work/lint" 2>&1; }
holds() {
  valid "$work/$1.xml" || {
    fail "$1.xml breaks the schema"
    head -n 5 "$work/lint"
  }
  [ -z "$python" ] ||
    "$python" -B "$source/tests/report/check_junit.py" "$work/$1.xml" \
      "$work/$1.json" || fail "$1.xml is not the report"
}
# Few cases, fixed there: profiles grow.
cp "$source/tests/report/few.txt" "$work/few.txt"

judge() { # CODE NAME WORDS...
  code=$1
  name=$2
  shift 2
  expect "$code" run --json "$work/$name.json" --junit "$work/$name.xml" \
    --no-shrink "$@"
  holds "$name"
}
one='decode:bf16:b3,h4,q=2+0+1,page16,len=20+3+9,l64,r8'

judge 0 passes --backend ref --profile "$work/few.txt"
lacks out '<testsuites'
grep -q 'classname="ref.merge.bf16"' "$work/passes.xml" || fail 'no class names'
judge 1 value --plugin "$plugin" --options fault=value --profile \
  "$work/few.txt"
grep -q '<failure message=' "$work/value.xml" || fail 'no failure'
grep -q '  rerun  mlacheck run --plugin' "$work/value.xml" || fail 'no rerun'
# what a claim requires is a failure, what may be missing is skipped
judge 1 nothing --plugin "$plugin" --options fault=nothing --profile \
  "$work/few.txt"
grep -q 'type="UNSUPPORTED"' "$work/nothing.xml" || fail 'absence passes'
# nothing was judged: no case fails, and yet it is red
judge 77 absent --plugin "$plugin" --options fault=nothing --case "$one"
grep -q '<skipped message="op: this port does less"' "$work/absent.xml" ||
  fail 'not skipped'
grep -q '<failure message="nothing was judged"' "$work/absent.xml" ||
  fail 'a run of nothing is green'
printf '# no case\n' >"$work/empty.txt"
judge 77 empty --backend ref --profile "$work/empty.txt"
# for runners that take 77 for skipped
judge 1 required --required --backend ref --profile "$work/empty.txt"
judge 1 required --required --plugin "$plugin" --options fault=nothing \
  --case "$one"
judge 0 required --required --backend ref --case 'merge:f32:n1,h1,s2'
# a death is one failure, with its signal
judge 1 crash --plugin "$plugin" --options fault=crash-merge --profile \
  "$work/few.txt" --only merge:f16 kv_copy
grep -q '"died":.*"signal"' "$work/crash.json" || fail 'no death in the report'
grep -q 'signal' "$work/crash.xml" || fail 'no death in JUnit'
if [ -n "$python" ]; then
  "$python" -B "$source/tests/cli/check_schema.py" \
    "$source/golden/schema/report-1.schema.json" "$work/crash.json" \
    "$work/value.json" "$work/nothing.json" || fail 'a report breaks its schema'
fi
judge 1 vectors --plugin "$plugin" --options fault=value --vectors \
  "$source/golden/v1/merge_f32.json" \
  "$source/golden/external/tiny_noq.safetensors"
# the same run, the same bytes; and to stdout
expect 0 run --backend ref --profile "$work/few.txt" --junit -
cmp -s "$work/out" "$work/passes.xml" || fail 'two runs differ'
expect 2 run --backend ref --only merge --junit - --json -
expect 3 run --backend ref --only merge --junit "$work/no/such/place.xml"

# two runs in one file
expect 1 report "$work/passes.json" "$work/value.json" --junit "$work/two.xml"
valid "$work/two.xml" || fail 'two runs in one file break the schema'
expect 0 report "$work/passes.json" --junit -
cmp -s "$work/out" "$work/passes.xml" || fail 'report writes something else'
expect 0 report "$work/passes.json" "$work/passes.json" --junit "$work/two.xml"
valid "$work/two.xml" || fail 'two runs of one backend break the schema'
grep -q 'testsuite name="ref-2.merge.f32"' "$work/two.xml" ||
  fail 'two runs of one backend have one name'
expect 2 report
expect 2 report "$work/passes.json"
expect 2 report "$work/passes.xml" --junit -
expect 3 report "$work/nowhere.json" --junit -
printf '{"format":"mla-report","version":2}' >"$work/other.json"
expect 2 report "$work/other.json" --junit -

# an exit code that is none is no success
sed 's/"exit":.*/"exit": -1,/' "$work/passes.json" >"$work/other.json"
expect 1 report "$work/other.json" --junit "$work/other.xml"
grep -q 'not satisfied' "$work/other.xml" || fail 'a strange code is green'

# every byte in every text
if [ -n "$python" ]; then
  "$python" -B "$source/tests/report/make_hostile.py" "$work/value.json" \
    "$work/hostile.json"
  expect 1 report "$work/hostile.json" --junit "$work/hostile.xml"
  valid "$work/hostile.xml" || {
    fail 'hostile text breaks the file'
    head -n 5 "$work/lint"
  }
fi

# the schema can fail
for change in 's/ failures="[0-9]*"//' 's/<testcase /<test /' \
  's/ classname="[^"]*"//' 's/<failure /<failed /'; do
  sed "$change" "$work/value.xml" >"$work/broken.xml"
  ! valid "$work/broken.xml" || fail "the schema takes a file with $change"
done
finish
