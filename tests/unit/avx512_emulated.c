/* A machine that says it has AVX-512, with BF16 (avx512_emulated.h). */
#include "cpu_isa.h"

uint32_t __real_mla_cpu_isa_detect(void);
uint32_t __wrap_mla_cpu_isa_detect(void);

uint32_t __wrap_mla_cpu_isa_detect(void) {
  return mla_cpu_isa_set(MLA_CPU_AVX512_BF16) | __real_mla_cpu_isa_detect();
}
