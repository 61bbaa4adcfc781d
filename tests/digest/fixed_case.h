/*
 * fixed_case.h - calls with fixed contents, for the tests of the reference.
 *
 * A call is described by its problem and the free sizes; its tensors follow
 * from the operation table. Numbers come from common/rng.h under the tensor's
 * slot name, so another program can draw them too. Memory that the call must
 * not read is NaN, or an index out of range.
 */
#ifndef FIXED_CASE_H
#define FIXED_CASE_H

#include "mla/mla.h"
#include "op_table.h"

typedef struct fixed_case {
  mla_problem problem;
  mla_limits limits;
  mla_tensor tensor[MLA_T_COUNT];
  int64_t size[MLA_S_COUNT]; /* free symbols: MLA_S_N and on */
  uint64_t seed;
  int64_t gap; /* elements between rows: tensors that are not dense */
} fixed_case;

/* The start of a case: everything zero, the problem set. */
fixed_case fixed_case_of(const mla_problem *problem, uint64_t seed);
/*
 * Allocates every tensor that applies, all bytes 0xff (NaN; -1). Ends the
 * program when memory does, as everything here does.
 */
void fixed_case_alloc(fixed_case *c);
void fixed_case_free(fixed_case *c);
/* The tensors as a call takes them; valid while c stays where it is. */
mla_args fixed_case_args(const fixed_case *c);

/* Element i in row-major order becomes offset + amplitude * bell(slot, i). */
void fixed_case_fill(fixed_case *c, int slot, double offset, double amplitude);
/* The offset in elements of element i in row-major order. */
int64_t fixed_case_at(const mla_tensor *t, int64_t i);
void fixed_case_put_int(fixed_case *c, int slot, int64_t i, int64_t value);

/* ------------------------------------------------------------- attention */

#define FIXED_MAX_REQUESTS 8
/* Logical key j of request b is element group b * FIXED_MAX_KEYS + j. */
#define FIXED_MAX_KEYS 65536

typedef struct fixed_requests {
  int32_t count;
  int32_t query_len[FIXED_MAX_REQUESTS];
  int32_t seq_len[FIXED_MAX_REQUESTS]; /* including the queries */
} fixed_requests;

/* What the keys are like. */
typedef enum fixed_keys {
  FIXED_BELL = 0,  /* independent */
  FIXED_REPEAT,    /* eight keys again and again */
  FIXED_CANCEL,    /* 32 values, then the same 32 negated, and so on */
  FIXED_SAME_SCORE /* one score for all keys, values differ */
} fixed_keys;

typedef struct fixed_data {
  double q;  /* amplitude of queries */
  double kv; /* of keys and values */
  double w;  /* of weights */
  int keys;  /* fixed_keys */
} fixed_data;

/* decode or prefill: sizes from the requests, pages in a shuffled order. */
fixed_case fixed_attention(const mla_problem *problem,
                           const fixed_requests *requests,
                           const fixed_data *data, uint64_t seed, int64_t gap);

#endif
