#include "oracle_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dtype.h"
#include "rng.h"
#include "tensor.h"

void fixture_init(fixture *f, mla_op op) {
  memset(f, 0, sizeof *f);
  f->problem = mla_problem_init(op);
  f->limits = mla_limits_init();
  f->problem.q_dtype = f->problem.out_dtype = MLA_F64;
  f->problem.weight_dtype = MLA_F64;
  f->problem.cache_format = MLA_CACHE_F64;
  f->problem.scale = 0.3;
  f->args.size = (uint32_t)sizeof f->args;
  f->args.count = MLA_T_COUNT;
  f->args.tensor = f->tensor;
  f->seed = 7;
}

void fixture_free(fixture *f) {
  for (int i = 0; i < MLA_T_COUNT; i++) free(f->memory[i]);
}

static int is_int(int32_t dtype) {
  return dtype == MLA_I32 || dtype == MLA_I64;
}

mla_tensor *fixture_tensor(fixture *f, int slot, int32_t dtype, int64_t pad,
                           int64_t d0, int64_t d1, int64_t d2, int64_t d3) {
  const int64_t shape[4] = {d0, d1, d2, d3};
  mla_tensor *t = &f->tensor[slot];
  memset(t, 0, sizeof *t);
  while (t->rank < 4 && shape[t->rank]) t->rank++;
  t->dtype = dtype;
  int64_t stride = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    t->shape[i] = shape[i];
    t->stride[i] = stride;
    stride = stride * shape[i] + (i ? pad : 0);
  }
  free(f->memory[slot]);
  t->data = f->memory[slot] = malloc((size_t)stride * 8);
  for (int64_t i = 0; i < stride; i++)
    if (is_int(dtype))
      mla_put_int(t->data, dtype, i, -1);
    else
      mla_put(t->data, dtype, i, NAN);
  return t;
}

int64_t fixture_count(const fixture *f, int slot) {
  return mla_tensor_count(&f->tensor[slot]);
}

static int64_t offset_of(const mla_tensor *t, int64_t i) {
  int64_t at = 0;
  for (int axis = t->rank - 1; axis >= 0; axis--) {
    at += i % t->shape[axis] * t->stride[axis];
    i /= t->shape[axis];
  }
  return at;
}

double fixture_get(const fixture *f, int slot, int64_t i) {
  const mla_tensor *t = &f->tensor[slot];
  if (is_int(t->dtype))
    return (double)mla_get_int(t->data, t->dtype, offset_of(t, i));
  return mla_get(t->data, t->dtype, offset_of(t, i));
}

void fixture_set(fixture *f, int slot, int64_t i, double value) {
  mla_tensor *t = &f->tensor[slot];
  if (is_int(t->dtype))
    mla_put_int(t->data, t->dtype, offset_of(t, i), (int64_t)value);
  else
    mla_put(t->data, t->dtype, offset_of(t, i), value);
}

void fixture_set_ints(fixture *f, int slot, const int64_t *value) {
  for (int64_t i = 0; i < fixture_count(f, slot); i++)
    fixture_set(f, slot, i, (double)value[i]);
}

void fixture_bell(fixture *f, int slot, double scale) {
  mla_rng rng = mla_rng_named(f->seed, mla_slot_name(slot));
  for (int64_t i = 0; i < fixture_count(f, slot); i++)
    fixture_set(f, slot, i, scale * mla_rng_bell(rng, (uint64_t)i));
}

void fixture_run(fixture *f) {
  mla_error err = mla_error_init();
  mla_status status = mla_oracle_run(&f->problem, &f->limits, &f->args, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
}

mla_expected *fixture_expect(fixture *f, const mla_selection *selection) {
  mla_expected *x = NULL;
  mla_error err = mla_error_init();
  mla_status status =
      mla_expect(&f->problem, &f->args, selection, NULL, &x, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  return x;
}

double *fixture_values(const fixture *f, int slot) {
  int64_t count = fixture_count(f, slot);
  double *value = malloc((size_t)(count + 1) * sizeof *value);
  for (int64_t i = 0; i < count; i++) value[i] = fixture_get(f, slot, i);
  return value;
}

double largest_difference(const double *a, const double *b, int64_t count) {
  double worst = 0;
  for (int64_t i = 0; i < count; i++) {
    if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))) continue;
    if (!isfinite(a[i]) || !isfinite(b[i])) return INFINITY;
    worst = fmax(worst, fabs(a[i] - b[i]));
  }
  return worst;
}

/* ----------------------------------------------------------- attention */

static int32_t real_type(const fixture *f) {
  return f->problem.q_dtype == MLA_F64 ? MLA_F64 : MLA_F32;
}

static int64_t cached(const fixture *f, requests r, int64_t b) {
  int64_t context = r.seq[b] - r.queries[b];
  if (f->problem.op == MLA_OP_DECODE) return r.seq[b];
  return f->problem.flags & MLA_CONTEXT ? context : 0;
}

static int64_t step_tokens(requests r) {
  int64_t n = 0;
  for (int64_t b = 0; b < r.count; b++) n += r.queries[b];
  return n;
}

static void set_lengths(fixture *f, requests r) {
  int64_t start = 0;
  fixture_tensor(f, MLA_T_SEQ_LENS, MLA_I32, 0, r.count, 0, 0, 0);
  fixture_tensor(f, MLA_T_QUERY_START_LOC, MLA_I32, 0, r.count + 1, 0, 0, 0);
  fixture_set_ints(f, MLA_T_SEQ_LENS, r.seq);
  for (int64_t b = 0; b <= r.count; b++) {
    fixture_set(f, MLA_T_QUERY_START_LOC, b, (double)start);
    if (b < r.count) start += r.queries[b];
  }
}

/* Blocks go to requests from the last to the first, every second one. */
static int64_t set_table(fixture *f, requests r) {
  int64_t size = f->problem.block_size, width = 1, used = 0;
  for (int64_t b = 0; b < r.count; b++) {
    int64_t need = (cached(f, r, b) + size - 1) / size;
    used += need;
    if (need + 1 > width) width = need + 1;
  }
  fixture_tensor(f, MLA_T_BLOCK_TABLE, MLA_I32, 3, r.count, width, 0, 0);
  int64_t blocks = 2 * used + 1, next = blocks - 2;
  for (int64_t b = 0; b < r.count; b++)
    for (int64_t i = 0; i < width; i++) {
      int is_used = i * size < cached(f, r, b);
      fixture_set(f, MLA_T_BLOCK_TABLE, b * width + i,
                  is_used ? (double)next : 1e9);
      if (is_used) next -= 2;
    }
  return blocks;
}

static void fill_pages(fixture *f, requests r, int slot, int64_t entry) {
  int64_t size = f->problem.block_size;
  int64_t width = f->tensor[MLA_T_BLOCK_TABLE].shape[1];
  mla_rng rng = mla_rng_named(f->seed, mla_slot_name(slot));
  uint64_t next = 0;
  for (int64_t b = 0; b < r.count; b++)
    for (int64_t j = 0; j < cached(f, r, b); j++) {
      double block = fixture_get(f, MLA_T_BLOCK_TABLE, b * width + j / size);
      int64_t row = (int64_t)block * size + j % size;
      for (int64_t e = 0; e < entry; e++)
        fixture_set(f, slot, row * entry + e, mla_rng_bell(rng, next++));
    }
}

/* Inputs of padding tokens are NaN again. */
static void fill_step(fixture *f, int slot, int64_t tokens) {
  int64_t all = f->tensor[slot].shape[0];
  int64_t each = fixture_count(f, slot) / all;
  fixture_bell(f, slot, 1);
  for (int64_t i = tokens * each; i < all * each; i++)
    fixture_set(f, slot, i, NAN);
}

static void set_outputs(fixture *f, int64_t tokens, int64_t dv, int64_t pad) {
  int64_t heads = f->problem.num_heads;
  fixture_tensor(f, MLA_T_OUT, f->problem.out_dtype, pad, tokens, heads, dv, 0);
  fixture_tensor(f, MLA_T_LSE, real_type(f), pad, tokens, heads, 0, 0);
  fixture_tensor(f, MLA_T_SINK, real_type(f), 0, heads, 0, 0, 0);
  fixture_bell(f, MLA_T_SINK, 1);
}

void fixture_decode(fixture *f, requests r, int64_t pad) {
  mla_problem *p = &f->problem;
  int32_t cache = mla_format_dtype(p->cache_format);
  int64_t d = mla_problem_head_dim(p), dv = mla_problem_v_dim(p);
  int64_t n = step_tokens(r), size = p->block_size;
  int64_t kv_heads = mla_problem_kv_heads(p);
  p->flags |= MLA_RETURN_LSE;
  set_lengths(f, r);
  int64_t blocks = set_table(f, r);
  if (p->flags & MLA_SEPARATE_V) {
    fixture_tensor(f, MLA_T_CACHE, cache, pad, blocks, size, kv_heads, d);
    fixture_tensor(f, MLA_T_V_CACHE, cache, pad, blocks, size, kv_heads, dv);
    fill_pages(f, r, MLA_T_V_CACHE, kv_heads * dv);
  } else {
    fixture_tensor(f, MLA_T_CACHE, cache, pad, blocks, size, d, 0);
  }
  fill_pages(f, r, MLA_T_CACHE, kv_heads * d);
  fixture_tensor(f, MLA_T_Q, p->q_dtype, pad, n + 2, p->num_heads, d, 0);
  fill_step(f, MLA_T_Q, n);
  set_outputs(f, n + 2, dv, pad);
}

void fixture_prefill(fixture *f, requests r, int64_t pad) {
  mla_problem *p = &f->problem;
  int64_t heads = p->num_heads, rope = p->qk_rope_head_dim;
  int64_t n = step_tokens(r), latent = p->kv_lora_rank;
  p->flags |= MLA_RETURN_LSE;
  set_lengths(f, r);
  if (p->flags & MLA_CONTEXT) {
    int64_t blocks = set_table(f, r);
    fixture_tensor(f, MLA_T_CACHE, mla_format_dtype(p->cache_format), pad,
                   blocks, p->block_size, latent + rope, 0);
    fill_pages(f, r, MLA_T_CACHE, latent + rope);
  }
  fixture_tensor(f, MLA_T_Q, p->q_dtype, pad, n + 2, heads,
                 p->qk_nope_head_dim + rope, 0);
  fixture_tensor(f, MLA_T_KV_C, p->q_dtype, pad, n + 2, latent, 0, 0);
  fixture_tensor(f, MLA_T_K_PE, p->q_dtype, pad, n + 2, rope, 0, 0);
  fill_step(f, MLA_T_Q, n);
  fill_step(f, MLA_T_KV_C, n);
  fill_step(f, MLA_T_K_PE, n);
  fixture_tensor(f, MLA_T_KV_B_PROJ, p->weight_dtype, pad,
                 heads * (p->qk_nope_head_dim + p->v_head_dim), latent, 0, 0);
  fixture_bell(f, MLA_T_KV_B_PROJ, 1 / sqrt((double)latent));
  set_outputs(f, n + 2, p->v_head_dim, pad);
}
