#include "cpu_keys.h"

#include <string.h>

#include "cpu_internal.h"
#include "dtype.h"
#include "tensor.h"

mla_cpu_keys mla_cpu_keys_of(const mla_cpu_table *table, const mla_problem *p,
                             const mla_tensor *cache,
                             const mla_tensor *block_table) {
  mla_cpu_keys x;
  memset(&x, 0, sizeof x);
  x.cache = cache;
  x.table = block_table;
  x.width = p->head_dim;
  x.type = mla_cpu_type_of_format(p->cache_format);
  if (x.type >= 0) {
    x.load = table->load[x.type];
    return x;
  }
  for (uint32_t code = 0; code < 256; code++)
    x.value[code] = (float)mla_decode(MLA_FP8_E4M3, code);
  return x;
}

static void load_codes(const mla_cpu_keys *x, const unsigned char *block,
                       int64_t at, float *to) {
  const unsigned char *code = block + at * x->width;
  float scale;
  memcpy(&scale, block + x->cache->shape[1] * x->width + at * 4, sizeof scale);
  for (int64_t i = 0; i < x->width; i++) to[i] = x->value[code[i]] * scale;
}

void mla_cpu_keys_load(const mla_cpu_keys *x, int64_t request, int64_t first,
                       int64_t n, float *to, int64_t ld) {
  const int32_t *blocks =
      (const int32_t *)x->table->data + mla_at1(x->table, request);
  int64_t size = x->cache->shape[1];
  for (int64_t i = 0; i < n; i++) {
    int64_t block = blocks[(first + i) / size], at = (first + i) % size;
    if (x->load)
      x->load(to + i * ld,
              mla_cpu_at(x->cache->data, x->type, mla_at2(x->cache, block, at)),
              x->width);
    else
      load_codes(
          x,
          (const unsigned char *)x->cache->data + block * x->cache->stride[0],
          at, to + i * ld);
  }
}
