#include "cpu_keys.h"

#include <string.h>

#include "cpu_internal.h"
#include "tensor.h"

mla_cpu_keys mla_cpu_keys_of(const mla_cpu_context *c, const mla_args *args) {
  mla_cpu_keys x;
  memset(&x, 0, sizeof x);
  x.cache = mla_arg(args, MLA_T_CACHE);
  x.table = mla_arg(args, MLA_T_BLOCK_TABLE);
  x.width = c->problem.head_dim;
  x.type = mla_cpu_type_of_format(c->problem.cache_format);
  if (x.type >= 0)
    x.load = c->table.load[x.type];
  else
    x.entries = mla_cpu_entries_of(c, args, MLA_T_CACHE, MLA_CPU_F32);
  return x;
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
      mla_cpu_entry_load(&x->entries, block, at, 0, 0, x->width, to + i * ld);
  }
}
