#include "cpu_isa.h"

#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

static const struct {
  const char *name;
  int below; /* the next lower level of the family; -1: none */
} levels[MLA_CPU_ISA_COUNT] = {
    [MLA_CPU_PORTABLE] = {"portable", -1},
    [MLA_CPU_AVX2] = {"avx2", MLA_CPU_PORTABLE},
    [MLA_CPU_AVX512] = {"avx512", MLA_CPU_AVX2},
    [MLA_CPU_AVX512_BF16] = {"avx512_bf16", MLA_CPU_AVX512},
    [MLA_CPU_AMX] = {"amx", MLA_CPU_AVX512_BF16},
    [MLA_CPU_NEON] = {"neon", MLA_CPU_PORTABLE},
    [MLA_CPU_NEON_BF16] = {"neon_bf16", MLA_CPU_NEON},
};

const char *mla_cpu_isa_name(int isa) {
  return isa >= 0 && isa < MLA_CPU_ISA_COUNT ? levels[isa].name : "unknown";
}

int mla_cpu_isa_from_name(const char *name, size_t length) {
  for (int i = 0; i < MLA_CPU_ISA_COUNT; i++)
    if (strlen(levels[i].name) == length &&
        memcmp(levels[i].name, name, length) == 0)
      return i;
  return -1;
}

uint32_t mla_cpu_isa_set(int isa) {
  uint32_t set = 0;
  for (; isa >= 0; isa = levels[isa].below) set |= MLA_CPU_BIT(isa);
  return set;
}

int mla_cpu_isa_best(uint32_t set) {
  int best = MLA_CPU_PORTABLE;
  for (int i = 0; i < MLA_CPU_ISA_COUNT; i++)
    if (set & MLA_CPU_BIT(i)) best = i;
  return best;
}

#if defined(__x86_64__) || defined(__i386__)

typedef struct cpuid_words {
  unsigned a, b, c, d;
} cpuid_words;

static cpuid_words cpuid(unsigned leaf, unsigned sub) {
  cpuid_words w = {0, 0, 0, 0};
  if (!__get_cpuid_count(leaf, sub, &w.a, &w.b, &w.c, &w.d)) {
    cpuid_words none = {0, 0, 0, 0};
    return none;
  }
  return w;
}

/* The register states the operating system saves: a feature without its state
   saved faults, or worse, corrupts another thread. */
static uint32_t saved_states(void) {
  uint32_t low, high;
  if (!(cpuid(1, 0).c & (1u << 27))) return 0; /* OSXSAVE */
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static int has_all(uint32_t word, uint32_t bits) {
  return (word & bits) == bits;
}

int mla_cpu_amx_permitted(void);

uint32_t mla_cpu_isa_detect(void) {
  uint32_t states = saved_states();
  cpuid_words one = cpuid(1, 0), seven = cpuid(7, 0), more = cpuid(7, 1);
  uint32_t set = MLA_CPU_BIT(MLA_CPU_PORTABLE);
  /* FMA, AVX, F16C; AVX2; XMM and YMM saved */
  if (!has_all(one.c, 1u << 12 | 1u << 28 | 1u << 29) ||
      !has_all(seven.b, 1u << 5) || !has_all(states, 0x6))
    return set;
  set |= MLA_CPU_BIT(MLA_CPU_AVX2);
  /* F, DQ, BW, VL; opmask and ZMM saved */
  if (!has_all(seven.b, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) ||
      !has_all(states, 0xE6))
    return set;
  set |= MLA_CPU_BIT(MLA_CPU_AVX512);
  if (!has_all(more.a, 1u << 5)) return set;
  set |= MLA_CPU_BIT(MLA_CPU_AVX512_BF16);
  /* AMX-BF16, AMX-TILE; tile configuration and data saved */
  if (has_all(seven.d, 1u << 22 | 1u << 24) && has_all(states, 3u << 17) &&
      mla_cpu_amx_permitted())
    set |= MLA_CPU_BIT(MLA_CPU_AMX);
  return set;
}

#elif defined(__aarch64__)

uint32_t mla_cpu_isa_detect(void) {
  uint32_t set = MLA_CPU_BIT(MLA_CPU_PORTABLE) | MLA_CPU_BIT(MLA_CPU_NEON);
#if defined(__linux__)
  /* ASIMDHP of the first word, BF16 of the second: the kernel's numbers. */
  unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  if ((first & (1ul << 10)) && (second & (1ul << 14)))
    set |= MLA_CPU_BIT(MLA_CPU_NEON_BF16);
#endif
  return set;
}

#else

uint32_t mla_cpu_isa_detect(void) {
  return MLA_CPU_BIT(MLA_CPU_PORTABLE);
}

#endif
