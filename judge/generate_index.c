/*
 * generate_index.c - lengths, block tables, slot maps and block mappings.
 */
#include <stdlib.h>

#include "dtype.h"
#include "generate.h"
#include "tensor.h"

static mla_tensor *slot_of(mla_gen *g, int32_t slot) {
  return &g->v->tensor[slot];
}

static void put(mla_tensor *t, int64_t offset, int64_t value) {
  mla_put_int(t->data, t->dtype, offset, value);
}

/* Running sums of a list: query_start_loc, cu_seq_lens. */
static void put_starts(mla_gen *g, int32_t slot, int key) {
  mla_tensor *t = slot_of(g, slot);
  int64_t sum = 0;
  if (!t->data) return;
  put(t, 0, 0);
  for (int64_t b = 0; b < g->c->num[MLA_K_REQUESTS]; b++) {
    sum += mla_case_at(g->c, key, b);
    put(t, mla_at1(t, b + 1), sum);
  }
}

static void put_lengths(mla_gen *g) {
  mla_tensor *lens = slot_of(g, MLA_T_SEQ_LENS);
  mla_tensor *starts = slot_of(g, MLA_T_SEQ_STARTS);
  for (int64_t b = 0; b < g->c->num[MLA_K_REQUESTS]; b++) {
    if (lens->data) put(lens, mla_at1(lens, b), mla_case_seq_len(g->c, b));
    if (starts->data)
      put(starts, mla_at1(starts, b), mla_case_at(g->c, MLA_K_START, b));
  }
}

static void order_pages(mla_gen *g) {
  int64_t n = g->blocks;
  if (g->c->num[MLA_K_PAGES] == MLA_PAGES_RANDOM) {
    mla_gen_shuffle(mla_gen_stream(g, "pages"), g->order, n);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    g->order[i] = g->c->num[MLA_K_PAGES] == MLA_PAGES_INORDER ? i : n - 1 - i;
}

/* What stands in an entry that is never used. */
static int64_t wrong_block(const mla_gen *g, int64_t k) {
  int64_t blocks = g->blocks;
  const int64_t table[] = {blocks, -1, INT32_MAX, INT32_MIN, blocks + 7};
  if (g->poison == MLA_POISON_ZERO) return 0;
  if (g->poison == MLA_POISON_LARGE) return k % blocks;
  return table[k % 5];
}

/* The blocks that request b has in common with an earlier one. */
static int64_t put_shared(mla_gen *g, mla_tensor *t, int64_t b) {
  int64_t blocks = mla_case_shared(g->c, b) / g->c->num[MLA_K_PAGE];
  int64_t first = blocks ? mla_case_first(g->c) : 0;
  for (int64_t w = 0; w < blocks; w++)
    put(t, mla_at2(t, b, w),
        mla_get_int(t->data, t->dtype, mla_at2(t, first, w)));
  return blocks;
}

static void put_table(mla_gen *g) {
  mla_tensor *t = slot_of(g, MLA_T_BLOCK_TABLE);
  if (!t->data) return;
  int64_t elements = mla_tensor_extent(t) / 4, page = g->c->num[MLA_K_PAGE];
  for (int64_t i = 0; i < elements; i++) put(t, i, wrong_block(g, i));
  int64_t used = 0;
  for (int64_t b = 0; b < g->c->num[MLA_K_REQUESTS]; b++) {
    int64_t start =
        g->c->op == MLA_OP_KV_READ ? mla_case_at(g->c, MLA_K_START, b) : 0;
    int64_t n = mla_case_cached(g->c, b);
    if (n == 0) continue;
    int64_t shared = put_shared(g, t, b);
    for (int64_t w = start / page + shared; w <= (start + n - 1) / page; w++)
      put(t, mla_at2(t, b, w), g->order[used++]);
  }
}

/* A third of the tokens has no slot: the first, the last, and runs. */
static int is_hole(const mla_gen *g, int64_t i, int64_t n) {
  int64_t pattern = g->c->num[MLA_K_SLOTS];
  if (pattern == MLA_SLOTS_NONE) return 1;
  if (pattern != MLA_SLOTS_HOLES) return 0;
  return i == 0 || i == n - 1 || i % 7 == 3 || i % 7 == 4;
}

static void put_slots(mla_gen *g) {
  mla_tensor *t = slot_of(g, MLA_T_SLOT_MAPPING);
  if (!t->data) return;
  int64_t n = t->shape[0], page = g->c->num[MLA_K_PAGE];
  int64_t capacity = g->c->num[MLA_K_BLOCKS] * page;
  int64_t *order = malloc((size_t)capacity * sizeof *order);
  if (!order) return; /* the slots stay poison, which the checks refuse */
  mla_gen_shuffle(mla_gen_stream(g, "slots"), order, capacity);
  for (int64_t i = 0; i < n; i++) {
    int64_t slot = order[i];
    if (g->c->num[MLA_K_SLOTS] == MLA_SLOTS_INORDER) slot = capacity - n + i;
    put(t, mla_at1(t, i), is_hole(g, i, n) ? -1 : slot);
  }
  free(order);
}

static void put_mapping(mla_gen *g) {
  mla_tensor *t = slot_of(g, MLA_T_BLOCK_MAPPING);
  if (!t->data) return;
  int64_t targets = mla_case_sym(g->c, MLA_S_NB), copies = t->shape[0];
  int64_t sources = mla_case_sym(g->c, MLA_S_NBS);
  int within = g->c->num[MLA_K_WITHIN] != 0;
  mla_rng rng = mla_gen_stream(g, "source");
  mla_gen_shuffle(mla_gen_stream(g, "pages"), g->order, targets);
  for (int64_t i = 0; i < copies; i++) {
    int64_t source = mla_rng_below(rng, (uint64_t)i, (uint32_t)sources);
    if (within) source = g->order[targets - 1 - i]; /* never also a target */
    put(t, mla_at2(t, i, 0), source);
    put(t, mla_at2(t, i, 1), g->order[i]);
  }
}

void mla_gen_index(mla_gen *g) {
  put_starts(g, MLA_T_QUERY_START_LOC, MLA_K_Q);
  put_starts(g, MLA_T_CU_SEQ_LENS, MLA_K_LEN);
  put_lengths(g);
  order_pages(g);
  put_table(g);
  put_slots(g);
  put_mapping(g);
}
