#include "oracle_index.h"

#include <stdlib.h>

#include "budget.h"
#include "cache_rows.h"
#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "oracle_load.h"
#include "oracle_row.h"
#include "tensor.h"

int64_t mla_index_width(const mla_args *args) {
  const mla_tensor *logits = mla_arg(args, MLA_T_LOGITS);
  const mla_tensor *lens = mla_arg(args, MLA_T_SEQ_LENS);
  int64_t most = 0;
  if (logits) return logits->shape[1];
  for (int64_t b = 0; b < lens->shape[0]; b++) {
    int64_t length = mla_index1(lens, b);
    if (length > most) most = length;
  }
  return most;
}

/* -------------------------------------------------------------- the k best */

typedef struct ranked {
  double logit;
  int64_t position;
} ranked;

/* The larger first, of equal ones the earlier; NaN last. */
static int by_rank(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  int a_nan = mla_isnan(a->logit), b_nan = mla_isnan(b->logit);
  if (a_nan != b_nan) return a_nan ? 1 : -1;
  if (a->logit > b->logit) return -1;
  if (a->logit < b->logit) return 1;
  return a->position < b->position ? -1 : a->position > b->position;
}

static void choose(const double *logit, int64_t n, ranked *order, int64_t count,
                   double *position) {
  for (int64_t j = 0; j < n; j++) {
    order[j].logit = logit[j];
    order[j].position = j;
  }
  qsort(order, (size_t)n, sizeof *order, by_rank);
  for (int64_t i = 0; i < count; i++)
    position[i] = i < n ? (double)order[i].position : -1;
}

/* --------------------------------------------------------------- one request
 */

/* What the threads of a request share. */
typedef struct scored {
  const mla_index_call *call;
  int64_t width, heads, d, topk;
  const double *k;                /* [length][d] */
  int64_t first, queries, length; /* tokens of the request; its keys */
  double tiny;                    /* least normal number of q's type */
} scored;

/* One thread's memory. */
typedef struct lane {
  double *q, *w;    /* [heads][d], [heads] */
  double *logit;    /* [width]; not with a sink */
  double *position; /* [topk]; likewise */
  ranked *order;    /* [length] */
} lane;

/* Of a row, all that is asked for. */
typedef struct row_out {
  double *logit, *scores, *sums, *flushed; /* all but the first may be NULL */
  double *position;
} row_out;

static int64_t lane_doubles(const scored *x) {
  return x->heads * (x->d + 1) + x->width + x->topk;
}

static void *lane_new(const scored *x, lane *at) {
  int64_t ranks = x->length + 1;
  void *memory = malloc((size_t)ranks * sizeof *at->order +
                        (size_t)lane_doubles(x) * sizeof *at->q);
  if (!memory) return NULL;
  at->order = memory; /* first: it needs the strictest alignment */
  at->q = (double *)(void *)(at->order + ranks);
  at->w = at->q + x->heads * x->d;
  at->logit = at->w + x->heads;
  at->position = at->logit + x->width;
  return memory;
}

static void load_row(const scored *x, int64_t token, lane *at) {
  const mla_tensor *q = mla_arg(x->call->args, MLA_T_Q);
  const mla_tensor *w = mla_arg(x->call->args, MLA_T_INDEX_WEIGHTS);
  for (int64_t h = 0; h < x->heads; h++)
    mla_load_row(at->q + h * x->d, q, mla_at2(q, token, h), x->d);
  mla_load_row(at->w, w, mla_at1(w, token), x->heads);
}

/* A head whose score rounding cannot lift above 0 adds nothing to any error:
   6 sqrt(d) roundoffs of f32, the widest that is declared. */
static int may_count(double s, double norm, double root_d) {
  return s > -6 * 0x1p-24 * root_d * norm;
}

static void add_terms(const scored *x, const double *q, const double *k,
                      double w, double s, row_out *to, int64_t j) {
  double square = mla_dot_squares(q, k, x->d), size = s > 0 ? w * s : 0;
  double normal = 0x1p-126;
  if (!may_count(s, mla_sqrt(square), mla_sqrt((double)x->d))) return;
  to->scores[j] += w * w * square;
  to->sums[j] += size * size;
  to->flushed[j] += mla_fabs(w) * mla_dot_flushed(q, k, x->d, x->tiny);
  if (mla_fabs(w) < normal || mla_fabs(s) < normal || mla_fabs(size) < normal)
    to->flushed[j] += mla_fabs(size);
}

static void score(const scored *x, const lane *at, int64_t j, row_out *to) {
  const double *k = x->k + j * x->d;
  double sum = 0;
  if (to->scores) to->scores[j] = to->sums[j] = to->flushed[j] = 0;
  for (int64_t h = 0; h < x->heads; h++) {
    double s = mla_dot(at->q + h * x->d, k, x->d);
    if (s > 0) sum += at->w[h] * s;
    if (to->scores) add_terms(x, at->q + h * x->d, k, at->w[h], s, to, j);
  }
  to->logit[j] = sum;
  if (!to->scores) return;
  to->scores[j] = mla_sqrt(to->scores[j]);
  to->sums[j] = mla_sqrt(to->sums[j]);
}

static int64_t visible(const scored *x, int64_t token) {
  int64_t n = x->length - x->queries + token - x->first + 1;
  return n < 0 ? 0 : n;
}

static row_out place_of(const scored *x, const lane *at, int64_t r) {
  const mla_index_sink *keep = x->call->keep;
  row_out to = {at->logit, NULL, NULL, NULL, at->position};
  if (!keep) return to;
  to.logit = keep->logit + r * keep->width;
  to.scores = keep->scores + r * keep->width;
  to.sums = keep->sums + r * keep->width;
  to.flushed = keep->flushed + r * keep->width;
  to.position = keep->positions + r * x->topk;
  return to;
}

static void write_row(const scored *x, int64_t token, const row_out *from) {
  const mla_tensor *positions = mla_arg(x->call->args, MLA_T_POSITIONS);
  const mla_tensor *logits = mla_arg(x->call->args, MLA_T_LOGITS);
  for (int64_t i = 0; i < x->topk; i++)
    mla_put_int(positions->data, positions->dtype,
                mla_at1(positions, token) + i, (int64_t)from->position[i]);
  if (logits)
    mla_store(logits->data, logits->dtype, mla_at1(logits, token), from->logit,
              x->width);
}

static double sum_of_sizes(const double *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += mla_fabs(x[i]);
  return sum;
}

static void compute_row(const scored *x, lane *at, int64_t r) {
  const mla_index_call *call = x->call;
  int64_t token = call->row_id ? call->row_id[r] : r, n = visible(x, token);
  row_out to = place_of(x, at, r);
  load_row(x, token, at);
  if (call->keep) call->keep->weight[r] = sum_of_sizes(at->w, x->heads);
  for (int64_t j = 0; j < n; j++) score(x, at, j, &to);
  for (int64_t j = n; j < x->width; j++) to.logit[j] = -mla_inf();
  choose(to.logit, n, at->order, x->topk, to.position);
  if (!call->keep) write_row(x, token, &to);
}

/* Rows are shared out among threads; each row is one thread's. */
static mla_status compute_rows(const scored *x, int64_t from, int64_t end,
                               mla_error *err) {
  int failed = 0;
  int64_t work = (end - from) * x->length * x->heads * x->d;
  (void)work; /* without OpenMP */
#ifdef _OPENMP
#pragma omp parallel reduction(| : failed) if (work > MLA_WORTH_THREADS)
#endif
  {
    lane at = {0};
    void *memory = lane_new(x, &at);
    int64_t r;
    failed = memory == NULL;
#ifdef _OPENMP
#pragma omp for schedule(dynamic)
#endif
    for (r = from; r < end; r++)
      if (memory) compute_row(x, &at, r);
    free(memory);
  }
  if (!failed) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "seq_lens",
                  "no memory for rows of %lld keys", (long long)x->length);
}

/* ------------------------------------------------------------ all requests */

/* The first of the call's rows that is no earlier token. */
static int64_t row_from(const mla_index_call *call, int64_t token) {
  int64_t low = 0, high = call->rows;
  if (!call->row_id) return token < high ? token : high;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (call->row_id[middle] < token)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static mla_status compute_request(scored *x, int64_t b,
                                  const mla_cache_rows *rows, mla_error *err) {
  const mla_args *args = x->call->args;
  const mla_tensor *starts = mla_arg(args, MLA_T_QUERY_START_LOC);
  x->first = mla_index1(starts, b);
  x->queries = mla_index1(starts, b + 1) - x->first;
  x->length = mla_index1(mla_arg(args, MLA_T_SEQ_LENS), b);
  int64_t from = row_from(x->call, x->first);
  int64_t end = row_from(x->call, x->first + x->queries);
  if (from == end) return MLA_OK;
  double *k = malloc((size_t)(x->length * x->d + 1) * sizeof *k);
  if (!k)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "seq_lens",
                    "no memory for %lld index keys", (long long)x->length);
  mla_pages pages = {rows, mla_arg(args, MLA_T_BLOCK_TABLE), b, 0};
  mla_gather(k, x->d, &pages, 0, x->length);
  x->k = k;
  mla_status status = compute_rows(x, from, end, err);
  free(k);
  return status;
}

mla_status mla_oracle_index(const mla_index_call *call, mla_error *err) {
  const mla_problem *p = call->problem;
  mla_cache_rows rows =
      mla_cache_rows_of(p, call->args, MLA_T_CACHE, p->q_dtype, call->dequant);
  scored x = {0};
  x.call = call;
  x.width = call->keep ? call->keep->width : mla_index_width(call->args);
  x.heads = p->num_heads;
  x.d = mla_problem_head_dim(p);
  x.topk = p->topk;
  x.tiny = mla_smallest_normal(p->q_dtype);
  int64_t requests = mla_arg(call->args, MLA_T_SEQ_LENS)->shape[0];
  mla_status status = MLA_OK;
  for (int64_t b = 0; b < requests && !status; b++)
    status = compute_request(&x, b, &rows, err);
  return status;
}
