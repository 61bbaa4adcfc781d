# cmake -DSOURCE_DIR=... -DWORK_DIR=... -DCOMPILER=... -P check_flags.cmake
#
# The flags that keep the reference's bits survive a user's CFLAGS, in every
# file that is compiled; value-changing flags are refused at configure time,
# wherever they come from.
cmake_minimum_required(VERSION 3.25)
foreach(var SOURCE_DIR WORK_DIR COMPILER)
  if(NOT ${var})
    message(FATAL_ERROR "check_flags: ${var} is not given")
  endif()
endforeach()

# configure(result text [cmake arguments...]): in a fresh folder.
function(configure result text)
  file(REMOVE_RECURSE ${WORK_DIR})
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}
      -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
      -DMLA_UNIT_TESTS=OFF -DMLA_CUDA=OFF -DMLA_HIP=OFF
      ${ARGN}
    RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  set(${result} ${code} PARENT_SCOPE)
  set(${text} "${out}" PARENT_SCOPE)
endfunction()

function(expect_refused what)
  configure(code text ${ARGN})
  if(code EQUAL 0 OR NOT text MATCHES "changes[ \n]+the[ \n]+values")
    message(SEND_ERROR "${what} was not refused:\n${text}")
  else()
    message(STATUS "refused: ${what}")
  endif()
endfunction()

function(expect_kept flags)
  configure(code text -DCMAKE_C_COMPILER=${COMPILER} "-DCMAKE_C_FLAGS=${flags}")
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "CFLAGS=\"${flags}\" does not configure:\n${text}")
  endif()
  file(READ ${WORK_DIR}/compile_commands.json json)
  string(JSON count LENGTH "${json}")
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON command GET "${json}" ${i} command)
    string(JSON file GET "${json}" ${i} file)
    if(file MATCHES "/backend_list\\.c$") # generated, a table without code
      continue()
    endif()
    if(file MATCHES "/backends/template/") # a port is built as its owner likes
      continue()
    endif()
    string(REGEX MATCHALL "-ffp-contract=[a-z]+" contract "${command}")
    list(POP_BACK contract effective)
    if(NOT effective STREQUAL "-ffp-contract=off")
      message(SEND_ERROR "${file}: ends with \"${effective}\"")
    endif()
  endforeach()
  message(STATUS "kept in ${count} files: CFLAGS=\"${flags}\"")
endfunction()

expect_kept("-march=native -O2 -ffp-contract=fast")
execute_process(
  COMMAND ${CMAKE_COMMAND} --build ${WORK_DIR} --target exact_values -j 2
  RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "exact_values does not build:\n${text}")
endif()
execute_process(COMMAND ${WORK_DIR}/tests/cross/exact_values
  RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(SEND_ERROR "exact_values fails with -march=native")
endif()

set(compiler -DCMAKE_C_COMPILER=${COMPILER})
expect_refused("CFLAGS=-ffast-math" ${compiler} -DCMAKE_C_FLAGS=-ffast-math)
expect_refused("-Ofast of a build type" ${compiler} -DCMAKE_BUILD_TYPE=Release
  "-DCMAKE_C_FLAGS_RELEASE=-g -Ofast")
expect_refused("LDFLAGS=-ffast-math" ${compiler}
  -DCMAKE_SHARED_LINKER_FLAGS=-ffast-math)
set(ENV{CC} "${COMPILER} -funsafe-math-optimizations")
expect_refused("CC with -funsafe-math-optimizations")
file(REMOVE_RECURSE ${WORK_DIR})
