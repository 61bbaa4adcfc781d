/*
 * cpu_kernel_fixture.h - what tests of single kernels share: a level's table,
 * and panels of numbers.
 */
#ifndef MLA_TEST_CPU_KERNEL_FIXTURE_H
#define MLA_TEST_CPU_KERNEL_FIXTURE_H

#include <check.h>
#include <stdlib.h>

#include "cpu_table.h"
#include "rng.h"

/* The table of a level; NULL: this machine does not run it. */
static inline const mla_cpu_table *table_of(int isa) {
  static mla_cpu_table table;
  if (!(mla_cpu_isa_detect() & MLA_CPU_BIT(isa))) return NULL;
  table = mla_cpu_table_for(mla_cpu_isa_set(isa) & mla_cpu_isa_detect());
  return &table;
}

static inline void fill(float *x, int64_t n, const char *name) {
  mla_rng rng = mla_rng_named(11, name);
  for (int64_t i = 0; i < n; i++) x[i] = (float)mla_rng_bell(rng, (uint64_t)i);
}

static inline float *panel_of(int64_t n) {
  float *p = aligned_alloc(64, (size_t)(n * 4 + 63) / 64 * 64);
  ck_assert_ptr_nonnull(p);
  return p;
}

#endif
