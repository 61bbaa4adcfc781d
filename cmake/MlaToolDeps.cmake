# mla_tool_deps: cJSON and xxHash for the judge and mlacheck.
#
# With MLA_STATIC_TOOL=ON mlacheck runs where neither is installed: archives
# are linked where there are any (Debian has one of xxHash); of the others the
# shared object is put beside the tool, which looks for it there.
option(MLA_STATIC_TOOL
  "mlacheck runs where cJSON and xxHash are not installed" OFF)
add_library(mla_tool_deps INTERFACE)
set(MLA_TOOL_BESIDE "")

function(mla_tool_dep package name)
  set(target PkgConfig::${package})
  if(NOT MLA_STATIC_TOOL)
    target_link_libraries(mla_tool_deps INTERFACE ${target})
    return()
  endif()
  get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
  if(folders)
    target_include_directories(mla_tool_deps SYSTEM INTERFACE ${folders})
  endif()
  find_library(MLA_${package}_ARCHIVE NAMES lib${name}.a
    HINTS ${${package}_LIBRARY_DIRS})
  if(MLA_${package}_ARCHIVE)
    target_link_libraries(mla_tool_deps INTERFACE ${MLA_${package}_ARCHIVE})
    mla_summary("  ${name}" "in the tool")
    return()
  endif()
  find_library(MLA_${package}_SHARED NAMES ${name}
    HINTS ${${package}_LIBRARY_DIRS})
  target_link_libraries(mla_tool_deps INTERFACE ${MLA_${package}_SHARED})
  set(MLA_TOOL_BESIDE ${MLA_TOOL_BESIDE} ${MLA_${package}_SHARED} PARENT_SCOPE)
  mla_summary("  ${name}" "beside the tool (no lib${name}.a here)")
endfunction()

mla_tool_dep(CJSON cjson)
mla_tool_dep(XXHASH xxhash)

# Puts what could not be linked in beside a program, in the build and when
# installed. A loader looks for a library by the name inside it (SONAME).
function(mla_put_beside program)
  if(NOT MLA_TOOL_BESIDE)
    return()
  endif()
  set_target_properties(${program} PROPERTIES
    BUILD_RPATH "$ORIGIN" BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/mla")
  foreach(library IN LISTS MLA_TOOL_BESIDE)
    file(REAL_PATH ${library} real)
    get_filename_component(name ${library} NAME)
    file(GLOB links ${library}.*)
    list(APPEND links ${library})
    foreach(link IN LISTS links)
      get_filename_component(name ${link} NAME)
      add_custom_command(TARGET ${program} POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E copy ${real}
          $<TARGET_FILE_DIR:${program}>/${name})
      install(FILES ${real} DESTINATION ${CMAKE_INSTALL_LIBDIR}/mla
        RENAME ${name})
    endforeach()
  endforeach()
endfunction()
