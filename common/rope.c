/*
 * rope.c - rotary positions.
 */
#include "rope.h"

#include "dmath.h"
#include "dtype.h"
#include "error.h"

static const double pi = 3.14159265358979323846;

static double f32(double x) {
  return mla_round_to(MLA_F32, x);
}

/* ---------------------------------------------------------------- checking */

static int in_range(double x, double low, double high) {
  return x >= low && x <= high; /* false for NaN */
}

static mla_status check_yarn(const mla_rope *rope, mla_error *err) {
  const mla_status bad = MLA_INVALID_ARGUMENT;
  if (!in_range(rope->factor, 1e-6, 1e6)) {
    return mla_fail(err, bad, "factor", "factor is %g, from 1e-6 to 1e6",
                    rope->factor);
  }
  if (!in_range(rope->beta_slow, 1e-6, 1e6) ||
      !in_range(rope->beta_fast, 1e-6, 1e6)) {
    return mla_fail(err, bad, "beta_fast",
                    "beta_fast is %g and beta_slow %g, from 1e-6 to 1e6",
                    rope->beta_fast, rope->beta_slow);
  }
  if (!in_range(rope->mscale, 0, 1e6) ||
      !in_range(rope->mscale_all_dim, 0, 1e6)) {
    return mla_fail(err, bad, "mscale",
                    "mscale is %g and mscale_all_dim %g, from 0 to 1e6",
                    rope->mscale, rope->mscale_all_dim);
  }
  if (!in_range(rope->attention_factor, 0, 1e6)) {
    return mla_fail(err, bad, "attention_factor",
                    "attention_factor is %g, from 0 to 1e6",
                    rope->attention_factor);
  }
  if (rope->theta <= 1) {
    return mla_fail(err, bad, "rope_theta",
                    "rope_theta is %g, above 1 for YaRN", rope->theta);
  }
  return MLA_OK;
}

mla_status mla_rope_check(const mla_rope *rope, mla_error *err) {
  const mla_status bad = MLA_INVALID_ARGUMENT;
  if (rope->dim <= 0 || rope->dim % 2 != 0) {
    return mla_fail(err, bad, "qk_rope_head_dim",
                    "qk_rope_head_dim is %d, but pairs need an even number "
                    "above 0",
                    rope->dim);
  }
  if (!in_range(rope->theta, 1e-6, 1e18)) {
    return mla_fail(err, bad, "rope_theta",
                    "rope_theta is %g, from 1e-6 to 1e18", rope->theta);
  }
  if (rope->type != MLA_ROPE_PLAIN && rope->type != MLA_ROPE_YARN) {
    return mla_fail(err, bad, "rope_type", "rope_type %d is unknown",
                    rope->type);
  }
  if (rope->table != MLA_ROPE_TABLE_EXACT &&
      rope->table != MLA_ROPE_TABLE_F32) {
    return mla_fail(err, bad, "rope_table", "rope_table %d is unknown",
                    rope->table);
  }
  if (!in_range(rope->llama_4_beta, 0, 1e6)) {
    return mla_fail(err, bad, "llama_4_scaling_beta",
                    "llama_4_scaling_beta is %g, from 0 to 1e6",
                    rope->llama_4_beta);
  }
  int needs_original = rope->type == MLA_ROPE_YARN || rope->llama_4_beta > 0;
  if (needs_original && rope->original_max_position <= 0) {
    return mla_fail(err, bad, "original_max_position",
                    "original_max_position_embeddings is %lld, above 0",
                    (long long)rope->original_max_position);
  }
  return rope->type == MLA_ROPE_YARN ? check_yarn(rope, err) : MLA_OK;
}

/* ------------------------------------------------------------- frequencies */

/* The dimension that turns `turns` times within the original length. */
static double ramp_bound(const mla_rope *rope, double turns) {
  double length = (double)rope->original_max_position;
  return rope->dim * mla_log(length / (2 * pi * turns)) /
         (2 * mla_log(rope->theta));
}

static void ramp_bounds(const mla_rope *rope, double *low, double *high) {
  *low = ramp_bound(rope, rope->beta_fast);
  *high = ramp_bound(rope, rope->beta_slow);
  if (!rope->no_truncation) {
    *low = mla_floor(*low);
    *high = -mla_floor(-*high);
  }
  if (*low < 0) *low = 0;
  if (*high > rope->dim - 1) *high = rope->dim - 1;
}

/* 0: the frequency stays; 1: it is divided by factor. */
static double ramp_at(double low, double high, int32_t i) {
  double width = high - low > 0.001 ? high - low : 0.001;
  double ramp = (i - low) / width;
  return ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
}

void mla_rope_frequencies(const mla_rope *rope, double *f) {
  double low = 0, high = 0;
  if (rope->type == MLA_ROPE_YARN) ramp_bounds(rope, &low, &high);
  for (int32_t i = 0; i < rope->dim / 2; i++) {
    f[i] = mla_pow(rope->theta, -2.0 * i / rope->dim);
    if (rope->type == MLA_ROPE_YARN) {
      double ramp = ramp_at(low, high, i);
      f[i] = ramp * f[i] / rope->factor + (1 - ramp) * f[i];
    }
    if (rope->table == MLA_ROPE_TABLE_F32) f[i] = f32(f[i]);
  }
}

/* ------------------------------------------------------------------ scales */

static double magnitude(const mla_rope *rope, double x) {
  return rope->factor <= 1 ? 1 : 0.1 * x * mla_log(rope->factor) + 1;
}

double mla_rope_attention_factor(const mla_rope *rope) {
  if (rope->attention_factor > 0) return rope->attention_factor;
  if (rope->type != MLA_ROPE_YARN) return 1;
  if (rope->mscale == 0 || rope->mscale_all_dim == 0) {
    return magnitude(rope, 1);
  }
  return magnitude(rope, rope->mscale) / magnitude(rope, rope->mscale_all_dim);
}

double mla_rope_softmax_factor(const mla_rope *rope) {
  if (rope->type != MLA_ROPE_YARN || rope->mscale_all_dim == 0) return 1;
  double m = magnitude(rope, rope->mscale_all_dim);
  return m * m;
}

double mla_rope_query_scale(const mla_rope *rope, int64_t position) {
  if (rope->llama_4_beta == 0) return 1;
  int64_t lengths = position / rope->original_max_position;
  return 1 + rope->llama_4_beta * mla_log1p((double)lengths);
}

/* ---------------------------------------------------------------- rotation */

void mla_rope_angles(const mla_rope *rope, const double *f, int64_t position,
                     double *cosine, double *sine) {
  double factor = mla_rope_attention_factor(rope);
  int rounds = rope->table == MLA_ROPE_TABLE_F32;
  for (int32_t i = 0; i < rope->dim / 2; i++) {
    double angle = (double)position * f[i];
    if (rounds) angle = f32(angle);
    cosine[i] = mla_cos(angle);
    sine[i] = mla_sin(angle);
    if (rounds) {
      cosine[i] = f32(f32(cosine[i]) * f32(factor));
      sine[i] = f32(f32(sine[i]) * f32(factor));
    } else {
      cosine[i] *= factor;
      sine[i] *= factor;
    }
  }
}

void mla_rope_rotate(const mla_rope *rope, const double *cosine,
                     const double *sine, void *data, int32_t dtype,
                     int64_t offset) {
  int32_t half = rope->dim / 2;
  for (int32_t i = 0; i < half; i++) {
    int64_t first = offset + (rope->half_split ? i : 2 * i);
    int64_t second = first + (rope->half_split ? half : 1);
    double x = mla_get(data, dtype, first);
    double y = mla_get(data, dtype, second);
    mla_put(data, dtype, first, x * cosine[i] - y * sine[i]);
    mla_put(data, dtype, second, y * cosine[i] + x * sine[i]);
  }
}
