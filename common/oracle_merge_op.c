#include "oracle_merge_op.h"

#include <stdlib.h>

#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "oracle_load.h"
#include "oracle_merge.h"
#include "tensor.h"

/* One thread's memory. Only live parts are loaded, close together. */
typedef struct lane {
  void *terms;
  double *part, *lse, *weight, *out;
} lane;

int64_t mla_merge_rows(const mla_args *args) {
  const mla_tensor *parts = mla_arg(args, MLA_T_PARTS);
  return parts->shape[1] * parts->shape[2];
}

static void *lane_new(const mla_merge_call *call, lane *at) {
  int64_t parts = mla_arg(call->args, MLA_T_PARTS)->shape[0];
  int64_t dv = call->problem->v_head_dim;
  int64_t terms = call->keep ? mla_terms_merge_scratch(parts, dv) : 0;
  int64_t doubles = parts * (dv + 2) + dv;
  void *memory =
      malloc((size_t)(terms + doubles * (int64_t)sizeof(double)) + 16);
  if (!memory) return NULL;
  at->terms = memory; /* first: it needs the strictest alignment */
  at->part = (double *)(void *)((char *)memory + terms);
  at->lse = at->part + parts * dv;
  at->weight = at->lse + parts;
  at->out = at->weight + parts;
  return memory;
}

static int64_t load_live(const mla_merge_call *call, int64_t token,
                         int64_t head, lane *at) {
  const mla_tensor *parts = mla_arg(call->args, MLA_T_PARTS);
  const mla_tensor *lses = mla_arg(call->args, MLA_T_PART_LSES);
  int64_t dv = call->problem->v_head_dim, live = 0;
  for (int64_t i = 0; i < parts->shape[0]; i++) {
    double lse =
        mla_get(lses->data, lses->dtype, mla_at3(lses, i, token, head));
    if (mla_isinf(lse)) continue;
    at->lse[live] = lse;
    mla_load_row(at->part + live * dv, parts, mla_at3(parts, i, token, head),
                 dv);
    live++;
  }
  return live;
}

static void write_row(const mla_merge_call *call, int64_t token, int64_t head,
                      const double *row, double lse) {
  const mla_tensor *out = mla_arg(call->args, MLA_T_OUT);
  const mla_tensor *to = mla_arg(call->args, MLA_T_LSE);
  mla_store(out->data, out->dtype, mla_at2(out, token, head), row,
            call->problem->v_head_dim);
  if ((call->problem->flags & MLA_RETURN_LSE) && to)
    mla_put(to->data, to->dtype, mla_at2(to, token, head), lse);
}

static void merge_row(const mla_merge_call *call, lane *at, int64_t r) {
  int64_t heads = call->problem->num_heads, dv = call->problem->v_head_dim;
  int64_t id = call->row_id ? call->row_id[r] : r;
  int64_t token = id / heads, head = id % heads;
  int64_t live = load_live(call, token, head, at);
  double ln = call->problem->flags & MLA_LSE_BASE2 ? MLA_LN_2 : 1;
  mla_row_sink *keep = call->keep;
  double *out = keep ? keep->wide[MLA_WIDE_OUT] + r * dv : at->out;
  double largest;
  double lse = mla_merge_row(live, dv, at->part, dv, at->lse, ln, at->weight,
                             out, &largest);
  double sink = mla_sink_of(call->problem, call->args, head);
  mla_sink_apply(lse * ln, sink, dv, out);
  if (!keep) {
    write_row(call, token, head, out, lse);
    return;
  }
  keep->lse[r] = lse;
  for (int64_t i = 0; i < live; i++) at->lse[i] *= ln;
  mla_terms_merge(at->part, at->lse, at->weight, live, lse * ln, largest * ln,
                  sink, at->terms, keep, r);
}

mla_status mla_oracle_merge(const mla_merge_call *call, mla_error *err) {
  int64_t work = call->rows * call->problem->v_head_dim *
                 mla_arg(call->args, MLA_T_PARTS)->shape[0];
  int failed = 0;
  (void)work; /* without OpenMP */
#ifdef _OPENMP
#pragma omp parallel reduction(| : failed) if (work > MLA_WORTH_THREADS)
#endif
  {
    lane at = {0};
    void *memory = lane_new(call, &at);
    int64_t r;
    if (!memory) failed = 1;
#ifdef _OPENMP
#pragma omp for
#endif
    for (r = 0; r < call->rows; r++)
      if (memory) merge_row(call, &at, r);
    free(memory);
  }
  if (!failed) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "parts",
                  "no memory for a row's parts");
}
