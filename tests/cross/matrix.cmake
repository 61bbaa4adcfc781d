# The tests of MLA_MATRIX=ON. Nothing here passes by absence: a compiler or
# emulator that these need and that is not installed ends the configure run.

function(mla_matrix_needs result program package)
  find_program(MLA_PROGRAM_${program} ${program})
  if(NOT MLA_PROGRAM_${program})
    message(FATAL_ERROR
      "MLA_MATRIX=ON needs ${program} (Debian: ${package})")
  endif()
  set(${result} ${MLA_PROGRAM_${program}} PARENT_SCOPE)
endfunction()

# mla_matrix_test(NAME SCRIPT [-DVAR=VALUE...]): one way, one folder.
function(mla_matrix_test name script)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND}
    -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
    -DWORK_DIR=${PROJECT_BINARY_DIR}/matrix/${name} ${ARGN}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/${script})
  set_tests_properties(${name} PROPERTIES LABELS "matrix;slow" TIMEOUT 1500)
endfunction()

# The whole tree by a preset, without CUDA (nvcc takes longer than the rest
# and the main build has it); these builds use both cores of a small machine.
function(mla_matrix_tree name preset)
  mla_matrix_test(${name} tree.cmake -DPRESET=${preset} ${ARGN})
  set_tests_properties(${name} PROPERTIES PROCESSORS 2)
endfunction()

mla_matrix_needs(gcc gcc-12 gcc-12)
mla_matrix_needs(clang14 clang-14 clang-14)
mla_matrix_needs(clang19 clang-19 clang-19)
mla_matrix_needs(gcc_aarch64 aarch64-linux-gnu-gcc
  "gcc-aarch64-linux-gnu libc6-dev-arm64-cross")
mla_matrix_needs(gcc_s390x s390x-linux-gnu-gcc
  "gcc-s390x-linux-gnu libc6-dev-s390x-cross")
mla_matrix_needs(qemu qemu-s390x qemu-user)

foreach(compiler gcc-12 clang-19)
  mla_matrix_test(flags_${compiler} check_flags.cmake -DCOMPILER=${compiler})
endforeach()

mla_matrix_tree(tree_clang14 dev -DCOMPILER=clang-14 "-DEXCLUDE=slow|source")
mla_matrix_tree(tree_clang19 dev -DCOMPILER=clang-19 "-DEXCLUDE=slow|source")
mla_matrix_tree(tree_asan asan -DEXCLUDE=source)
mla_matrix_tree(tree_aarch64 aarch64 "-DEXCLUDE=slow|source")
mla_matrix_tree(tree_s390x s390x "-DEXCLUDE=slow|source")
