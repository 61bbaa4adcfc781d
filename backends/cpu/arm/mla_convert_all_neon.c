/* 16-bit floats to and from f32: the processor's conversions for f16, shifts
   for bf16. */
#include <arm_neon.h>

#include "cpu_kernels.h"
#include "half.h"

mla_cpu_load_fn mla_load_f16_neon, mla_load_bf16_neon;
mla_cpu_store_fn mla_store_f16_neon, mla_store_bf16_neon;

void mla_load_f16_neon(float *to, const void *from, int64_t n) {
  const uint16_t *code = from;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(code + i))));
  for (; i < n; i++) to[i] = mla_f16_to_f32(code[i]);
}

void mla_load_bf16_neon(float *to, const void *from, int64_t n) {
  const uint16_t *code = from;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    vst1q_f32(to + i,
              vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(code + i), 16)));
  for (; i < n; i++) to[i] = mla_bf16_to_f32(code[i]);
}

/* The processor keeps a NaN's payload; ours is one code. */
void mla_store_f16_neon(void *to, const float *from, int64_t n) {
  uint16_t *code = to;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    float32x4_t x = vld1q_f32(from + i);
    uint16x4_t number = vmovn_u32(vceqq_f32(x, x));
    uint16x4_t half = vreinterpret_u16_f16(vcvt_f16_f32(x));
    vst1_u16(code + i, vbsl_u16(number, half, vdup_n_u16(0x7E00)));
  }
  for (; i < n; i++) code[i] = mla_f32_to_f16(from[i]);
}

void mla_store_bf16_neon(void *to, const float *from, int64_t n) {
  uint16_t *code = to;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    float32x4_t x = vld1q_f32(from + i);
    uint32x4_t bits = vreinterpretq_u32_f32(x);
    uint32x4_t even = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t sum = vaddq_u32(bits, vdupq_n_u32(0x7FFF));
    uint16x4_t high = vshrn_n_u32(vaddq_u32(sum, even), 16);
    uint16x4_t number = vmovn_u32(vceqq_f32(x, x));
    vst1_u16(code + i, vbsl_u16(number, high, vdup_n_u16(0x7FC0)));
  }
  for (; i < n; i++) code[i] = mla_f32_to_bf16(from[i]);
}
