# mla_add_backend(NAME SOURCES a.c b.c [LIBRARIES ...] [OPTIONS ...])
# Builds a backend into libmla. It must define
#   const mla_backend *mla_NAME_backend(uint32_t major, uint32_t minor);
# OPTIONS are compile options for all its sources; a file that needs an
# instruction set of its own gets it by set_source_files_properties().
function(mla_add_backend name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES;OPTIONS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "mla_add_backend(${name} SOURCES ...): "
      "no sources, or not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  add_library(mla_backend_${name} OBJECT ${arg_SOURCES})
  target_link_libraries(mla_backend_${name} PRIVATE mla_flags
    ${arg_LIBRARIES})
  target_compile_options(mla_backend_${name} PRIVATE ${arg_OPTIONS})
  target_include_directories(mla_backend_${name} PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/common)
  if(MLA_OPENMP_FOUND)
    target_link_libraries(mla_backend_${name} PRIVATE OpenMP::OpenMP_C)
  endif()
  set_property(GLOBAL APPEND PROPERTY MLA_BACKENDS ${name})
  mla_summary("backend ${name}" "built in")
endfunction()

# Writes backend_list.c: the static registry.
function(mla_write_backend_list file)
  get_property(names GLOBAL PROPERTY MLA_BACKENDS)
  set(externs "")
  set(rows "")
  foreach(name IN LISTS names)
    string(APPEND externs "extern const mla_backend *mla_${name}_backend("
      "uint32_t, uint32_t);\n")
    string(APPEND rows "    mla_${name}_backend,\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file} CONTENT
"/* Made by CMake: the backends built into this libmla. */
#include \"mla/backend.h\"

${externs}
extern const mla_backend_get_fn mla_builtin_backends[];
const mla_backend_get_fn mla_builtin_backends[] = {
${rows}    NULL,
};
" @ONLY)
endfunction()
