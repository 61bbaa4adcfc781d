#!/bin/sh
# test_hazards.sh MLACHECK ROOT: docs/hazards.tsv is true. Of every line each
# planted fault makes one of the line's cases fail, and each of its cases is
# failed by one of them; but calls that must be refused (with a "!"), whose
# fault is to accept. Builders of batches are judged in test_batch_judge.
set -u
mlacheck=$1
root=$2
. "$(dirname "$0")/cli.sh"
map=$root/docs/hazards.tsv

# A fault once, with the cases of all lines that name it.
awk -F'\t' '{
  n = split($4, fault, " ")
  m = split($5, id, " ")
  for (i = 1; i <= n; i++)
    for (k = 1; k <= m; k++)
      if (fault[i] !~ /^(-$|batch-)/ && id[k] !~ /^(-$|batch:|test:)|!/ &&
          !seen[fault[i] " " id[k]]++)
        cases[fault[i]] = cases[fault[i]] " " id[k]
}
END { for (f in cases) print f cases[f] }' "$map" | sort >"$work/runs"

# "fault case" for each that fails: verdicts come in the order of the cases.
: >"$work/failed"
while read -r fault cases; do
  # shellcheck disable=SC2086
  "$mlacheck" run --backend planted --options "fault=$fault" --timeout 5 \
    --no-shrink -v --case $cases >"$work/out" 2>&1 </dev/null
  [ $? -le 1 ] || fail "$fault cannot be judged: $(head -n 1 "$work/out")"
  # shellcheck disable=SC2086
  printf '%s\n' $cases >"$work/cases"
  grep -E '^(PASS|FAIL)  [a-z_]+:.*[:,]' "$work/out" |
    paste -d ' ' - "$work/cases" | sed -n "s/^FAIL.* /$fault /p" \
    >>"$work/failed"
done <"$work/runs"

awk -F'\t' 'NR == FNR { failed[$0] = 1; next }
{
  n = split($4, fault, " ")
  m = split($5, id, " ")
  for (i = 1; i <= n; i++) shown[i] = fault[i] ~ /^(-$|batch-)/
  for (k = 1; k <= m; k++) {
    seen = id[k] ~ /^(-$|batch:|test:)|!/
    for (i = 1; i <= n; i++)
      if (failed[fault[i] " " id[k]]) shown[i] = seen = 1
    if (!seen) print $1 ": no fault of the line makes " id[k] " fail"
  }
  for (i = 1; i <= n; i++)
    if (!shown[i]) print $1 ": " fault[i] " makes no case of the line fail"
}' "$work/failed" "$map" >"$work/gaps"
while IFS= read -r line; do fail "$line"; done <"$work/gaps"
[ "$(wc -l <"$work/failed")" -gt 200 ] || fail 'hardly anything was judged'
finish
