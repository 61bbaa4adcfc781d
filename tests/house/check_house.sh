#!/bin/sh
# check_house.sh ROOT [RULE...]: the rules of CONTRIBUTING.md that a program
# can hold. Every finding is one line "RULE: file: what"; exit 1 if there is
# any. check_house_selftest.sh shows that each rule can fail.
set -u
LC_ALL=C
export LC_ALL
house=$(cd "$(dirname "$0")" && pwd)
cd "${1:?usage: check_house.sh ROOT [RULE...]}" || exit 2
shift
all_rules='layers core names length columns markers paths text links hazards'
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# What the tree holds: git knows; without it, all but builds and hidden files.
list_files() {
  if [ -e .git ] && git ls-files >"$work/git" 2>/dev/null; then
    while IFS= read -r f; do
      [ -f "$f" ] && echo "$f"
    done <"$work/git"
  else
    find . -name '.?*' -prune -o -name 'build*' -type d -prune -o -type f \
      -print | sed 's|^\./||'
  fi | sort
}

# include <- common <- backends <- judge <- tools, tests. A file may include
# what is in its own folder or lower; a backend, no other backend.
rule_layers() {
  # shellcheck disable=SC2046
  awk '
    function level(f) {
      if (f ~ /^include\//) return 1
      if (f ~ /^common\//) return 2
      if (f ~ /^(backends|parallel)\//) return 3
      if (f ~ /^judge\//) return 4
      if (f ~ /^tools\//) return 5
      if (f ~ /^tests\//) return 6
      return 0
    }
    function backend(f) {
      if (!sub(/^backends\//, "", f) || !sub(/\/.*/, "", f)) return ""
      return f
    }
    function base(f) { sub(/.*\//, "", f); return f }
    NR == FNR { where[base($0)] = $0; next }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
      name = $0; sub(/^[^"]*"/, "", name); sub(/".*/, "", name)
      if (name == "mla/version.h") next
      to = where[base(name)]
      if (to == "" ) {
        printf "%s: includes \"%s\", which is not in the tree\n", FILENAME, name
        next
      }
      if (level(to) > level(FILENAME) ||
          (backend(to) != "" && backend(FILENAME) != "" &&
           backend(to) != backend(FILENAME)) ||
          (level(FILENAME) == 5 && level(to) == 6))
        printf "%s: includes %s, which stands above it or beside it\n", \
          FILENAME, to
    }' "$work/code" $(cat "$work/layered")
}

# include, common and backends need nothing beyond libc, OpenMP and their
# platform: no header of the tools or tests dependencies.
rule_core() {
  grep -E '^(include|common|backends)/' "$work/layered" |
    xargs -r grep -nEH \
      '#[ \t]*include[ \t]*<(cjson/|cJSON|xxhash|check\.h|mpfr|gmp|subunit)' |
    sed 's/$/  (the core needs libc alone)/'
}

rule_names() {
  sed 's|.*/||' "$work/code" | sort | uniq -d | while IFS= read -r name; do
    echo "$(grep -E "(^|/)$name\$" "$work/code" | tr '\n' ' '): one name twice"
  done
}

rule_length() {
  grep -vE '^(golden|docs)/|^LICENSE$|\.(json|tsv|safetensors)$' \
    "$work/files" | while IFS= read -r f; do
    lines=$(wc -l <"$f")
    [ "$lines" -le 800 ] || echo "$f: $lines lines, at most 800"
  done
}

rule_columns() {
  xargs -r awk 'length($0) > 80 {
    printf "%s:%d: %d columns, at most 80\n", FILENAME, FNR, length($0)
  }' <"$work/code"
}

rule_markers() {
  # Written so that this file does not find itself.
  text_files | xargs -r grep -nEH \
    '(^|[^A-Za-z_])(TO[D]O|FIX[M]E|XX[X]|TB[D]|HA[C]K)($|[^A-Za-z_])'
}

# Paths of one machine have no meaning on another.
rule_paths() {
  text_files | xargs -r grep -nEH \
    '(^|[^A-Za-z0-9_.])(/wor[k]|/roo[t]|/hom[e]/[a-z]+)/|\.\./share[d]/'
}

# Line ends, tabs and blanks at line ends, in everything written by hand.
rule_text() {
  tab=$(printf '\t')
  text_files | grep -vE '\.md$|^LICENSE$' |
    xargs -r grep -nEH "$tab|[ ]+\$|$(printf '\r')\$" |
    sed 's/$/  (tab, carriage return or blank at the end)/'
}

# A page's links and names of sources lead to files and headings that there are.
rule_links() {
  # shellcheck disable=SC2046
  awk -v list="$work/files" -f "$house/links.awk" "$work/files" \
    $(grep '\.md$' "$work/files") 2>&1
}

# Every way that kernels were wrong has its answer, and the names in it exist.
# tests/cli/test_hazards.sh sees that the answers are true.
rule_hazards() {
  [ -d judge/planted ] || return
  profiles=$(sed -n 's/^@include  *//p' golden/profiles/full.txt
    echo full invalid batch)
  # shellcheck disable=SC2046
  awk -v lines="${HAZARDS:-143}" -f "$house/hazards.awk" judge/planted/*_list.h \
    docs/hazards.md $(printf 'golden/profiles/%s.txt ' $profiles) \
    docs/hazards.tsv "$work/files" 2>&1
}

text_files() {
  grep -E '\.(c|h|cpp|cu|cuh|hip|py|sh|cmake|in|md|txt|json)$|^\.ci/|^LICENSE$' \
    "$work/files" | grep -vE '^golden/(v[0-9]+|external)/'
}

list_files >"$work/files"
grep -E '\.(c|h|cpp|cu|cuh|hip)$' "$work/files" >"$work/code"
grep -E '^(include|common|backends|parallel|judge|tools|tests)/' "$work/code" \
  >"$work/layered"
if [ ! -s "$work/layered" ]; then
  echo "house: no source file under $(pwd)" >&2
  exit 2
fi

[ $# -gt 0 ] || eval "set -- $all_rules"
for rule in "$@"; do
  "rule_$rule" | sed "s/^/$rule: /"
done >"$work/found"
cat "$work/found"
if [ -s "$work/found" ]; then
  echo "house: $(wc -l <"$work/found") findings" >&2
  exit 1
fi
echo "house: $# rules hold over $(wc -l <"$work/files") files"
