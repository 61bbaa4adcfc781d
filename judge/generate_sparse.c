/*
 * generate_sparse.c - lists of slots and positions, and what an indexer's
 * queries and weights are.
 */
#include <stdlib.h>

#include "case_sparse.h"
#include "dmath.h"
#include "dtype.h"
#include "generate.h"
#include "tensor.h"

#define VARIANCE (4.0 / 3.0)

/* ------------------------------------------------------------------ slots */

/* Used pages of the requests before b. */
static int64_t pages_before(const mla_gen *g, int64_t b) {
  int64_t page = g->c->num[MLA_K_PAGE], pages = 0;
  for (int64_t i = 0; i < b; i++)
    pages += (mla_case_cached(g->c, i) + page - 1) / page;
  return pages;
}

int64_t mla_gen_listed_slot(const mla_gen *g, int64_t b, int64_t j) {
  int64_t page = g->c->num[MLA_K_PAGE];
  return g->order[pages_before(g, b) + j / page] * page + j % page;
}

int64_t mla_gen_listed(const mla_gen *g, int64_t b, int64_t t, int64_t k) {
  int64_t width = mla_case_list_width(g->c, MLA_LIST_MAIN), at = 0;
  int64_t n = mla_case_list_keys(g->c, MLA_LIST_MAIN, b, t);
  int64_t *rank = malloc((size_t)(width + 1) * sizeof *rank);
  if (!rank) return 0; /* any position is one; the row is aimed elsewhere */
  mla_case_list_row(g->c, MLA_LIST_MAIN, b, t, rank);
  while (rank[at] < 0 || k-- > 0) at++;
  int64_t position = mla_case_list_key(n, rank[at], t);
  free(rank);
  return position;
}

/* Values beyond every cache, on both sides and by a hair. */
static int64_t stranger(int64_t end, int64_t i) {
  const int64_t table[] = {end, INT32_MAX, -2, INT32_MIN, end + 7};
  int64_t value = table[i % 5];
  return value > INT32_MAX ? INT32_MAX : value;
}

/* A slot of the cache that holds poison, where there is a spare page; else one
   whose key the row may not have listed. */
static int64_t unread_slot(const mla_gen *g, int64_t i) {
  int64_t page = g->c->num[MLA_K_PAGE];
  return g->order[g->blocks - 1] * page + i % page;
}

/* ------------------------------------------------------------------ lists */

/* What a list is about. */
typedef struct list_of {
  mla_list list;
  int32_t slot, length_slot; /* tensors */
  int positions;             /* positions of the request, not slots */
  int64_t end;               /* values from here on are out of range */
} list_of;

static int64_t value_of(const mla_gen *g, const list_of *x, int64_t b,
                        int64_t t, int64_t rank, int64_t i) {
  int64_t n = mla_case_list_keys(g->c, x->list, b, t);
  if (rank == MLA_ENTRY_HOLE) return -1;
  if (rank == MLA_ENTRY_STRANGER) return stranger(x->end, b + t + i);
  if (rank == MLA_ENTRY_UNREAD)
    return x->list == MLA_LIST_EXTRA ? i % n : unread_slot(g, i);
  int64_t key = mla_case_list_key(n, rank, t);
  if (x->list == MLA_LIST_EXTRA || x->positions) return key;
  return mla_gen_listed_slot(g, b, key);
}

static void put_row(mla_gen *g, const list_of *x, int64_t b, int64_t t,
                    int64_t token, int64_t *rank) {
  const mla_tensor *list = &g->v->tensor[x->slot];
  const mla_tensor *length = &g->v->tensor[x->length_slot];
  mla_case_list_row(g->c, x->list, b, t, rank);
  for (int64_t i = 0; i < list->shape[1]; i++)
    mla_put_int(list->data, list->dtype, mla_at2(list, token, i),
                value_of(g, x, b, t, rank[i], i));
  if (length->data)
    mla_put_int(length->data, length->dtype, mla_at1(length, token),
                mla_case_list_length(g->c, x->list, b, t));
}

/* Rows of padding attend to nothing; where tokens end at query_start_loc[B],
   what stands behind it stays poison. */
static void put_padding(mla_gen *g, const list_of *x, int64_t token) {
  const mla_tensor *list = &g->v->tensor[x->slot];
  const mla_tensor *length = &g->v->tensor[x->length_slot];
  for (; !x->positions && token < list->shape[0]; token++) {
    for (int64_t i = 0; i < list->shape[1]; i++)
      mla_put_int(list->data, list->dtype, mla_at2(list, token, i), -1);
    if (length->data)
      mla_put_int(length->data, length->dtype, mla_at1(length, token),
                  list->shape[1]);
  }
}

static void put_lists(mla_gen *g, const list_of *x) {
  const mla_tensor *list = &g->v->tensor[x->slot];
  int64_t token = 0;
  if (!list->data || g->v->role[x->slot] != MLA_ROLE_IN) return;
  int64_t *rank = malloc((size_t)(list->shape[1] + 1) * sizeof *rank);
  if (!rank) return; /* the lists stay poison: out of range, or slot 0 */
  for (int64_t b = 0; b < g->c->num[MLA_K_REQUESTS]; b++)
    for (int64_t t = 0; t < mla_case_at(g->c, MLA_K_Q, b); t++)
      put_row(g, x, b, t, token++, rank);
  put_padding(g, x, token);
  free(rank);
}

void mla_gen_lists(mla_gen *g) {
  int64_t page = g->c->num[MLA_K_PAGE];
  const list_of all[] = {
      {MLA_LIST_MAIN, MLA_T_INDICES, MLA_T_TOPK_LEN, 0,
       mla_case_sym(g->c, MLA_S_NB) * page},
      {MLA_LIST_EXTRA, MLA_T_EXTRA_INDICES, MLA_T_EXTRA_TOPK_LEN, 0,
       g->c->num[MLA_K_EXTRA_BLOCKS] * mla_case_extra_page(g->c)},
      {MLA_LIST_MAIN, MLA_T_POSITIONS, MLA_T_TOPK_LEN, 1,
       mla_case_sym(g->c, MLA_S_W) * page},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) put_lists(g, &all[i]);
}

/* ------------------------------------------------------------- the indexer */

/* q of deviation such that q.k has `amp`; small integers where nothing may
   round. */
static double query_value(const mla_gen *g, mla_rng rng, int64_t i,
                          int64_t width, int64_t d) {
  double factor = g->c->real[MLA_K_AMP] / (VARIANCE * mla_sqrt((double)width));
  if (g->c->num[MLA_K_DIST] == MLA_DIST_EXACT)
    return (double)mla_rng_below(rng, (uint64_t)i, 5) - 2;
  if (g->c->num[MLA_K_DIST] == MLA_DIST_BIG) factor /= mla_gen_range(g);
  if (g->c->num[MLA_K_DIST] == MLA_DIST_OUTLIER && d % 67 == 5)
    factor *= 0.0625;
  return mla_rng_bell(rng, (uint64_t)i) * factor;
}

/* Of both signs: a logit below 0 is above a position that is hidden. */
static double weight_value(const mla_gen *g, mla_rng rng, int64_t i) {
  if (g->c->num[MLA_K_DIST] == MLA_DIST_EXACT)
    return (double)mla_rng_below(rng, (uint64_t)i, 7) - 3;
  return mla_rng_bell(rng, (uint64_t)i);
}

void mla_gen_indexer(mla_gen *g, int64_t b, int64_t token) {
  const mla_tensor *q = &g->v->tensor[MLA_T_Q];
  const mla_tensor *w = &g->v->tensor[MLA_T_INDEX_WEIGHTS];
  mla_rng qs = mla_gen_stream_of(g, "q", b), ws = mla_gen_stream_of(g, "w", b);
  int64_t heads = q->shape[1], width = q->shape[2];
  for (int64_t t = 0; t < mla_case_at(g->c, MLA_K_Q, b); t++)
    for (int64_t h = 0; h < heads; h++) {
      int64_t row = t * heads + h;
      for (int64_t d = 0; d < width; d++)
        g->row[d] = query_value(g, qs, row * width + d, width, d);
      mla_gen_put_row(g, MLA_T_Q, mla_at3(q, token + t, h, 0), g->row, width);
      mla_put(w->data, w->dtype, mla_at2(w, token + t, h),
              weight_value(g, ws, row));
    }
}
