#include <stdlib.h>

#include "dtype.h"
#include "fixed_case.h"
#include "rng.h"
#include "tensor.h"

static int64_t pages_of(int64_t keys, int64_t block_size) {
  return (keys + block_size - 1) / block_size;
}

/* Keys of a request that are in the cache. */
static int64_t cached(const mla_problem *p, const fixed_requests *r, int b) {
  if (p->op != MLA_OP_PREFILL) return r->seq_len[b];
  int64_t context = r->seq_len[b] - r->query_len[b];
  return p->flags & MLA_CONTEXT && context > 0 ? context : 0;
}

static void set_sizes(fixed_case *c, const fixed_requests *r) {
  int64_t tokens = 0, blocks = 0, width = 0, longest = 0;
  for (int b = 0; b < r->count; b++) {
    int64_t pages = 0;
    if (c->problem.block_size > 0)
      pages = pages_of(cached(&c->problem, r, b), c->problem.block_size);
    tokens += r->query_len[b];
    blocks += pages;
    if (pages > width) width = pages;
    if (r->seq_len[b] > longest) longest = r->seq_len[b];
  }
  c->size[MLA_S_N] = tokens;
  c->size[MLA_S_B] = r->count;
  c->size[MLA_S_B1] = r->count + 1;
  c->size[MLA_S_W] = width + 1;
  c->size[MLA_S_NB] = blocks + 3;
  c->size[MLA_S_LOGITS] = longest + 1;
}

static void set_limits(fixed_case *c, const fixed_requests *r) {
  c->limits.requests = r->count;
  c->limits.tokens = c->size[MLA_S_N];
  c->limits.num_blocks = c->size[MLA_S_NB];
  c->limits.table_width = c->size[MLA_S_W];
  for (int b = 0; b < r->count; b++) {
    if (r->query_len[b] > c->limits.max_query_len)
      c->limits.max_query_len = r->query_len[b];
    if (r->seq_len[b] > c->limits.max_seq_len)
      c->limits.max_seq_len = r->seq_len[b];
  }
}

static void put_lengths(fixed_case *c, const fixed_requests *r) {
  int64_t start = 0;
  for (int b = 0; b < r->count; b++) {
    fixed_case_put_int(c, MLA_T_QUERY_START_LOC, b, start);
    if (c->tensor[MLA_T_SEQ_LENS].data)
      fixed_case_put_int(c, MLA_T_SEQ_LENS, b, r->seq_len[b]);
    start += r->query_len[b];
  }
  fixed_case_put_int(c, MLA_T_QUERY_START_LOC, r->count, start);
}

/* Distinct pages in a shuffled order; entries past them stay out of range. */
static void put_table(fixed_case *c, const fixed_requests *r) {
  int64_t blocks = c->size[MLA_S_NB], width = c->size[MLA_S_W], used = 0;
  int64_t *page = malloc((size_t)blocks * sizeof *page);
  mla_rng rng = mla_rng_named(c->seed, "pages");
  if (!page) exit(3);
  for (int64_t i = 0; i < blocks; i++) page[i] = i;
  for (int64_t i = blocks - 1; i > 0; i--) {
    int64_t k = mla_rng_below(rng, (uint64_t)i, (uint32_t)(i + 1));
    int64_t other = page[k];
    page[k] = page[i];
    page[i] = other;
  }
  for (int b = 0; b < r->count; b++) {
    int64_t pages = pages_of(cached(&c->problem, r, b), c->problem.block_size);
    for (int64_t i = 0; i < width; i++) {
      int64_t id = i < pages ? page[used++] : INT32_MAX - i;
      fixed_case_put_int(c, MLA_T_BLOCK_TABLE, b * width + i, id);
    }
  }
  free(page);
}

/* Element e of key j of a request whose keys are counted from `base`. */
static double key_element(mla_rng rng, const fixed_data *data, int64_t base,
                          int64_t j, int64_t e, int64_t width, int64_t vary) {
  int64_t row = j;
  double sign = 1;
  if (data->keys == FIXED_REPEAT) row = j % 8;
  if (data->keys == FIXED_CANCEL) {
    row = j / 64 * 32 + j % 32;
    sign = e < vary && j / 32 % 2 ? -1 : 1;
  }
  if (data->keys == FIXED_SAME_SCORE && e >= vary) row = 0;
  uint64_t i = (uint64_t)((base + row) * width + e);
  return sign * data->kv * mla_rng_bell(rng, i);
}

/*
 * Elements below this are values alone: for CANCEL and SAME_SCORE queries are
 * 0 there, so that scores depend on the rest.
 */
static int64_t varying(const mla_problem *p, const fixed_data *data) {
  if (data->keys != FIXED_CANCEL && data->keys != FIXED_SAME_SCORE) return 0;
  return p->kv_lora_rank;
}

static void put_cache(fixed_case *c, int slot, const fixed_requests *r,
                      const fixed_data *data) {
  mla_tensor *t = &c->tensor[slot];
  const mla_tensor *table = &c->tensor[MLA_T_BLOCK_TABLE];
  int64_t heads = t->rank == 4 ? t->shape[2] : 1;
  int64_t width = t->shape[t->rank - 1], size = c->problem.block_size;
  int64_t vary = varying(&c->problem, data);
  mla_rng rng = mla_rng_named(c->seed, mla_slot_name(slot));
  for (int b = 0; b < r->count; b++)
    for (int64_t j = 0; j < cached(&c->problem, r, b); j++) {
      int64_t at = mla_at2(table, b, j / size);
      int64_t page = mla_get_int(table->data, MLA_I32, at);
      int64_t offset = mla_at2(t, page, j % size);
      for (int64_t i = 0; i < heads * width; i++) {
        int64_t gap = i / width * (t->stride[2] - width); /* of heads */
        double x = key_element(rng, data, (int64_t)b * FIXED_MAX_KEYS, j, i,
                               heads * width, vary);
        mla_put(t->data, t->dtype, offset + gap + i, x);
      }
    }
}

static void put_queries(fixed_case *c, const fixed_data *data) {
  mla_tensor *q = &c->tensor[MLA_T_Q];
  int64_t width = q->shape[2], vary = varying(&c->problem, data);
  fixed_case_fill(c, MLA_T_Q, 0, data->q);
  int64_t count = mla_tensor_count(q);
  for (int64_t i = 0; i < count; i++) {
    if (i % width < vary) mla_put(q->data, q->dtype, fixed_case_at(q, i), 0);
  }
}

fixed_case fixed_attention(const mla_problem *problem,
                           const fixed_requests *requests,
                           const fixed_data *data, uint64_t seed, int64_t gap) {
  fixed_case c = fixed_case_of(problem, seed);
  c.gap = gap;
  set_sizes(&c, requests);
  set_limits(&c, requests);
  fixed_case_alloc(&c);
  put_lengths(&c, requests);
  if (c.tensor[MLA_T_Q].data) put_queries(&c, data);
  if (c.tensor[MLA_T_BLOCK_TABLE].data) put_table(&c, requests);
  if (c.tensor[MLA_T_CACHE].data) put_cache(&c, MLA_T_CACHE, requests, data);
  if (c.tensor[MLA_T_V_CACHE].data)
    put_cache(&c, MLA_T_V_CACHE, requests, data);
  if (c.tensor[MLA_T_SINK].data) fixed_case_fill(&c, MLA_T_SINK, 0.5, 1);
  if (problem->op == MLA_OP_PREFILL) {
    fixed_case_fill(&c, MLA_T_KV_C, 0, data->kv);
    fixed_case_fill(&c, MLA_T_K_PE, 0, data->kv);
    fixed_case_fill(&c, MLA_T_KV_B_PROJ, 0, data->w);
  }
  return c;
}
