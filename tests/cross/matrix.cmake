# The tests of MLA_MATRIX=ON. Nothing here passes by absence: a compiler or
# emulator that these need and that is not installed ends the configure run.

function(mla_matrix_needs program package)
  find_program(MLA_PROGRAM_${program} ${program})
  if(NOT MLA_PROGRAM_${program})
    message(FATAL_ERROR
      "MLA_MATRIX=ON needs ${program} (Debian: ${package})")
  endif()
endfunction()

# mla_matrix_test(NAME SCRIPT [-DVAR=VALUE...]): one way of building. Each
# keeps both cores of a small machine busy.
function(mla_matrix_test name script)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND}
    -DSOURCE_DIR=${PROJECT_SOURCE_DIR} ${ARGN}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/${script})
  set_tests_properties(${name} PROPERTIES LABELS "matrix;slow"
    PROCESSORS 2 TIMEOUT 1500)
endfunction()

mla_matrix_needs(gcc-12 gcc-12)
mla_matrix_needs(clang-14 clang-14)
mla_matrix_needs(clang-19 clang-19)
mla_matrix_needs(aarch64-linux-gnu-gcc
  "gcc-aarch64-linux-gnu libc6-dev-arm64-cross")
mla_matrix_needs(s390x-linux-gnu-gcc
  "gcc-s390x-linux-gnu libc6-dev-s390x-cross")
mla_matrix_needs(qemu-s390x qemu-user)

foreach(compiler gcc-12 clang-19)
  mla_matrix_test(flags_${compiler} check_flags.cmake -DCOMPILER=${compiler}
    -DWORK_DIR=${PROJECT_BINARY_DIR}/matrix/flags_${compiler})
endforeach()

# The tree by other presets, less the tests that can only say the same again
# there, or that an emulator or a sanitizer needs minutes for: test_explain,
# cli_verdicts and cli_diff_faults look for names of failures among many cases,
# cli_golden makes all vectors four times; what they call is called on less by
# cli_failures, cli_diff and cli_files. An emulated machine's compositions are
# in its digest; products of int8 codes are kernels of x86.
set(again "^(cli_|crosscheck_|package_|oracle_error|report_|python_)")
set(emulated "^(test_(composed|cpu_[^kqt]|budget|dmath_mpfr|explain|")
string(APPEND emulated
  "judge_generate|truth$)|judge_.*_smoke|judge_cpu_int8|template_)")
# Where emulated AVX-512 or tiles take a minute, decode stands for prefill on
# them. Under sanitizers judge_cpu_smoke asks the reference all that
# judge_ref_smoke would.
set(sanitized "^(crosscheck_|oracle_error|judge_ref_smoke|")
string(APPEND sanitized "test_(explain|cpu_prefill_(avx512|amx))|")
string(APPEND sanitized "cli_(diff_faults|golden|verdicts))")
mla_matrix_test(tree_clang14 tree.cmake -DPRESET=clang14
  "-DSKIP=${again}|^test_cpu_prefill_avx512$")
mla_matrix_test(tree_clang19 tree.cmake -DPRESET=clang19 "-DSKIP=${again}")
mla_matrix_test(tree_asan tree.cmake -DPRESET=asan "-DSKIP=${sanitized}")
foreach(machine aarch64 s390x)
  mla_matrix_test(tree_${machine} tree.cmake -DPRESET=${machine}
    "-DSKIP=${again}|${emulated}")
endforeach()
