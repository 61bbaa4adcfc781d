#!/bin/sh
# matrix.sh - the reference's digest under other compilers, options, machines.
# See `tests/digest/matrix.sh --help`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

usage() {
  cat <<'X'
usage: tests/digest/matrix.sh [few|native|MACHINE|all]...
       MACHINE: aarch64, riscv64, ppc64le, s390x, i686

Builds oracle_digest in many ways, runs it (under qemu-user where the machine
is not this one), and compares every group with tests/digest/expected.txt.

  native    gcc-12, clang-14 and clang-19, each with -O0, -O3 and
            -O3 -march=native, without and with OpenMP
  few       of those, gcc-12 and clang-19 with -O0 and with -O3 -march=native
  MACHINE   the machine's gcc with -O0 and -O3, and -O3 with OpenMP;
            clang-19 with -O3 for those it finds a C library for
  all       all of them (when nothing is said)

A compiler or an emulator that is not installed is a row "not here". Exit
status: 0 every build gave the expected digest; 1 one did not, or failed; 77
what was asked for by name is not here, or nothing at all was.

Builds are kept in $MLA_MATRIX_DIR when that is set.
X
}

if [ -n "${MLA_MATRIX_DIR:-}" ]; then
  work=$MLA_MATRIX_DIR
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
log=$work/log
: >"$log"

row_format='%-8s %-13s %-17s %-6s %-16s %s\n'
same=0
bad=0
absent=0
asked_absent=0

row() {
  # shellcheck disable=SC2059
  printf "$row_format" "$@"
}

# "gcc 12.2.0" of aarch64-linux-gnu-gcc.
name_of() {
  case $1 in
    *clang*) echo "clang $("$1" -dumpversion)" ;;
    *) echo "gcc $("$1" -dumpfullversion)" ;;
  esac
}

# not_here MACHINE COMPILER OPTIONS OPENMP WHY
not_here() {
  row "$1" "$2" "$3" "$4" - "not here: $5"
  absent=$((absent + 1))
}

# build FOLDER COMPILER OPTIONS OPENMP [cmake arguments...]: 2 is "no OpenMP".
build() {
  folder=$1 compiler=$2 options=$3 openmp=$4
  shift 4
  generator=
  command -v ninja >/dev/null && generator=-GNinja
  if ! cmake -S "$root" -B "$folder" $generator \
    -DCMAKE_BUILD_TYPE=Matrix -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_C_FLAGS="$options" -DMLA_OPENMP="$openmp" -DMLA_TOOL=OFF \
    -DMLA_UNIT_TESTS=OFF -DMLA_CROSSCHECK=OFF -DMLA_MPFR=OFF \
    -DMLA_CUDA=OFF -DMLA_MATRIX=OFF "$@" \
    >"$folder.out" 2>&1; then
    cat "$folder.out" >>"$log"
    grep -q 'MLA_OPENMP=ON, but' "$folder.out" && return 2
    return 1
  fi
  cmake --build "$folder" --target oracle_digest -j 2 >>"$log" 2>&1 || return 1
}

# try MACHINE COMPILER OPTIONS OPENMP EMULATOR [cmake arguments...]
try() {
  machine=$1 compiler=$2 options=$3 openmp=$4 emulator=$5
  shift 5
  name=$(name_of "$compiler")
  folder=$work/$(echo "$machine $compiler $options $openmp" | tr -c 'a-zA-Z0-9\n' _)
  status=0
  build "$folder" "$compiler" "$options" "$openmp" "$@" || status=$?
  if [ $status = 2 ]; then
    not_here "$machine" "$name" "$options" "$openmp" "OpenMP for it"
    return 0
  fi
  program=$(find "$folder" -name oracle_digest -type f 2>/dev/null | head -n 1)
  # Three threads: neither one nor what the machine has.
  # shellcheck disable=SC2086
  if [ $status != 0 ] || [ -z "$program" ] ||
    ! OMP_NUM_THREADS=3 OMP_WAIT_POLICY=passive $emulator "$program" -v >"$folder.txt" 2>>"$log"; then
    row "$machine" "$name" "$options" "$openmp" - "FAILED: see the log"
    bad=$((bad + 1))
    tail -n 20 "$log" >&2
    return 0
  fi
  total=$(sed -n 's/^total *//p' "$folder.txt")
  if cmp -s "$folder.txt" "$here/expected.txt"; then
    row "$machine" "$name" "$options" "$openmp" "$total" same
    same=$((same + 1))
  else
    row "$machine" "$name" "$options" "$openmp" "$total" DIFFERENT
    diff "$here/expected.txt" "$folder.txt" | sed -n 's/^> /    /p'
    bad=$((bad + 1))
  fi
}

native() {
  found=0
  for compiler in gcc-12 clang-14 clang-19; do
    if ! command -v "$compiler" >/dev/null; then
      not_here "$(uname -m)" "$compiler" any any "the compiler"
      continue
    fi
    found=1
    for openmp in OFF ON; do
      for options in -O0 -O3 "-O3 -march=native"; do
        try "$(uname -m)" "$compiler" "$options" "$openmp" ""
      done
    done
  done
  [ $found = 1 ]
}

# Four of native's, for a server: the least and the most that a compiler does.
few() {
  for compiler in gcc-12 clang-19; do
    if ! command -v "$compiler" >/dev/null; then
      not_here "$(uname -m)" "$compiler" any any "the compiler"
      return 1
    fi
    for options in -O0 "-O3 -march=native"; do
      try "$(uname -m)" "$compiler" "$options" OFF ""
    done
  done
}

# machine NAME TRIPLE EMULATOR CLANG_TARGET
# EMULATOR is a command that finds the machine's libraries.
machine() {
  gcc=$2-gcc
  system="-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$1"
  for program in "$gcc" "${3%% *}"; do
    if ! command -v "$program" >/dev/null; then
      not_here "$1" "$gcc" any any "$program"
      return 1
    fi
  done
  for build in "-O0 OFF" "-O3 OFF" "-O3 ON"; do
    # shellcheck disable=SC2086
    try "$1" "$gcc" "${build% *}" "${build#* }" "$3" $system
  done
  if [ -n "$4" ] && command -v clang-19 >/dev/null; then
    # shellcheck disable=SC2086
    try "$1" clang-19 -O3 OFF "$3" $system \
      -DCMAKE_C_COMPILER_TARGET="$4"
  fi
}

# emulated NAME TRIPLE QEMU CLANG_TARGET
emulated() {
  machine "$1" "$2" "$3 -L /usr/$2" "$4"
}

# An x86-64 kernel runs i686 by itself (qemu-i386 hangs in OpenMP's futexes).
i686() {
  lib=/usr/i686-linux-gnu/lib
  if [ "$(uname -m)" = x86_64 ]; then
    machine i686 i686-linux-gnu "$lib/ld-linux.so.2 --library-path $lib" ""
  else
    emulated i686 i686-linux-gnu qemu-i386 ""
  fi
}

part() {
  case $1 in
    few | native | i686) $1 ;;
    aarch64)
      emulated aarch64 aarch64-linux-gnu "qemu-aarch64 -cpu max" \
        aarch64-linux-gnu
      ;;
    riscv64)
      emulated riscv64 riscv64-linux-gnu qemu-riscv64 riscv64-linux-gnu
      ;;
    ppc64le)
      emulated ppc64le powerpc64le-linux-gnu qemu-ppc64le powerpc64le-linux-gnu
      ;;
    s390x) emulated s390x s390x-linux-gnu qemu-s390x s390x-linux-gnu ;;
  esac
}

# Arguments first: nothing is built before all are understood.
wanted=
for word in "${@:-all}"; do
  case $word in
    few | native | aarch64 | riscv64 | ppc64le | s390x | i686)
      wanted="$wanted $word"
      ;;
    all) wanted="$wanted all" ;;
    -h | --help | help) usage && exit 0 ;;
    *) echo "matrix.sh: what is \"$word\"?" >&2 && usage >&2 && exit 2 ;;
  esac
done

row machine compiler options OpenMP digest verdict
for word in $wanted; do
  if [ "$word" = all ]; then
    for each in native aarch64 riscv64 ppc64le s390x i686; do
      part $each || true
    done
  else
    part "$word" || asked_absent=1
  fi
done

echo "$same equal to expected.txt, $bad not, $absent not here"
[ $bad = 0 ] || exit 1
[ $asked_absent = 0 ] && [ $same != 0 ] || exit 77
