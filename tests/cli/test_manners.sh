#!/bin/sh
# test_manners.sh MLACHECK: help, usage errors, streams, terminals.
set -u
mlacheck=$1
. "$(dirname "$0")/cli.sh"

for command in bench diff export gen info list report run selftest show \
  submit verify; do
  expect 0 $command --help
  cp "$work/out" "$work/long"
  expect 0 $command -h
  cmp -s "$work/long" "$work/out" || fail "$command: -h is not --help"
done
expect 2 list -v
has err '-v is no option'

for command in '' run list show info gen; do
  # shellcheck disable=SC2086
  expect 0 $command --help
  empty err
  has out 'usage: mlacheck'
  awk 'length($0) > 80 { exit 1 }' "$work/out" ||
    fail "the help of \"$command\" is wider than 80 columns"
  [ -z "$command" ] || {
    expect 2 $command --no-such-option
    empty out
    has err "mlacheck $command: --no-such-option is no option"
  }
done
expect 0 --version
has out 'mlacheck '

expect 2
empty out
has err 'usage: mlacheck'
expect 2 dance
has err '"dance" is no command'
expect 2 run stray
has err '"stray" is one word too many'
expect 2 run --case
has err '--case needs a value'
expect 2 run --seed x
expect 2 run --seed 99999999999999999999
expect 2 run --backend ref --cpu-mask portable
has err '--cpu-mask is for the backend "cpu"'
expect 2 info --backend ref --cpu-mask portable
expect 3 run --backend cpu --cpu-mask mmx
has err 'isa is "mmx", which is no level'
expect 3 info --cpu-mask mmx
expect 0 info --cpu-mask portable -v
has out 'mla_decode_bf16_portable'
expect 2 run -v=1
has err '-v takes no value'
expect 2 run --case 'decode:bf16:b1,pagge16'
empty out
has err 'character 16: "pagge16"'
expect 2 run --case 'decode:bf17:b1'
has err '"bf17" is no format followed by a colon (list --keys)'
expect 2 show
expect 2 show 'sing:bf16:'
expect 2 gen
expect 2 list nonsense
expect 2 list --keys sing

# What scripts read.
expect 0 list backends
has out ref
expect 0 list ops
[ "$(wc -l <"$work/out")" = 12 ] || fail "not every operation is listed"
expect 0 list profiles
for profile in smoke dense prefill formats full big stored seeded invalid; do
  has out "$profile"
done
expect 0 list --keys decode
has out 'kv_lora_rank [512]'
has out ' fp8_e5m2 fp8_ds_mla'
lacks out 'matmul'
expect 0 list --profile smoke --only merge
has out 'EMPTY-MERGE'
lacks out 'decode:'
expect 2 list --only nobody
expect 2 list --only merge kv_
has err 'no case begins with "kv_" as a whole word; there are: decode prefill'
expect 2 list --model glm-5 --profile smoke
expect 0 list --models
has out 'deepseek-v3         7168   1536    512    128     64    128      -   128    16     8'
has out 'glm-4.7-flash       2048    768    512    192     64    256      -    20     -     -'
expect 0 list --model glm-5:tp8
has out 'decode:bf16:b1,h8,q1,page64,len=1,scale=0.0625'
expect 2 list --model glm-4.7-flash:tp8
has err '20 heads do not divide among 8 devices'
expect 3 list --model nobody
expect 0 run --backend ref --model deepseek-v2-lite:tp16 --only kv_write q_absorb
has out 'PASS  ref on part of profile model:deepseek-v2-lite:tp16: 2 of 2 cases'
expect 2 run --model deepseek-v3 --profile smoke
expect 3 list --profile nobody
expect 0 info --backend ref
has out 'decode                      f64, f32, f16, bf16'
awk 'length($0) > 80 { exit 1 }' "$work/out" || fail 'info is too wide'
expect 0 info --matrix --backend ref
has out '| operation | ref |'
has out '| decode | f64, plain, fp8, packed, inline |'
has out 'plain: f32, f16, bf16; fp8: fp8_e4m3, '
expect 0 info --why 'decode:f64:b1,h1,len=3'
has out '  chosen  ref          kernel ref'
has out '  no      cpu          q_dtype: only '
expect 0 info --why 'decode:bf16:b1,h1,len=3' --memory host
has out '  could   ref '
expect 1 info --why 'decode:bf16:b1,h1,len=3' --memory rocm --capture
has out 'memory_space: its tensors lie elsewhere'
expect 2 info --why 'decode:bf16:b1,h1,len=3' --memory moon
expect 2 info --why 'decode:bf16:b1,h1,len=3' --determinism rarely
expect 2 info --why 'decode:bf16:nonsense'
expect 2 info --why 'decode:bf16:b1,h1,len=3!scale=0'
expect 3 info --matrix --backend nobody
expect 3 info --backend nobody
expect 0 show 'decode:bf16:b2,h3,q1,page16,len=17+5,strides=padded'
has out 'stride 1760x584x1'
has out 'digest'
expect 0 show 'decode:f32:b1!scale=0'
has out 'invalid'

# Without a terminal: no colour, no progress, the same bytes each time.
expect 0 run --backend ref --only merge -v
empty err
if grep -q "$(printf '\033')" "$work/out"; then fail 'colour without a terminal'
fi
if grep -q ' $' "$work/out"; then fail 'blanks at the end of a line'; fi
cp "$work/out" "$work/first"
expect 0 run --backend ref --only merge -v
cmp -s "$work/first" "$work/out" || fail 'two runs differ'

# Output that does not arrive is no success.
if [ -w /dev/full ]; then
  code=0
  "$mlacheck" list ops >/dev/full 2>/dev/null || code=$?
  [ $code = 3 ] || fail "exit code $code on a full disk"
  ln -s /dev/full "$work/full"
  expect 3 run --backend ref --only merge:f16 --json "$work/full"
  [ -L "$work/full" ] || fail 'a report takes the place of a device'
fi
mkfifo "$work/pipe"
cat "$work/pipe" >"$work/report" &
expect 0 run --backend ref --only merge:f16 --json "$work/pipe"
wait
grep -q '"mla-report"' "$work/report" || fail 'no report comes through a pipe'
finish
