# Flags that every C file of the project gets, in the target mla_flags.
#
# The reference gives the same bits under every compiler only if the compiler
# evaluates what is written: no contraction into fused multiply-adds, no
# excess precision, no re-association (docs/building.md). Target options come
# after CFLAGS on the command line, so they win over -march=native and the
# like; what they cannot undo is refused here.

# Options that change values and that no later option takes back in full.
# -Ofast and -ffast-math also make gcc link start-up code that flushes
# subnormals in the whole process.
set(mla_refused -ffast-math -Ofast -funsafe-math-optimizations
  -fassociative-math -freciprocal-math -ffinite-math-only -fno-signed-zeros
  -fno-honor-nans -fno-honor-infinities -fapprox-func -ffp-model=fast
  -ffp-model=aggressive -fsingle-precision-constant -mfpmath=387
  -mfpmath=both -mdaz-ftz)

function(mla_refuse_value_changing_flags)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  foreach(var CMAKE_C_COMPILER_ARG1 CMAKE_C_FLAGS CMAKE_C_FLAGS_${config}
      CMAKE_EXE_LINKER_FLAGS CMAKE_SHARED_LINKER_FLAGS
      CMAKE_MODULE_LINKER_FLAGS)
    separate_arguments(flags UNIX_COMMAND "${${var}}")
    foreach(flag IN LISTS flags)
      if(flag IN_LIST mla_refused)
        message(FATAL_ERROR "${var} holds ${flag}, which changes the values "
          "that the reference computes. Take it out of CFLAGS, LDFLAGS or "
          "CC (docs/building.md, \"Flags\").")
      endif()
    endforeach()
  endforeach()
endfunction()
mla_refuse_value_changing_flags()

add_library(mla_flags INTERFACE)
target_include_directories(mla_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
target_compile_options(mla_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  -Wstrict-prototypes -ffp-contract=off -fno-fast-math)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  # gcc -std=c11 on s390x would evaluate float in double.
  target_compile_options(mla_flags INTERFACE -fexcess-precision=fast)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(i[3-6]86|x86)$")
  target_compile_options(mla_flags INTERFACE -msse2 -mfpmath=sse)
endif()
if(NOT MLA_OPENMP_FOUND)
  target_compile_options(mla_flags INTERFACE -Wno-unknown-pragmas)
endif()
if(MLA_WERROR)
  target_compile_options(mla_flags INTERFACE -Werror)
endif()

# Sanitizers watch plugins and dependencies' callers too, so the whole tree
# gets them, by directory scope.
if(MLA_SANITIZE)
  set(sanitize -fsanitize=${MLA_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  if(MLA_SANITIZE MATCHES "undefined")
    # Converting 1e30 to int is undefined too, but not in the default set.
    list(APPEND sanitize -fsanitize=float-cast-overflow)
  endif()
  add_compile_options(${sanitize})
  add_link_options(${sanitize})
  mla_summary(MLA_SANITIZE "${MLA_SANITIZE}")
endif()
