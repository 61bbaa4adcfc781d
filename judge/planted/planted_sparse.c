/* Attention over listed slots, positions turned into slots, and every way to
   take an entry of a list for what it is not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

/* A row's entries, and the cache that they name slots of. */
typedef struct slot_list {
  const mla_tensor *entries, *length, *cache;
} slot_list;

typedef struct sparse_state {
  const planted_call *c;
  float *k, *q, *scores;
  int64_t *seen; /* slots listed before; of one list */
  planted_range *ranges;
  int32_t dk, dv, parts;
  int64_t count; /* keys of the token at hand */
  int64_t over;  /* keys after them at probability 0 */
  int no_first;  /* its first tile names no key */
} sparse_state;

static int64_t capacity_of(const mla_tensor *cache) {
  return cache->shape[0] * cache->shape[1];
}

static int64_t entry_at(const slot_list *x, int64_t token, int64_t i) {
  return mla_get_int(x->entries->data, x->entries->dtype,
                     mla_at2(x->entries, token, i));
}

/* ------------------------------------------------------------- one entry */

/* The slot that an entry names; -1: none. */
static int64_t slot_named(const planted_call *c, int64_t entry,
                          const slot_list *x) {
  int64_t end = capacity_of(x->cache), page = x->cache->shape[1];
  if (entry == -1 && FAULT(c, SPARSE_ZERO)) return 0;
  if (entry == -1 && FAULT(c, SPARSE_WRAPS)) return end - 1;
  if (entry >= end && FAULT(c, SPARSE_CLAMPS)) return end - 1;
  if (entry < 0 || entry >= end) return -1;
  if (FAULT(c, SPARSE_BITS)) entry &= ((int64_t)1 << c->a) - 1;
  if (FAULT(c, SPARSE_TURNED))
    return entry % x->cache->shape[0] * page + entry / x->cache->shape[0];
  return entry;
}

/* The row before the cache's first: right values, a wrong address. */
static void touch_row_before(const mla_tensor *cache) {
  volatile unsigned char sink = 0;
  int64_t row = cache->stride[1] * mla_dtype_bits(cache->dtype) / 8;
  const volatile unsigned char *bytes = cache->data;
  for (int64_t i = 0; i < row; i++) sink ^= *(bytes - row + i);
  (void)sink;
}

/* ---------------------------------------------------------------- a list */

static int64_t named_in(const planted_call *c, const slot_list *x,
                        int64_t token, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++)
    count += slot_named(c, entry_at(x, token, i), x) >= 0;
  return count;
}

/* How many entries of a row are looked at. */
static int64_t length_of(const planted_call *c, const slot_list *x,
                         int64_t token) {
  int64_t width = x->entries->shape[1], n = width;
  if (x->length && !FAULT(c, SPARSE_LENGTH)) {
    n = planted_int(x->length, token);
    n = n < 0 ? 0 : n < width ? n : width;
  }
  if (FAULT(c, SPARSE_CUT) && n > c->a) n -= n % c->a;
  if (FAULT(c, LIST_MANY) && (double)n > c->x) n = (int64_t)c->x;
  if (FAULT(c, SPARSE_COUNT)) n = named_in(c, x, token, n);
  return n;
}

static int is_repeated(const sparse_state *s, int64_t slots, int64_t slot) {
  for (int64_t i = 0; i < slots; i++)
    if (s->seen[i] == slot) return 1;
  return 0;
}

/* A slot of the second cache, split by the first one's block size. */
static int64_t in_pages_of(const mla_tensor *other, const mla_tensor *cache,
                           int64_t slot) {
  int64_t page = other->shape[1];
  return slot / page * cache->shape[1] + slot % page;
}

static void add_list(sparse_state *s, int64_t token, const slot_list *x) {
  const planted_call *c = s->c;
  const mla_tensor *first = planted_arg(c, MLA_T_CACHE);
  int64_t n = length_of(c, x, token), slots = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t entry = entry_at(x, token, i), slot = slot_named(c, entry, x);
    if (entry < 0 && FAULT(c, SPARSE_STOPS)) return;
    if (entry == -1 && FAULT(c, SPARSE_LOADS)) touch_row_before(x->cache);
    if (slot < 0 || (FAULT(c, SPARSE_ONCE) && is_repeated(s, slots, slot)))
      continue;
    s->seen[slots++] = slot;
    if (FAULT(c, SPARSE_EXTRA_PAGE)) slot = in_pages_of(first, x->cache, slot);
    planted_slot_load(c, x->cache, slot, 0, s->dk, s->k + s->count * s->dk);
    s->count++;
  }
}

/* Does the first tile of `a` entries name no key? */
static int first_is_empty(const planted_call *c, const slot_list *x,
                          int64_t token) {
  int64_t n = length_of(c, x, token);
  return named_in(c, x, token, n < c->a ? n : c->a) == 0;
}

static void gather(sparse_state *s, int64_t token) {
  const planted_call *c = s->c;
  slot_list list = {planted_arg(c, MLA_T_INDICES),
                    planted_arg(c, MLA_T_TOPK_LEN),
                    planted_arg(c, MLA_T_CACHE)};
  s->count = 0;
  add_list(s, token, &list);
  s->over = 0;
  s->no_first = FAULT(c, SPARSE_FIRST_TILE) && first_is_empty(c, &list, token);
  if (!(c->p->flags & MLA_EXTRA_CACHE) || FAULT(c, SPARSE_EXTRA_LOST)) return;
  list.entries = planted_arg(c, MLA_T_EXTRA_INDICES);
  if (!FAULT(c, SPARSE_EXTRA_LENGTH))
    list.length = planted_arg(c, MLA_T_EXTRA_TOPK_LEN);
  if (!FAULT(c, SPARSE_EXTRA_CACHE))
    list.cache = planted_arg(c, MLA_T_EXTRA_CACHE);
  add_list(s, token, &list);
}

/* ------------------------------------------------------------------ rows */

/* -inf minus -inf, as the running maximum of an empty tile gives it. */
static void store_nan(sparse_state *s, const planted_row *row) {
  float out[1024];
  for (int32_t d = 0; d < s->dv; d++) out[d] = NAN;
  planted_store(s->c, row, s->dv, out, NAN);
}

/* Slot 0 stands where an entry names no key. */
static void fill_up(sparse_state *s, int64_t token) {
  const planted_call *c = s->c;
  slot_list list = {planted_arg(c, MLA_T_INDICES),
                    planted_arg(c, MLA_T_TOPK_LEN),
                    planted_arg(c, MLA_T_CACHE)};
  int64_t n = length_of(c, &list, token);
  if (named_in(c, &list, token, n) == n) return;
  planted_slot_load(c, list.cache, 0, 0, s->dk, s->k + s->count * s->dk);
  s->over = 1;
}

static void token_rows(sparse_state *s, int64_t token) {
  const planted_call *c = s->c;
  int gathered = 0;
  for (int64_t h = 0; h < c->p->num_heads; h++) {
    if (planted_skips_head(c, h) || !planted_wants(c, token, h)) continue;
    if (!gathered++) {
      gather(s, token);
      if (FAULT(c, SPARSE_FILL)) fill_up(s, token);
    }
    planted_query_row(c, token, h, s->dk, s->q);
    int64_t per = (s->count + s->parts - 1) / s->parts;
    for (int32_t i = 0; i < s->parts; i++)
      s->ranges[i] = (planted_range){i * per, (i + 1) * per};
    planted_row row = {token, h, s->count, s->q, s->count, s->count};
    planted_keys keys = {s->k, s->k, s->dk, s->dk, s->dk, s->dv, s->over};
    if (FAULT(c, VDIM_ROPE)) keys.v = s->k + (s->dk - s->dv);
    if (FAULT(c, VDIM_STRIDE)) keys.v_stride = s->dv;
    if (s->no_first)
      store_nan(s, &row);
    else
      planted_attend(c, &row, &keys, s->ranges, s->parts, s->scores);
  }
}

static mla_status allocate(sparse_state *s, const planted_call *c) {
  const mla_tensor *list = planted_arg(c, MLA_T_INDICES);
  const mla_tensor *extra = planted_arg(c, MLA_T_EXTRA_INDICES);
  s->c = c;
  s->dk = mla_problem_head_dim(c->p);
  s->dv = mla_problem_v_dim(c->p);
  s->parts = (int32_t)planted_max_parts(c->p, &c->plan->limits);
  size_t most = (size_t)(list->shape[1] + (extra ? extra->shape[1] : 0)) + 1;
  s->k = malloc(most * (size_t)s->dk * sizeof *s->k);
  s->q = malloc((size_t)s->dk * sizeof *s->q);
  s->scores = malloc(most * sizeof *s->scores);
  s->seen = malloc(most * sizeof *s->seen);
  s->ranges = malloc((size_t)s->parts * sizeof *s->ranges);
  int ok = s->k && s->q && s->scores && s->seen && s->ranges;
  return ok ? MLA_OK : MLA_OUT_OF_MEMORY;
}

mla_status planted_sparse(const planted_call *c) {
  sparse_state s;
  memset(&s, 0, sizeof s);
  mla_status st = allocate(&s, c);
  int64_t tokens = planted_arg(c, MLA_T_OUT)->shape[0];
  for (int64_t t = 0; st == MLA_OK && t < tokens; t++) token_rows(&s, t);
  free(s.k);
  free(s.q);
  free(s.scores);
  free(s.seen);
  free(s.ranges);
  return st;
}

/* -------------------------------------------------- positions into slots */

static int64_t slot_of_position(const planted_call *c, int64_t request,
                                int64_t token, int64_t position) {
  const mla_tensor *table = planted_arg(c, MLA_T_BLOCK_TABLE);
  int64_t end = table->shape[1] * c->p->block_size;
  if (position < 0 && FAULT(c, MAP_ZERO)) position = 0;
  if (position >= end && FAULT(c, MAP_CLAMPS)) position = end - 1;
  if (position < 0 || position >= end) return -1;
  if (FAULT(c, MAP_PASSED)) return position;
  if (FAULT(c, MAP_TOKEN))
    request = token < table->shape[0] ? token : table->shape[0] - 1;
  int64_t slot = planted_slot_of(c, request, position);
  return slot < 0 || slot > INT32_MAX ? -1 : slot;
}

mla_status planted_map(const planted_call *c) {
  const mla_tensor *from = planted_arg(c, MLA_T_POSITIONS);
  const mla_tensor *to = planted_arg(c, MLA_T_INDICES);
  int64_t requests = planted_arg(c, MLA_T_BLOCK_TABLE)->shape[0];
  for (int64_t b = 0; b < requests; b++)
    for (int64_t t = planted_query_start(c, b);
         t < planted_query_start(c, b + 1); t++)
      for (int64_t i = 0; i < to->shape[1]; i++) {
        int64_t position =
            mla_get_int(from->data, from->dtype, mla_at2(from, t, i));
        mla_put_int(to->data, to->dtype, mla_at2(to, t, i),
                    slot_of_position(c, b, t, position));
      }
  return MLA_OK;
}
