/* Softmax, soft cap and folding at the compiler's baseline. */
#include "cpu_softmax.h"

mla_cpu_softmax_fn mla_softmax_f32_portable;
mla_cpu_softcap_fn mla_softcap_f32_portable;
mla_cpu_fold_fn mla_fold_f32_portable;
mla_cpu_scale_fn mla_scale_f32_portable;

void mla_softmax_f32_portable(int64_t n, float *s, const int32_t *visible,
                              float *m, float *l, float *beta) {
  mla_cpu_softmax(n, s, visible, m, l, beta);
}

void mla_softcap_f32_portable(int64_t n, float *s, float cap) {
  mla_cpu_softcap(n, s, cap);
}

void mla_fold_f32_portable(int64_t n, float *m, float *l, float *acc,
                           const float *m2, const float *l2,
                           const float *acc2) {
  mla_cpu_fold(n, m, l, acc, m2, l2, acc2);
}

void mla_scale_f32_portable(int64_t n, float *x, const float *times) {
  mla_cpu_scale(n, x, times);
}
