/*
 * test_mpi.c - decode spread over ranks: within the budget of the reference's
 * one decode, the same bits on every rank, and an error on all when one fails.
 *
 * Run by mpirun; rank 0 says what it found. Exit 0: all is well on all ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "dmath.h"
#include "dtype.h"
#include "mpi_step.h"
#include "tensor.h"

static int rank, ranks, bad;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
require(int ok, const char *format, ...);

#include <stdarg.h>
static void require(int ok, const char *format, ...) {
  va_list args;
  if (ok) return;
  bad++;
  fprintf(stderr, "rank %d of %d: ", rank, ranks);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
}

static const step_case cases[] = {
    {"short", 2, {5, 0}, {1, 1}, 2, 16, 8, 4, 1, MLA_F32, 1, 0},
    {"long", 3, {130, 64, 1}, {1, 1, 1}, 4, 64, 16, 16, 16, MLA_BF16, 1, 0},
    {"rows", 3, {30, 0, 61}, {4, 3, 2}, 1, 32, 8, 8, 3, MLA_BF16, 1, 0},
    {"draft", 2, {17, 40}, {5, 1}, 3, 32, 8, 8, 8, MLA_F32, 0, 0},
    {"sink",
     2,
     {33, 2},
     {2, 2},
     2,
     32,
     8,
     8,
     2,
     MLA_F32,
     1,
     MLA_HAS_SINK | MLA_LSE_BASE2},
    {"apart", 2, {63, 3}, {1, 1}, 2, 16, 8, 16, 32, MLA_BF16, 1, MLA_LSE_BASE2},
};
enum { CASES = (int)(sizeof cases / sizeof cases[0]) };

/* ---------------------------------------------------------------- results */

/* Of every value: error within what the declared arithmetic allows. `first`
   is the head that the tensor's first is. */
static void require_budget(const mpi_step *s, const mla_expected *e,
                           int32_t view_at, const mla_tensor *got,
                           int64_t first, const mla_numerics *numerics) {
  mla_expected_view view = mla_expected_at(e, view_at);
  double *budget = malloc((size_t)(view.rows * view.width) * sizeof *budget);
  mla_expected_budget(e, view_at, numerics, budget);
  for (int64_t t = 0; t < s->n; t++)
    for (int64_t h = 0; h < got->shape[1]; h++)
      for (int64_t d = 0; d < view.width; d++) {
        int64_t at = (t * s->heads + first + h) * view.width + d;
        double x = mla_get(got->data, got->dtype, mla_at2(got, t, h) + d);
        double error = mla_fabs(x - view.value[at]);
        int same = x == view.value[at]; /* infinities */
        require(same || error <= budget[at],
                "%s: %s[%d,%d,%d] is %g, expected %g within %g", s->c->name,
                mla_slot_name(view.slot), (int)t, (int)(first + h), (int)d, x,
                view.value[at], budget[at]);
      }
  free(budget);
}

static void require_right(const mpi_step *s, const mla_answer *answer) {
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, s->whole};
  mla_expected *e = NULL;
  mla_error err = mla_error_init();
  int64_t first = s->step.all_heads ? 0 : rank * (int64_t)s->c->heads_a_rank;
  if (mla_expect(&s->whole_problem, &args, NULL, &answer->numerics, &e, &err) !=
      MLA_OK) {
    require(0, "%s: %s", s->c->name, err.message);
    return;
  }
  require_budget(s, e, 0, &s->step.out, first, &answer->numerics);
  require_budget(s, e, 1, &s->step.lse, first, &answer->numerics);
  mla_expected_free(e);
}

/* [N,h,width] of heads first .. first + count of a tensor of this rank. */
static uint64_t digest_of(const mla_tensor *t, int64_t first, int64_t count) {
  int64_t width = t->rank > 2 ? t->shape[2] : 1;
  uint64_t digest = mla_digest_start();
  for (int64_t n = 0; n < t->shape[0]; n++)
    for (int64_t h = first; h < first + count; h++)
      for (int64_t d = 0; d < width; d++)
        digest = mla_digest_f64(
            digest, mla_get(t->data, t->dtype, mla_at2(t, n, h) + d));
  return digest;
}

static void require_same_everywhere(const mpi_step *s, uint64_t digest) {
  unsigned long long mine = digest, least, most;
  MPI_Allreduce(&mine, &least, 1, MPI_UNSIGNED_LONG_LONG, MPI_MIN,
                MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX,
                MPI_COMM_WORLD);
  require(least == most, "%s: other bits on other ranks", s->c->name);
}

/* ------------------------------------------------------------------ a case */

static mla_status decode(mla_mpi *mpi, mpi_step *s, mla_error *err) {
  mpi_step_poison(s);
  return mla_mpi_decode(mpi, &s->step, err);
}

static void judge(mla_mpi *mpi, mpi_step *s) {
  mla_error err = mla_error_init();
  int64_t own = s->c->heads_a_rank;
  require(decode(mpi, s, &err) == MLA_OK, "%s: %s", s->c->name, err.message);
  require_right(s, mla_mpi_answer(mpi));
  uint64_t out = digest_of(&s->step.out, 0, own);
  uint64_t lse = digest_of(&s->step.lse, 0, own);
  mpi_step_all_heads(s);
  require(decode(mpi, s, &err) == MLA_OK, "%s: %s", s->c->name, err.message);
  require_right(s, mla_mpi_answer(mpi));
  require_same_everywhere(s, digest_of(&s->step.out, 0, s->heads));
  require_same_everywhere(s, digest_of(&s->step.lse, 0, s->heads));
  require(out == digest_of(&s->step.out, rank * own, own) &&
              lse == digest_of(&s->step.lse, rank * own, own),
          "%s: a rank's own heads have other bits", s->c->name);
}

/* -------------------------------------------------------------- rank fails */

typedef struct failing {
  int stage, rank;
} failing;

static mla_status fail_once(void *context, mla_mpi_stage stage,
                            mla_error *err) {
  const failing *f = context;
  if (f->rank != rank || f->stage != (int)stage) return MLA_OK;
  snprintf(err->field, sizeof err->field, "test");
  snprintf(err->message, sizeof err->message, "asked to fail at stage %d",
           f->stage);
  return MLA_DEVICE_ERROR;
}

/* Each rank at each stage; then all is well again. */
static void fail_everywhere(mla_mpi *mpi, mpi_step *s) {
  char wanted[96];
  for (int stage = 0; stage < MLA_MPI_STAGES; stage++)
    for (int r = 0; r < ranks; r++) {
      failing f = {stage, r};
      mla_error err = mla_error_init();
      mla_mpi_observe(mpi, fail_once, &f);
      mla_status status = decode(mpi, s, &err);
      require(status == MLA_DEVICE_ERROR, "stage %d, rank %d: %s", stage, r,
              mla_status_name(status));
      snprintf(wanted, sizeof wanted, "rank %d: asked to fail at stage %d", r,
               stage);
      require(strcmp(err.message, wanted) == 0, "says \"%s\"", err.message);
      require(mpi_step_untouched(s), "stage %d, rank %d: results were written",
              stage, r);
    }
  mla_mpi_observe(mpi, NULL, NULL);
  mla_error err = mla_error_init();
  require(decode(mpi, s, &err) == MLA_OK, "afterwards: %s", err.message);
}

/* Mistakes of one rank alone, found by its own checks or by comparing. */
static void mistakes(mla_mpi *mpi, mpi_step *s) {
  mla_error err = mla_error_init();
  int last = rank == ranks - 1;
  mla_mpi_step kept = s->step;
  if (last) s->step.seq_lens = NULL;
  require(decode(mpi, s, &err) == MLA_INVALID_ARGUMENT &&
              strstr(err.message, "seq_lens is NULL"),
          "no lengths: %s", err.message);
  s->step = kept;
  if (last) s->step.rows = s->limits.tokens + 1;
  require(decode(mpi, s, &err) == MLA_INVALID_ARGUMENT &&
              strstr(err.message, "limits.tokens"),
          "many rows: %s", err.message);
  s->step = kept;
  if (last) s->step.q.dtype = MLA_F16;
  require(decode(mpi, s, &err) == MLA_INVALID_ARGUMENT &&
              strcmp(err.field, "q") == 0,
          "another type: %s", err.message);
  s->step = kept;
  if (last) s->step.table_width = 0;
  require(decode(mpi, s, &err) == MLA_INVALID_ARGUMENT, "no table: %s",
          err.message);
  s->step = kept;
  if (last && ranks > 1) s->step.rows = 0;
  require((decode(mpi, s, &err) == MLA_OK) == (ranks == 1), "rows differ");
  require(ranks == 1 || mpi_step_untouched(s), "rows differ, but written");
  s->step = kept;
}

static void bad_problems(mla_device *dev, const mpi_step *s) {
  mla_error err = mla_error_init();
  mla_mpi *mpi;
  mla_problem p = s->problem;
  int last = rank == ranks - 1;
  if (last) p.flags |= MLA_CAUSAL;
  require(mla_mpi_create(MPI_COMM_WORLD, dev, &p, &s->limits, &mpi, &err) ==
                  MLA_INVALID_ARGUMENT &&
              !mpi && strcmp(err.field, "flags") == 0,
          "a mask: %s", err.message);
  p = s->problem;
  if (ranks > 1) p.num_heads = ranks + 1;
  if (ranks > 1)
    require(mla_mpi_create(MPI_COMM_WORLD, dev, &p, &s->limits, &mpi, &err) ==
                MLA_INVALID_ARGUMENT,
            "odd heads: %s", err.message);
  p = s->problem;
  if (last) p.out_dtype = MLA_F16;
  if (ranks > 1)
    require(mla_mpi_create(MPI_COMM_WORLD, dev, &p, &s->limits, &mpi, &err) ==
                    MLA_INVALID_ARGUMENT &&
                strstr(err.message, "out_dtype is"),
            "other types: %s", err.message);
}

/* ------------------------------------------------------------------- whole */

static void judge_backend(const char *name) {
  mla_device *dev;
  mla_error err = mla_error_init();
  if (!mla_backend_find(name)) return;
  if (mla_open(name, 0, NULL, &dev, &err) != MLA_OK) {
    require(0, "%s: %s", name, err.message);
    return;
  }
  for (int i = 0; i < CASES; i++) {
    mpi_step s;
    mla_mpi *mpi;
    mpi_step_new(&s, dev, &cases[i], rank, ranks);
    mla_status status =
        mla_mpi_create(MPI_COMM_WORLD, dev, &s.problem, &s.limits, &mpi, &err);
    require(status == MLA_OK, "%s: %s", cases[i].name, err.message);
    if (status == MLA_OK) {
      if (i == 0) fail_everywhere(mpi, &s);
      if (i == 1) mistakes(mpi, &s);
      judge(mpi, &s);
    }
    mla_mpi_free(mpi);
    if (i == 0) bad_problems(dev, &s);
    mpi_step_free(&s);
  }
  mla_close(dev);
}

int main(int argc, char **argv) {
  int all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  judge_backend("ref");
  judge_backend("cpu");
  MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d ranks, %d cases a backend: %d failures\n", ranks, CASES, all);
  MPI_Finalize();
  return all != 0;
}
