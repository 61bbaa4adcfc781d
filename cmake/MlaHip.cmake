# Device code for AMD by a plain clang, from ROCm's own tree or from Debian's
# packages, which put its parts in other places. No language of CMake's: that
# one finds only ROCm's tree.
#
#   mla_find_hip(RESULT)            what is needed is there; sets MLA_HIP_*
#   mla_hip_object(OUT SOURCE ...)  an object with device code for all targets
#   mla_hip_code_object(OUT SOURCE ARCH ...)  device code alone, for tests
set(MLA_HIP_ARCHS "gfx90a;gfx942" CACHE STRING "AMD GPUs to build for")

function(mla_find_hip result)
  find_program(MLA_HIP_CLANG NAMES amdclang++ clang++-19 clang++
    HINTS /opt/rocm/llvm/bin /opt/rocm/bin DOC "A clang that knows gfx942")
  find_path(MLA_HIP_INCLUDE hip/hip_runtime_api.h HINTS /opt/rocm/include)
  find_path(MLA_HIP_BITCODE ocml.bc NO_DEFAULT_PATH PATHS
    /opt/rocm/amdgcn/bitcode
    /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/amdgcn/bitcode
    /usr/lib/x86_64-linux-gnu/amdgcn/bitcode)
  set(${result} OFF PARENT_SCOPE)
  if(NOT MLA_HIP_CLANG OR NOT MLA_HIP_INCLUDE OR NOT MLA_HIP_BITCODE
      OR NOT CMAKE_OBJCOPY)
    return()
  endif()
  mla_hip_bitcode_tree()
  get_filename_component(root ${MLA_HIP_INCLUDE} DIRECTORY)
  set(MLA_HIP_FLAGS -x hip --rocm-path=${root}
    --rocm-device-lib-path=${PROJECT_BINARY_DIR}/rocm/amdgcn/bitcode
    -std=c++17 -O3 -Wall -Wextra -fno-exceptions -fno-rtti
    -fno-threadsafe-statics -fPIC -fvisibility=hidden CACHE INTERNAL "")
  mla_hip_compiles(works)
  set(${result} ${works} PARENT_SCOPE)
endfunction()

# Debian's device libraries (5.2.3) know gfx940, not gfx942: the file holds the
# version of the instruction set alone, which is one family.
function(mla_hip_bitcode_tree)
  set(tree ${PROJECT_BINARY_DIR}/rocm/amdgcn/bitcode)
  file(MAKE_DIRECTORY ${tree})
  file(GLOB files ${MLA_HIP_BITCODE}/*.bc)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${tree}/${name} SYMBOLIC)
  endforeach()
  if(NOT EXISTS ${tree}/oclc_isa_version_942.bc
      AND EXISTS ${tree}/oclc_isa_version_940.bc)
    file(CREATE_LINK ${MLA_HIP_BITCODE}/oclc_isa_version_940.bc
      ${tree}/oclc_isa_version_942.bc SYMBOLIC)
  endif()
endfunction()

# One small kernel through compiler, device libraries and linker.
function(mla_hip_compiles result)
  set(probe ${PROJECT_BINARY_DIR}/rocm/probe.hip)
  set(key "${MLA_HIP_CLANG} ${MLA_HIP_FLAGS} ${MLA_HIP_ARCHS}")
  if(NOT key STREQUAL "${MLA_HIP_PROBED}")
    file(WRITE ${probe} "#include <hip/hip_runtime.h>\n"
      "__global__ void k(float *p) { p[threadIdx.x] = expf(*p); }\n")
    list(TRANSFORM MLA_HIP_ARCHS PREPEND --offload-arch= OUTPUT_VARIABLE archs)
    execute_process(COMMAND ${MLA_HIP_CLANG} ${MLA_HIP_FLAGS} ${archs}
        -c ${probe} -o ${probe}.o
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE why)
    if(status EQUAL 0)
      set(MLA_HIP_WORKS ON CACHE INTERNAL "")
    else()
      string(REGEX MATCH "error: [^\n]*" why "${why}")
      message(STATUS "HIP: ${MLA_HIP_CLANG} cannot build for AMD: ${why}")
      set(MLA_HIP_WORKS OFF CACHE INTERNAL "")
    endif()
    set(MLA_HIP_PROBED "${key}" CACHE INTERNAL "")
  endif()
  set(${result} ${MLA_HIP_WORKS} PARENT_SCOPE)
endfunction()

# What every compilation of a source gets.
function(mla_hip_command result)
  list(JOIN MLA_HIP_ARCHS "," archs)
  set(command ${MLA_HIP_CLANG} ${MLA_HIP_FLAGS} -DMLA_HIP_ARCHS="${archs}"
    -I${PROJECT_SOURCE_DIR}/backends/hip -I${PROJECT_SOURCE_DIR}/include
    -I${PROJECT_BINARY_DIR}/include -I${PROJECT_SOURCE_DIR}/common
    -I${PROJECT_SOURCE_DIR}/common/gpu)
  if(MLA_WERROR)
    list(APPEND command -Werror)
  endif()
  set(${result} ${command} PARENT_SCOPE)
endfunction()

# The names it needs of the run-time library are changed to those of
# hip_lazy.c, so that nothing needs that library to start.
function(mla_hip_object out source)
  mla_hip_command(compile)
  list(TRANSFORM MLA_HIP_ARCHS PREPEND --offload-arch= OUTPUT_VARIABLE archs)
  get_filename_component(source ${source} ABSOLUTE)
  get_filename_component(name ${source} NAME_WE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.hip.o)
  set(names ${PROJECT_SOURCE_DIR}/backends/hip/hip_calls.txt)
  add_custom_command(OUTPUT ${object}
    COMMAND ${compile} ${archs} -MD -MF ${object}.d -MT ${object}
      -c ${source} -o ${object}.raw
    COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${names} ${object}.raw ${object}
    DEPENDS ${source} ${names} DEPFILE ${object}.d VERBATIM
    COMMENT "Building HIP object ${name}.hip.o")
  set(${out} ${object} PARENT_SCOPE)
endfunction()

function(mla_hip_code_object out source arch)
  mla_hip_command(compile)
  get_filename_component(source ${source} ABSOLUTE)
  get_filename_component(name ${source} NAME_WE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}-${arch}.hsaco)
  add_custom_command(OUTPUT ${object}
    COMMAND ${compile} --offload-arch=${arch} --cuda-device-only
      --no-gpu-bundle-output -MD -MF ${object}.d -MT ${object}
      -c ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d VERBATIM
    COMMENT "Building device code ${name}-${arch}.hsaco")
  set(${out} ${object} PARENT_SCOPE)
endfunction()
