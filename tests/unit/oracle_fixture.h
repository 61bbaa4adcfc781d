/*
 * oracle_fixture.h - small problems for the tests of the reference, and a
 * direct computation of attention that shares nothing with it but tensors.
 */
#ifndef MLA_ORACLE_FIXTURE_H
#define MLA_ORACLE_FIXTURE_H

#include "mla/mla.h"
#include "oracle.h"

typedef struct fixture {
  mla_problem problem;
  mla_limits limits;
  mla_tensor tensor[MLA_T_COUNT];
  mla_args args;
  void *memory[MLA_T_COUNT];
  uint64_t seed;
} fixture;

/* Must be set up in place: args points into it. f64 everywhere. */
void fixture_init(fixture *f, mla_op op);
void fixture_free(fixture *f);

/*
 * A tensor of these dimensions (0 ends them) in memory with `pad` elements
 * between rows of the last axis; gaps hold NaN or -1, elements too until set.
 */
mla_tensor *fixture_tensor(fixture *f, int slot, int32_t dtype, int64_t pad,
                           int64_t d0, int64_t d1, int64_t d2, int64_t d3);
/* Bell values times scale, a stream of its own for each slot. */
void fixture_bell(fixture *f, int slot, double scale);
/* Element i of a tensor, counted without gaps. */
double fixture_get(const fixture *f, int slot, int64_t i);
void fixture_set(fixture *f, int slot, int64_t i, double value);
void fixture_set_ints(fixture *f, int slot, const int64_t *value);
int64_t fixture_count(const fixture *f, int slot);

/* Runs the oracle; fails the test if it refuses. */
void fixture_run(fixture *f);
mla_expected *fixture_expect(fixture *f, const mla_selection *selection);
/* Every element of the slot, without gaps; to be freed. */
double *fixture_values(const fixture *f, int slot);
/* The largest |a - b|; infinities and NaN must agree, else infinity. */
double largest_difference(const double *a, const double *b, int64_t count);

/* Requests of a decode or prefill. */
typedef struct requests {
  int64_t count;
  const int64_t *seq;     /* keys, this step's included */
  const int64_t *queries; /* tokens of this step */
} requests;

/*
 * Fills in everything of a decode whose sizes and flags stand in the problem:
 * a shuffled block table with ids out of range past each used end, pages with
 * NaN where no token lives, two padding tokens after the step, sinks.
 */
void fixture_decode(fixture *f, requests r, int64_t pad);
/* The same for prefill; MLA_CONTEXT says whether there is a cache. */
void fixture_prefill(fixture *f, requests r, int64_t pad);

/* out and lse of every row, in straightforward loops with libm; to be freed.
   Rows are [tokens][heads]; lse in the problem's base. */
typedef struct direct {
  int64_t rows, width;
  double *out, *lse;
} direct;
direct direct_attention(const fixture *f);
void direct_free(direct *d);

/* Keys and values of a head that request b holds, position by position:
   k[seq][*d], v[seq][*dv]; to be freed. */
void direct_keys(const fixture *f, int64_t b, int64_t head, double **k,
                 int64_t *d, double **v, int64_t *dv);

#endif
