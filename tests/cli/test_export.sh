#!/bin/sh
# test_export.sh MLACHECK ROOT [PYTHON]: questions for programs that are no backend, and
# what becomes of answers that are missing, broken or refused.
set -u
mlacheck=$1
root=$2
python=${3-}
. "$(dirname "$0")/cli.sh"
one='decode:bf16:b2,h3,q1,page4,len=5+3,l16,r8'
two='merge:f32:n2,h2,s3,v8'
dir=$work/questions

# A safetensors file with this JSON header and no tensor.
header() { # FILE JSON
  size=$(printf '%s' "$2" | wc -c)
  printf "\\$(printf '%03o' "$size")\\0\\0\\0\\0\\0\\0\\0%s" "$2" >"$1"
}

expect 0 export "$dir" --case "$one" "$two" --seed 7
has out 'wrote 2 cases'
for file in index.json 0001_decode_bf16.safetensors 0002_merge_f32.safetensors
do
  [ -s "$dir/$file" ] || fail "there is no $file"
done
grep -q '"seed":[[:space:]]*7' "$dir/index.json" || fail 'the index lacks the seed'
! grep -q expected "$dir/index.json" || fail 'the index tells what is expected'
cp "$dir/index.json" "$work/first.json"
expect 0 export "$dir" --case "$one" "$two" --seed 7
cmp -s "$dir/index.json" "$work/first.json" || fail 'an index differs'

if [ -n "$python" ]; then
  expect 0 export "$work/smoke"
  for index in "$dir" "$work/smoke"; do
    "$python" -B "$root/tests/cli/check_schema.py" \
      "$root/golden/schema/questions-1.schema.json" "$index/index.json" ||
      fail "the index of $index breaks its schema"
  done
fi

# ---- nothing passes by absence
expect 1 verify "$dir"
has out "FAIL  $one"
has out '  why    there is no answer: '
has out "rerun  mlacheck verify $dir --case '$one' --seed 7 -v"
has out 'FAIL  answers: 2 of 2 cases judged, 0 passed, 2 FAILED'
expect 1 verify "$dir" --case "$one" --json "$work/report.json"
has out '1 of 1 cases judged'
grep -q '"mla-report"' "$work/report.json" || fail 'no report'
printf 'rubbish' >"$dir/0001_decode_bf16.out.safetensors"
header "$dir/0002_merge_f32.out.safetensors" '{}'
expect 1 verify "$dir"
has out 'the file of the answer is broken'
has out 'the answer is none: the file holds no tensor called out'

# ---- answers that are refused, and numbers that are declared
header "$dir/0001_decode_bf16.out.safetensors" \
  '{"__metadata__":{"mla-unsupported":"q_dtype: not here"}}'
header "$dir/0002_merge_f32.out.safetensors" \
  '{"__metadata__":{"mla-unsupported":"op: not here"}}'
expect 77 verify "$dir"
has out 'q_dtype: not here'
has out 'No case was judged'
expect 1 verify "$dir" --required
header "$dir/0002_merge_f32.out.safetensors" \
  '{"__metadata__":{"mla-numerics":"{\"u_acc\":0.5}"}}'
expect 1 verify "$dir" --only merge
has out 'declares u_acc 0.5'
header "$dir/0002_merge_f32.out.safetensors" \
  '{"__metadata__":{"mla-numerics":"{\"u_ack\":0}"}}'
expect 1 verify "$dir" --only merge
has out 'u_ack" is no member'

# ---- an index that asks for less than was exported
sed 's/\("seed":[[:space:]]*\)7/\18/' "$work/first.json" >"$dir/index.json"
expect 2 verify "$dir"
has err 'index.json was changed'
sed 's/\("only":[[:space:]]*\[\)/\1"absorb"/' "$work/first.json" \
  >"$dir/index.json"
! cmp -s "$work/first.json" "$dir/index.json" || fail 'no list of patterns'
expect 2 verify "$dir"
has err 'index.json was changed'
printf '[]' >"$dir/index.json"
expect 2 verify "$dir"
has err 'is no index'
expect 3 verify "$work/nowhere"
expect 2 verify
expect 77 export "$work/vast" \
  --case 'kv_write:bf16:n5,page4,nb2,l64,r8,gap=2200000000'
[ "$(ls "$work/vast")" = index.json ] || fail 'a file of gigabytes is written'
printf '# no case\n' >"$work/empty.txt"
expect 77 export "$work/none" --profile "$work/empty.txt"
expect 77 verify "$work/none"
expect 0 export "$work/part" --only merge:f32
expect 1 verify "$work/part"
has out 'on part of profile smoke'
# a word that asks for nothing, also beside one that does
expect 2 export "$work/word" --only merge kv_
has err 'no case begins with "kv_" as a whole word; there are: decode prefill'
expect 2 verify "$work/part" --only merge kv_
has err '"kv_" is no case of index.json'
expect 2 verify "$work/part" --only merge --case "$one"
expect 3 export "$work/no/such/folder" --case "$one"
expect 2 export "$dir" --case 'decode:nonsense'

finish
