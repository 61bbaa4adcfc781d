# cmake -DSOURCE_DIR=... -DPRESET=... [-DSKIP=regex] -P tree.cmake
#
# Configures, builds and tests the tree by a preset, as a person would, but
# for the tests whose names match SKIP.
cmake_minimum_required(VERSION 3.25)
foreach(var SOURCE_DIR PRESET)
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

set(skip "")
if(SKIP)
  set(skip -E "${SKIP}")
endif()
must("configuration" ${CMAKE_COMMAND} --preset ${PRESET})
must("build" ${CMAKE_COMMAND} --build --preset ${PRESET} -j 2)
# What looks at sources alone was asked in the main build.
must("test" ${CMAKE_CTEST_COMMAND} --preset ${PRESET} -LE "slow|source"
  ${skip})
