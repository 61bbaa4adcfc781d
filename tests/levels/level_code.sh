#!/bin/sh
# level_code.sh OBJDUMP ARCHIVE INIT_FILE [CC]: no kernel holds an instruction
# above its level, and no kernel stands in the table below its level, so that
# a mask is kept whatever the processor could do. x86-64. With CC, an object
# that breaks the rule is put beside it: the check must say so.
set -u
objdump=${1:?objdump}
archive=${2:?libmla.a}
init=${3:?init_x86.h}
cc=${4:-}

# Which level an instruction needs: by its first byte (62 begins EVEX, c4 and
# c5 VEX), and by name where a level above has more.
look() { # ARCHIVE
  $objdump -d "$1" | awk -F '\t' '
    BEGIN {
      rank["base"] = 0; rank["avx2"] = 1; rank["avx512"] = 2
      rank["avx512_bf16"] = 3; rank["amx"] = 4; rank["beyond"] = 5
      half = "^v(add|sub|mul|div|fm|fn|max|min|sqrt|cmp)[a-z0-9]*(ph|sh) "
      other = "^(vpdp|v4f|vp4dp|vpermb|vperm[it]2b|vpmultishift|vpmadd52|" \
        "vp(compress|expand)[bw] |vpsh[lr]d|vpopcnt|vpshufbit|vplzcnt|" \
        "vpconflict|vgf2|vaes|vpclmul|vsha|vsm)"
    }
    / file format / {
      file = $1; sub(/\.c\.o:.*/, "", file); sub(/.*\//, "", file)
      level = "base"
      if (match(file, /_(avx2|avx512|avx512_bf16|amx)$/))
        level = substr(file, RSTART + 1)
      files[level]++
    }
    NF >= 3 {
      need = "base"
      if ($2 ~ /^62 /) need = "avx512"
      else if ($2 ~ /^c[45] /) need = "avx2"
      if ($3 ~ /bf16/ && $3 !~ /</) need = "avx512_bf16"
      if ($3 ~ /tmm/ || $3 ~ /^(ldtilecfg|sttilecfg|tilerelease)/) need = "amx"
      if ($3 ~ half || $3 ~ other) need = "beyond"
      seen[level, need]++
      if (rank[need] > rank[level] && !said[file]++) {
        print file ": " level " holds " need ": " $3; bad = 1
      }
    }
    END {
      # By absence nothing is shown: each level has what it is named for.
      for (level in rank)
        if (rank[level] > 0 && rank[level] < 5 && !seen[level, level]) {
          print "no " level " instruction in " files[level] + 0 " files of it"
          bad = 1
        }
      exit bad
    }'
}

status=0
look "$archive" || status=1
# KERNEL(LEVEL, shape, member, mla_..._level): the table's level is the file's.
tr -d '\n' <"$init" | sed 's/KERNEL(/\nKERNEL(/g' | tr -d ' ' |
  sed -n 's/^KERNEL(\([A-Z0-9_]*\),[^,]*,[^,]*,\([a-z0-9_]*\)).*/\1 \2/p' |
  awk '{ n++; if ($2 !~ "_" tolower($1) "$") { print; bad = 1 } }
    END { exit bad || n < 20 }' || status=1

if [ -n "$cc" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cp "$archive" "$folder/libmla.a"
  echo '__asm__("vpaddd %ymm0, %ymm1, %ymm2");' >"$folder/planted_portable.c"
  $cc -c "$folder/planted_portable.c" -o "$folder/planted_portable.c.o" &&
    ar r "$folder/libmla.a" "$folder/planted_portable.c.o" 2>"$folder/said"
  look "$folder/libmla.a" | grep -q 'planted_portable: base holds avx2' || {
    echo "an AVX2 instruction among portable ones was not seen"
    status=1
  }
fi
exit $status
