# 64-bit Arm, little-endian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(mla_triple aarch64-linux-gnu)
set(mla_qemu qemu-aarch64 -cpu max)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
