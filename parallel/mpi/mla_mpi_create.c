/*
 * mla_mpi_create.c - plans and buffers of a rank, agreed upon by all.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "mla_mpi_internal.h"

#define FLAGS                                                       \
  (MLA_RETURN_LSE | MLA_LSE_BASE2 | MLA_HAS_SINK | MLA_SEPARATE_V | \
   MLA_BATCH_INVARIANT)

/* ---------------------------------------------------------------- problems */

static mla_status check_problem(const mla_mpi *m, mla_error *err) {
  const mla_problem *p = &m->problem;
  if (p->op != MLA_OP_DECODE)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "op",
                    "problem.op is %d, only decode is spread over ranks",
                    p->op);
  if (p->flags & ~FLAGS)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "flags",
                    "flags 0x%llx have 0x%llx, which the rows of a step have "
                    "already or which is not spread over ranks",
                    (unsigned long long)p->flags,
                    (unsigned long long)(p->flags & ~FLAGS));
  if (p->num_heads < 1 || p->num_heads % m->ranks)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "num_heads",
                    "num_heads is %d, no multiple of the %d ranks",
                    p->num_heads, m->ranks);
  if (m->limits.tokens < 1 || m->limits.tokens > INT_MAX)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "tokens",
                    "limits.tokens is %lld, it is 1 to %d",
                    (long long)m->limits.tokens, INT_MAX);
  return MLA_OK;
}

static void describe_shard(mla_mpi *m) {
  mla_problem *p = &m->part[MLA_MPI_SHARD];
  mla_limits *l = &m->bounds[MLA_MPI_SHARD];
  *p = m->problem;
  p->flags = (p->flags & ~MLA_HAS_SINK) | MLA_RETURN_LSE;
  p->out_dtype = p->q_dtype == MLA_F64 ? MLA_F64 : MLA_F32;
  *l = m->limits;
  l->seq_lens = l->query_start_loc = NULL;
  l->requests = l->tokens;
  l->max_query_len = 1;
}

static void describe_join(mla_mpi *m, int which, int32_t heads) {
  mla_problem *p = &m->part[which];
  *p = mla_problem_init(MLA_OP_MERGE);
  p->flags = m->problem.flags & (uint64_t)(FLAGS & ~MLA_SEPARATE_V);
  p->q_dtype = m->part[MLA_MPI_SHARD].out_dtype;
  p->out_dtype = m->problem.out_dtype;
  p->num_heads = heads;
  p->v_head_dim = mla_problem_v_dim(&m->problem);
  m->bounds[which] = mla_limits_init();
  m->bounds[which].tokens = m->limits.tokens;
  m->bounds[which].parts = m->ranks;
}

static double coarser(double a, double b) {
  return a > b ? a : b;
}

static void join_answers(mla_mpi *m) {
  mla_answer *a = &m->answer;
  *a = m->promise[MLA_MPI_SHARD];
  a->size = (uint32_t)sizeof *a;
  for (int i = MLA_MPI_JOIN; i < MLA_MPI_PLANS; i++) {
    const mla_answer *b = &m->promise[i];
    a->numerics.u_acc = coarser(a->numerics.u_acc, b->numerics.u_acc);
    a->numerics.u_p = coarser(a->numerics.u_p, b->numerics.u_p);
    a->numerics.lse_empty_positive = b->numerics.lse_empty_positive;
    if (b->determinism < a->determinism) a->determinism = b->determinism;
    if (b->workspace_bytes > a->workspace_bytes)
      a->workspace_bytes = b->workspace_bytes;
  }
  if (m->part[MLA_MPI_SHARD].out_dtype == MLA_F32) {
    a->numerics.u_acc = coarser(a->numerics.u_acc, 0x1p-24);
    a->numerics.u_p = coarser(a->numerics.u_p, 0x1p-24);
  }
}

static mla_status make_plans(mla_mpi *m, mla_error *err) {
  int32_t heads = m->problem.num_heads;
  describe_shard(m);
  describe_join(m, MLA_MPI_JOIN, heads / m->ranks);
  describe_join(m, MLA_MPI_JOIN_ALL, heads);
  for (int i = 0; i < MLA_MPI_PLANS; i++) {
    mla_status status =
        mla_plan_create(m->dev, &m->part[i], &m->bounds[i], &m->plan[i], err);
    if (status != MLA_OK) return status;
    m->promise[i] = *mla_plan_answer(m->plan[i]);
  }
  join_answers(m);
  return MLA_OK;
}

/* ----------------------------------------------------------------- buffers */

static mla_status take_buffers(mla_mpi *m, mla_error *err) {
  const mla_problem *p = &m->problem;
  uint64_t wide = (uint64_t)mla_dtype_bits(m->part[0].out_dtype) / 8;
  uint64_t n = (uint64_t)m->limits.tokens, h = (uint64_t)p->num_heads;
  uint64_t w = (uint64_t)m->ranks, dv = (uint64_t)mla_problem_v_dim(p);
  uint64_t q = (uint64_t)mla_dtype_bits(p->q_dtype) / 8 *
               (uint64_t)mla_problem_head_dim(p);
  uint64_t out = (uint64_t)mla_dtype_bits(p->out_dtype) / 8;
  const struct {
    mla_mpi_buffer *buffer;
    uint64_t count, each;
  } list[] = {{&m->workspace, m->answer.workspace_bytes, 1},
              {&m->q, n * h, q},
              {&m->starts, n + 1, sizeof(int32_t)},
              {&m->lens, n, sizeof(int32_t)},
              {&m->table, n, (uint64_t)m->limits.table_width * sizeof(int32_t)},
              {&m->out, n * h, dv * wide},
              {&m->lse, n * h, wide},
              {&m->parts, n * h, dv * wide * w},
              {&m->part_lses, n * h, w * wide},
              {&m->sink, h, wide},
              {&m->merged, n * h, dv * out},
              {&m->merged_lse, n * h, wide}};
  mla_status status = MLA_OK;
  for (size_t i = 0; status == MLA_OK && i < sizeof list / sizeof list[0]; i++)
    status =
        mla_mpi_buffer_new(m, list[i].buffer, list[i].count, list[i].each, err);
  if (status != MLA_OK) return status;
  m->message_bytes = m->parts.bytes > m->q.bytes ? m->parts.bytes : m->q.bytes;
  m->send = malloc((size_t)m->message_bytes);
  m->receive = malloc((size_t)m->message_bytes);
  if (m->send && m->receive) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "limits",
                  "no memory for messages of %llu bytes",
                  (unsigned long long)m->message_bytes);
}

/* Counts of MPI are ints: a rank's share of a message must be one. */
static mla_status check_messages(const mla_mpi *m, mla_error *err) {
  uint64_t most = m->parts.bytes > m->q.bytes ? m->parts.bytes : m->q.bytes;
  if (most <= INT_MAX) return MLA_OK;
  return mla_fail(err, MLA_UNSUPPORTED, "limits",
                  "limits make messages of %llu bytes, at most %d go at once",
                  (unsigned long long)most, INT_MAX);
}

/* ------------------------------------------------------------------- whole */

static mla_status prepare(mla_mpi *m, const mla_problem *problem,
                          const mla_limits *limits, mla_error *err) {
  mla_device_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  if (!problem || !limits)
    return mla_fail(err, MLA_INVALID_ARGUMENT, problem ? "limits" : "problem",
                    "%s is NULL", problem ? "limits" : "problem");
  m->problem = *problem;
  m->limits = *limits;
  mla_status status = mla_device_describe(m->dev, &info, err);
  m->on_host = info.memory_space == MLA_MEMORY_HOST;
  if (status == MLA_OK) status = check_problem(m, err);
  if (status == MLA_OK) status = make_plans(m, err);
  if (status == MLA_OK) status = take_buffers(m, err);
  return status == MLA_OK ? check_messages(m, err) : status;
}

/* Is a number the same on all ranks? All of them call. */
static mla_status require_same(const mla_mpi *m, int64_t number,
                               const char *name, mla_error *err) {
  long long mine[2] = {(long long)number, -(long long)number}, most[2];
  int code = MPI_Allreduce(mine, most, 2, MPI_LONG_LONG, MPI_MAX, m->comm);
  if (code != MPI_SUCCESS) return mla_mpi_check(code, "comparing", err);
  if (most[0] == -most[1]) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                  "%s is %lld on one rank and %lld on another", name, -most[1],
                  most[0]);
}

static mla_status compare_ranks(const mla_mpi *m, mla_error *err) {
  const mla_problem *p = &m->problem;
  const struct {
    const char *name;
    int64_t value;
  } same[] = {{"flags", (int64_t)p->flags},
              {"num_heads", p->num_heads},
              {"q_dtype", p->q_dtype},
              {"out_dtype", p->out_dtype},
              {"head_dim", mla_problem_head_dim(p)},
              {"v_dim", mla_problem_v_dim(p)},
              {"tokens", m->limits.tokens}};
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
    mla_status status = require_same(m, same[i].value, same[i].name, err);
    if (status != MLA_OK) return status;
  }
  return MLA_OK;
}

mla_status mla_mpi_create(MPI_Comm comm, mla_device *dev,
                          const mla_problem *problem, const mla_limits *limits,
                          mla_mpi **mpi, mla_error *err) {
  mla_mpi *m = calloc(1, sizeof *m);
  *mpi = NULL;
  /* Without this one can say nothing to the other ranks either. */
  if (!m) MPI_Abort(comm, MLA_OUT_OF_MEMORY);
  mla_status status =
      mla_mpi_check(MPI_Comm_dup(comm, &m->comm), "duplicating comm", err);
  if (status != MLA_OK) {
    free(m);
    return status;
  }
  MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(m->comm, &m->rank);
  MPI_Comm_size(m->comm, &m->ranks);
  m->dev = dev;
  m->on_host = 1;
  status = mla_mpi_agree(m, prepare(m, problem, limits, err), err);
  if (status == MLA_OK) status = compare_ranks(m, err);
  if (status == MLA_OK)
    *mpi = m;
  else
    mla_mpi_free(m);
  return status;
}

void mla_mpi_free(mla_mpi *m) {
  if (!m) return;
  mla_mpi_buffer *const buffers[] = {&m->workspace, &m->q,      &m->starts,
                                     &m->lens,      &m->table,  &m->out,
                                     &m->lse,       &m->parts,  &m->part_lses,
                                     &m->sink,      &m->merged, &m->merged_lse};
  for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
    mla_mpi_buffer_free(m, buffers[i]);
  for (int i = 0; i < MLA_MPI_PLANS; i++) mla_plan_free(m->plan[i]);
  free(m->send);
  free(m->receive);
  MPI_Comm_free(&m->comm);
  free(m);
}

const mla_answer *mla_mpi_answer(const mla_mpi *m) {
  return m ? &m->answer : NULL;
}

void mla_mpi_observe(mla_mpi *m, mla_mpi_observer observer, void *context) {
  m->observer = observer;
  m->observer_context = context;
}
