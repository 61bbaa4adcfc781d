#!/bin/sh
# check_format.sh ROOT: every C file is as clang-format 14 leaves it. Other
# versions format differently, so no other will do; exit 77 without it.
set -u
cd "${1:?usage: check_format.sh ROOT}" || exit 2
format=
for name in clang-format-14 clang-format; do
  case $($name --version 2>/dev/null) in
    *'version 14.'*) format=$name && break ;;
  esac
done
if [ -z "$format" ]; then
  echo "format: clang-format 14 is not installed" >&2
  exit 77
fi
# What the tree holds: git knows; without it, all but builds.
files=
[ ! -e .git ] || files=$(git ls-files '*.c' '*.h' 2>/dev/null) || files=
[ -n "$files" ] ||
  files=$(find . -name 'build*' -type d -prune -o -name '*.[ch]' -print)
if [ -z "$files" ]; then
  echo "format: no C file under $(pwd)" >&2
  exit 2
fi
# One call for all: starting it costs more than most files do.
# shellcheck disable=SC2086
bad=$(for f in $files; do [ ! -f "$f" ] || echo "$f"; done |
  xargs $format --dry-run -Werror 2>&1 |
  sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: .*/\1/p' | sort -u)
if [ -n "$bad" ]; then
  for f in $bad; do
    echo "format: $f: run $format -i on it"
  done
  exit 1
fi
echo "format: all $(echo "$files" | wc -w) files agree"
