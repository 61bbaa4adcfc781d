#!/bin/sh
# headers_alone.sh c|c++ SOURCE BUILD [COMPILER]: each public header compiles
# alone, without a warning, under every compiler that is here and every
# standard that it promises. Exit 77 without any compiler of the language.
set -u
language=$1
source=$2
build=$3
shift 3
if [ "$language" = c ]; then
  names="$* gcc-12 clang-14 clang-19"
  standards='c99 c11'
  suffix=c
else
  names='c++ g++-12 clang++-14 clang++-19'
  standards='c++17'
  suffix=cpp
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0
done=0
for compiler in $names; do
  command -v "$compiler" >/dev/null || continue
  for header in "$source"/include/mla/*.h "$build"/include/mla/*.h; do
    name=mla/$(basename "$header")
    # Twice: a header guards itself. The use keeps pedants from an empty unit.
    printf '#include "%s"\n#include "%s"\nextern int mla_used;\n' \
      "$name" "$name" >"$work/alone.$suffix"
    for standard in $standards; do
      done=$((done + 1))
      "$compiler" "-std=$standard" -Wall -Wextra -Wpedantic -Wshadow \
        -Wconversion -Wno-sign-conversion -Werror -fsyntax-only \
        -I"$source/include" -I"$build/include" "$work/alone.$suffix" || {
        echo "$name does not compile alone: $compiler -std=$standard"
        bad=1
      }
    done
  done
done
if [ $done -eq 0 ]; then
  echo "no compiler for $language here" >&2
  exit 77
fi
echo "$done compilations, $([ $bad -eq 0 ] && echo no || echo some) failures"
exit $bad
