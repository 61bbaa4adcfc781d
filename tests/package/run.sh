#!/bin/sh
# run.sh SOURCE BUILD CC [--tool]: installs BUILD, moves it elsewhere, and
# uses what came: find_package(mla), pkg-config, the template out of tree.
# With --tool, mlacheck must be there and pass the template.
set -eu
LC_ALL=C
export LC_ALL
source=$1
build=$2
cc=$3
tool=${4:-}
here=$source/tests/package
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "package: $*"; }
quietly() { # runs a command; its output only if it fails
  "$@" >"$work/log" 2>&1 || {
    say "failed: $*"
    head -n 40 "$work/log"
    exit 1
  }
}

quietly cmake --install "$build" --prefix "$work/first"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
libdir=$(dirname "$(find "$prefix" -name 'libmla.*' | head -n 1)")
for header in backend.h mla.h version.h dlpack.h; do
  [ -f "$prefix/include/mla/$header" ] || {
    say "$header is not installed"
    exit 1
  }
done
if grep -rIl -e "$source" -e "$build" -e '/libdnnl' -e '/libgomp' "$prefix"; then
  say 'the files above hold paths of the machine that built them'
  exit 1
fi

# The template, copied, built with nothing but the package.
cp -r "$prefix/share/mla/template" "$work/port"
quietly cmake -S "$work/port" -B "$work/port-build" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS='-Wall -Wextra -Wpedantic -Werror' \
  -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$work/port-build"
plugin=$work/port-build/libport.so
say 'the template builds out of tree'

# A caller, by CMake.
quietly cmake -S "$here/consumer" -B "$work/consumer" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$work/consumer"
LD_LIBRARY_PATH=$libdir "$work/consumer/consumer" "$plugin"
say 'find_package(mla) works'

# A caller, by pkg-config and the bare compiler.
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
static=--static
[ -f "$libdir/libmla.a" ] || static=
# Words are wanted.
# shellcheck disable=SC2046
quietly "$cc" -std=c99 -Wall -Wextra -Wpedantic -Werror \
  "$here/consumer/consumer.c" -o "$work/bare" \
  $(pkg-config --cflags --libs $static mla)
LD_LIBRARY_PATH=$libdir "$work/bare" "$plugin"
say "pkg-config ${static:-} works"

# A shared library shows what the headers declare, and no more.
if [ -f "$libdir/libmla.so" ]; then
  nm -D --defined-only "$libdir/libmla.so" | awk '{print $3}' |
    sort >"$work/has"
  cat "$prefix"/include/mla/*.h | grep -v '^#' | tr '\n' ' ' |
    grep -o 'MLA_API [^;]*;' | sed 's/(.*//; s/.*[ *]//' | sort >"$work/wants"
  if ! diff "$work/wants" "$work/has"; then
    say 'what is exported is not what the headers declare'
    exit 1
  fi
  say "$(wc -l <"$work/has") functions are exported, all declared"
fi

if [ -n "$tool" ]; then
  [ -x "$prefix/bin/mlacheck" ] || {
    say 'mlacheck is not installed'
    exit 1
  }
  quietly ctest --test-dir "$work/port-build" --no-tests=error \
    --output-on-failure
  say 'mlacheck passes the template'
  # What a claim lacks can be waived, with a link.
  sed 's/ONLY decode:f32/ONLY decode:f32 merge:f32 WAIVERS known.json/' \
    "$prefix/share/mla/template/CMakeLists.txt" >"$work/port/CMakeLists.txt"
  for waived in merge:bf16 merge:f32; do
    cat >"$work/port/known.json" <<X
{"format": "mla-waivers", "version": 1, "waivers": [
  {"case": "$waived:*", "link": "https://example.org/issues/7"}]}
X
    code=0
    cmake -S "$work/port" -B "$work/port-build" >"$work/log" 2>&1 &&
      ctest --test-dir "$work/port-build" --no-tests=error \
        --output-on-failure >>"$work/log" 2>&1 || code=1
    [ "$code" = "$([ $waived = merge:f32 ] && echo 0 || echo 1)" ] || {
      say "with $waived waived the test of a port without merge gives $code"
      cat "$work/log"
      exit 1
    }
  done
  say 'what is waived fails no port, what is not does'
  # A claim of nothing (what smoke lets a port leave out, and it does) fails,
  # even where the runner takes 77 for skipped; and a port without mlacheck
  # fails too.
  {
    sed 's/ONLY decode:f32/ONLY index:bf16/' "$prefix/share/mla/template/CMakeLists.txt"
    echo 'set_tests_properties(port_conformance PROPERTIES SKIP_RETURN_CODE 77)'
  } >"$work/port/CMakeLists.txt"
  grep -q 'ONLY index:bf16' "$work/port/CMakeLists.txt"
  for mlacheck in "$prefix/bin/mlacheck" "$work/nowhere/mlacheck"; do
    quietly cmake -S "$work/port" -B "$work/port-build" \
      -DMLA_MLACHECK="$mlacheck"
    if ctest --test-dir "$work/port-build" --no-tests=error \
      >"$work/log" 2>&1; then
      say "a claim of nothing is no failure ($mlacheck)"
      cat "$work/log"
      exit 1
    fi
    grep -q 'port_conformance (\(Failed\|Not Run\|BAD_COMMAND\))' "$work/log" || {
      say "the test of a claim of nothing did not fail ($mlacheck)"
      cat "$work/log"
      exit 1
    }
  done
  say 'a claim of nothing fails'
fi
