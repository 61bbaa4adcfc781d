#!/bin/sh
# hip_lazy.sh MLACHECK FAKES: the HIP backend and a run-time library that
# comes late, is absent, too old, or has another device than it is built for.
set -u
mlacheck=${1:?usage: hip_lazy.sh MLACHECK FAKES}
fakes=${2:?usage: hip_lazy.sh MLACHECK FAKES}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failures=0

# with FAKE COMMAND...: that library is found before any other.
with() {
  fake=$1
  shift
  LD_LIBRARY_PATH=$fakes/$fake "$@"
}
holds() { # holds WHAT TEXT FILE
  grep -q -- "$2" "$3" && return
  echo "hip_lazy: $1: no \"$2\" in:" >&2
  cat "$3" >&2
  failures=$((failures + 1))
}

! ldd "$mlacheck" 2>/dev/null | grep -q amdhip64 || {
  echo "hip_lazy: $mlacheck needs libamdhip64 to start" >&2
  failures=$((failures + 1))
}

with none "$mlacheck" info --backend hip >"$work/none" 2>&1
holds "no device" 'not available: no ROCm device' "$work/none"
with none "$mlacheck" run --backend hip >"$work/run" 2>&1
status=$?
holds "no device" 'not available: no ROCm device' "$work/run"
[ $status = 3 ] || {
  echo "hip_lazy: run without a device exits $status, not 3" >&2
  failures=$((failures + 1))
}
with broken "$mlacheck" info --backend hip >"$work/broken" 2>&1
holds "no library" 'no ROCm device (libamdhip64.so.* is not installed)' \
  "$work/broken"
with old "$mlacheck" info --backend hip >"$work/old" 2>&1
holds "old library" 'libamdhip64 has no hipGraphLaunch: too old' "$work/old"
with other "$mlacheck" info --backend hip >"$work/other" 2>&1
holds "another device" 'device 0 is gfx1030.*; built for' "$work/other"

# The first decode of the smoke profile, as far as launching it: kernels that
# registered before the library came are known to it by name.
with good "$mlacheck" info --backend hip >"$work/good" 2>&1
holds "a device" 'a device that computes nothing, gfx90a' "$work/good"
FAKE_LOG=$work/log with good "$mlacheck" run --backend hip \
  --case 'decode:f32:b1,h4,q1,page16,len=20,l64,r8' >"$work/case" 2>&1
holds "what ran" FAIL "$work/case"
touch "$work/log"
holds "launches" 'launch .*mla_attend_partial.* grid 1,1,1 block 256' \
  "$work/log"
holds "launches" 'launch .*mla_merge_few.* grid 1,1,1 block 64' "$work/log"
[ $failures = 0 ] || exit 1
echo "hip_lazy: absent, old, other and late libraries are told apart"
