# cli.sh - what the tests of the command share. Use: . cli.sh MLACHECK
LC_ALL=C
export LC_ALL
OMP_WAIT_POLICY=passive # tests run beside each other
export OMP_WAIT_POLICY
unset MLA_PLUGIN_PATH NO_COLOR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE WORDS...: runs mlacheck; output to $work/out and $work/err.
expect() {
  wanted=$1
  shift
  code=0
  "$mlacheck" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  [ "$code" = "$wanted" ] && return
  fail "exit code $code, not $wanted: mlacheck $*"
  head -n 20 "$work/out" "$work/err"
}

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# has FILE TEXT, lacks FILE TEXT
has() { grep -qF -e "$2" "$work/$1" || {
  fail "\"$2\" is not in what went to std$1"
  head -n 20 "$work/$1"
}; }
lacks() { ! grep -qF -e "$2" "$work/$1" || fail "\"$2\" is in std$1"; }
empty() { [ ! -s "$work/$1" ] || {
  fail "something went to std$1"
  head -n 5 "$work/$1"
}; }

finish() {
  [ $failures = 0 ] || exit 1
  echo "all as it should be"
}
