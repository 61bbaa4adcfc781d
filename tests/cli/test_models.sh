#!/bin/sh
# test_models.sh MLACHECK SOURCE: the sizes of models are those that the docs
# say, and each model has its cases wherever its heads divide.
set -u
mlacheck=$1
source=$2
. "$(dirname "$0")/cli.sh"

# The table of docs/conformance.md, as a golden file.
sed -n '/^    \$ mlacheck list --models$/,/^$/p' "$source/docs/conformance.md" |
  sed '1d;$d;s/^    //;s/^ *$//' >"$work/table"
[ "$(wc -l <"$work/table")" -ge 12 ] || fail 'the docs have no table of models'
expect 0 list --models
sed '/^$/,$d' "$work/out" >"$work/said"
diff "$work/table" "$work/said" ||
  fail 'docs/conformance.md has other sizes of models'

# The last three columns: heads on 1, 8 and 16 devices; "-": they do not divide.
sed 1d "$work/table" | awk '{print $1, $(NF-2), $(NF-1), $NF}' >"$work/heads"
while read -r name one eight sixteen; do
  for of in "1 $one" "8 $eight" "16 $sixteen"; do
    devices=${of% *} heads=${of#* }
    if [ "$heads" = - ]; then
      expect 2 list --model "$name:tp$devices"
      continue
    fi
    expect 0 list --model "$name:tp$devices"
    cases=$(grep -c ' decode:' "$work/out")
    right=$(grep -c " decode:[a-z0-9_]*:b[0-9]*,h$heads," "$work/out")
    if [ "$cases" = 0 ] || [ "$cases" != "$right" ]; then
      fail "$name on $devices: $right of $cases decodes have $heads heads"
    fi
  done
done <"$work/heads"
finish
