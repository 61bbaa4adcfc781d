# Options of the form AUTO|ON|OFF: ON and missing is an error, AUTO prints what
# it decided. mla_print_summary() ends the configure run with a table.

function(mla_option name help)
  set(${name} AUTO CACHE STRING "${help} (AUTO, ON, OFF)")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  string(TOUPPER "${${name}}" value)
  if(NOT value MATCHES "^(AUTO|ON|OFF|YES|NO|TRUE|FALSE|1|0)$")
    message(FATAL_ERROR "${name} is \"${${name}}\": say AUTO, ON or OFF")
  endif()
endfunction()

# mla_decide(MLA_X found "package" result): result is ON or OFF.
function(mla_decide option found package result)
  string(TOUPPER "${${option}}" wish)
  if(wish MATCHES "^(OFF|NO|FALSE|0)$")
    set(decision OFF)
    set(why "OFF   switched off")
  elseif(found)
    set(decision ON)
    set(why "ON    found ${package}")
  elseif(wish STREQUAL "AUTO")
    set(decision OFF)
    set(why "OFF   not found: ${package}")
  else()
    message(FATAL_ERROR "${option}=ON, but this is missing: ${package}")
  endif()
  set(${result} ${decision} PARENT_SCOPE)
  mla_summary(${option} "${why}")
endfunction()

# One row of the closing table.
function(mla_summary name text)
  set_property(GLOBAL APPEND PROPERTY MLA_SUMMARY "${name}|${text}")
endfunction()

function(mla_print_summary)
  get_property(rows GLOBAL PROPERTY MLA_SUMMARY)
  message(STATUS "")
  message(STATUS "libmla ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, "
    "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} "
    "for ${CMAKE_SYSTEM_PROCESSOR}")
  foreach(row IN LISTS rows)
    string(REPLACE "|" ";" cells "${row}")
    list(GET cells 0 name)
    list(GET cells 1 why)
    string(LENGTH "${name}" used)
    math(EXPR pad "20 - ${used}")
    if(pad LESS 1)
      set(pad 1)
    endif()
    string(REPEAT " " ${pad} space)
    message(STATUS "  ${name}${space}${why}")
  endforeach()
endfunction()

mla_option(MLA_OPENMP "Threads by OpenMP")
mla_option(MLA_TOOL "The mlacheck command (needs cJSON, xxHash)")
option(MLA_WERROR "Warnings are errors" OFF)
set(MLA_SANITIZE "" CACHE STRING
  "What goes to -fsanitize=: address,undefined or thread; empty for none")

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
mla_decide(MLA_TOOL "${MLA_TOOL_DEPS_FOUND}"
  "cJSON and xxHash (by pkg-config)" MLA_TOOL_FOUND)
