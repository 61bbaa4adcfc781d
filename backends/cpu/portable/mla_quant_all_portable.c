/* Codes with a scale: the loops of cpu_quant.h. */
#include "cpu_quant.h"

mla_cpu_amax_fn mla_amax_all_portable;

void mla_amax_all_portable(float *top, const void *x, int type, int64_t n,
                           int64_t tile) {
  for (int64_t i = 0; i < n; i += tile)
    *top++ = mla_cpu_amax(mla_cpu_number(x, type, i), type,
                          n - i < tile ? n - i : tile);
}

#define CODE(code, in_byte)                                                 \
  mla_cpu_encode_fn mla_encode_##code##_portable;                           \
  void mla_encode_##code##_portable(void *to, const void *x, int type,      \
                                    int64_t n, int64_t tile,                \
                                    const float *scale, const void *next) { \
    (void)next;                                                             \
    for (int64_t i = 0; i < n; i += tile)                                   \
      mla_cpu_encode_##code((uint8_t *)to + i / in_byte,                    \
                            mla_cpu_number(x, type, i), type,               \
                            n - i < tile ? n - i : tile, *scale++);         \
  }                                                                         \
  mla_cpu_decode_fn mla_decode_##code##_portable;                           \
  void mla_decode_##code##_portable(float *to, const void *from, int64_t n, \
                                    float scale) {                          \
    mla_cpu_decode_##code(to, from, n, scale);                              \
  }
CODE(e4m3, 1)
CODE(e4m3fnuz, 1)
CODE(e5m2, 1)
CODE(i8, 1)
CODE(i4, 2)
