# hazards.awk - is docs/hazards.tsv whole, and are its names real? In this
# order: both lists of planted faults, docs/hazards.md, the profiles that
# profile full is made of and that of batches, docs/hazards.tsv; then the
# files of the tree. -v lines=N: how many lines the map has.
function is_list(file) { return file ~ /planted(_batch)?_list\.h$/ }

# X(ID, "name", "CLASS": over one line or two.
is_list(FILENAME) && /^ \*/ { next }
is_list(FILENAME) {
  n = split($0, part, "\"")
  for (i = 2; i <= n; i += 2)
    if (part[i] ~ /^[a-z0-9-]+$/) { fault[part[i]] = 1; last = part[i] }
    else if (part[i] ~ /^[A-Z0-9-]+$/) class[last] = part[i]
  next
}
FILENAME ~ /\.md$/ {
  if (/^### /) heading[$2] = 1
  for (i = 1; i <= NF; i++)
    if ($i ~ /^`[a-z0-9-]+`:?$/) { gsub(/[`:]/, "", $i); said[$i] = 1 }
  next
}
FILENAME ~ /profiles\// {
  if ($1 !~ /^[#@]/) { sub(/^\?/, "", $1); listed[$1] = 1 }
  next
}
FILENAME !~ /\.tsv$/ { tree[$0] = 1; next }
{ rows++; text[rows] = $0 }

function gap(what) { printf "docs/hazards.tsv: %s\n", what }

function check_names(id, planted, cases,   n, i, part, name) {
  n = split(planted, part, " ")
  for (i = 1; i <= n; i++) {
    name = part[i]
    sub(/;.*/, "", name)
    if (name != "-" && !fault[name]) gap(id ": no fault is called " name)
  }
  n = split(cases, part, " ")
  for (i = 1; i <= n; i++) {
    name = part[i]
    if (sub(/^test:/, "", name)) {
      if (!tree[name]) gap(id ": there is no " name)
    } else if (name != "-" && !listed[name])
      gap(id ": no profile has " name)
  }
}

function check_row(row,   n, f, number) {
  n = split(row, f, "\t")
  number = substr(f[1], 2) + 0
  if (n != 6 || f[6] == "") return gap(f[1] ": not six fields")
  if (f[1] !~ /^B[0-9]+$/ || number <= before)
    gap(f[1] ": out of order, or twice")
  before = number
  if (!heading[f[3]]) gap(f[1] ": docs/hazards.md has no class " f[3])
  if (f[4] == "-" && f[5] == "-" && f[6] !~ /^no: /)
    gap(f[1] ": neither a fault, a case, a test nor a reason")
  if (f[4] != "-" && f[5] == "-") gap(f[1] ": no case shows " f[4])
  check_names(f[1], f[4], f[5])
}

END {
  if (rows != lines) gap(rows + 0 " lines, not " lines)
  for (i = 1; i <= rows; i++) check_row(text[i])
  for (name in fault)
    if (!said[name]) print "docs/hazards.md: says nothing of " name
  for (name in class)
    if (!heading[class[name]])
      print "docs/hazards.md: has no class " class[name]
}
