#include "oracle_attention.h"

#include <stdlib.h>

#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "oracle_merge.h"
#include "tensor.h"

static const mla_tensor *arg(const mla_attention *call, int slot) {
  return mla_arg(call->args, slot);
}

int64_t mla_attention_requests(const mla_args *args) {
  return mla_arg(args, MLA_T_SEQ_LENS)->shape[0];
}

int64_t mla_attention_tokens(const mla_args *args) {
  return mla_index1(mla_arg(args, MLA_T_QUERY_START_LOC),
                    mla_attention_requests(args));
}

mla_group mla_attention_request(const mla_args *args, int64_t request) {
  const mla_tensor *start = mla_arg(args, MLA_T_QUERY_START_LOC);
  mla_group group = {request, mla_index1(start, request), 0, 0, 0, 0};
  group.queries = mla_index1(start, request + 1) - group.first_token;
  group.seq = mla_index1(mla_arg(args, MLA_T_SEQ_LENS), request);
  return group;
}

/* The first of the call's rows whose id is at least `id`. */
static int64_t lower_bound(const mla_attention *call, int64_t id) {
  if (!call->row_id) return id < call->rows ? id : call->rows;
  int64_t low = 0, high = call->rows;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (call->row_id[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Appends the group's rows to list (NULL: counts only). */
static int64_t list_rows(const mla_attention *call, const mla_group *group,
                         int64_t *list) {
  int64_t count = 0, heads = call->problem->num_heads;
  for (int64_t t = 0; t < group->queries; t++) {
    int64_t id = (group->first_token + t) * heads + group->first_head;
    int64_t end = lower_bound(call, id + group->heads);
    for (int64_t r = lower_bound(call, id); r < end; r++) {
      if (list) list[count] = r;
      count++;
    }
  }
  return count;
}

int mla_attention_wanted(const mla_attention *call, const mla_group *group) {
  return list_rows(call, group, NULL) > 0;
}

/* What the threads of a group share. */
typedef struct shared {
  const mla_attention *call;
  const mla_group *group;
  const mla_keys *keys;
  int64_t parts;
  const int64_t *cut;
} shared;

/* One thread's memory. */
typedef struct lane {
  double *q, *s, *e, *out, *part, *part_lse, *weight;
  void *terms;
} lane;

static void *lane_new(const shared *x, lane *at) {
  const mla_keys *keys = x->keys;
  int64_t n = x->group->seq, parts = x->parts;
  int64_t terms = x->call->keep ? mla_terms_scratch(keys, n) : 0;
  int64_t doubles = keys->d + 2 * n + keys->dv + parts * (keys->dv + 2);
  void *memory =
      malloc((size_t)(terms + doubles * (int64_t)sizeof(double)) + 16);
  if (!memory) return NULL;
  at->terms = memory; /* first: it needs the strictest alignment */
  at->q = (double *)(void *)((char *)memory + terms);
  at->s = at->q + keys->d;
  at->e = at->s + n;
  at->out = at->e + n;
  at->part = at->out + keys->dv;
  at->part_lse = at->part + parts * keys->dv;
  at->weight = at->part_lse + parts;
  return memory;
}

/* q as a backend sees it that multiplies in int8. */
static void round_q_int8(double *q, int64_t d) {
  double amax = 0, least = 0x1p-126;
  for (int64_t i = 0; i < d; i++)
    if (mla_fabs(q[i]) > amax) amax = mla_fabs(q[i]);
  double scale = mla_round_to(MLA_F32, amax / 127);
  if (scale < least) scale = least;
  for (int64_t i = 0; i < d; i++) {
    double code = mla_round_to(MLA_I8, mla_round_to(MLA_F32, q[i] / scale));
    q[i] = (code < -127 ? -127 : code) * scale;
  }
}

static void load_q(const shared *x, int64_t token, int64_t head, double *q) {
  const mla_tensor *t = arg(x->call, MLA_T_Q);
  mla_load_row(q, t, mla_at2(t, token, head), x->keys->d);
  if (x->call->q_round == MLA_Q_ROUND_INT8_ROW) round_q_int8(q, x->keys->d);
}

static int64_t visible(const shared *x, int64_t token) {
  const mla_group *group = x->group;
  int64_t n = group->seq;
  if (x->call->problem->flags & MLA_CAUSAL)
    n += token - group->first_token + 1 - group->queries;
  return n < 0 ? 0 : n;
}

/* The row in parts, each attended alone, then merged. */
static double attend_parts(const shared *x, lane *at, int64_t n) {
  int64_t dv = x->keys->dv;
  double largest;
  for (int64_t i = 0; i < x->parts; i++) {
    int64_t from = x->cut[i], to = x->cut[i + 1];
    if (from > n) from = n;
    if (to > n) to = n;
    mla_row_scores(x->keys, at->q, from, to, at->s);
    mla_softmax part = mla_row_softmax(at->s, to - from, at->e);
    mla_row_values(x->keys, from, to, at->e, part.sum, at->part + i * dv);
    at->part_lse[i] = part.lse;
  }
  return mla_merge_row(x->parts, dv, at->part, dv, at->part_lse, 1, at->weight,
                       at->out, &largest);
}

static mla_softmax attend(const shared *x, lane *at, int64_t n, double *out) {
  mla_row_scores(x->keys, at->q, 0, n, at->s);
  mla_softmax row = mla_row_softmax(at->s, n, at->e);
  mla_row_values(x->keys, 0, n, at->e, row.sum, out);
  return row;
}

static double in_base(const shared *x, double lse) {
  return x->call->problem->flags & MLA_LSE_BASE2 ? lse * MLA_LOG2_E : lse;
}

static void write_row(const shared *x, int64_t token, int64_t head,
                      const double *row, double lse) {
  const mla_tensor *out = arg(x->call, MLA_T_OUT);
  const mla_tensor *to = arg(x->call, MLA_T_LSE);
  mla_store(out->data, out->dtype, mla_at2(out, token, head), row, x->keys->dv);
  if ((x->call->problem->flags & MLA_RETURN_LSE) && to)
    mla_put(to->data, to->dtype, mla_at2(to, token, head), in_base(x, lse));
}

static void compute_row(const shared *x, lane *at, int64_t r) {
  const mla_attention *call = x->call;
  const mla_row_sink *keep = call->keep;
  int64_t id = call->row_id ? call->row_id[r] : r;
  int64_t token = id / call->problem->num_heads;
  int64_t head = id % call->problem->num_heads;
  int64_t n = visible(x, token);
  double sink = mla_sink_of(call->problem, call->args, head);
  load_q(x, token, head, at->q);
  if (!keep) {
    double lse =
        x->parts > 1 ? attend_parts(x, at, n) : attend(x, at, n, at->out).lse;
    mla_sink_apply(lse, sink, x->keys->dv, at->out);
    write_row(x, token, head, at->out, lse);
    return;
  }
  double *out = keep->wide[MLA_WIDE_OUT] + r * keep->width;
  mla_softmax row = attend(x, at, n, out);
  double share = mla_sink_apply(row.lse, sink, x->keys->dv, out);
  keep->lse[r] = in_base(x, row.lse);
  mla_terms_row(x->keys, at->q, at->s, at->e, n, row, share, at->terms, keep,
                r);
}

/* Rows are shared out among threads; each row is one thread's. */
static int compute_rows(const shared *x, const int64_t *list, int64_t count) {
  int failed = 0;
#ifdef _OPENMP
#pragma omp parallel reduction(| : failed)
#endif
  {
    lane at = {0};
    void *memory = lane_new(x, &at);
    int64_t i;
    if (!memory) failed = 1;
#ifdef _OPENMP
#pragma omp for schedule(dynamic)
#endif
    for (i = 0; i < count; i++)
      if (memory) compute_row(x, &at, list[i]);
    free(memory);
  }
  return failed;
}

mla_status mla_attention_group(const mla_attention *call,
                               const mla_group *group, const mla_keys *keys,
                               int64_t parts, const int64_t *cut,
                               mla_error *err) {
  shared x = {call, group, keys, parts, cut};
  int64_t count = list_rows(call, group, NULL);
  int64_t *list = malloc((size_t)(count + 1) * sizeof *list);
  int failed = list == NULL;
  if (list) {
    list_rows(call, group, list);
    failed = compute_rows(&x, list, count);
  }
  free(list);
  if (!failed) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "seq_lens",
                  "no memory for rows of %lld keys", (long long)group->seq);
}
