# POWER, little-endian: gcc-powerpc64le-linux-gnu libc6-dev-ppc64el-cross.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ppc64le)
set(CMAKE_C_COMPILER powerpc64le-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE powerpc64le-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-ppc64le;-L;/usr/powerpc64le-linux-gnu")
# Libraries come from Debian's multiarch folders, when they are installed;
# programs that run at build time come from the host.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/powerpc64le-linux-gnu/pkgconfig)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
