/*
 * Online softmax with Advanced SIMD, written out: exp is most of it, and the
 * sixteen lanes are four registers. Soft cap, folding and scaling are the plain
 * loops of cpu_softmax.h.
 */
#include <arm_neon.h>

#include "cpu_softmax.h"

mla_cpu_softmax_fn mla_softmax_f32_neon;

#define LANES MLA_CPU_LANES

static inline float32x4_t all(float x) {
  return vdupq_n_f32(x);
}

/* mla_cpu_expf of four numbers, none above 0. */
static inline float32x4_t exp_4(float32x4_t x) {
  const float32x4_t magic = all(12582912.0f);
  float32x4_t y = vmaxq_f32(x, all(-104.0f)); /* keeps NaN */
  float32x4_t t = vfmaq_f32(magic, y, all(1.44269504f));
  float32x4_t whole = vsubq_f32(t, magic);
  float32x4_t r = vfmsq_f32(y, whole, all(0.693359375f));
  r = vfmsq_f32(r, whole, all(-2.12194440e-4f));
  float32x4_t q = all(0x1.6a23cep-10f);
  q = vfmaq_f32(all(0x1.123a20p-7f), q, r);
  q = vfmaq_f32(all(0x1.5558f2p-5f), q, r);
  q = vfmaq_f32(all(0x1.555492p-3f), q, r);
  q = vfmaq_f32(all(0x1.fffffcp-2f), q, r);
  q = vfmaq_f32(r, q, vmulq_f32(r, r));
  q = vaddq_f32(q, all(1.0f));
  int32x4_t n =
      vsubq_s32(vreinterpretq_s32_f32(t), vreinterpretq_s32_f32(magic));
  int32x4_t half = vshrq_n_s32(n, 1), one = vdupq_n_s32(127);
  int32x4_t scale0 = vshlq_n_s32(vaddq_s32(half, one), 23);
  int32x4_t scale1 = vshlq_n_s32(vaddq_s32(vsubq_s32(n, half), one), 23);
  q = vmulq_f32(q, vreinterpretq_f32_s32(scale0));
  return vmulq_f32(q, vreinterpretq_f32_s32(scale1));
}

static inline float32x4_t nothing(void) {
  return vreinterpretq_f32_u32(vdupq_n_u32(0xFF800000u));
}

static void hide_4(int64_t n, float *s, const int32_t *visible) {
  int32x4_t sees = vld1q_s32(visible);
  for (int32_t j = 0; j < n; j++, s += LANES)
    vst1q_f32(
        s, vbslq_f32(vcgtq_s32(sees, vdupq_n_s32(j)), vld1q_f32(s), nothing()));
}

static void softmax_4(int64_t n, float *s, float *m, float *l, float *beta) {
  float32x4_t old = vld1q_f32(m), top = old, sum = all(0.0f);
  /* The number, where one is NaN. */
  for (int64_t j = 0; j < n; j++)
    top = vmaxnmq_f32(top, vld1q_f32(s + j * LANES));
  /* 0 where nothing was seen: -infinity less itself would be NaN. */
  float32x4_t shift = vbslq_f32(vceqq_f32(top, nothing()), all(0.0f), top);
  float32x4_t factor = exp_4(vsubq_f32(old, shift));
  for (int64_t j = 0; j < n; j++, s += LANES) {
    float32x4_t p = exp_4(vsubq_f32(vld1q_f32(s), shift));
    vst1q_f32(s, p);
    sum = vaddq_f32(sum, p);
  }
  vst1q_f32(m, top);
  vst1q_f32(beta, factor);
  vst1q_f32(l, vfmaq_f32(sum, factor, vld1q_f32(l)));
}

void mla_softmax_f32_neon(int64_t n, float *s, const int32_t *visible, float *m,
                          float *l, float *beta) {
  for (int x = 0; x < LANES; x += 4) {
    if (visible) hide_4(n, s + x, visible + x);
    softmax_4(n, s + x, m + x, l + x, beta + x);
  }
}
