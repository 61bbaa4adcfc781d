#!/bin/sh
# test_batch.sh MLACHECK SOURCE [PYTHON]: batch building: the golden file, and
# builders that answer by files.
set -u
mlacheck=$1
source=$2
python=${3-}
. "$(dirname "$0")/cli.sh"
golden=$source/golden/v1/batch.json
dir=$work/batches
slots='batch:b3,page16,ctx=0+15+16,q=16+1+1'

# ---- the library's own builder, by name and by the golden file
expect 2 run --backend ref --profile batch
has err 'is asked of the library, not of a backend'
expect 0 run --profile batch -v
has out "PASS  $slots"
has out "kernel the library's mla_batch"
count=$(grep -c '"kind":"batch"' "$golden")
expect 0 run --vectors "$golden"
has out "$count of $count cases judged, $count passed"
expect 0 show --case "$slots"
has out '"slot_mapping"'
expect 0 list --profile batch
has out "$slots"
expect 0 list --keys batch
has out 'threshold=N    requests of at most so many rows come first'
expect 2 run --case 'batch:b99'
has err 'has no value that the key may have'
# A folder is asked of a backend: its batches are not counted for it.
mkdir "$work/mixed"
cp "$golden" "$source/golden/v1/merge_f32".* "$work/mixed"
expect 0 run --vectors "$work/mixed"
lacks out batch

# ---- files that are wrong
sed "/\"$slots\"/s/\"slot_mapping\":\[/&9/" "$golden" >"$work/wrong.json"
expect 1 run --vectors "$work/wrong.json" --only "$slots"
has out "VECTOR  $slots"
has out 'step 0: slot_mapping[0] is '
has out "--vectors '$work/wrong.json' --only '$slots' -v"
sed 's/"kept":\[/"kept":[7,/' "$golden" >"$work/wrong.json"
expect 1 run --vectors "$work/wrong.json"
has out '"kept, query_lens" are not as long as each other'
sed 's/"block_size"/"block_sizes"/' "$golden" >"$work/wrong.json"
expect 1 run --vectors "$work/wrong.json"
has out '"block_sizes" is no member that version 1 knows'
sed 's/"version":1/"version":2/' "$golden" >"$work/wrong.json"
expect 2 run --vectors "$work/wrong.json"
has err 'version'

# ---- a builder that answers by files: the golden file's own arrays
# answer FILE: from a line of the golden file.
answer() {
  sed 's/.*"expected":\(\[.*\]\)},\{0,1\}$/{"steps":\1}/' >"$1"
}
answer_all() {
  grep '"kind":"batch"' "$golden" >"$work/lines"
  number=0
  while IFS= read -r line; do
    number=$((number + 1))
    name=$(printf '%04d_batch' "$number")
    printf '%s\n' "$line" | answer "$dir/$name.out.json"
  done <"$work/lines"
}
expect 0 export "$dir" --profile batch
has out "wrote $count cases"
! grep -q 'expected\|slot_mapping' "$dir/index.json" ||
  fail 'the index tells what is expected'
expect 1 verify "$dir"
has out 'there is no answer'
answer_all
expect 0 verify "$dir"
has out "PASS  answers on profile batch: $count of $count cases judged"
if [ -n "$python" ]; then
  "$mlacheck" verify "$dir" --json "$work/report.json" >"$work/out"
  check="$(dirname "$0")/check_schema.py"
  schema=$source/golden/schema
  "$python" -B "$check" "$schema/questions-1.schema.json" "$dir/index.json" &&
    "$python" -B "$check" "$schema/report-1.schema.json" "$work/report.json" &&
    "$python" -B "$check" "$schema/batches-1.schema.json" "$golden" &&
    "$python" -B "$check" "$schema/batch-answer-1.schema.json" \
      "$dir"/*.out.json || fail 'a file breaks its schema'
fi

# ---- what it got wrong is named: array, element, values, and the mistake
number=$(grep -n -F "\"$slots\"" "$work/lines" | cut -d: -f1)
file=$dir/$(printf '%04d_batch' "$number").out.json
cp "$file" "$work/right.json"
last=$(sed 's/.*"slot_mapping":\[\([^]]*\)\].*/\1/' "$file")
first=${last%,*}
sed "s/\"slot_mapping\":\[[^]]*\]/\"slot_mapping\":[$first,96]/" \
  "$work/right.json" >"$file"
expect 1 verify "$dir" --case "$slots" -v
has out "FAIL  $slots"
has out 'why    step 0: slot_mapping[17] is 96, not '
has out 'place 2, request 2, its row 0, position 16: block 1 at 0'
has out 'looks like  PAGE-SIZE: the first row of a block gets the slot behind'
has out "rerun  mlacheck verify $dir --case '$slots' --seed 42 -v"
sed "s/\"slot_mapping\":\[[^]]*\]/\"slot_mapping\":[$first]/" \
  "$work/right.json" >"$file"
expect 1 verify "$dir" --case "$slots"
has out 'slot_mapping[17] is absent'

# ---- nothing passes by absence
sed 's/"order":\[[^]]*\],//' "$work/right.json" >"$file"
expect 1 verify "$dir" --case "$slots"
has out 'step 0 has no order, and it is not among "leaves_out"'
sed 's/"order":\[[^]]*\],//; s/^{/{"leaves_out":{"order":"ours differs"},/' \
  "$work/right.json" >"$file"
expect 0 verify "$dir" --case "$slots" -v
has out 'note   not judged, by its own word: order (ours differs)'
sed 's/^{/{"leaves_out":{"seq_lens":"no"},/' "$work/right.json" >"$file"
expect 1 verify "$dir" --case "$slots"
has out '"seq_lens" cannot be left out'
printf '{"unsupported":"no prefill here"}' >"$file"
expect 1 verify "$dir"
has out 'no prefill here'
expect 77 verify "$dir" --case "$slots"
for broken in '' '[]' '{' '{"steps":[]}' '{"steps":[{"speed":[1]}]}' \
  '{"stairs":[]}' '{"steps":[{"positions":[0.5]}]}' \
  '{"steps":[{"positions":"0"}]}' '{"steps":[7]}'; do
  printf '%s' "$broken" >"$file"
  expect 1 verify "$dir" --case "$slots"
  has out 'the file of the answer is broken'
done
cp "$work/right.json" "$file"
expect 0 verify "$dir"
sed 's/"context_lens"/"context_lengths"/' "$dir/index.json" >"$work/index.json"
cp "$work/index.json" "$dir/index.json"
expect 0 verify "$dir" # what is given is made anew from id and seed

# ---- every mistake that can be planted is described
sed -n 's/.*"\(batch-[a-z-]*\)".*/\1/p' \
  "$source/judge/planted/planted_batch_list.h" >"$work/names"
[ "$(wc -l <"$work/names")" -gt 30 ] || fail 'there are few planted mistakes'
while IFS= read -r name; do
  grep -q "| \`$name\` |" "$source/docs/hazards.md" ||
    fail "docs/hazards.md does not know $name"
done <"$work/names"
expect 2 selftest --only batch-nothing

finish
