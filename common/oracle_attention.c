#include "oracle_attention.h"

#include <stdlib.h>
#include <string.h>

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
  const mla_tensor *lists = mla_arg(args, MLA_T_INDICES);
  if (lists) return lists->shape[0];
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

/* Rows that go past a tile of keys together, while it is in the cache. */
#define BATCH 8
#define TILE 32

typedef struct row_at {
  int64_t r, token, head;
  int64_t n; /* keys it sees */
  double *q, *s, *e;
  double *out;
  double *part, *part_lse; /* [parts][dv], [parts] */
  mla_softmax softmax;     /* of the part in hand */
} row_at;

/* One thread's memory. */
typedef struct lane {
  row_at row[BATCH];
  double *weight; /* [parts] */
  void *terms;
} lane;

/* Many parts need much memory a row. */
static int64_t batch_of(const shared *x) {
  return x->parts > 16 ? 1 : BATCH;
}

static void *lane_new(const shared *x, lane *at) {
  const mla_keys *keys = x->keys;
  int64_t n = x->group->seq, parts = x->parts, batch = batch_of(x);
  int64_t terms = x->call->keep ? mla_terms_scratch(keys, n) : 0;
  int64_t each = keys->d + 2 * n + keys->dv + parts * (keys->dv + 1);
  int64_t doubles = parts + batch * each;
  void *memory =
      malloc((size_t)(terms + doubles * (int64_t)sizeof(double)) + 16);
  if (!memory) return NULL;
  at->terms = memory; /* first: it needs the strictest alignment */
  at->weight = (double *)(void *)((char *)memory + terms);
  for (int64_t i = 0; i < batch; i++) {
    row_at *row = &at->row[i];
    row->q = at->weight + parts + i * each;
    row->s = row->q + keys->d;
    row->e = row->s + n;
    row->out = row->e + n;
    row->part = row->out + keys->dv;
    row->part_lse = row->part + parts * keys->dv;
  }
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

static void load_q(const shared *x, row_at *row) {
  const mla_tensor *t = arg(x->call, MLA_T_Q);
  mla_load_row(row->q, t, mla_at2(t, row->token, row->head), x->keys->d);
  if (x->call->q_round == MLA_Q_ROUND_INT8_ROW)
    round_q_int8(row->q, x->keys->d);
}

static int64_t visible(const shared *x, int64_t token) {
  const mla_group *group = x->group;
  int64_t n = group->seq;
  if (x->call->problem->flags & MLA_CAUSAL)
    n += token - group->first_token + 1 - group->queries;
  return n < 0 ? 0 : n;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Each row's share of the keys from <= j < to: its answer in `out` of the row
   times the softmax's sum. */
static void attend_keys(const shared *x, lane *at, int64_t rows, int64_t from,
                        int64_t to) {
  for (int64_t j = from; j < to; j += TILE)
    for (int64_t i = 0; i < rows; i++) {
      row_at *row = &at->row[i];
      int64_t end = least(least(j + TILE, to), row->n);
      mla_row_scores(x->keys, row->q, j, end, row->s + j);
    }
  for (int64_t i = 0; i < rows; i++) {
    row_at *row = &at->row[i];
    int64_t n = least(to, row->n) - from;
    row->softmax = mla_row_softmax(row->s + from, n, row->e + from);
    for (int64_t d = 0; d < x->keys->dv; d++) row->out[d] = 0;
  }
  for (int64_t j = from; j < to; j += TILE)
    for (int64_t i = 0; i < rows; i++) {
      row_at *row = &at->row[i];
      int64_t end = least(least(j + TILE, to), row->n);
      mla_row_add_values(x->keys, j, end, row->e + j, row->out);
    }
}

static void divide(const shared *x, const row_at *row, double *out) {
  int64_t dv = x->keys->dv;
  for (int64_t d = 0; d < dv; d++)
    out[d] = row->softmax.sum != 0 ? row->out[d] / row->softmax.sum : 0;
}

/* The rows in parts, each attended alone, then merged. */
static void attend(const shared *x, lane *at, int64_t rows) {
  int64_t dv = x->keys->dv;
  double largest;
  for (int64_t p = 0; p < x->parts; p++) {
    attend_keys(x, at, rows, x->cut[p], x->cut[p + 1]);
    for (int64_t i = 0; i < rows; i++) {
      row_at *row = &at->row[i];
      divide(x, row, x->parts > 1 ? row->part + p * dv : row->out);
      row->part_lse[p] = row->softmax.lse;
    }
  }
  for (int64_t i = 0; i < rows && x->parts > 1; i++) {
    row_at *row = &at->row[i];
    row->softmax.lse = mla_merge_row(x->parts, dv, row->part, dv, row->part_lse,
                                     1, at->weight, row->out, &largest);
  }
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

static void keep_row(const shared *x, const lane *at, const row_at *row,
                     double sink) {
  const mla_row_sink *keep = x->call->keep;
  double *out = keep->wide[MLA_WIDE_OUT] + row->r * keep->width;
  memcpy(out, row->out, (size_t)x->keys->dv * sizeof *out);
  keep->lse[row->r] = in_base(x, row->softmax.lse);
  mla_terms_row(x->keys, row->q, row->s, row->e, row->n, row->softmax, sink,
                at->terms, keep, row->r);
}

static void compute_rows(const shared *x, lane *at, const int64_t *list,
                         int64_t count) {
  const mla_attention *call = x->call;
  for (int64_t i = 0; i < count; i++) {
    row_at *row = &at->row[i];
    int64_t id = call->row_id ? call->row_id[list[i]] : list[i];
    row->r = list[i];
    row->token = id / call->problem->num_heads;
    row->head = id % call->problem->num_heads;
    row->n = visible(x, row->token);
    load_q(x, row);
  }
  attend(x, at, count);
  for (int64_t i = 0; i < count; i++) {
    row_at *row = &at->row[i];
    double sink = mla_sink_of(call->problem, call->args, row->head);
    mla_sink_apply(row->softmax.lse, sink, x->keys->dv, row->out);
    if (call->keep)
      keep_row(x, at, row, sink);
    else
      write_row(x, row->token, row->head, row->out, row->softmax.lse);
  }
}

/* Rows are shared out among threads; each row is one thread's. */
static int share_out(const shared *x, const int64_t *list, int64_t count) {
  int failed = 0;
  int64_t batch = batch_of(x);
  int64_t work = count * x->group->seq * (x->keys->d + x->keys->dv);
  (void)work; /* without OpenMP */
#ifdef _OPENMP
#pragma omp parallel reduction(| : failed) if (work > MLA_WORTH_THREADS)
#endif
  {
    lane at = {0};
    void *memory = lane_new(x, &at);
    int64_t i;
    if (!memory) failed = 1;
#ifdef _OPENMP
#pragma omp for schedule(dynamic)
#endif
    for (i = 0; i < count; i += batch)
      if (memory) compute_rows(x, &at, list + i, least(batch, count - i));
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
    failed = share_out(&x, list, count);
  }
  free(list);
  if (!failed) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "seq_lens",
                  "no memory for rows of %lld keys", (long long)group->seq);
}
