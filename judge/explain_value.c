/*
 * explain_value.c - one value that a backend got, or that a probe gives.
 */
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "explain_bench.h"

int bench_has_poison(const mla_tensor *t, const unsigned char *bytes,
                     int64_t offset, unsigned char poison) {
  int size = mla_dtype_bits(t->dtype) / 8;
  for (int i = 0; poison && i < size; i++)
    if (bytes[offset * size + i] != poison) return 0;
  return poison != 0;
}

unsigned char bench_poison(const bench *b, int32_t slot) {
  return mla_vector_poison(b->v, slot, b->e->poison);
}

/* Within the budget, or the value rounded with it: as compare.c judges. */
int bench_is_right(const mla_tensor *t, int compare, double expected,
                   double budget, double got) {
  if (mla_isnan(expected) || mla_isnan(got))
    return mla_isnan(expected) && mla_isnan(got);
  if (mla_isinf(expected) || mla_isinf(got))
    return mla_isinf(expected) == mla_isinf(got);
  if (compare == MLA_COMPARE_BUDGET) return mla_fabs(got - expected) <= budget;
  return mla_round_to(t->dtype, expected - budget) <= got &&
         got <= mla_round_to(t->dtype, expected + budget);
}

int bench_same_bits(const mla_tensor *t, const unsigned char *x,
                    const unsigned char *y, int64_t offset) {
  size_t size = (size_t)mla_dtype_bits(t->dtype) / 8;
  if (memcmp(x + (size_t)offset * size, y + (size_t)offset * size, size) == 0)
    return 1;
  return t->dtype != MLA_U8 && mla_isnan(mla_get(x, t->dtype, offset)) &&
         mla_isnan(mla_get(y, t->dtype, offset));
}
