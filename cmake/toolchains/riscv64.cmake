# 64-bit RISC-V: gcc-riscv64-linux-gnu libc6-dev-riscv64-cross.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(mla_triple riscv64-linux-gnu)
set(mla_qemu qemu-riscv64)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
