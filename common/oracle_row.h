/*
 * oracle_row.h - the core of one attention row in binary64.
 *
 * Everything is summed in one fixed order: a product q.k in eight lanes of
 * every eighth element, sums over keys from the first to the last.
 */
#ifndef MLA_ORACLE_ROW_H
#define MLA_ORACLE_ROW_H

#include <stdint.h>

#define MLA_LOG2_E 0x1.71547652b82fep+0
#define MLA_LN_2 0x1.62e42fefa39efp-1

/* Keys and values that a row may see, and how scores are made of them. */
typedef struct mla_keys {
  const double *k; /* [n][d], rows k_stride apart */
  const double *v; /* [n][dv], rows v_stride apart */
  int64_t k_stride, v_stride;
  int64_t d, dv;
  double scale;
  double cap; /* 0: none */
  /* What the budget needs beyond them (oracle_terms.h). */
  double tiny;       /* smallest normal number of the compute type */
  int subnormal_k;   /* some element of k is smaller, but not 0 */
  int subnormal_v;   /* likewise */
  int64_t nope;      /* prefill: up-projected elements of a key; else 0 */
  int64_t latent;    /* prefill: length of the up-projection's sums */
  const double *kap; /* prefill: [n][nope], sqrt(sum_l (W_dl c_l)^2) */
  const double *nu;  /* prefill: [n][dv], the same for values */
} mla_keys;

/* The softmax of one row. Without keys: m = lse = -infinity, sum = 0. */
typedef struct mla_softmax {
  double m;   /* the largest score */
  double sum; /* of e^(s - m) */
  double lse; /* natural */
} mla_softmax;

double mla_dot(const double *a, const double *b, int64_t n);
/* sum (a b)^2, in lanes like mla_dot. */
double mla_dot_squares(const double *a, const double *b, int64_t n);
/* sum |a b| where a or b is subnormal in a type of least normal `tiny`. */
double mla_dot_flushed(const double *a, const double *b, int64_t n,
                       double tiny);

/* 0 < |x| < tiny for some element of x[rows][width]. */
int mla_has_subnormal(const double *x, int64_t rows, int64_t width,
                      int64_t stride, double tiny);
/* Sets subnormal_k and subnormal_v by looking at n keys. */
void mla_keys_look(mla_keys *keys, int64_t n);

/* s[j - from] of the keys from <= j < to. */
void mla_row_scores(const mla_keys *keys, const double *q, int64_t from,
                    int64_t to, double *s);
/* e[j] = e^(s[j] - m), j < n; e may be s. */
mla_softmax mla_row_softmax(const double *s, int64_t n, double *e);
/* out[d] += e[j - from] v[j][d], for from <= j < to in this order. */
void mla_row_add_values(const mla_keys *keys, int64_t from, int64_t to,
                        const double *e, double *out);

/* The share of a row's denominator that is not the sink's (-infinity: no
   sink, and all of it). lse is natural. */
double mla_sink_keep(double lse, double sink);
/* Puts a sink into a row's denominator: scales out[dv] by that share. */
void mla_sink_apply(double lse, double sink, int64_t dv, double *out);

#endif
