# cmake -DSOURCE_DIR=... -DWORK_DIR=... -DFLAGS="-O0 ..."
#   -DCOMPILER=... | -DTOOLCHAIN=aarch64 ... -P digest.cmake
#
# Builds the reference with other flags, by another compiler or for another
# machine, and lets its digest be compared with the committed one.
cmake_minimum_required(VERSION 3.25)
foreach(var SOURCE_DIR WORK_DIR FLAGS)
  if(NOT ${var})
    message(FATAL_ERROR "digest: ${var} is not given")
  endif()
endforeach()

function(must what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${what} ends with ${code}")
  endif()
endfunction()

if(TOOLCHAIN)
  set(how --toolchain ${SOURCE_DIR}/cmake/toolchains/${TOOLCHAIN}.cmake)
elseif(COMPILER)
  set(how -DCMAKE_C_COMPILER=${COMPILER})
else()
  message(FATAL_ERROR "digest: neither COMPILER nor TOOLCHAIN is given")
endif()
must("configuration" ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR} -G Ninja
  ${how} -DCMAKE_BUILD_TYPE=None "-DCMAKE_C_FLAGS=${FLAGS}" -DMLA_WERROR=ON
  -DMLA_TOOL=OFF -DMLA_UNIT_TESTS=OFF -DMLA_CROSSCHECK=OFF -DMLA_MATRIX=OFF)
must("build" ${CMAKE_COMMAND} --build ${WORK_DIR} --target oracle_digest -j 1)
must("test" ${CMAKE_CTEST_COMMAND} --test-dir ${WORK_DIR} -R "^oracle_digest$"
  --no-tests=error --output-on-failure)
