#!/bin/sh
# test_html.sh MLACHECK PLUGIN SOURCE PYTHON [BROWSER]: the page in a browser:
# a screenshot that shows it, and no error on the console. Exit status 77: no
# browser here.
set -u
mlacheck=$1
plugin=$2
source=$3
python=$4
browser=${5-}
. "$source/tests/cli/cli.sh"
if [ -z "$browser" ] || [ -z "$python" ]; then
  echo 'skipped: no Chromium (chromium-headless-shell or chromium), or no python3'
  exit 77
fi

# Few cases, fixed there: profiles grow.
cp "$source/tests/report/few.txt" "$work/few.txt"

# What the browser says on its console goes to $work/console, the page as it
# understood it to $work/dom.
look() { # PAGE.html SHOT.png
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu \
    --disable-dev-shm-usage --user-data-dir="$work/profile" --no-first-run \
    --force-device-scale-factor=1 --hide-scrollbars --window-size=800,900 \
    --enable-logging=stderr --screenshot="$2" "file://$1" \
    >"$work/log" 2>&1 || {
    fail "the browser fails on $1"
    tail -n 20 "$work/log"
  }
  grep -F CONSOLE "$work/log" >"$work/console" || :
}
quiet() {
  [ ! -s "$work/console" ] || {
    fail "$1: the console is not empty"
    head -n 5 "$work/console"
  }
}
shows() {
  "$python" -B "$source/tests/report/check_png.py" "$@" ||
    fail "$1 does not show the page"
}

# ---- one run with failures, maps, waivers, things unsupported
cat >"$work/known.json" <<'X'
{"format": "mla-waivers", "version": 1, "waivers": [
  {"case": "merge:bf16:*", "link": "https://example.org/issues/7"},
  {"case": "decode:f16:*", "link": "https://example.org/issues/8"}]}
X
expect 1 run --plugin "$plugin" --options fault=value --no-shrink --profile \
  "$work/few.txt" --waivers "$work/known.json" \
  --html "$work/one.html" --json "$work/one.json"
look "$work/one.html" "$work/one.png"
quiet one.html
shows "$work/one.png" 30 ffdcd9 c0262d fff1c2
for word in 'Operation, format, backend' 'Error over budget' 'Failures' \
  'Environment' 'Stale waivers' '<svg' 'rerun  mlacheck run --plugin'; do
  grep -qF -- "$word" "$work/one.html" || fail "the page lacks $word"
done
# one file: nothing is fetched, nothing is run
! grep -qE '<script|<link|<img|src=|@import|url\(' "$work/one.html" ||
  fail 'the page needs something else'

# ---- several backends beside each other
for backend in ref cpu; do
  expect 0 run --backend $backend --profile "$work/few.txt" \
    --json "$work/$backend.json"
done
expect 0 report "$work/ref.json" "$work/cpu.json" --html "$work/two.html"
look "$work/two.html" "$work/two.png"
quiet two.html
shows "$work/two.png" 20 dafbe1 1a7f37
expect 1 report "$work/ref.json" "$work/one.json" --html "$work/two.html"

# ---- a run of nothing is no green page
printf '# no case\n' >"$work/empty.txt"
expect 77 run --backend ref --profile "$work/empty.txt" --html "$work/none.html"
grep -q 'class="verdict bad"><b>NOTHING' "$work/none.html" ||
  fail 'a run of nothing looks well'

# ---- hostile text stays text
"$python" -B "$source/tests/report/make_hostile.py" "$work/one.json" \
  "$work/hostile.json"
expect 1 report "$work/hostile.json" --html "$work/hostile.html"
look "$work/hostile.html" "$work/hostile.png"
quiet hostile.html
shows "$work/hostile.png" 10
! grep -qE '<script|<img' "$work/hostile.html" || fail 'text became markup'

# ---- the test can fail: a script that errs, a blank page
echo '<!DOCTYPE html><script>nosuch()</script>' >"$work/bad.html"
look "$work/bad.html" "$work/bad.png"
[ -s "$work/console" ] || fail 'an error on the console is not seen'
if "$python" -B "$source/tests/report/check_png.py" "$work/bad.png" 5 \
  >/dev/null; then
  fail 'a blank page is not seen'
fi
finish
