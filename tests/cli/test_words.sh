#!/bin/sh
# test_words.sh MLACHECK ROOT: what a failure is called by the first case that
# shows it, whatever that hunts. Of each planted fault the class is its own, or
# the one that words.txt allows. Takes minutes.
set -u
mlacheck=$1
root=$2
. "$(dirname "$0")/cli.sh"

# Of smoke's small cases the first two of each class and operation, without
# their classes.
"$mlacheck" list --profile smoke | awk '
$2 == "MFLOP" && $1 <= 3 && !/!/ {
  at = $3 == "?" ? 4 : 3
  op = substr($at, 1, index($at, ":"))
  keep = 0
  for (i = at + 1; i <= NF; i++) {
    gsub(",", "", $i)
    if (seen[op $i]++ < 2) keep = 1
  }
  if (keep) print $at
}' >"$work/profile.txt"
[ "$(wc -l <"$work/profile.txt")" -ge 100 ] || fail 'too few cases are listed'

# Few cases do not catch all: that is what the other self-tests are for.
"$mlacheck" selftest --in-order --profile "$work/profile.txt" --patience 4 \
  >"$work/out" 2>"$work/err"
[ $? -le 1 ] || fail "the self-test does not run: $(head -n 1 "$work/err")"
awk '$3 ~ /^!/ { print $1, substr($3, 2) }' "$work/out" | sort >"$work/others"
grep -v '^#' "$root/tests/cli/words.txt" | sort >"$work/allowed"
comm -23 "$work/others" "$work/allowed" >"$work/wrong"
while read -r fault word; do fail "$fault is called $word"; done <"$work/wrong"
comm -13 "$work/others" "$work/allowed" >"$work/gone"
while read -r fault word; do
  fail "$fault is no longer called $word: take it out of words.txt"
done <"$work/gone"
[ "$(awk '$3 == $2' "$work/out" | wc -l)" -ge 330 ] ||
  fail 'hardly anything was named'
finish
