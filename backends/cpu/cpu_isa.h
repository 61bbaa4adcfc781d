/*
 * cpu_isa.h - levels of instruction sets, and which of them this machine runs.
 *
 * A level says what its kernels may execute. `portable` is plain C at the
 * compiler's baseline. A set of levels is a mask of MLA_CPU_BIT(level); a
 * level's set holds every lower level of its family, so that a kernel missing
 * from a level is served by the next one below.
 */
#ifndef MLA_CPU_ISA_H
#define MLA_CPU_ISA_H

#include <stddef.h>
#include <stdint.h>

typedef enum mla_cpu_isa {
  MLA_CPU_PORTABLE = 0,
  MLA_CPU_AVX2 = 1,        /* AVX2, FMA, F16C */
  MLA_CPU_AVX512 = 2,      /* and AVX-512 F, BW, VL, DQ */
  MLA_CPU_AVX512_BF16 = 3, /* and AVX-512 BF16 */
  MLA_CPU_AMX = 4,         /* and AMX tiles with bf16 */
  MLA_CPU_NEON = 5,        /* Advanced SIMD of AArch64 */
  MLA_CPU_NEON_BF16 = 6,   /* and fp16 arithmetic, bf16 products */
  MLA_CPU_ISA_COUNT = 7
} mla_cpu_isa;

#define MLA_CPU_BIT(isa) (1u << (isa))

const char *mla_cpu_isa_name(int isa);
/* -1 for a name that is none. */
int mla_cpu_isa_from_name(const char *name, size_t length);
/* The level and all below it of its family. */
uint32_t mla_cpu_isa_set(int isa);
/* What this machine and its operating system run; portable always. */
uint32_t mla_cpu_isa_detect(void);
/* The highest level of a set. */
int mla_cpu_isa_best(uint32_t set);

#endif
