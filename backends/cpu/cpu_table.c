#include "cpu_table.h"

#include <string.h>

#include "dtype.h"

#define KERNEL(level, shape, member, function) \
  extern mla_cpu_##shape##_fn function;
#include "init_portable.h"
#ifdef MLA_CPU_X86
#include "init_x86.h"
#endif
#ifdef MLA_CPU_ARM
#include "init_arm.h"
#endif
#undef KERNEL

mla_cpu_table mla_cpu_table_for(uint32_t mask) {
  mla_cpu_table table;
  memset(&table, 0, sizeof table);
  mask |= MLA_CPU_BIT(MLA_CPU_PORTABLE);
#define KERNEL(level, shape, member, function) \
  if (mask & MLA_CPU_BIT(MLA_CPU_##level)) {   \
    table.member = function;                   \
    table.isa = MLA_CPU_##level;               \
  }
#include "init_portable.h"
#ifdef MLA_CPU_X86
#include "init_x86.h"
#endif
#ifdef MLA_CPU_ARM
#include "init_arm.h"
#endif
#undef KERNEL
  return table;
}

int mla_cpu_type_of(int32_t dtype) {
  switch (dtype) {
    case MLA_F32: return MLA_CPU_F32;
    case MLA_F16: return MLA_CPU_F16;
    case MLA_BF16: return MLA_CPU_BF16;
    default: return -1;
  }
}

int mla_cpu_code_of(int32_t dtype) {
  switch (dtype) {
    case MLA_FP8_E4M3: return MLA_CPU_E4M3;
    case MLA_FP8_E4M3FNUZ: return MLA_CPU_E4M3FNUZ;
    case MLA_FP8_E5M2: return MLA_CPU_E5M2;
    case MLA_I8: return MLA_CPU_I8;
    case MLA_I4: return MLA_CPU_I4;
    default: return -1;
  }
}

int mla_cpu_type_of_format(int32_t cache_format) {
  switch (cache_format) {
    case MLA_CACHE_F32: return MLA_CPU_F32;
    case MLA_CACHE_F16: return MLA_CPU_F16;
    case MLA_CACHE_BF16: return MLA_CPU_BF16;
    default: return -1;
  }
}

int64_t mla_cpu_type_bytes(int type) {
  return type == MLA_CPU_F32 ? 4 : 2;
}
