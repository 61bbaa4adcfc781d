/* Conversions to and from f32: plain loops over the exact ones of half.h. */
#include <string.h>

#include "cpu_kernels.h"
#include "half.h"

mla_cpu_load_fn mla_load_f32_portable, mla_load_f16_portable,
    mla_load_bf16_portable;
mla_cpu_fetch_fn mla_fetch_all_portable;
mla_cpu_stream_fn mla_stream_all_portable;
mla_cpu_settle_fn mla_settle_all_portable;
mla_cpu_store_fn mla_store_f32_portable, mla_store_f16_portable,
    mla_store_bf16_portable;

void mla_load_f32_portable(float *to, const void *from, int64_t n) {
  memcpy(to, from, (size_t)n * sizeof *to);
}

void mla_load_f16_portable(float *to, const void *from, int64_t n) {
  const uint16_t *code = from;
  for (int64_t i = 0; i < n; i++) to[i] = mla_f16_to_f32(code[i]);
}

void mla_load_bf16_portable(float *to, const void *from, int64_t n) {
  const uint16_t *code = from;
  for (int64_t i = 0; i < n; i++) to[i] = mla_bf16_to_f32(code[i]);
}

void mla_store_f32_portable(void *to, const float *from, int64_t n) {
  memcpy(to, from, (size_t)n * sizeof *from);
}

void mla_store_f16_portable(void *to, const float *from, int64_t n) {
  uint16_t *code = to;
  for (int64_t i = 0; i < n; i++) code[i] = mla_f32_to_f16(from[i]);
}

void mla_store_bf16_portable(void *to, const float *from, int64_t n) {
  uint16_t *code = to;
  for (int64_t i = 0; i < n; i++) code[i] = mla_f32_to_bf16(from[i]);
}

/* C has no such hint; the processor must see for itself. */
void mla_fetch_all_portable(const void *from, int64_t bytes) {
  (void)from;
  (void)bytes;
}

void mla_stream_all_portable(void *to, const void *from, int64_t bytes) {
  memmove(to, from, (size_t)bytes);
}

void mla_settle_all_portable(void) {}
