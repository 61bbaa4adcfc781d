/*
 * explain_bench.h - some of the values a backend got, wrong ones and right
 * ones, and how well a planted fault reproduces them.
 */
#ifndef MLA_EXPLAIN_BENCH_H
#define MLA_EXPLAIN_BENCH_H

#include "explain_choice.h"
#include "judge.h"
#include "planted.h"

typedef struct bench_value {
  int32_t slot;
  int8_t bad;   /* the judge counts it as wrong */
  int8_t raw;   /* bits are compared, not values */
  int8_t mixed; /* right, in a row where others are wrong */
  int64_t offset;
  double expected, budget, got;
} bench_value;

typedef struct bench {
  const mla_vector *v;
  const mla_evidence *e;
  int64_t count, room;
  bench_value *value;
  choice_bench choice;               /* positions: what values are to others */
  unsigned char *wanted;             /* rows that a probe computes; NULL: all */
  unsigned char *image[MLA_T_COUNT]; /* outputs of a probe */
  int32_t *earlier;                  /* lengths served before, or NULL */
  double cost;                       /* of a probe, in nanoseconds or so */
} bench;

typedef struct bench_score {
  int64_t bad, bad_of;   /* wrong values reproduced */
  int64_t near, near_of; /* right values beside wrong ones: what was got */
  int64_t good, good_of; /* right values elsewhere that stay right */
  int64_t finite;        /* of the wrong ones reproduced */
  double residual;       /* of wrong values: what is left of the error */
} bench_score;

/* At most so many rows of each kind. 0: no memory, or nothing to look at.
   Free it, whatever is returned. */
int bench_new(bench *b, const mla_vector *v, const mla_evidence *e,
              int64_t bad_rows, int64_t good_rows);
void bench_free(bench *b);

/* explain_value.c: an element that still holds the poison; the poison of an
   output; whether a number is one that the judge takes (mla_compare), and two
   elements whether they are the same, any NaN for another. */
int bench_has_poison(const mla_tensor *t, const unsigned char *bytes,
                     int64_t offset, unsigned char poison);
unsigned char bench_poison(const bench *b, int32_t slot);
int bench_is_right(const mla_tensor *t, int compare, double expected,
                   double budget, double got);
int bench_same_bits(const mla_tensor *t, const unsigned char *x,
                    const unsigned char *y, int64_t offset);

/* Of marks for rows, keeps `most` that are `which`, spread evenly. */
void bench_thin_out(unsigned char *mark, int64_t rows, unsigned char which,
                    int64_t most);

/* Keys of the prefix that a backend's own cascade was told of; 0: none. */
int64_t bench_prefix(const mla_vector *v, const mla_evidence *e);

/* explain_score.c. 0: the fault cannot be computed for this call. */
int bench_probe(bench *b, int32_t fault, int32_t a, double x,
                bench_score *score);

#endif
