# What the machines' toolchain files share. They set CMAKE_SYSTEM_PROCESSOR,
# mla_triple and mla_qemu before.
#
# The compiler and the C library are Debian's cross packages. Other libraries
# (cJSON, xxHash, Check) are taken from build/sysroot/MACHINE, which
# tests/cross/fetch_sysroot.sh fills; without it what needs them is left out.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${mla_triple}-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE ${mla_triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR "${mla_qemu};-L;/usr/${mla_triple}")

get_filename_component(mla_sysroot
  ${CMAKE_CURRENT_LIST_DIR}/../../build/sysroot/${CMAKE_SYSTEM_PROCESSOR}
  ABSOLUTE)
set(mla_libdir ${mla_sysroot}/usr/lib/${mla_triple})
set(ENV{PKG_CONFIG_LIBDIR} ${mla_libdir}/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${mla_sysroot})
if(EXISTS ${mla_libdir})
  list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -E LD_LIBRARY_PATH=${mla_libdir})
endif()
