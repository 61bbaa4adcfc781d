/* Codes with a scale: the loops of cpu_quant.h. */
#include "cpu_quant.h"

mla_cpu_amax_fn mla_amax_f32_portable;

float mla_amax_f32_portable(const float *x, int64_t n) {
  return mla_cpu_amax(x, n);
}

#define CODE(code)                                                          \
  mla_cpu_encode_fn mla_encode_##code##_portable;                           \
  void mla_encode_##code##_portable(void *to, const float *x, int64_t n,    \
                                    float scale) {                          \
    mla_cpu_encode_##code(to, x, n, scale);                                 \
  }                                                                         \
  mla_cpu_decode_fn mla_decode_##code##_portable;                           \
  void mla_decode_##code##_portable(float *to, const void *from, int64_t n, \
                                    float scale) {                          \
    mla_cpu_decode_##code(to, from, n, scale);                              \
  }
CODE(e4m3)
CODE(e4m3fnuz)
CODE(e5m2)
CODE(i8)
CODE(i4)
