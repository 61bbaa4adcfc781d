#!/bin/sh
# cuda_code.sh CUOBJDUMP ARCH OBJECT...: what the compiler made of the kernels
# on matrix units for one target: nothing spilled (no frame on the stack, no
# access to local memory) or no more than is known of, registers within those of
# a thread. Prints a table.
# HMMA="NAME:LEAST[:STACK] ..." in the environment: kernels whose names hold NAME
# have at least so many matrix instructions, and STACK bytes of frame at most;
# others are not looked at.
set -u
cuobjdump=${1:?cuobjdump}
arch=${2:?arch}
shift 2
echo "$arch: registers, stack, local, matrix instructions"
for object in "${@:?objects}"; do
  $cuobjdump -res-usage "$object" | awk -v arch="$arch" '
    /^arch = / { here = $3 == arch }
    / Function / && here { name = $2; sub(/:$/, "", name) }
    / REG:/ && name {
      for (i = 1; i <= NF; i++) { split($i, part, ":"); value[part[1]] = part[2] }
      print "kernel", name, value["REG"], value["STACK"]
      name = ""
    }'
  $cuobjdump -arch "$arch" -sass "$object" | awk '
    /Function : / { name = $3 }
    / HG?MMA\./ { hmma[name]++ }
    / (LDL|STL)[. ]/ { local[name]++ }
    END {
      for (k in hmma) print "hmma", k, hmma[k]
      for (k in local) print "local", k, local[k]
    }'
done | awk -v wanted="${HMMA:-}" '
  BEGIN { count = split(wanted, want, " ") }
  $1 == "kernel" { registers[$2] = $3; stack[$2] = $4 }
  $1 == "hmma" { hmma[$2] = $3 }
  $1 == "local" { local[$2] = $3 }
  function bad(name, what) { print "  BAD " name ": " what; failed = 1 }
  END {
    for (name in registers)
      for (i = 1; i <= count; i++) {
        split(want[i], part, ":")
        if (!index(name, part[1])) continue
        found[i] = 1
        short = name
        sub(/^_Z[0-9]+/, "", short)
        printf "  %-44.44s %4d %4d %4d %4d\n", short, registers[name],
          stack[name], local[name], hmma[name]
        if (stack[name] > part[3] + 0)
          bad(short, stack[name] " bytes of stack, not " part[3] + 0)
        if (local[name] > 0 && !part[3])
          bad(short, local[name] " accesses to local memory")
        if (registers[name] > 255) bad(short, registers[name] " registers")
        if (hmma[name] < part[2])
          bad(short, hmma[name] + 0 " matrix instructions, not " part[2])
      }
    for (i = 1; i <= count; i++)
      if (!found[i]) bad(want[i], "no such kernel")
    if (!count) bad("HMMA", "nothing is asked for")
    exit failed
  }'
