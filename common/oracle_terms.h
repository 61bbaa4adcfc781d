/*
 * oracle_terms.h - the quantities of one row from which the error budget of
 * any declared arithmetic follows (docs/tolerance.md has their derivation).
 */
#ifndef MLA_ORACLE_TERMS_H
#define MLA_ORACLE_TERMS_H

#include "oracle_row.h"

/* Quantities that exist for every element of out. */
typedef enum mla_wide {
  MLA_WIDE_OUT = 0, /* the answer */
  MLA_WIDE_A,       /* ||p v|| */
  MLA_WIDE_B,       /* ||p r v|| */
  MLA_WIDE_F,       /* |sum p s (v - out)| */
  MLA_WIDE_M,       /* sum p |v| */
  MLA_WIDE_G,       /* e^(m - lse) sum of |v| over e^(s - m) < 2^-14 */
  MLA_WIDE_Z,       /* what flushing subnormal operands may change */
  MLA_WIDE_DECODE,  /* decode and merge end here; prefill goes on: */
  MLA_WIDE_R1 = MLA_WIDE_DECODE, /* ||p r' v|| / u_mid, and subnormal v */
  MLA_WIDE_R2,                   /* ||p r'' v|| / u_acc */
  MLA_WIDE_NU,                   /* sqrt(L) ||p nu|| */
  MLA_WIDE_PREFILL
} mla_wide;

/* Quantities of the whole row. Doubles only: kept in files as an array. */
typedef struct mla_row_terms {
  double n;    /* keys seen */
  double d;    /* length of a score's sum */
  double m;    /* the largest score */
  double lse;  /* natural, without the sink */
  double keep; /* share of the denominator that is not the sink's */
  double c;    /* ||p r||, p without the sink, like all below */
  double e;    /* |sum p s| */
  double r1;   /* ||p r'|| / u_mid */
  double r2;   /* ||p r''|| / u_acc */
  double z;    /* sum p z: flushed operands */
  double sink; /* the sink's own share of ||p r|| */
  double rise; /* how far the sink lies above the largest score, or 0 */
} mla_row_terms;
#define MLA_ROW_TERMS ((int64_t)(sizeof(mla_row_terms) / sizeof(double)))

/* Where the answers of a call are kept. Arrays of its rows. */
typedef struct mla_row_sink {
  int64_t width;
  double *wide[MLA_WIDE_PREFILL]; /* [rows][width]; NULL: not wanted */
  double *lse;                    /* [rows], in the problem's base */
  mla_row_terms *terms;           /* [rows] */
} mla_row_sink;

/* Bytes of working memory for a row that sees n keys. */
int64_t mla_terms_scratch(const mla_keys *keys, int64_t n);
/*
 * Fills element `row` of what `to` keeps, given the row's scores s[n],
 * softmax and e[n] = e^(s - m); sink -infinity: none. wide[MLA_WIDE_OUT]
 * holds the answer already, with the sink in it.
 */
void mla_terms_row(const mla_keys *keys, const double *q, const double *s,
                   const double *e, int64_t n, mla_softmax softmax, double sink,
                   void *scratch, const mla_row_sink *to, int64_t row);

/*
 * The same for a merged row: parts are keys, their log-sum-exps (natural,
 * live ones only) scores.
 */
int64_t mla_terms_merge_scratch(int64_t parts, int64_t width);
void mla_terms_merge(const double *parts, const double *lse,
                     const double *weight, int64_t live, double merged_lse,
                     double largest, double sink, void *scratch,
                     const mla_row_sink *to, int64_t row);

#endif
