#!/bin/sh
# hip_code.sh READELF OBJDUMP CODE...: what the compiler made of the kernels,
# for each code object: no vector registers spilled, no private memory, shared
# memory within the 64 KiB of CDNA, waves of 64, blocks of 256, or of 512 where
# the k largest are chosen. (Scalars that spill go to lanes of a vector
# register, not to memory.) Prints the table of docs/hip.md. MFMA="NAME:LEAST
# ..." in the environment: kernels called NAME have at least so many matrix
# instructions.
set -u
readelf=${1:?readelf}
objdump=${2:?objdump}
shift 2
[ $# -gt 0 ] || exit 2
status=0
for code in "$@"; do
  echo "$(basename "$code"): VGPR, AGPR, SGPR, LDS, spilled V and S, waves/SIMD, mfma"
  { # how many matrix instructions each has
    $objdump -d "$code" | awk '
      /^[0-9a-f]+ <.*>:$/ { name = $2; gsub(/[<>:]/, "", name) }
      /v_mfma/ { n[name]++ }
      END { for (k in n) print "mfma", k, n[k] }'
    # Notes come a key a line; a kernel begins with the dash of a list.
    $readelf --notes "$code" | awk '
      /^  - \./ { if (name) show(); name = "" }
      { sub(/^ *- /, "    ") }
      /^    \.(agpr_count|vgpr_count|sgpr_count|group_segment_fixed_size|max_flat_workgroup_size|name|private_segment_fixed_size|vgpr_spill_count|sgpr_spill_count|wavefront_size):/ {
        key = $1; gsub(/[.:]/, "", key); value[key] = $2
        if (key == "name") name = $2
      }
      function show() {
        print "kernel", name, value["vgpr_count"], value["agpr_count"],
          value["sgpr_count"], value["group_segment_fixed_size"],
          value["vgpr_spill_count"],
          value["private_segment_fixed_size"],
          value["max_flat_workgroup_size"], value["wavefront_size"],
          value["sgpr_spill_count"]
      }
      END { if (name) show() }'
  } | awk -v wanted="${MFMA:-}" '
    BEGIN { count = split(wanted, want, " ") }
    $1 == "mfma" { mfma[$2] = $3; next }
    {
      short = $2
      sub(/^_ZL?[0-9]+/, "", short)
      # VGPRs and AGPRs share 512; they come in eights.
      all = int(($3 + 7) / 8) * 8
      waves = int(512 / (all < 8 ? 8 : all))
      if (waves > 8) waves = 8
      printf "  %-52s %3d %3d %3d %5d %2d %2d %2d %4d\n", short, $3, $4, $5,
        $6, $7, $11, waves, mfma[$2]
      kernels++
      if ($7 > 0) bad(short, $7 " registers spilled")
      if ($8 > 0) bad(short, $8 " bytes of private memory")
      if ($6 > 65536) bad(short, $6 " bytes of shared memory")
      if ($9 > (short ~ /^mla_topk_rows/ ? 512 : 256)) bad(short, "blocks of " $9)
      if ($10 != 64) bad(short, "waves of " $10)
      for (i = 1; i <= count; i++) {
        split(want[i], part, ":")
        if (!index($2, part[1])) continue
        found[i] = 1
        if (mfma[$2] < part[2])
          bad(short, mfma[$2] + 0 " matrix instructions, not " part[2])
      }
    }
    function bad(name, what) { print "  BAD " name ": " what; failed = 1 }
    END {
      if (!kernels) { print "  BAD no kernel found"; failed = 1 }
      for (i = 1; i <= count; i++)
        if (!found[i]) {
          print "  BAD no kernel called " want[i]; failed = 1
        }
      exit failed
    }' || status=1
done
exit $status
