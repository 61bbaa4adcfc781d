# POWER, little-endian: gcc-powerpc64le-linux-gnu libc6-dev-ppc64el-cross.
set(CMAKE_SYSTEM_PROCESSOR ppc64le)
set(mla_triple powerpc64le-linux-gnu)
set(mla_qemu qemu-ppc64le)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
