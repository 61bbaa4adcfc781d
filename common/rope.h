/*
 * rope.h - rotary positions: tables, scales, the rotation (docs/layer.md).
 *
 * The pairing of dimensions and the precision of the tables are data, not
 * code: models differ in the first, published implementations in the second.
 */
#ifndef MLA_ROPE_H
#define MLA_ROPE_H

#include "mla/mla.h"

typedef enum mla_rope_type {
  MLA_ROPE_PLAIN = 0, /* f_i = theta^(-2i/R) */
  MLA_ROPE_YARN = 1   /* slow frequencies divided by factor */
} mla_rope_type;

typedef enum mla_rope_table {
  MLA_ROPE_TABLE_EXACT = 0, /* binary64 throughout */
  MLA_ROPE_TABLE_F32 = 1    /* f_i, position * f_i, cos and sin each rounded
                               to f32, as common model code does */
} mla_rope_table;

/* Positions from 0 to this, where the exact table is good to 1e-9 rad. */
#define MLA_ROPE_MAX_POSITION ((int64_t)1 << 20)

/* Zeroed: plain, exact, interleaved. Members after theta are YaRN's. */
typedef struct mla_rope {
  int32_t type;       /* mla_rope_type */
  int32_t table;      /* mla_rope_table */
  int32_t half_split; /* pairs (i, i + R/2); else (2i, 2i + 1) */
  int32_t dim;        /* R, even */
  double theta;
  double factor;
  double beta_fast;
  double beta_slow;
  double mscale;                 /* 0: absent */
  double mscale_all_dim;         /* 0: absent */
  double attention_factor;       /* on cos and sin, in place of the rule; 0: the
                                    rule */
  int32_t no_truncation;         /* bounds of the ramp are not made whole */
  int64_t original_max_position; /* of YaRN and of the query scaling */
  double llama_4_beta;           /* query scaling; 0: none */
} mla_rope;

/* INVALID_ARGUMENT with a sentence: an odd dim, theta <= 0 ... */
mla_status mla_rope_check(const mla_rope *rope, mla_error *err);

/* f[R/2]: radians a position; rounded to f32 when the table is. */
void mla_rope_frequencies(const mla_rope *rope, double *f);
/* What cos and sin are multiplied by; 1 unless YaRN. */
double mla_rope_attention_factor(const mla_rope *rope);
/* What (P + R)^-1/2 is multiplied by; 1 unless YaRN with mscale_all_dim. */
double mla_rope_softmax_factor(const mla_rope *rope);
/* What q at a position is multiplied by; 1 unless llama_4_beta. */
double mla_rope_query_scale(const mla_rope *rope, int64_t position);

/* cosine[R/2], sine[R/2] at a position, the attention factor included. */
void mla_rope_angles(const mla_rope *rope, const double *f, int64_t position,
                     double *cosine, double *sine);
/*
 * Rotates the R elements from `offset` on, in place, in binary64 with one
 * rounding to dtype. Values stay where they are: with interleaved pairs the
 * result is (x0', x1', x2', ...), not sorted into even and odd as some model
 * code leaves it. Caches hold k_pe in this order; scores do not depend on it
 * as long as q and k agree.
 */
void mla_rope_rotate(const mla_rope *rope, const double *cosine,
                     const double *sine, void *data, int32_t dtype,
                     int64_t offset);

#endif
