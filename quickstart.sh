#!/bin/sh
# quickstart.sh - from a fresh checkout to a verdict, or to a passed test
# suite. See `./quickstart.sh --help`.
set -eu
cd "$(dirname "$0")"

usage() {
  cat <<'X'
usage: ./quickstart.sh [judge|build|test] [--no-install]

  judge   (the default) install what is missing, build, and judge every
          backend that this machine has: on the golden vectors, and on
          vectors that a model library made
  build   install what is missing and build into build/release
  test    install what is missing and run the whole test suite, with other
          compilers, sanitizers and emulated machines (build/ci)

  --no-install   install nothing; say what is missing and stop

Packages are installed with apt-get, so that needs root and Debian 12 or a
relative of it. Elsewhere the missing ones are named. Running it again is
cheap: what is there is used. Exit status: 0 all is well, 1 not, 2 usage,
3 something is missing.
X
}

command=judge
may_install=yes
for arg in "$@"; do
  case $arg in
    judge | build | test) command=$arg ;;
    --no-install) may_install=no ;;
    -h | --help | help) usage && exit 0 ;;
    *) echo "quickstart: what is \"$arg\"?" >&2 && usage >&2 && exit 2 ;;
  esac
done

say() { echo "quickstart: $*"; }
log=build/quickstart.log
mkdir -p build
: >"$log"

# quietly WHAT COMMAND...: its output goes to the log, and is shown only when
# it fails.
quietly() {
  what=$1
  shift
  say "$what"
  echo "+ $*" >>"$log"
  if ! "$@" >>"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    say "failed: $what (all of its output: $log)" >&2
    exit 1
  fi
}

# --------------------------------------------------------- what is needed

# Each line: how to see that it is there, and the Debian packages that bring
# it. A probe is shell.
needs_to_build='
compiles | gcc libc6-dev
new_enough_cmake | cmake
command -v ninja | ninja-build
command -v make | make
command -v pkg-config | pkg-config
pkg-config --exists libcjson | libcjson-dev
pkg-config --exists libxxhash | libxxhash-dev
'
needs_to_test='
command -v git | git
command -v gcc-12 | gcc-12
command -v c++ | g++
command -v clang-14 | clang-14
command -v clang-19 | clang-19
command -v clang-format-14 | clang-format-14
pkg-config --exists check | check
pkg-config --exists mpfr | libmpfr-dev
has_header dnnl.h | libdnnl-dev
command -v mpirun && command -v mpicc | libopenmpi-dev openmpi-bin
has_numpy | python3 python3-numpy
command -v xmllint | libxml2-utils
has_browser | chromium-headless-shell
command -v qemu-s390x | qemu-user
links aarch64-linux-gnu-gcc | gcc-aarch64-linux-gnu libc6-dev-arm64-cross
links s390x-linux-gnu-gcc | gcc-s390x-linux-gnu libc6-dev-s390x-cross
command -v clang-offload-bundler-19 | clang-tools-19
command -v ld.lld-19 | lld-19
command -v llvm-readelf-19 | llvm-19
has_header hip/hip_runtime_api.h | libamdhip64-dev
has_device_libs | rocm-device-libs
'

links() { # a compiler without its C library is of no use
  command -v "$1" && echo '#include <stdio.h>
    int main(void) { return puts("") < 0; }' |
    "$1" -x c - -o build/probe && rm -f build/probe
}
compiles() { links "${CC:-cc}"; }
new_enough_cmake() { echo 'cmake_minimum_required(VERSION 3.25)' \
  >build/probe.cmake && cmake -P build/probe.cmake && rm build/probe.cmake; }
has_header() { echo "#include <$1>" |
  gcc-12 -E -D__HIP_PLATFORM_AMD__ -x c -; }
has_device_libs() {
  ls /usr/lib/*/amdgcn/bitcode/ocml.bc /opt/rocm/amdgcn/bitcode/ocml.bc |
    grep -q .
}
has_browser() { command -v chromium-headless-shell || command -v chromium; }
has_numpy() { python3 -c 'import numpy' ||
  /usr/bin/python3 -c 'import numpy'; }

# missing NEEDS: the packages for every probe that fails.
missing() {
  echo "$1" | while IFS='|' read -r probe packages; do
    [ -z "$probe" ] || eval "$probe" </dev/null >/dev/null 2>&1 ||
      echo "$packages"
  done | xargs
}

apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 "$@"
}

# --no-remove: some compilers exclude others (gcc-multilib excludes the cross
# compilers); that choice is the owner's.
apt_install() {
  packages=$*
  # shellcheck disable=SC2086
  apt install -y --no-install-recommends --no-remove $packages && return
  # The lists may be absent or older than the archive.
  # shellcheck disable=SC2086
  apt update && apt install -y --no-install-recommends --no-remove $packages
}

provide() {
  packages=$(missing "$1")
  [ -n "$packages" ] || return 0
  if [ $may_install = yes ] && command -v apt-get >/dev/null &&
    [ "$(id -u)" = 0 ]; then
    # shellcheck disable=SC2086
    quietly "installing $packages" apt_install $packages
    packages=$(missing "$1")
    [ -n "$packages" ] || return 0
    say "installed, yet still not found: $packages" >&2
    exit 3
  fi
  {
    say "missing on this machine (names of Debian's packages):"
    echo "  $packages"
    if command -v apt-get >/dev/null; then
      say "as root: apt-get update && apt-get install --no-install-recommends" \
        "$packages"
    else
      say "install what corresponds to them here, then run this again"
    fi
    say "needed: a C11 compiler, CMake >= 3.25, Ninja, pkg-config, cJSON," \
      "xxHash; docs/building.md tells more"
  } >&2
  exit 3
}

# ------------------------------------------------------------- what to do

build_release() {
  provide "$needs_to_build"
  quietly "configuring (build/release)" cmake --preset release -DMLA_TOOL=ON
  quietly "building" cmake --build --preset release --target "$1"
}

# judge BACKEND NAME VECTORS WHAT: a line on the terminal, all in a report.
judge() {
  backend=$1 report=build/verdict/$1-$2.txt
  say "judging $backend on $4"
  code=0
  $mlacheck run --backend "$backend" --vectors "$3" >"$report" 2>&1 \
    </dev/null || code=$?
  if [ $code = 0 ]; then
    echo "  $(tail -n 1 "$report")"
    return
  fi
  # What failed, not what passed.
  grep -v PASS "$report" | tail -n 60 || true
  echo "  NOT PASSED (exit $code): all of it is in $report"
  failed="$failed $backend"
}

# Backends that were built and not judged: a GPU whose driver is not found
# must not look as if it had passed.
without_device() {
  $mlacheck info </dev/null | awk '
    /^[a-z]/ { name = $1 }
    /^ +no device/ { sub(/^ +/, ""); print "  not judged: " name ", " $0 }'
}

# One by one, so that one backend's failure does not hide another's.
judge_all() {
  mlacheck=build/release/tools/mlacheck
  failed=
  mkdir -p build/verdict
  backends=$($mlacheck list backends </dev/null)
  for backend in $backends; do
    judge "$backend" golden golden/v1 "golden vectors (seconds)"
    judge "$backend" external golden/external \
      "layers of a public model library (a minute or two)"
  done
  echo
  if [ -n "$failed" ] || [ -z "$backends" ]; then
    say "NOT PASSED:${failed:- no backend was found}." >&2
    echo "Each FAIL above ends with the line that shows it again." >&2
    exit 1
  fi
  # shellcheck disable=SC2086
  say "PASSED: $(echo $backends | sed 's/ / and /g')"
  without_device
  cat <<X

Every answer of these backends was within the error that its arithmetic
allows, on stored vectors and on layers computed by a public model library.
Figures for each case: build/verdict/. Next:

  $mlacheck info       what each backend serves
  $mlacheck run        the smoke profile, case by case with -v
  docs/porting.md                      a kernel of your own, judged the same way
  ./quickstart.sh test                 the whole test suite
X
}

run_tests() {
  provide "$needs_to_build
$needs_to_test"
  for machine in aarch64 s390x; do
    quietly "libraries for emulated $machine" \
      sh tests/cross/fetch_sysroot.sh $machine
  done
  quietly "configuring (build/ci)" cmake --preset ci
  quietly "building" cmake --build --preset ci
  say "testing"
  # Some tests configure trees of their own, and make need not be here.
  export CMAKE_GENERATOR="${CMAKE_GENERATOR:-Ninja}"
  exec ctest --preset ci </dev/null
}

case $command in
  judge) build_release mlacheck && judge_all ;;
  build) build_release all && say "built: build/release/tools/mlacheck" ;;
  test) run_tests ;;
esac
