#!/bin/sh
# Each rule of check_house.sh and check_format.sh, shown to fail: a small
# tree that keeps all the rules, then one fault at a time.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d) || exit 2
trap 'rm -rf "$tree"' EXIT
failures=0
count=0
root=root # in pieces, so that the rule does not find this file
beside=shared

fresh_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/include/mla" "$tree/common" "$tree/backends/one" \
    "$tree/backends/two" "$tree/judge" "$tree/tools" "$tree/tests"
  echo 'int in_backend;' >"$tree/include/mla/backend.h"
  printf '#include "mla/backend.h"\n' >"$tree/common/low.h"
  printf '#include "low.h"\n' >"$tree/backends/one/one.h"
  printf '#include "low.h"\n' >"$tree/backends/two/two.h"
  printf '#include "low.h"\n#include "one.h"\n' >"$tree/judge/judge.h"
  printf '#include "judge.h"\n' >"$tree/tools/tool.h"
  printf '#include "judge.h"\n#include "low.h"\n' >"$tree/tests/test.h"
}

verdict() { # verdict WANTED GOT WHAT
  count=$((count + 1))
  [ "$1" = "$2" ] && return
  echo "selftest: $3: exit $2, expected $1"
  failures=$((failures + 1))
}

# fault RULE: the tree, as the caller changed it, breaks RULE and no other.
fault() {
  sh "$here/check_house.sh" "$tree" >"$tree/out" 2>/dev/null
  verdict 1 $? "$1 ($2)"
  if grep -qv "^$1: " "$tree/out"; then
    echo "selftest: $1 ($2): other rules spoke too"
    cat "$tree/out"
    failures=$((failures + 1))
  fi
  fresh_tree
}

fresh_tree
sh "$here/check_house.sh" "$tree" >"$tree/out" 2>&1
verdict 0 $? 'a tree that keeps the rules'
rm "$tree/out"

echo '#include "one.h"' >>"$tree/common/low.h"
fault layers 'common includes a backend'
echo '#include "two.h"' >>"$tree/backends/one/one.h"
fault layers 'one backend includes another'
echo '#include "tool.h"' >>"$tree/judge/judge.h"
fault layers 'the judge includes the tool'
echo '#include "test.h"' >>"$tree/tools/tool.h"
fault layers 'the tool includes a test'
echo '#include "low.h"' >>"$tree/include/mla/backend.h"
fault layers 'a public header includes common'
echo '#include "nowhere.h"' >>"$tree/common/low.h"
fault layers 'a header that is not in the tree'
echo '#include <cjson/cJSON.h>' >>"$tree/common/low.h"
fault core 'cJSON in common'
echo '#  include <xxhash.h>' >>"$tree/backends/one/one.h"
fault core 'xxHash in a backend'
echo 'int x;' | tee "$tree/tests/same.c" >"$tree/tools/same.c"
fault names 'the same file name twice'
yes '/* line */' | head -n 801 >"$tree/common/long.c"
fault length 'a file of 801 lines'
printf '/* %080d */\n' 0 >"$tree/common/wide.c"
fault columns 'a line of 86 columns'
for word in TO:DO FIX:ME XX:X TB:D HA:CK; do
  echo "/* $(echo $word | tr -d :): later */" >"$tree/tools/later.c"
  fault markers "$word"
done
printf '/* see /%s/x/main */\n' "${root}" >"$tree/common/path.c"
fault paths 'a path of one machine'
printf '/* see ../%s/x */\n' "${beside}" >"$tree/common/path.c"
fault paths 'a folder beside the checkout'
printf 'int a;\tint b;\n' >"$tree/common/tab.c"
fault text 'a tab'
printf 'int a; \n' >"$tree/common/blank.c"
fault text 'a blank at the end of a line'
printf 'int a;\r\n' >"$tree/common/crlf.c"
fault text 'a carriage return'

for link in none.md '#none' page.md#none docs/page.md; do
  mkdir -p "$tree/docs"
  printf '# One\n[x](%s)\n' "$link" >"$tree/docs/page.md"
  fault links "a link to $link"
done
mkdir -p "$tree/docs"
printf '# One\n`judge/none.c`\n' >"$tree/docs/page.md"
fault links 'a name of a file that there is not'
mkdir -p "$tree/docs"
printf '# One, `two`\n[x](#one-two) [y](../docs/page.md#one-two) `[z](none)`\n%s\n' \
  '`docs/page.md` `none.h.in` `any_*.c`' >"$tree/docs/page.md"
sh "$here/check_house.sh" "$tree" >/dev/null 2>&1
verdict 0 $? 'links: such as lead somewhere'
fresh_tree

# A map of hazards of one line, whole; then without one thing at a time.
hazards() { # hazards LINE WANTED WHAT
  mkdir -p "$tree/judge/planted" "$tree/docs" "$tree/golden/profiles"
  echo '  X(A, "tail-nan", "TAIL-NAN", "what it is")' \
    >"$tree/judge/planted/planted_list.h"
  printf '### TAIL-NAN\n- `tail-nan`: what\n' >"$tree/docs/hazards.md"
  echo '@include smoke' >"$tree/golden/profiles/full.txt"
  echo '?decode:bf16:b1  TAIL-NAN' >"$tree/golden/profiles/smoke.txt"
  touch "$tree/golden/profiles/invalid.txt" "$tree/golden/profiles/batch.txt"
  echo "$1" | tr ' ~' '\t ' >"$tree/docs/hazards.tsv"
  HAZARDS=1 sh "$here/check_house.sh" "$tree" hazards >/dev/null 2>&1
  verdict "$2" $? "hazards: $3"
  fresh_tree
  rm -rf "$tree/docs" "$tree/golden"
}
hazards 'B1 x#1 TAIL-NAN tail-nan;a=2 decode:bf16:b1 so' 0 'a whole line'
hazards 'B1 x#1 TAIL-NAN - - no:~never' 0 'a reason'
hazards 'B1 x#1 TAIL-NAN - test:tests/test.h so' 0 'a test'
hazards '' 1 'no line'
hazards 'B1 x#1 TAIL-NAN - - so' 1 'no answer'
hazards 'B1 x#1 TAIL-NAN tail-nan - so' 1 'a fault that nothing shows'
hazards 'B1 x#1 TAIL-NAN tail decode:bf16:b1 so' 1 'no such fault'
hazards 'B1 x#1 TAIL-NAN tail-nan decode:bf16:b2 so' 1 'no such case'
hazards 'B1 x#1 TAIL-NAN - test:tests/none.h so' 1 'no such test'
hazards 'B1 x#1 TAIL tail-nan decode:bf16:b1 so' 1 'no such class'
hazards 'B1 x#1 TAIL-NAN tail-nan decode:bf16:b1' 1 'a field is missing'

rm -rf "${tree:?}"/*
sh "$here/check_house.sh" "$tree" >/dev/null 2>&1
verdict 2 $? 'a tree without sources'
sh "$here/check_format.sh" "$tree" >/dev/null 2>&1
none=$?
if [ $none -ne 77 ]; then
  verdict 2 $none 'format: a tree without sources'
  cp "$here/../../.clang-format" "$tree/"
  printf 'int main(void) {\n  return 0;\n}\n' >"$tree/good.c"
  sh "$here/check_format.sh" "$tree" >/dev/null
  verdict 0 $? 'format: a formatted file'
  echo 'int   main( void ){return 0;}' >"$tree/bad.c"
  sh "$here/check_format.sh" "$tree" >/dev/null
  verdict 1 $? 'format: an unformatted file'
fi

echo "selftest: $count checks, $failures failures"
[ $failures -eq 0 ]
