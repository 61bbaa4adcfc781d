/*
 * generate_large.c - real numbers of vectors that are measured, not judged:
 * the same few over and over, since gigabytes one by one take minutes.
 */
#include <string.h>

#include "dtype.h"
#include "generate.h"
#include "op_table.h"
#include "tensor.h"

enum {
  DISTINCT = 65521, /* numbers of a plain tensor; prime, so that rows differ */
  ENTRIES = 4096    /* of a cache, rounded up to whole blocks */
};

/* Numbers from a stream, then copies of all that is there. */
static void fill_plain(mla_gen *g, int32_t slot, double factor) {
  mla_tensor *t = &g->v->tensor[slot];
  mla_rng rng = mla_gen_stream(g, mla_slot_name(slot));
  int64_t size = mla_dtype_bits(t->dtype) / 8, count = mla_tensor_count(t);
  int64_t done = count < DISTINCT ? count : DISTINCT;
  for (int64_t i = 0; i < done; i++)
    mla_put(t->data, t->dtype, i, factor * mla_rng_bell(rng, (uint64_t)i));
  while (done < count) {
    int64_t n = done < count - done ? done : count - done;
    memcpy((char *)t->data + done * size, t->data, (size_t)(n * size));
    done += n;
  }
}

static void fill_entry(mla_gen *g, int32_t slot, mla_rng rng, int64_t at) {
  const mla_problem *p = &g->v->problem;
  int64_t heads = mla_problem_kv_heads(p);
  int64_t width = g->rows.layout.width;
  if (slot == MLA_T_V_CACHE) width = g->v_rows.layout.width;
  for (int64_t head = 0; head < heads; head++) {
    for (int64_t d = 0; d < width; d++)
      g->row[d] =
          mla_rng_bell(rng, (uint64_t)((at * heads + head) * width + d)) *
          mla_gen_amplitude(g, slot, at, d);
    mla_gen_put_entry(g, slot, at, head, at, g->row);
  }
}

static void fill_cache(mla_gen *g, int32_t slot) {
  mla_tensor *t = &g->v->tensor[slot];
  mla_rng rng = mla_gen_stream(g, mla_slot_name(slot));
  int64_t blocks = t->shape[0], page = t->shape[1];
  int64_t first = (ENTRIES + page - 1) / page;
  int64_t size = t->stride[0] * mla_dtype_bits(t->dtype) / 8;
  if (first > blocks) first = blocks;
  for (int64_t i = 0; i < first * page; i++) fill_entry(g, slot, rng, i);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (blocks > ENTRIES)
#endif
  for (int64_t b = first; b < blocks - 1; b++)
    memcpy((char *)t->data + b * size, (char *)t->data + b % first * size,
           (size_t)size);
  if (blocks > first) /* whose gap may not be there */
    for (int64_t i = 0; i < page; i++)
      fill_entry(g, slot, rng, (blocks - 1) * page + i);
}

static int is_cache(int32_t slot) {
  return slot == MLA_T_CACHE || slot == MLA_T_V_CACHE ||
         slot == MLA_T_EXTRA_CACHE;
}

void mla_gen_large(mla_gen *g) {
  const mla_op_spec *op = mla_op_spec_of(g->v->problem.op);
  for (int32_t i = 0; i < op->slot_count; i++) {
    const mla_slot_spec *spec = &op->slots[i];
    int whole =
        spec->type_rule == MLA_TYPE_I32 || spec->type_rule == MLA_TYPE_I64;
    if (!mla_slot_applies(spec, &g->v->problem) || whole ||
        spec->role != MLA_ROLE_IN || !g->v->tensor[spec->slot].data)
      continue;
    if (is_cache(spec->slot))
      fill_cache(g, spec->slot);
    else if (spec->type_rule == MLA_TYPE_WEIGHT)
      fill_plain(g, spec->slot,
                 mla_gen_weight_scale(g->v->tensor[spec->slot].shape[1]));
    else
      fill_plain(g, spec->slot, 1);
  }
}
