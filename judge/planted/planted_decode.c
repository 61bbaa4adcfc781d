/* Decode over a paged cache. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

typedef struct decode_state {
  const planted_call *c;
  float *k, *v, *q, *scores; /* v == NULL: values are the keys' start */
  planted_range *ranges;
  int32_t dk, dv, parts;
  int64_t rows; /* capacity of k */
} decode_state;

int64_t planted_max_parts(const mla_problem *p, const mla_limits *limits) {
  int64_t prefix = (p->flags & MLA_COMMON_PREFIX) != 0;
  if (p->op != MLA_OP_PREFILL)
    return (limits->num_splits > 1 ? limits->num_splits : 1) + prefix;
  int64_t chunk = limits->context_chunk;
  if (!(p->flags & MLA_CONTEXT)) return 1;
  return chunk > 0 ? (limits->max_seq_len + chunk - 1) / chunk + 1 : 2;
}

/* Rows that a fault takes from beyond the last key, within the same page. */
static int64_t over_read(const planted_call *c, int64_t n) {
  int64_t bs = c->p->block_size, rest = n % bs ? bs - n % bs : 0;
  int64_t want = FAULT(c, TAIL_V) ? rest : 0;
  if (FAULT(c, TAIL_NAN) || FAULT(c, TAIL_SEEN)) want = c->a;
  if (FAULT(c, TAIL_STALE)) return n % c->a ? c->a - n % c->a : 0;
  return want < rest ? want : rest;
}

static int64_t usable_keys(const planted_call *c, int64_t n) {
  if (FAULT(c, PAGE_TAIL) && n > c->p->block_size) n -= n % c->p->block_size;
  return n;
}

static void gather(decode_state *s, int64_t request, int64_t kv_head,
                   int64_t n) {
  const planted_call *c = s->c;
  const mla_tensor *cache = planted_arg(c, MLA_T_CACHE);
  const mla_tensor *values = planted_arg(c, MLA_T_V_CACHE);
  for (int64_t j = 0; j < n; j++) {
    planted_gather_row(c, cache, request, j, kv_head, s->dk, s->k + j * s->dk);
    if (s->v)
      planted_gather_row(c, values, request, j, kv_head, s->dv,
                         s->v + j * s->dv);
  }
}

/* Reads that are thrown away: right values, wrong addresses. */
static void read_beyond(const planted_call *c, int64_t request, int64_t n) {
  const mla_tensor *table = planted_arg(c, MLA_T_BLOCK_TABLE);
  const mla_tensor *q = planted_arg(c, MLA_T_Q);
  volatile unsigned char sink = 0;
  int64_t pages = (n + c->p->block_size - 1) / c->p->block_size;
  if (FAULT(c, OOB_TABLE)) {
    const int32_t *row =
        (const int32_t *)table->data + mla_at2(table, request, 0);
    for (int32_t i = 0; i < c->a; i++)
      sink ^= (unsigned char)((const volatile int32_t *)row)[pages + i];
  }
  if (FAULT(c, OOB_LENS)) {
    const mla_tensor *lens = planted_arg(c, MLA_T_SEQ_LENS);
    const volatile int32_t *end = (const int32_t *)lens->data + lens->shape[0];
    for (int32_t i = 0; i < c->a; i++) sink ^= (unsigned char)end[i];
  }
  if (FAULT(c, OOB_Q)) {
    const volatile unsigned char *end =
        (const unsigned char *)q->data +
        (mla_at3(q, q->shape[0] - 1, q->shape[1] - 1, q->shape[2] - 1) + 1) *
            (mla_dtype_bits(q->dtype) / 8);
    for (int32_t i = 0; i < c->a; i++) sink ^= end[i];
  }
  if (FAULT(c, PAD_LAST_BLOCK) && n == 0) {
    const mla_tensor *cache = planted_arg(c, MLA_T_CACHE);
    int64_t id = ((const int32_t *)table->data)[mla_at2(table, request, 0) - 1];
    sink ^= ((const volatile unsigned char *)cache->data)[id * 65536];
  }
  if (FAULT(c, OOB_CACHE)) {
    const mla_tensor *cache = planted_arg(c, MLA_T_CACHE);
    const volatile unsigned char *end =
        (const unsigned char *)cache->data + mla_tensor_extent(cache);
    for (int32_t i = 0; i < c->a; i++) sink ^= end[i];
  }
  (void)sink;
}

void planted_query_row(const planted_call *c, int64_t token, int64_t head,
                       int64_t width, float *to) {
  const mla_tensor *q = planted_arg(c, MLA_T_Q);
  if (FAULT(c, HEADS_WRAP)) head %= c->a;
  int64_t at = mla_at3(q, token, head, 0);
  if (FAULT(c, STRIDES_DENSE)) at = (token * q->shape[1] + head) * q->shape[2];
  if (FAULT(c, STRIDES_ORDER) && q->stride[0] < q->stride[1])
    at = token * q->stride[1] + head * q->stride[0];
  for (int64_t d = 0; d < width; d++)
    to[d] = (float)mla_get(q->data, q->dtype, at + d);
}

/* Fewer splits for more requests: what breaks batch invariance. */
static int32_t splits_of(const decode_state *s) {
  if (!FAULT(s->c, INVARIANCE_SPLIT)) return s->parts;
  int64_t b = planted_arg(s->c, MLA_T_SEQ_LENS)->shape[0];
  return (int32_t)(b % s->parts + 1);
}

static void even_ranges(decode_state *s, int64_t n) {
  int32_t splits = splits_of(s);
  int64_t per = (n + splits - 1) / splits;
  for (int32_t i = 0; i < s->parts; i++)
    s->ranges[i] = (planted_range){i * per, (i + 1) * per};
}

/* The keys that all requests have in common are the last range, the rest of
   the row's is split. */
static void ranges_after_prefix(decode_state *s, const planted_row *row) {
  const planted_call *c = s->c;
  int64_t from = FAULT(c, CASCADE_TWICE) ? 0 : c->prefix, end = c->prefix;
  int32_t splits = s->parts - 1;
  if (FAULT(c, CASCADE_LOST)) end = 0;
  if (FAULT(c, CASCADE_MASK)) {
    const mla_tensor *starts = planted_arg(c, MLA_T_QUERY_START_LOC);
    end += row->token + 1 - planted_int(starts, starts->shape[0] - 1);
  }
  int64_t per = (row->visible - from + splits - 1) / splits;
  for (int32_t i = 0; i < splits; i++)
    s->ranges[i] = (planted_range){from + i * per, from + (i + 1) * per};
  s->ranges[splits] = (planted_range){0, end < 0 ? 0 : end};
}

static planted_keys keys_of(const decode_state *s, int64_t over) {
  planted_keys keys = {s->k, s->v, s->dk, s->dv, s->dk, s->dv, over};
  if (s->v && FAULT(s->c, VDIM_KEYS) && s->dv <= s->dk)
    keys.v = s->k, keys.v_stride = s->dk;
  if (s->v) return keys;
  keys.v = FAULT(s->c, VDIM_ROPE) ? s->k + (s->dk - s->dv) : s->k;
  keys.v_stride = FAULT(s->c, VDIM_STRIDE) ? s->dv : s->dk;
  return keys;
}

int planted_skips_head(const planted_call *c, int64_t head) {
  int64_t heads = c->p->num_heads;
  if (FAULT(c, HEADS_DROP) && heads > c->a) return head >= heads - heads % c->a;
  return 0;
}

static int64_t kv_head_of(const planted_call *c, int64_t head) {
  int64_t kv = c->p->num_kv_heads > 1 ? c->p->num_kv_heads : 1;
  if (FAULT(c, HEADS_GROUP)) return head % kv;
  if (FAULT(c, HEADS_SHIFT)) {
    int64_t group = 1;
    while (2 * group <= c->p->num_heads / kv) group *= 2;
    return head / group < kv ? head / group : kv - 1;
  }
  return head / (c->p->num_heads / kv);
}

static int any_wanted(const planted_call *c, int64_t from, int64_t to) {
  for (int64_t t = from; t < to; t++)
    for (int64_t h = 0; h < c->p->num_heads; h++)
      if (planted_wants(c, t, h)) return 1;
  return 0;
}

/* All query rows of one request that share a kv head. */
static void request_rows(decode_state *s, int64_t b, int64_t kv_head,
                         int64_t shift) {
  const planted_call *c = s->c;
  int64_t from = planted_query_start(c, b), to = planted_query_start(c, b + 1);
  int64_t seq = planted_seq_len(c, b), n = usable_keys(c, seq);
  int64_t over = over_read(c, seq);
  int stale = FAULT(c, TAIL_STALE);
  if (!any_wanted(c, from - shift, to - shift) && !stale) return;
  gather(s, b, kv_head, stale ? n : n + over > 0 ? n + over : 1);
  for (int64_t t = from; t < to; t++)
    for (int64_t h = 0; h < c->p->num_heads; h++) {
      if (kv_head_of(c, h) != kv_head || planted_skips_head(c, h)) continue;
      if (!planted_wants(c, t - shift, h)) continue;
      if (FAULT(c, ROWS_TILE) && (t - from) * c->p->num_heads + h >= c->a)
        continue;
      int64_t seen = planted_visible(c, seq, to - from, t - from);
      if (seen == 0 && FAULT(c, EMPTY_ROW_FIRST)) seen = 1;
      int64_t extra = seen == seq ? over : 0;
      if (FAULT(c, TAIL_SEEN)) seen += extra, extra = 0;
      if (seen > n + over && !FAULT(c, EMPTY_ROW_FIRST)) seen = n + over;
      if (seen > n && !FAULT(c, TAIL_SEEN) && !FAULT(c, EMPTY_ROW_FIRST))
        seen = n;
      planted_query_row(c, t, h, s->dk, s->q);
      planted_row row = {t - shift, h, seen, s->q, seq, seen};
      if (FAULT(c, MASK_FINITE) && seen) row.visible = seen = n;
      if (c->prefix)
        ranges_after_prefix(s, &row);
      else
        even_ranges(s, seen);
      planted_keys keys = keys_of(s, extra);
      planted_attend(c, &row, &keys, s->ranges, s->parts, s->scores);
    }
}

static mla_status allocate(decode_state *s, const planted_call *c) {
  const mla_tensor *lens = planted_arg(c, MLA_T_SEQ_LENS);
  int separate = planted_arg(c, MLA_T_V_CACHE) != NULL;
  s->c = c;
  s->dk = mla_problem_head_dim(c->p);
  s->dv = mla_problem_v_dim(c->p);
  s->parts = (int32_t)planted_max_parts(c->p, &c->plan->limits);
  int64_t more = c->p->block_size + (c->a > 0 ? c->a : 0);
  s->rows = more;
  for (int64_t b = 0; b < lens->shape[0]; b++) {
    int64_t n = planted_seq_len(c, b) + more;
    if (n > s->rows) s->rows = n;
  }
  size_t rows = (size_t)s->rows;
  s->k = calloc(rows * (size_t)s->dk, sizeof(float));
  s->v = separate ? calloc(rows * (size_t)s->dv, sizeof(float)) : NULL;
  s->q = malloc((size_t)s->dk * sizeof(float));
  s->scores = malloc(rows * sizeof(float));
  s->ranges = malloc((size_t)s->parts * sizeof(planted_range));
  int ok = s->k && s->q && s->scores && s->ranges && (s->v || !separate);
  return ok ? MLA_OK : MLA_OUT_OF_MEMORY;
}

mla_status planted_decode(const planted_call *c) {
  decode_state s;
  int64_t shift = 0;
  memset(&s, 0, sizeof s);
  mla_status st = allocate(&s, c);
  int64_t requests = planted_arg(c, MLA_T_SEQ_LENS)->shape[0];
  int64_t kv = c->p->num_kv_heads > 1 ? c->p->num_kv_heads : 1;
  for (int64_t b = 0; st == MLA_OK && b < requests; b++) {
    if (FAULT(c, EMPTY_SHIFT) && planted_seq_len(c, b) == 0) {
      shift += planted_query_start(c, b + 1) - planted_query_start(c, b);
      continue;
    }
    read_beyond(c, b, planted_seq_len(c, b));
    for (int64_t g = 0; g < kv; g++) request_rows(&s, b, g, shift);
  }
  if (st == MLA_OK) planted_spoil_padding(c);
  free(s.k);
  free(s.v);
  free(s.q);
  free(s.scores);
  free(s.ranges);
  return st;
}
