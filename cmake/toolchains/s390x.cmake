# IBM Z, big-endian: gcc-s390x-linux-gnu libc6-dev-s390x-cross.
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(mla_triple s390x-linux-gnu)
set(mla_qemu qemu-s390x)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
