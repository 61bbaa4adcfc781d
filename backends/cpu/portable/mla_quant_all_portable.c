/* Codes with a scale: the loops of cpu_quant.h. */
#include "cpu_quant.h"

mla_cpu_amax_fn mla_amax_f32_portable;
mla_cpu_encode_fn mla_encode_e4m3_portable, mla_encode_i8_portable,
    mla_encode_i4_portable;
mla_cpu_scale_codes_fn mla_decode_e4m3_portable, mla_decode_i4_portable;

float mla_amax_f32_portable(const float *x, int64_t n) {
  return mla_cpu_amax(x, n);
}

void mla_encode_e4m3_portable(void *to, const float *x, int64_t n,
                              float scale) {
  mla_cpu_encode_e4m3(to, x, n, scale);
}

void mla_encode_i8_portable(void *to, const float *x, int64_t n, float scale) {
  mla_cpu_encode_i8(to, x, n, scale);
}

void mla_encode_i4_portable(void *to, const float *x, int64_t n, float scale) {
  mla_cpu_encode_i4(to, x, n, scale);
}

void mla_decode_e4m3_portable(float *to, const void *from, int64_t n,
                              float scale) {
  mla_cpu_decode_e4m3(to, from, n, scale);
}

void mla_decode_i4_portable(float *to, const void *from, int64_t n,
                            float scale) {
  mla_cpu_decode_i4(to, from, n, scale);
}
