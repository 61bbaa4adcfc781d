# mla_add_port(NAME SOURCES a.c ... [LIBRARIES ...] [ONLY PATTERN ...]
#              [WAIVERS known.json])
# Builds a port as the plugin libNAME.so from sources that include
# mla/backend.h, and adds the test NAME_conformance: the verdict of mlacheck.
# ONLY is what the port claims to serve, as in `mlacheck run --only`; without
# it the claim is all of profile smoke. WAIVERS names a file of known failures
# (docs/conformance.md), from the source directory. Without mlacheck the plugin
# is built all the same, and the test fails: nothing passes by absence.
# --required makes "nothing was applicable" exit code 1: many test runners count
# 77, which it is otherwise, as skipped.
function(mla_add_port name)
  cmake_parse_arguments(arg "" "WAIVERS" "SOURCES;LIBRARIES;ONLY" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "mla_add_port(${name} SOURCES ...): "
      "no sources, or not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  add_library(${name} MODULE ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE mla::headers ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES PREFIX lib
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
  if(TARGET mlacheck)
    set(check $<TARGET_FILE:mlacheck>)
  elseif(MLA_MLACHECK)
    set(check ${MLA_MLACHECK})
  else()
    message(STATUS "mlacheck is not installed: ${name}_conformance will fail")
    set(check mlacheck)
  endif()
  set(claim "")
  if(arg_ONLY)
    set(claim --only ${arg_ONLY})
  endif()
  if(arg_WAIVERS)
    get_filename_component(known ${arg_WAIVERS} ABSOLUTE)
    list(APPEND claim --waivers ${known})
  endif()
  add_test(NAME ${name}_conformance
    COMMAND ${check} run --required --plugin $<TARGET_FILE:${name}> ${claim})
endfunction()
