/*
 * The product with Advanced SIMD: sixteen lanes are four registers, six rows of
 * them 24 of 32; four hold the lanes of b, the rest the rows' numbers.
 */
#include <arm_neon.h>

#include "cpu_kernels.h"

mla_cpu_product_fn mla_product_f32_neon;
mla_cpu_pack_fn mla_pack_f32_neon;

#define LANES MLA_CPU_LANES

typedef struct lanes {
  float32x4_t at[4];
} lanes;

static inline lanes load(const float *from) {
  lanes x;
  for (int i = 0; i < 4; i++) x.at[i] = vld1q_f32(from + 4 * i);
  return x;
}

static inline lanes zero(void) {
  lanes x;
  for (int i = 0; i < 4; i++) x.at[i] = vdupq_n_f32(0.0f);
  return x;
}

static inline lanes add(lanes s, float a, lanes b) {
  for (int i = 0; i < 4; i++) s.at[i] = vfmaq_n_f32(s.at[i], b.at[i], a);
  return s;
}

static inline void put(lanes s, const float *beta, float *c) {
  for (int i = 0; i < 4; i++) {
    float32x4_t x = s.at[i];
    if (beta) x = vfmaq_f32(x, vld1q_f32(beta + 4 * i), vld1q_f32(c + 4 * i));
    vst1q_f32(c + 4 * i, x);
  }
}

static void six_rows(int64_t k, const float *a, int64_t row, int64_t col,
                     const float *b, const float *beta, float *c) {
  lanes s0 = zero(), s1 = zero(), s2 = zero();
  lanes s3 = zero(), s4 = zero(), s5 = zero();
  for (int64_t p = 0; p < k; p++, a += col, b += LANES) {
    lanes x = load(b);
    s0 = add(s0, a[0], x);
    s1 = add(s1, a[row], x);
    s2 = add(s2, a[2 * row], x);
    s3 = add(s3, a[3 * row], x);
    s4 = add(s4, a[4 * row], x);
    s5 = add(s5, a[5 * row], x);
  }
  put(s0, beta, c);
  put(s1, beta, c + LANES);
  put(s2, beta, c + 2 * LANES);
  put(s3, beta, c + 3 * LANES);
  put(s4, beta, c + 4 * LANES);
  put(s5, beta, c + 5 * LANES);
}

static void two_rows(int64_t k, const float *a, int64_t row, int64_t col,
                     const float *b, const float *beta, float *c) {
  lanes s0 = zero(), s1 = zero();
  for (int64_t p = 0; p < k; p++, a += col, b += LANES) {
    lanes x = load(b);
    s0 = add(s0, a[0], x);
    s1 = add(s1, a[row], x);
  }
  put(s0, beta, c);
  put(s1, beta, c + LANES);
}

static void one_row(int64_t k, const float *a, int64_t col, const float *b,
                    const float *beta, float *c) {
  lanes s = zero();
  for (int64_t p = 0; p < k; p++, a += col, b += LANES) s = add(s, *a, load(b));
  put(s, beta, c);
}

void mla_product_f32_neon(int64_t m, int64_t k, const float *a, int64_t row,
                          int64_t col, const float *b, const float *beta,
                          float *c) {
  int64_t i = 0;
  for (; i + 6 <= m; i += 6)
    six_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  for (; i + 2 <= m; i += 2)
    two_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  if (i < m) one_row(k, a + i * row, col, b, beta, c + i * LANES);
}

/* Four rows of four to four columns. */
static inline void transpose_4(const float *from, int64_t ld, float scale,
                               float *to) {
  float32x4_t r0 = vmulq_n_f32(vld1q_f32(from), scale);
  float32x4_t r1 = vmulq_n_f32(vld1q_f32(from + ld), scale);
  float32x4_t r2 = vmulq_n_f32(vld1q_f32(from + 2 * ld), scale);
  float32x4_t r3 = vmulq_n_f32(vld1q_f32(from + 3 * ld), scale);
  float32x4x2_t a = vtrnq_f32(r0, r1), b = vtrnq_f32(r2, r3);
  vst1q_f32(to, vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0])));
  vst1q_f32(to + LANES,
            vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1])));
  vst1q_f32(to + 2 * LANES,
            vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0])));
  vst1q_f32(to + 3 * LANES,
            vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1])));
}

void mla_pack_f32_neon(float *panel, const float *rows, int64_t ld, int64_t k,
                       float scale) {
  int64_t p = 0;
  for (; p + 4 <= k; p += 4)
    for (int x = 0; x < LANES; x += 4)
      transpose_4(rows + x * ld + p, ld, scale, panel + p * LANES + x);
  for (; p < k; p++)
    for (int x = 0; x < LANES; x++)
      panel[p * LANES + x] = scale * rows[x * ld + p];
}
