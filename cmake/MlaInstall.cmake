# What is installed: the library, its headers, and the ways to find it
# (find_package(mla), pkg-config). Included once, from lib/.
include(CMakePackageConfigHelpers)
set(mla_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mla)

install(TARGETS mla mla_headers EXPORT mlaTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/mla
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/include/mla/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mla)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/backends/template
  DESTINATION ${CMAKE_INSTALL_DATADIR}/mla)

# find_package(mla): a static libmla brings what it links with.
set(MLA_PACKAGE_OPENMP OFF)
set(MLA_PACKAGE_CUDA OFF)
set(MLA_PACKAGE_ONEDNN OFF)
if(NOT BUILD_SHARED_LIBS)
  if(MLA_OPENMP_FOUND)
    set(MLA_PACKAGE_OPENMP ON)
  endif()
  if(TARGET CUDA::cudart_static)
    set(MLA_PACKAGE_CUDA ON)
  endif()
  if(TARGET mla::onednn)
    get_filename_component(MLA_PACKAGE_ONEDNN ${MLA_ONEDNN_LIBRARY} NAME)
  endif()
endif()
install(EXPORT mlaTargets NAMESPACE mla:: DESTINATION ${mla_package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/mlaConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/mlaConfig.cmake
  INSTALL_DESTINATION ${mla_package_dir}
  PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(
  ${CMAKE_CURRENT_BINARY_DIR}/mlaConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mlaConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/mlaConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/MlaConformance.cmake
  DESTINATION ${mla_package_dir})

# pkg-config: the private libraries by name where the linker knows the place,
# else by path.
set(MLA_PC_LIBS_PRIVATE "")
foreach(name IN LISTS CMAKE_DL_LIBS)
  string(APPEND MLA_PC_LIBS_PRIVATE " -l${name}")
endforeach()
if(MLA_OPENMP_FOUND)
  foreach(name IN LISTS OpenMP_C_LIB_NAMES)
    if(name MATCHES "^(gomp|pthread)$")
      string(APPEND MLA_PC_LIBS_PRIVATE " -l${name}")
    else()
      string(APPEND MLA_PC_LIBS_PRIVATE " ${OpenMP_${name}_LIBRARY}")
    endif()
  endforeach()
endif()
if(TARGET mla::onednn)
  get_filename_component(name ${MLA_ONEDNN_LIBRARY} NAME)
  if(name MATCHES "^libdnnl\\.(so|a)$")
    string(APPEND MLA_PC_LIBS_PRIVATE " -ldnnl")
  else()
    string(APPEND MLA_PC_LIBS_PRIVATE " -l:${name}")
  endif()
endif()
if(TARGET CUDA::cudart_static)
  get_target_property(cudart CUDA::cudart_static IMPORTED_LOCATION)
  string(APPEND MLA_PC_LIBS_PRIVATE " ${cudart} -lrt -lpthread")
endif()
# A relocatable file: the prefix follows from where the file lies, unless
# somebody wants the library at an absolute place.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(MLA_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(MLA_PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(dir LIBDIR INCLUDEDIR)
  set(MLA_PC_${dir} "${CMAKE_INSTALL_${dir}}")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    string(PREPEND MLA_PC_${dir} "\${prefix}/")
  endif()
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/mla.pc.in
  ${CMAKE_CURRENT_BINARY_DIR}/mla.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mla.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
