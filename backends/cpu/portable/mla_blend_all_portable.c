/*
 * Weighted sums of rows, one for each type of them. A few columns at a time, so
 * that their sums stay in registers while all parts go past.
 */
#include <string.h>

#include "cpu_kernels.h"
#include "half.h"

mla_cpu_blend_fn mla_blend_f32_portable, mla_blend_f16_portable,
    mla_blend_bf16_portable;

enum { columns = 16 };

static inline float same(float x) {
  return x;
}

#define BLEND(name, type, widen)                                             \
  void name(int64_t n, int64_t parts, const void *const *part,               \
            const float *weight, int64_t ahead, int add, float *sum) {       \
    (void)ahead;                                                             \
    for (int64_t c = 0; c < n; c += columns) {                               \
      float s[columns] = {0};                                                \
      int here = n - c < columns ? (int)(n - c) : columns;                   \
      for (int64_t i = 0; i < parts; i++) {                                  \
        const type *x = (const type *)part[i] + c;                           \
        if (here == columns)                                                 \
          for (int k = 0; k < columns; k++) s[k] += weight[i] * widen(x[k]); \
        else                                                                 \
          for (int k = 0; k < here; k++) s[k] += weight[i] * widen(x[k]);    \
      }                                                                      \
      for (int k = 0; k < here; k++)                                         \
        sum[c + k] = add ? sum[c + k] + s[k] : s[k];                         \
    }                                                                        \
  }

BLEND(mla_blend_f32_portable, float, same)
BLEND(mla_blend_f16_portable, uint16_t, mla_f16_to_f32)
BLEND(mla_blend_bf16_portable, uint16_t, mla_bf16_to_f32)
