#!/bin/sh
# test_files.sh MLACHECK SOURCE PLUGIN PYTHON: vectors, golden files, JSON.
set -u
mlacheck=$1
source=$2
plugin=$3
python=$4
. "$(dirname "$0")/cli.sh"

# ---- the golden vectors are what gen makes, to the bit
expect 0 gen --check "$source/golden"

# ---- every backend here that is the host's passes them
for backend in ref cpu; do
  expect 0 run --backend $backend --vectors "$source/golden/v1"
  has out "PASS  $backend: "
done
# all of a stored case is judged: a wrong value is found
expect 1 run --plugin "$plugin" --options fault=value \
  --vectors "$source/golden/v1/merge_f32.json"
has out "--vectors '$source/golden/v1/merge_f32.json' --only 'merge:f32:"

# ---- a stored value that is wrong is the vector's fault
cp "$source/golden/v1/matmul_f32.json" "$source/golden/v1/matmul_f32.safetensors" \
  "$work"
sed -i 's/"id":"matmul:f32:m5,n7,k33"/"id":"mine"/' "$work/matmul_f32.json"
expect 0 run --backend ref --vectors "$work/matmul_f32.json"
size=$(wc -c <"$work/matmul_f32.safetensors")
# f64 values stand first: spoil one in the middle of them
head -c 900 "$work/matmul_f32.safetensors" >"$work/spoilt"
printf '\001\002\003' >>"$work/spoilt"
tail -c $((size - 903)) "$work/matmul_f32.safetensors" >>"$work/spoilt"
mv "$work/spoilt" "$work/matmul_f32.safetensors"
expect 1 run --backend ref --vectors "$work/matmul_f32.json"
has out 'contradict the reference'
head -c 700 "$work/matmul_f32.safetensors" >"$work/spoilt"
mv "$work/spoilt" "$work/matmul_f32.safetensors"
expect 2 run --backend ref --vectors "$work/matmul_f32.json"
expect 2 run --backend ref --vectors "$work"

# ---- a digest that is wrong likewise
mkdir "$work/seeded"
sed 's/"digest":"./"digest":"f/; s/"digest":"f\(.\)/"digest":"0\1/2' \
  "$source/golden/v1/seeded.json" | sed -n '1,4p;$p' |
  sed 's/,$//; s/^"cases":\[$/"cases":[/; s/"mla-vectors","version":1$/&,/
    s/"expected_by":"libmla-reference-1"$/&,/' >"$work/seeded/one.json"
expect 1 run --backend ref --vectors "$work/seeded/one.json"
has out 'digest'

# ---- files of other people's layers, one line each
expect 0 run --backend ref --vectors "$source/golden/external/tiny_noq.safetensors"
has out 'tiny_noq'
has out 'latents'

# ---- JSON
expect 0 run --backend ref --only merge --json "$work/report.json"
has out 'PASS  ref'
expect 0 run --backend ref --only merge --json -
has out '"mla-report"'
lacks out 'PASS  ref'
cmp -s "$work/out" "$work/report.json" ||
  [ "$(cat "$work/out")" = "$(cat "$work/report.json")" ] ||
  fail 'JSON to a file and to stdout differ'
expect 3 run --backend ref --only merge --json "$work/no/such/place.json"
if [ -n "$python" ]; then
  schema=$source/golden/schema
  for fault in value idle lse nothing run flicker; do
    "$mlacheck" run --plugin "$plugin" --options "fault=$fault" --only merge \
      kv_write --json "$work/$fault.json" >/dev/null
  done
  "$mlacheck" run --backend ref --json "$work/truth.json" --vectors \
    "$source/golden/external/tiny_noq.safetensors" \
    "$source/golden/v1/invalid.json" >/dev/null
  "$python" -B "$(dirname "$0")/check_schema.py" \
    "$schema/report-1.schema.json" "$work"/report.json "$work"/value.json \
    "$work"/idle.json "$work"/lse.json "$work"/nothing.json \
    "$work"/run.json "$work"/flicker.json "$work"/truth.json ||
    fail 'a report breaks its schema'
  "$python" -B "$(dirname "$0")/check_schema.py" \
    "$schema/vectors-1.schema.json" "$source"/golden/v1/*_*.json \
    "$source"/golden/v1/seeded.json "$source"/golden/v1/invalid.json ||
    fail 'a vector breaks its schema'
  echo '{"format":"mla-vectors"}' >"$work/bad.json"
  "$python" -B "$(dirname "$0")/check_schema.py" \
    "$schema/vectors-1.schema.json" "$work/bad.json" >/dev/null &&
    fail 'the schema takes anything'
fi
finish
