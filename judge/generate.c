/*
 * generate.c - layout of a vector, poison, and what the fillers share.
 */
#include "generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bulk.h"
#include "case_types.h"
#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "spans.h"
#include "tensor.h"

mla_rng mla_gen_stream(const mla_gen *g, const char *name) {
  return mla_rng_named(g->seed, name);
}

mla_rng mla_gen_stream_of(const mla_gen *g, const char *name, int64_t request) {
  char full[64];
  snprintf(full, sizeof full, "%s/%lld", name, (long long)request);
  return mla_rng_named(g->seed, full);
}

void mla_gen_put_row(mla_gen *g, int32_t slot, int64_t offset,
                     const double *values, int64_t n) {
  const mla_tensor *t = &g->v->tensor[slot];
  for (int64_t i = 0; i < n; i++)
    mla_put(t->data, t->dtype, offset + i, values[i]);
}

void mla_gen_shuffle(mla_rng rng, int64_t *order, int64_t n) {
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t k = mla_rng_below(rng, (uint64_t)i, (uint32_t)(i + 1));
    int64_t swap = order[i];
    order[i] = order[k];
    order[k] = swap;
  }
}

double mla_gen_weight_scale(int64_t n) {
  int e = 0;
  while (((int64_t)1 << (2 * e + 1)) < n) e++;
  return mla_ldexp(1, -e);
}

/* ----------------------------------------------------------------- values */

double mla_gen_range(const mla_gen *g) {
  int half = mla_case_act(g->c) == MLA_F16;
  switch (g->c->num[MLA_K_DIST]) {
    case MLA_DIST_BIG: return mla_ldexp(1, half ? 11 : 60);
    case MLA_DIST_TINY: return mla_ldexp(1, half ? -20 : -130);
    default: return 1;
  }
}

static const double edges[] = {0.0,
                               -0.0,
                               1.0,
                               -1.0,
                               1.00390625,      /* ties of bf16 */
                               1.01171875,      /* the other way */
                               1.00048828125,   /* ties of f16 */
                               1.00146484375,   /* the other way */
                               -65519.99609375, /* the largest f16 */
                               65520.0,         /* beyond it */
                               5.9604644775390625e-8,
                               2.98023223876953125e-8, /* half of it: tie */
                               8.94069671630859375e-8,
                               1.1754943508222875e-38,
                               9.183549615799121e-41, /* the smallest bf16 */
                               4.591774807899561e-41, /* half of it */
                               1.401298464324817e-45,
                               -3.3895313892515355e38, /* the largest bf16 */
                               3.3961775292304601e38,  /* rounds beyond */
                               3.4028234663852886e38};
#define EDGES (sizeof edges / sizeof edges[0])

double mla_gen_edge_number(uint64_t bits) {
  return edges[bits % EDGES];
}

double mla_gen_edge_any(uint64_t bits) {
  uint64_t k = bits % (EDGES + 3);
  if (k < EDGES) return edges[k];
  if (k == EDGES) return mla_nan();
  return k == EDGES + 1 ? mla_inf() : -mla_inf();
}

double mla_gen_value(const mla_gen *g, mla_rng rng, int64_t i, int64_t column) {
  uint64_t at = (uint64_t)i;
  switch (g->c->num[MLA_K_DIST]) {
    case MLA_DIST_EXACT: return (double)mla_rng_below(rng, at, 17) - 8;
    case MLA_DIST_EDGE:
      if (mla_rng_below(rng, at, 4) == 0) return mla_rng_bell(rng, at);
      return mla_gen_edge_any(mla_rng_bits(rng, at) & 0xffffff);
    case MLA_DIST_OUTLIER:
      return mla_rng_bell(rng, at) * (column % 67 == 5 ? 16 : 1);
    default: return mla_rng_bell(rng, at) * mla_gen_range(g);
  }
}

/* ----------------------------------------------------------------- layout */

static int64_t dim_of(const mla_gen *g, int sym) {
  int64_t bound = mla_sym_value(sym, &g->v->problem);
  return bound >= 0 ? bound : mla_case_sym(g->c, sym);
}

static int is_index(const mla_slot_spec *spec) {
  return spec->type_rule == MLA_TYPE_I32 || spec->type_rule == MLA_TYPE_I64;
}

/* Elements left free after each row, plane ... of a tensor. */
static int64_t gap_of(const mla_gen *g, const mla_slot_spec *spec) {
  int64_t strides = g->c->num[MLA_K_STRIDES];
  if (strides == MLA_STRIDES_DENSE || strides == MLA_STRIDES_TURNED) return 0;
  if (strides == MLA_STRIDES_ODD || is_index(spec)) return 3;
  return 8;
}

/* Bytes of packed entries are where f32 scales want to be. */
static int64_t gap_unit(const mla_gen *g, const mla_slot_spec *spec) {
  return mla_slot_dtype(spec, &g->v->problem) == MLA_U8 ? 4 : 1;
}

/* Entries whose scales stand behind them have no gaps between them, and their
   blocks are padded. */
static void lay_out_block(const mla_gen *g, mla_tensor *t, int64_t *stride) {
  mla_cache_layout layout = mla_cache_layout_of(&g->v->problem);
  t->stride[1] = mla_cache_entry(&layout);
  *stride = mla_cache_block_bytes(&layout, t->shape[1]);
}

/* Where tokens and heads are not the last axes, heads can be the outer one. */
static void turn(const mla_slot_spec *spec, mla_tensor *t) {
  for (int32_t a = 0; a + 2 < spec->rank; a++) {
    if (spec->dim[a] != MLA_S_N || spec->dim[a + 1] != MLA_S_H) continue;
    t->stride[a] = t->stride[a + 1];
    t->stride[a + 1] = t->stride[a] * (t->shape[a] ? t->shape[a] : 1);
  }
}

static mla_tensor lay_out(const mla_gen *g, const mla_slot_spec *spec) {
  int64_t shape[MLA_MAX_RANK] = {0}, stride = 1, unit = gap_unit(g, spec);
  int cache = spec->type_rule == MLA_TYPE_CACHE;
  int side = cache && mla_cache_layout_of(&g->v->problem).side_bytes;
  for (int32_t a = 0; a < spec->rank; a++) shape[a] = dim_of(g, spec->dim[a]);
  mla_tensor t = mla_tensor_dense(NULL, mla_slot_dtype(spec, &g->v->problem),
                                  spec->rank, shape);
  for (int32_t a = spec->rank - 1; a >= 0; a--) {
    t.stride[a] = stride;
    stride *= shape[a] ? shape[a] : 1;
    if (a == 1 && side) lay_out_block(g, &t, &stride);
    if (a == 1 && cache) stride += g->c->num[MLA_K_GAP] * unit;
    if (a > 0 && !(a == 2 && side)) stride += gap_of(g, spec) * unit;
  }
  if (g->c->num[MLA_K_STRIDES] == MLA_STRIDES_TURNED) turn(spec, &t);
  return t;
}

static int is_wanted(const mla_gen *g, const mla_slot_spec *spec) {
  if (!mla_slot_applies(spec, &g->v->problem)) return 0;
  if (!spec->optional) return 1;
  if (spec->slot != MLA_T_SEQ_STARTS) return g->c->num[MLA_K_TOPK_LEN] != 0;
  return mla_case_list_given(g->c, MLA_K_START);
}

void mla_gen_bytes(mla_rng rng, mla_tensor *t) {
  unsigned char *bytes = t->data;
  for (int64_t k = 0; k < mla_span_count(t); k++) {
    mla_span span = mla_span_at(t, k);
    for (int64_t i = span.at; i < span.at + span.bytes; i++)
      bytes[i] =
          (unsigned char)(mla_rng_bits(rng, (uint64_t)i / 8) >> (i % 8 * 8));
  }
}

/* What the values will overwrite. A cache that is written in part is filled
   with bytes all different, since what must stay is compared. */
static void fill_with_poison(mla_gen *g, int32_t slot) {
  mla_tensor *t = &g->v->tensor[slot];
  unsigned char *bytes = t->data, poison = (unsigned char)g->poison;
  if (g->v->alias[slot] >= 0) return;
  if (g->v->role[slot] == MLA_ROLE_OUT)
    poison = mla_vector_poison(g->v, slot, poison);
  if (g->v->role[slot] != MLA_ROLE_INOUT || slot == MLA_T_DST) {
    for (int64_t i = 0; i < mla_span_count(t); i++) {
      mla_span span = mla_span_at(t, i);
      mla_bulk_fill(bytes + span.at, poison, (uint64_t)span.bytes);
    }
    return;
  }
  mla_gen_bytes(mla_gen_stream(g, "before"), t);
}

static mla_status lay_out_all(mla_gen *g, mla_error *err) {
  mla_vector *v = g->v;
  const mla_op_spec *op = mla_op_spec_of(v->problem.op);
  for (int32_t i = 0; i < op->slot_count; i++)
    if (is_wanted(g, &op->slots[i]))
      v->tensor[op->slots[i].slot] = lay_out(g, &op->slots[i]);
  if (g->c->num[MLA_K_WITHIN]) {
    v->tensor[MLA_T_SRC_CACHE] = v->tensor[MLA_T_CACHE];
    v->alias[MLA_T_SRC_CACHE] = MLA_T_CACHE;
  }
  mla_status status = mla_vector_alloc(v, err);
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++)
    if (v->role[s]) fill_with_poison(g, s);
  return status;
}

/* Columns from which on no two random keys look alike to a query that is aimed
   at one of them: with three another key may have half the weight. */
enum { ONEHOT_COLUMNS = 64 };

/* Where no rounding can happen before the last, bits are compared. */
static void choose_comparison(mla_gen *g) {
  mla_vector *v = g->v;
  int64_t dist = g->c->num[MLA_K_DIST];
  int32_t out = v->problem.out_dtype;
  int same = out == v->problem.q_dtype && mla_dtype_bits(out) == 16;
  int onehot = dist == MLA_DIST_ONEHOT && v->problem.op == MLA_OP_DECODE &&
               mla_problem_head_dim(&v->problem) >= ONEHOT_COLUMNS && same &&
               mla_format_dtype(v->problem.cache_format) == out;
  int sums = v->problem.op == MLA_OP_DECODE ||
             v->problem.op == MLA_OP_PREFILL || v->problem.op == MLA_OP_MERGE;
  if (dist != MLA_DIST_EXACT && !onehot) return;
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (v->compare[s] == MLA_COMPARE_BUDGET && s != MLA_T_LSE)
      v->compare[s] = sums && !onehot ? MLA_COMPARE_SUMS : MLA_COMPARE_BITS;
}

/* Scratch rows as wide as anything is. */
static int64_t widest(const mla_problem *p) {
  int64_t w = mla_problem_head_dim(p);
  const int64_t others[] = {p->qk_nope_head_dim + p->qk_rope_head_dim,
                            p->v_head_dim,
                            p->kv_lora_rank,
                            p->kv_lora_rank + p->qk_rope_head_dim,
                            mla_problem_v_dim(p),
                            p->q_lora_rank,
                            p->hidden_size,
                            (int64_t)p->num_heads * p->v_head_dim};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (others[i] > w) w = others[i];
  return w + 1;
}

static mla_status start(mla_gen *g, mla_error *err) {
  mla_vector *v = g->v;
  char id[MLA_CASE_ID_MAX];
  mla_case_print(g->c, id, sizeof id);
  v->recipe = *g->c;
  v->has_recipe = 1;
  v->seed = g->seed;
  v->problem = mla_case_problem(g->c);
  v->limits = mla_case_limits(g->c);
  v->hints = !g->c->num[MLA_K_LOOSE];
  g->blocks = mla_case_sym(g->c, MLA_S_NB);
  size_t width = (size_t)widest(&v->problem);
  v->id = malloc(strlen(id) + 1);
  g->order = malloc(((size_t)g->blocks + 1) * sizeof *g->order);
  g->row = malloc(width * sizeof *g->row);
  g->key = malloc(width * sizeof *g->key);
  g->scale = malloc(width * sizeof *g->scale);
  if (!v->id || !g->order || !g->row || !g->key || !g->scale)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "case", "no memory for %s", id);
  memcpy(v->id, id, strlen(id) + 1);
  return MLA_OK;
}

static mla_status generate(const mla_case *c, uint64_t seed, mla_poison poison,
                           int large, mla_vector *v, mla_error *err) {
  mla_gen g = {0};
  g.c = c;
  g.seed = seed;
  g.poison = poison;
  g.v = v;
  mla_vector_init(v);
  mla_status status = start(&g, err);
  if (status == MLA_OK) status = lay_out_all(&g, err);
  if (status == MLA_OK) {
    mla_gen_caches(&g);
    mla_gen_index(&g);
    mla_gen_lists(&g);
    if (!large) {
      mla_gen_attention(&g);
      mla_gen_plain(&g);
    } else {
      mla_gen_large(&g);
    }
    choose_comparison(&g);
  }
  free(g.order);
  free(g.row);
  free(g.key);
  free(g.scale);
  return status;
}

mla_status mla_generate(const mla_case *c, uint64_t seed, mla_poison poison,
                        mla_vector *v, mla_error *err) {
  return generate(c, seed, poison, 0, v, err);
}

mla_status mla_generate_large(const mla_case *c, uint64_t seed, mla_vector *v,
                              mla_error *err) {
  return generate(c, seed, MLA_POISON_ZERO, 1, v, err);
}
