# cmake -DSOURCE_DIR=... -DWORK_DIR=... -DPRESET=... [-DCOMPILER=...]
#   [-DEXCLUDE=labels] -P tree.cmake
#
# Configures, builds and tests the tree by a preset, in a folder of its own:
# what a person does with `cmake --preset X`, `--build` and `ctest`.
cmake_minimum_required(VERSION 3.25)
foreach(var SOURCE_DIR WORK_DIR PRESET)
  if(NOT ${var})
    message(FATAL_ERROR "tree: ${var} is not given")
  endif()
endforeach()

function(must what)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${SOURCE_DIR}
    RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${what} of the ${PRESET} tree ends with ${code}")
  endif()
endfunction()

set(compiler "")
if(COMPILER)
  set(compiler -DCMAKE_C_COMPILER=${COMPILER})
endif()
set(exclude "")
if(EXCLUDE)
  set(exclude -LE "${EXCLUDE}")
endif()
must("configuration" ${CMAKE_COMMAND} --preset ${PRESET} -B ${WORK_DIR}
  -DMLA_MATRIX=OFF -DMLA_CUDA=OFF ${compiler})
must("build" ${CMAKE_COMMAND} --build ${WORK_DIR} -j 2)
# The preset's environment (sanitizer options) comes with its name; the
# folder given here wins over the preset's.
must("test" ${CMAKE_CTEST_COMMAND} --preset ${PRESET} --test-dir ${WORK_DIR}
  ${exclude})
