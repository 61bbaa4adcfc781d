# Options of the form AUTO|ON|OFF: ON and missing is an error, AUTO prints what
# it decided. mla_print_summary() ends the configure run with a table.

function(mla_option name help)
  set(${name} AUTO CACHE STRING "${help} (AUTO, ON, OFF)")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
endfunction()

# mla_decide(MLA_X found "package" result): result is ON or OFF.
function(mla_decide option found package result)
  if(${option} STREQUAL "OFF")
    set(${result} OFF PARENT_SCOPE)
    set(why "switched off")
  elseif(found)
    set(${result} ON PARENT_SCOPE)
    set(why "found ${package}")
  elseif(${option} STREQUAL "ON")
    message(FATAL_ERROR "${option}=ON, but ${package} is missing")
  else()
    set(${result} OFF PARENT_SCOPE)
    set(why "${package} not found")
  endif()
  set_property(GLOBAL APPEND PROPERTY MLA_SUMMARY "${option}|${why}")
endfunction()

function(mla_print_summary)
  get_property(rows GLOBAL PROPERTY MLA_SUMMARY)
  message(STATUS "")
  message(STATUS "libmla ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}")
  foreach(row IN LISTS rows)
    string(REPLACE "|" ";" cells "${row}")
    list(GET cells 0 name)
    list(GET cells 1 why)
    string(LENGTH "${name}" used)
    math(EXPR pad "24 - ${used}")
    string(REPEAT " " ${pad} space)
    message(STATUS "  ${name}${space}${why}")
  endforeach()
endfunction()

mla_option(MLA_OPENMP "Threads by OpenMP")
mla_option(MLA_TOOL "The mlacheck command (needs cJSON, xxHash)")

find_package(OpenMP COMPONENTS C QUIET)
mla_decide(MLA_OPENMP "${OpenMP_C_FOUND}" "OpenMP" MLA_OPENMP_FOUND)

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(CJSON QUIET IMPORTED_TARGET libcjson)
  pkg_check_modules(XXHASH QUIET IMPORTED_TARGET libxxhash)
endif()
if(CJSON_FOUND AND XXHASH_FOUND)
  set(MLA_TOOL_DEPS_FOUND ON)
else()
  set(MLA_TOOL_DEPS_FOUND OFF)
endif()
mla_decide(MLA_TOOL "${MLA_TOOL_DEPS_FOUND}" "cJSON and xxHash" MLA_TOOL_FOUND)

# Flags that every C file of the project gets. -ffp-contract=off and the rest
# keep the reference's bits the same under every compiler (docs/abi.md).
add_library(mla_flags INTERFACE)
target_compile_options(mla_flags INTERFACE -Wall -Wextra -Wpedantic
  -Wshadow -Wstrict-prototypes -ffp-contract=off -fno-fast-math)
option(MLA_WERROR "Warnings are errors" ON)
if(MLA_WERROR)
  target_compile_options(mla_flags INTERFACE -Werror)
endif()
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(mla_flags INTERFACE -fexcess-precision=fast)
endif()
target_include_directories(mla_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
