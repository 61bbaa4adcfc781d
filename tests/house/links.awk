# awk -v list=LIST -f links.awk LIST FILE.md...: every link of the pages to a
# file of the tree, or to a heading of a page, leads somewhere, and so does a
# source file's name in backquotes, whole or its end. LIST names the tree's
# files. What was tells of files that there were: CHANGELOG.md and the logs.
# A heading's anchor is its text in small letters, blanks as hyphens, without
# whatever else is no letter, digit or underscore; the second of a name in a
# page has -1 behind it.

function folder(path) { return sub(/[^\/]*$/, "", path) ? path : "" }

# docs/a/../b.md is docs/b.md.
function resolve(path) {
  gsub(/\/\.\//, "/", path)
  while (match(path, /[^\/]+\/\.\.\//) && substr(path, RSTART, 3) != "../")
    path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH)
  return path
}

function note_heading(line, name) {
  sub(/^#+ */, "", line)
  gsub(/\]\([^)]*\)/, "", line)
  line = tolower(line)
  gsub(/[^a-z0-9_ -]/, "", line)
  gsub(/ /, "-", line)
  name = FILENAME "#" line
  if (name in anchors) name = name "-" anchors[name]++
  anchors[name] = 1
}

function note_links(line, from, to) {
  gsub(/`[^`]*`/, "", line)
  while (match(line, /\]\([^)]+\)/)) {
    to = substr(line, RSTART + 2, RLENGTH - 3)
    line = substr(line, RSTART + RLENGTH)
    if (to ~ /^[a-z]+:/) continue
    links++
    link_from[links] = FILENAME
    link_line[links] = FNR
    link_to[links] = to
  }
}

function note_names(line, name) {
  if (FILENAME ~ /(^|\/)(CHANGELOG.md|performance\/.*)$/) return
  while (match(line, /`[A-Za-z0-9_.\/-]+\.(c|h|cu|cuh|hip|cpp|sh|awk|py)`/)) {
    name = substr(line, RSTART + 1, RLENGTH - 2)
    line = substr(line, RSTART + RLENGTH)
    names[FILENAME ":" FNR ": " name] = name
  }
}

FILENAME == list {
  files[$0] = 1
  at = $0
  do ends[at] = 1
  while (sub(/^[^\/]*\//, "", at))
  next
}
FNR == 1 { fenced = 0 }
/^```/ { fenced = !fenced; next }
fenced || /^    / { next }
/^#/ { note_heading($0) }
{ note_links($0); note_names($0) }

END {
  for (f in files) {
    at = f
    while (sub(/\/[^\/]*$/, "", at)) folders[at] = 1
  }
  for (at in names)
    if (!(names[at] in ends)) print at ": no such file"
  for (i = 1; i <= links; i++) {
    to = link_to[i]
    anchor = ""
    if (match(to, /#/)) {
      anchor = substr(to, RSTART)
      to = substr(to, 1, RSTART - 1)
    }
    to = to == "" ? link_from[i] : resolve(folder(link_from[i]) to)
    sub(/\/$/, "", to)
    if (!(to in files) && !(to in folders))
      what = "no such file"
    else if (anchor != "" && !((to anchor) in anchors))
      what = "no such heading"
    else
      continue
    printf "%s:%d: %s: %s\n", link_from[i], link_line[i], link_to[i], what
  }
}
