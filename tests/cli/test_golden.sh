#!/bin/sh
# test_golden.sh MLACHECK SOURCE: gen makes the golden vectors, and finds each
# way in which a folder differs from them. A gen takes seconds.
set -u
mlacheck=$1
source=$2
. "$(dirname "$0")/cli.sh"

cp -r "$source/golden" "$work/golden"
# every difference in one go: a changed file, one too many, one too few
printf ' ' >>"$work/golden/v1/merge_f32.json"
touch "$work/golden/v1/stray.json"
rm "$work/golden/v1/decode_f32.safetensors"
expect 1 gen --check "$work/golden"
has out 'v1/merge_f32.json differs'
has out 'v1/stray.json is no golden vector'
has out 'v1/decode_f32.safetensors is absent'
has out 'FAIL  3 files differ'
rm -r "$work/golden/v1"
expect 0 gen "$work/golden"
diff -r "$source/golden/v1" "$work/golden/v1" >/dev/null ||
  fail 'gen does not make golden/v1'
cmp -s "$source/golden/manifest.json" "$work/golden/manifest.json" ||
  fail 'gen does not make the manifest'
expect 3 gen "$work/golden/manifest.json"
finish
