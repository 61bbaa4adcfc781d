/*
 * mla_mpi_decode.c - a step of all ranks.
 */
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "mla_mpi_internal.h"
#include "sized.h"
#include "tensor.h"

/* A step on this rank. */
typedef struct pass {
  mla_mpi *m;
  mla_mpi_step step;
  int32_t heads; /* of a rank: H / W */
  int32_t all;   /* H */
  int64_t dv;
  uint64_t wide; /* bytes of a partial value */
} pass;

/* ------------------------------------------------------------------- check */

static mla_status check_tensor(const char *name, const mla_tensor *t,
                               int32_t dtype, int32_t rank,
                               const int64_t *shape, mla_error *err) {
  int64_t want = 1, got = t->rank == rank;
  for (int i = 0; i < rank; i++) {
    want *= shape[i];
    got = got && t->shape[i] == shape[i] && t->stride[i] >= 0;
  }
  if (t->data && t->dtype == dtype && got &&
      (t->stride[rank - 1] == 1 || t->shape[rank - 1] == 1))
    return MLA_OK;
  return mla_fail(
      err, MLA_INVALID_ARGUMENT, name,
      "%s is %s of %s and rank %d, needed are %lld elements of %s "
      "in %d axes, the last dense",
      name, t->data ? "there" : "absent",
      mla_dtype_name(t->dtype) ? mla_dtype_name(t->dtype) : "no type", t->rank,
      (long long)want, mla_dtype_name(dtype), rank);
}

static mla_status check_tensors(const pass *x, mla_error *err) {
  const mla_mpi *m = x->m;
  const mla_mpi_step *s = &x->step;
  int64_t h = s->all_heads ? x->all : x->heads;
  const int64_t q[3] = {s->rows, x->heads, mla_problem_head_dim(&m->problem)};
  const int64_t out[3] = {s->rows, h, x->dv}, sink[1] = {h};
  int32_t real = m->problem.q_dtype == MLA_F64 ? MLA_F64 : MLA_F32;
  mla_status st = check_tensor("q", &s->q, m->problem.q_dtype, 3, q, err);
  if (st == MLA_OK)
    st = check_tensor("out", &s->out, m->problem.out_dtype, 3, out, err);
  if (st == MLA_OK && (m->problem.flags & MLA_RETURN_LSE))
    st = check_tensor("lse", &s->lse, real, 2, out, err);
  if (st == MLA_OK && (m->problem.flags & MLA_HAS_SINK))
    st = check_tensor("sink", &s->sink, real, 1, sink, err);
  return st;
}

static mla_status check(pass *x, const mla_mpi_step *step, mla_error *err) {
  mla_status st = mla_sized_read(&x->step, (uint32_t)sizeof x->step, step,
                                 MLA_SIZE_WITH(mla_mpi_step, lse), "step", err);
  const mla_mpi_step *s = &x->step;
  if (st != MLA_OK) return st;
  if (s->rows < 0 || s->rows > x->m->limits.tokens)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "rows",
                    "step.rows is %lld, limits.tokens is %lld",
                    (long long)s->rows, (long long)x->m->limits.tokens);
  if (s->table_width < 1 || s->table_width > x->m->limits.table_width)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "table_width",
                    "step.table_width is %lld, it is 1 to %lld",
                    (long long)s->table_width,
                    (long long)x->m->limits.table_width);
  if (s->rows && (!s->seq_lens || !s->block_table))
    return mla_fail(err, MLA_INVALID_ARGUMENT,
                    s->seq_lens ? "block_table" : "seq_lens", "step.%s is NULL",
                    s->seq_lens ? "block_table" : "seq_lens");
  return s->rows ? check_tensors(x, err) : MLA_OK;
}

/* Whether the ranks have the same step in mind: found in the agreement. */
static mla_status check_rows(const pass *x, mla_error *err) {
  long long mine[4] = {(long long)x->step.rows, -(long long)x->step.rows,
                       x->step.all_heads != 0, -(x->step.all_heads != 0)};
  long long most[4];
  int code = MPI_Allreduce(mine, most, 4, MPI_LONG_LONG, MPI_MAX, x->m->comm);
  if (code != MPI_SUCCESS) return mla_mpi_check(code, "comparing", err);
  if (most[0] == -most[1] && most[2] == -most[3]) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT,
                  most[0] == -most[1] ? "all_heads" : "rows",
                  "step.%s is %lld on one rank and %lld on another",
                  most[0] == -most[1] ? "all_heads" : "rows",
                  most[0] == -most[1] ? -most[3] : -most[1],
                  most[0] == -most[1] ? most[2] : most[0]);
}

/* ----------------------------------------------------------- moving bytes */

static uint64_t bytes_of(int32_t dtype) {
  return (uint64_t)mla_dtype_bits(dtype) / 8;
}

/* [n][heads] runs of `run` bytes between two layouts: `at` bytes from the
   start, runs of a row `head` bytes apart, rows `row` bytes apart. */
typedef struct layout {
  unsigned char *data;
  uint64_t row, head;
} layout;

static void move(layout to, layout from, int64_t n, int64_t heads,
                 uint64_t run) {
  for (int64_t t = 0; t < n; t++)
    for (int64_t h = 0; h < heads; h++)
      memcpy(to.data + (uint64_t)t * to.row + (uint64_t)h * to.head,
             from.data + (uint64_t)t * from.row + (uint64_t)h * from.head,
             (size_t)run);
}

static layout dense(unsigned char *data, int64_t heads, uint64_t run) {
  layout l = {data, (uint64_t)heads * run, run};
  return l;
}

static layout strided(const mla_tensor *t, uint64_t run) {
  uint64_t size = bytes_of(t->dtype);
  layout l = {t->data, (uint64_t)t->stride[0] * size,
              t->rank > 1 ? (uint64_t)t->stride[1] * size : run};
  return l;
}

/* ----------------------------------------------------------------- queries */

static void pack(const pass *x) {
  const mla_mpi *m = x->m;
  const mla_mpi_step *s = &x->step;
  uint64_t run = bytes_of(m->problem.q_dtype) *
                 (uint64_t)mla_problem_head_dim(&m->problem);
  int32_t *starts = (int32_t *)(void *)m->starts.host;
  move(dense(m->send, x->heads, run), strided(&s->q, run), s->rows, x->heads,
       run);
  for (int64_t i = 0; i <= s->rows; i++) starts[i] = (int32_t)i;
  memcpy(m->lens.host, s->seq_lens, (size_t)s->rows * sizeof(int32_t));
  memcpy(m->table.host, s->block_table,
         (size_t)(s->rows * s->table_width) * sizeof(int32_t));
}

/* From [W][N,H/W,D] to [N,H,D]. */
static mla_status gather_queries(const pass *x, mla_error *err) {
  const mla_mpi *m = x->m;
  uint64_t run = bytes_of(m->problem.q_dtype) *
                 (uint64_t)mla_problem_head_dim(&m->problem);
  uint64_t share = (uint64_t)(x->step.rows * x->heads) * run;
  mla_status st =
      mla_mpi_check(MPI_Allgather(m->send, (int)share, MPI_BYTE, m->receive,
                                  (int)share, MPI_BYTE, m->comm),
                    "gathering queries", err);
  for (int r = 0; st == MLA_OK && r < m->ranks; r++) {
    layout to = dense(m->q.host, x->all, run);
    to.data += (uint64_t)(r * x->heads) * run;
    move(to, dense(m->receive + (uint64_t)r * share, x->heads, run),
         x->step.rows, x->heads, run);
  }
  return st;
}

/* -------------------------------------------------------------- own decode */

static mla_status push_inputs(const pass *x, mla_error *err) {
  const mla_mpi *m = x->m;
  uint64_t rows = (uint64_t)x->step.rows;
  uint64_t run = bytes_of(m->problem.q_dtype) *
                 (uint64_t)mla_problem_head_dim(&m->problem);
  mla_status st = mla_mpi_push(m, &m->q, rows * (uint64_t)x->all * run, err);
  if (st == MLA_OK)
    st = mla_mpi_push(m, &m->starts, (rows + 1) * sizeof(int32_t), err);
  if (st == MLA_OK) st = mla_mpi_push(m, &m->lens, rows * sizeof(int32_t), err);
  if (st == MLA_OK)
    st = mla_mpi_push(m, &m->table,
                      rows * (uint64_t)x->step.table_width * sizeof(int32_t),
                      err);
  return st;
}

static mla_tensor on_device(const mla_mpi_buffer *b, int32_t dtype,
                            int32_t rank, int64_t i, int64_t j, int64_t k) {
  const int64_t shape[3] = {i, j, k};
  return mla_tensor_dense(b->device, dtype, rank, shape);
}

static mla_status run(const pass *x, int which, const mla_tensor *tensor,
                      mla_error *err) {
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, tensor};
  return mla_run(x->m->plan[which], &args, x->m->workspace.device,
                 x->m->workspace.bytes, NULL, err);
}

static mla_status decode(const pass *x, mla_error *err) {
  const mla_mpi *m = x->m;
  int64_t n = x->step.rows;
  int32_t wide = m->part[MLA_MPI_SHARD].out_dtype;
  mla_tensor t[MLA_T_COUNT];
  memset(t, 0, sizeof t);
  mla_status st = push_inputs(x, err);
  if (st != MLA_OK) return st;
  t[MLA_T_Q] = on_device(&m->q, m->problem.q_dtype, 3, n, x->all,
                         mla_problem_head_dim(&m->problem));
  t[MLA_T_CACHE] = x->step.cache;
  t[MLA_T_V_CACHE] = x->step.v_cache;
  t[MLA_T_BLOCK_TABLE] =
      on_device(&m->table, MLA_I32, 2, n, x->step.table_width, 0);
  t[MLA_T_SEQ_LENS] = on_device(&m->lens, MLA_I32, 1, n, 0, 0);
  t[MLA_T_QUERY_START_LOC] = on_device(&m->starts, MLA_I32, 1, n + 1, 0, 0);
  t[MLA_T_OUT] = on_device(&m->out, wide, 3, n, x->all, x->dv);
  t[MLA_T_LSE] = on_device(&m->lse, wide, 2, n, x->all, 0);
  st = run(x, MLA_MPI_SHARD, t, err);
  uint64_t rows = (uint64_t)(n * x->all);
  if (st == MLA_OK)
    st = mla_mpi_pull(m, &m->out, rows * (uint64_t)x->dv * x->wide, err);
  if (st == MLA_OK) st = mla_mpi_pull(m, &m->lse, rows * x->wide, err);
  return st;
}

/* ---------------------------------------------------------------- exchange */

/* To rank r its heads of this rank's part; from rank r its part of ours. */
static mla_status scatter_parts(const pass *x, mla_error *err) {
  const mla_mpi *m = x->m;
  uint64_t run = (uint64_t)x->dv * x->wide;
  uint64_t share = (uint64_t)(x->step.rows * x->heads) * run;
  for (int r = 0; r < m->ranks; r++) {
    layout from = dense(m->out.host, x->all, run);
    from.data += (uint64_t)(r * x->heads) * run;
    move(dense(m->send + (uint64_t)r * share, x->heads, run), from,
         x->step.rows, x->heads, run);
  }
  return mla_mpi_check(
      MPI_Alltoall(m->send, (int)share, MPI_BYTE, m->parts.host, (int)share,
                   MPI_BYTE, m->comm),
      "exchanging parts", err);
}

static mla_status gather_parts(const pass *x, mla_error *err) {
  const mla_mpi *m = x->m;
  int share = (int)((uint64_t)(x->step.rows * x->all * x->dv) * x->wide);
  return mla_mpi_check(MPI_Allgather(m->out.host, share, MPI_BYTE,
                                     m->parts.host, share, MPI_BYTE, m->comm),
                       "gathering parts", err);
}

static mla_status exchange(const pass *x, mla_error *err) {
  const mla_mpi *m = x->m;
  int share = (int)((uint64_t)(x->step.rows * x->all) * x->wide);
  mla_status st =
      mla_mpi_check(MPI_Allgather(m->lse.host, share, MPI_BYTE,
                                  m->part_lses.host, share, MPI_BYTE, m->comm),
                    "gathering lse", err);
  if (st != MLA_OK) return st;
  return x->step.all_heads ? gather_parts(x, err) : scatter_parts(x, err);
}

/* ------------------------------------------------------------------- merge */

/* The lse of all heads are there: [W,N,H], of which a rank takes its own. */
static mla_tensor lses_of(const pass *x, int64_t heads) {
  const mla_mpi *m = x->m;
  int64_t first = x->step.all_heads ? 0 : (int64_t)m->rank * x->heads;
  mla_tensor t = on_device(&m->part_lses, m->part[MLA_MPI_JOIN].q_dtype, 3,
                           m->ranks, x->step.rows, x->all);
  t.data = (unsigned char *)t.data + (uint64_t)first * x->wide;
  t.shape[2] = heads;
  return t;
}

static mla_status push_parts(const pass *x, int64_t heads, mla_error *err) {
  const mla_mpi *m = x->m;
  uint64_t rows = (uint64_t)(m->ranks * x->step.rows);
  mla_status st = mla_mpi_push(m, &m->parts,
                               rows * (uint64_t)(heads * x->dv) * x->wide, err);
  if (st == MLA_OK)
    st = mla_mpi_push(m, &m->part_lses, rows * (uint64_t)x->all * x->wide, err);
  if (st != MLA_OK || !(m->problem.flags & MLA_HAS_SINK)) return st;
  for (int64_t h = 0; h < heads; h++)
    memcpy(m->sink.host + (uint64_t)h * x->wide,
           (const unsigned char *)x->step.sink.data + (uint64_t)h * x->wide,
           (size_t)x->wide);
  return mla_mpi_push(m, &m->sink, (uint64_t)heads * x->wide, err);
}

/* Into buffers of our own: results are written when all ranks have theirs. */
static mla_status merge(const pass *x, mla_error *err) {
  const mla_mpi *m = x->m;
  int which = x->step.all_heads ? MLA_MPI_JOIN_ALL : MLA_MPI_JOIN;
  int64_t n = x->step.rows, heads = x->step.all_heads ? x->all : x->heads;
  const mla_problem *p = &m->part[which];
  const int64_t parts[4] = {m->ranks, n, heads, x->dv};
  mla_tensor t[MLA_T_COUNT];
  memset(t, 0, sizeof t);
  mla_status st = push_parts(x, heads, err);
  if (st != MLA_OK) return st;
  t[MLA_T_PARTS] = mla_tensor_dense(m->parts.device, p->q_dtype, 4, parts);
  t[MLA_T_PART_LSES] = lses_of(x, heads);
  if (p->flags & MLA_HAS_SINK)
    t[MLA_T_SINK] = on_device(&m->sink, p->q_dtype, 1, heads, 0, 0);
  t[MLA_T_OUT] = on_device(&m->merged, p->out_dtype, 3, n, heads, x->dv);
  if (p->flags & MLA_RETURN_LSE)
    t[MLA_T_LSE] = on_device(&m->merged_lse, p->q_dtype, 2, n, heads, 0);
  st = run(x, which, t, err);
  uint64_t rows = (uint64_t)(n * heads);
  if (st == MLA_OK)
    st = mla_mpi_pull(m, &m->merged,
                      rows * (uint64_t)x->dv * bytes_of(p->out_dtype), err);
  if (st == MLA_OK && (p->flags & MLA_RETURN_LSE))
    st = mla_mpi_pull(m, &m->merged_lse, rows * x->wide, err);
  return st;
}

static void write_results(const pass *x) {
  const mla_mpi *m = x->m;
  int64_t heads = x->step.all_heads ? x->all : x->heads;
  uint64_t run = (uint64_t)x->dv * bytes_of(m->problem.out_dtype);
  move(strided(&x->step.out, run), dense(m->merged.host, heads, run),
       x->step.rows, heads, run);
  if (!(m->problem.flags & MLA_RETURN_LSE)) return;
  layout to = strided(&x->step.lse, x->wide);
  to.head = x->wide;
  move(to, dense(m->merged_lse.host, heads, x->wide), x->step.rows, heads,
       x->wide);
}

/* ------------------------------------------------------------------- whole */

static mla_status begin(const pass *x, mla_mpi_stage stage, mla_error *err) {
  const mla_mpi *m = x->m;
  return m->observer ? m->observer(m->observer_context, stage, err) : MLA_OK;
}

/* This rank's own work of a stage; no other rank is waited for. */
static mla_status work(pass *x, mla_mpi_stage stage, const mla_mpi_step *step,
                       mla_error *err) {
  mla_status st = begin(x, stage, err);
  if (st != MLA_OK) return st;
  switch (stage) {
    case MLA_MPI_CHECK: return check(x, step, err);
    case MLA_MPI_PACK: return pack(x), MLA_OK;
    case MLA_MPI_DECODE: return decode(x, err);
    case MLA_MPI_MERGE: return merge(x, err);
    default: return MLA_OK;
  }
}

/* What the ranks do together once all have done their work of a stage. */
static mla_status meet(pass *x, mla_mpi_stage stage, mla_error *err) {
  switch (stage) {
    case MLA_MPI_CHECK: return check_rows(x, err);
    case MLA_MPI_PACK: return gather_queries(x, err);
    case MLA_MPI_EXCHANGE: return exchange(x, err);
    default: return MLA_OK;
  }
}

mla_status mla_mpi_decode(mla_mpi *m, const mla_mpi_step *step,
                          mla_error *err) {
  pass x;
  mla_error own = mla_error_init();
  mla_error *said = err ? err : &own;
  memset(&x, 0, sizeof x);
  x.m = m;
  x.all = m->problem.num_heads;
  x.heads = x.all / m->ranks;
  x.dv = mla_problem_v_dim(&m->problem);
  x.wide = bytes_of(m->part[MLA_MPI_SHARD].out_dtype);
  mla_status st = MLA_OK;
  for (int stage = 0; stage < MLA_MPI_STAGES; stage++) {
    if (st == MLA_OK) st = work(&x, (mla_mpi_stage)stage, step, said);
    st = mla_mpi_agree(m, st, said);
    if (st != MLA_OK) return st;
    st = meet(&x, (mla_mpi_stage)stage, said);
    if (st == MLA_OK && x.step.rows == 0) return MLA_OK;
  }
  write_results(&x);
  return MLA_OK;
}
