#!/bin/sh
# test_bench.sh MLACHECK [PYTHON]: what bench says, writes and refuses. No
# time is asked for anything: machines are shared.
set -u
mlacheck=$1
python=${2-}
. "$(dirname "$0")/cli.sh"
small='decode:bf16:b2,h3,q1,page16,len=40+9,l64,r16'

expect 0 bench --milliseconds 1 --case "$small" \
  --json "$work/b.json" --csv "$work/b.csv" --html "$work/b.html"
has out "$small"
has out 'f32 multiply-adds'
grep -q '^peaks behind the cases:  [0-9.]* GFLOP/s ([-+].*%)  [0-9.]* GB/s (' \
  "$work/out" || fail 'the peaks are not measured again'
[ "$(wc -l <"$work/b.csv")" = 2 ] || fail 'the CSV has not two lines'
head -n 1 "$work/b.csv" | grep -q 'peaks_moved$' ||
  fail 'the CSV does not say by how much the peaks moved'
grep -q '<svg' "$work/b.html" || fail 'the page has no picture'
! grep -q '<script\|http:' "$work/b.html" || fail 'the page asks for more'
if [ -n "$python" ]; then
  "$python" - "$work/b.json" <<'END' || fail 'the JSON lacks something'
import json, sys
b = json.load(open(sys.argv[1]))
assert b["machine"]["backend"] == "cpu" and b["machine"]["threads"] >= 1
assert b["peaks"]["gflops"] > 0 and b["peaks"]["gbytes_per_s"] > 0
for key in ("gflops", "gbytes_per_s"):
    both = [b["peaks"][key + when] for when in ("_before", "_behind")]
    assert b["peaks"][key] == max(both) and min(both) > 0
    assert b["peaks"]["moved"] >= max(both) / min(both) - 1 - 1e-9
(r,) = b["results"]
# the share is of the larger ones
assert abs(r["peak_share"] / max(r[k] / b["peaks"][k] for k in
           ("gflops", "gbytes_per_s")) - 1) < 1e-6
for key in ("seconds_min", "seconds_median", "gflops", "gbytes_per_s",
            "peak_share"):
    assert r[key] > 0, key
assert r["seconds_min"] <= r["seconds_median"]
assert 0 < r["error_budget"] <= 1 and r["kernel"] and r["case"]
# what was counted: 2 FLOP for each head, key, and column of key and value
assert abs(r["gflops"] * r["seconds_min"] * 1e9 /
           (2 * 3 * 49 * (80 + 64)) - 1) < 1e-6
END
fi
expect 0 bench --milliseconds 1 --case "$small" --json -
head -c 1 "$work/out" | grep -q '{' || fail 'JSON alone was asked for'

# the peak is that of the level, however it is named
expect 0 bench --milliseconds 1 --case "$small" --cpu-mask portable \
  --backend cpu
has out 'multiply-adds, plain C, threads:'
expect 0 bench --milliseconds 1 --case "$small" --backend cpu \
  --options 'isa=portable;threads=1'
has out 'multiply-adds, plain C, threads: 1'

# pages in turn give the same answer
expect 0 bench --milliseconds 1 --rotate 1 --case "$small" \
  'decode:f16:b2,h4,q1,page16,len=200' \
  'kv_copy:bf16:nb8,nbs8,copies8' 'merge:f32:n4,h3,s4,v32'
[ "$(grep -c '%' "$work/out")" -ge 3 ] || fail 'not all were measured'

# lengths side by side; weights in turn
expect 0 bench --milliseconds 1 --rotate 1 --case \
  'decode:bf16:b2,h3,q1,page16,l64,r16,len=190' \
  'decode:bf16:b2,h3,q1,page16,l64,r16,len=40' \
  'decode:bf16:b1,h3,q1,page16,l64,r16,len=50' 'matmul:f32:m2,n40,k64' \
  'q_absorb:bf16:n2,h2,l64,p16' 'v_expand:bf16:n2,h2,l64,v16'
has out 'share of the nearer peak   len        40  len       190'
grep '^decode:' "$work/out" >"$work/lines" # shares of the larger peaks are not
[ "$(grep -c 'decode:bf16:b2,h3,q1,page16' "$work/lines")" = 3 ] ||
  fail 'two lengths are not one line'
[ "$(grep -c 'decode:bf16:b1,h3,q1,page16' "$work/lines")" = 1 ] ||
  fail 'a line that has one length alone is there twice'

# a wrong answer gets no time
expect 1 bench --backend planted --options 'fault=yarn-factor' \
  --milliseconds 1 --case "$small"
has out 'wrong: '
expect 77 bench --backend cpu --milliseconds 1 \
  --case 'decode:f64:b1,h1,q1,page16,len=3'
has out 'unsupported: '
expect 0 bench --sweeps
has out 'prefill'
expect 2 bench --sweep nonsense
expect 2 bench --nonsense
expect 3 bench --case 'decode:bf16:what'
expect 0 bench --help

finish
