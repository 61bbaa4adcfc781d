#include "oracle_terms.h"

#include <stdlib.h>

#include "dmath.h"

/* The norms of docs/tolerance.md: root of the squares plus the squared sums
   of keys whose scores lie within 2^-9. */
enum { NORM_A, NORM_B, NORM_NU, NORM_R1, NORM_R2, NORM_COUNT };
#define BINS_PER_UNIT 512.0
#define LARGEST_BIN ((int64_t)1 << 62)

typedef struct keyed {
  int64_t bin, j;
} keyed;

/* Working memory of a row. */
typedef struct work {
  keyed *order;                          /* [n], by bin */
  double *p, *r, *r1, *r2, *z;           /* [n] */
  double *square[NORM_COUNT];            /* [dv] */
  double *bin[NORM_COUNT];               /* [dv] */
  double *sum_m, *sum_s, *sum_g, *sum_z; /* [dv] */
  double c_square[NORM_COUNT], c_bin[NORM_COUNT];
} work;

/* What the sums run over. */
typedef struct weighted {
  int64_t n, dv;
  const double *v, *nu;
  int64_t v_stride;
  const double *s, *e;
  double tiny;
  int subnormal_v, up_projected;
} weighted;

static double magnitude(double x) {
  return x < 0 ? -x : x;
}

static int64_t scratch_bytes(int64_t n, int64_t dv) {
  return n * (int64_t)sizeof(keyed) +
         (5 * n + (2 * NORM_COUNT + 4) * dv) * (int64_t)sizeof(double);
}

int64_t mla_terms_scratch(const mla_keys *keys, int64_t n) {
  return scratch_bytes(n, keys->dv);
}

static double *take(double **from, int64_t count) {
  double *at = *from;
  *from += count;
  return at;
}

static void lay_out(work *w, void *scratch, int64_t n, int64_t dv) {
  w->order = scratch;
  double *next = (double *)(void *)(w->order + n);
  w->p = take(&next, n);
  w->r = take(&next, n);
  w->r1 = take(&next, n);
  w->r2 = take(&next, n);
  w->z = take(&next, n);
  double *zeroed = next;
  for (int i = 0; i < NORM_COUNT; i++) {
    w->square[i] = take(&next, dv);
    w->bin[i] = take(&next, dv);
    w->c_square[i] = w->c_bin[i] = 0;
  }
  w->sum_m = take(&next, dv);
  w->sum_s = take(&next, dv);
  w->sum_g = take(&next, dv);
  w->sum_z = take(&next, dv);
  while (zeroed < next) *zeroed++ = 0;
}

/* How far rounding may move each score, in units of the roundoffs. */
static void score_terms(const mla_keys *keys, const double *q, const double *s,
                        int64_t n, work *w) {
  int64_t nope = keys->nope, rest = keys->d - nope;
  double root_latent = mla_sqrt((double)keys->latent);
  int flushed =
      keys->subnormal_k || mla_has_subnormal(q, 1, keys->d, 0, keys->tiny);
  for (int64_t j = 0; j < n; j++) {
    const double *k = keys->k + j * keys->k_stride;
    double t = keys->cap > 0 ? s[j] / keys->cap : 0; /* tanh */
    double slope = keys->scale * (1 - t * t);
    double up = mla_dot_squares(q, k, nope);
    double all = up + mla_dot_squares(q + nope, k + nope, rest);
    w->r[j] = slope * mla_sqrt(all) + magnitude(s[j]);
    w->r1[j] = w->r2[j] = w->z[j] = 0;
    if (nope) {
      double kap = mla_dot_squares(q, keys->kap + j * nope, nope);
      w->r1[j] = slope * mla_sqrt(up);
      w->r2[j] = slope * root_latent * mla_sqrt(kap);
    }
    if (flushed) w->z[j] = slope * mla_dot_flushed(q, k, keys->d, keys->tiny);
  }
}

static int64_t bin_of(double below) {
  double bin = mla_floor(below * BINS_PER_UNIT);
  if (!(bin > 0)) return 0;
  return bin < (double)LARGEST_BIN ? (int64_t)bin : LARGEST_BIN;
}

static int by_bin(const void *left, const void *right) {
  const keyed *a = left, *b = right;
  if (a->bin != b->bin) return a->bin < b->bin ? -1 : 1;
  return a->j < b->j ? -1 : a->j > b->j;
}

static void add_norm(work *w, int norm, double weight, const double *v,
                     int64_t dv) {
  double *restrict square = w->square[norm], *restrict bin = w->bin[norm];
  for (int64_t d = 0; d < dv; d++) {
    double x = weight * v[d];
    square[d] += x * x;
    bin[d] += x;
  }
  w->c_square[norm] += weight * weight;
  w->c_bin[norm] += weight;
}

/* A key alone in its bin: its square, and the bin's. */
static void add_lone(work *w, int norm, double weight, const double *v,
                     int64_t dv) {
  double *restrict square = w->square[norm];
  for (int64_t d = 0; d < dv; d++) {
    double x = weight * v[d];
    square[d] += 2 * (x * x);
  }
  w->c_square[norm] += 2 * (weight * weight);
}

static void close_bin(work *w, int norm, int64_t dv) {
  double *restrict square = w->square[norm], *restrict bin = w->bin[norm];
  for (int64_t d = 0; d < dv; d++) {
    square[d] += bin[d] * bin[d];
    bin[d] = 0;
  }
  w->c_square[norm] += w->c_bin[norm] * w->c_bin[norm];
  w->c_bin[norm] = 0;
}

static void add_sums(work *w, const weighted *x, int64_t j) {
  const double *v = x->v + j * x->v_stride;
  double *restrict m = w->sum_m, *restrict s = w->sum_s;
  double p = w->p[j], ps = p * x->s[j];
  for (int64_t d = 0; d < x->dv; d++) {
    m[d] += p * (v[d] < 0 ? -v[d] : v[d]);
    s[d] += ps * v[d];
  }
  if (x->e[j] >= 0x1p-14) return;
  for (int64_t d = 0; d < x->dv; d++) w->sum_g[d] += v[d] < 0 ? -v[d] : v[d];
}

/* What flushing moves: a score by z, a subnormal value to 0. */
static void add_flushed(work *w, const weighted *x, int64_t j) {
  const double *v = x->v + j * x->v_stride;
  double p = w->p[j], pz = p * w->z[j];
  for (int64_t d = 0; d < x->dv; d++) {
    double size = magnitude(v[d]);
    w->sum_z[d] += size < x->tiny ? (p + pz) * size : pz * size;
  }
}

typedef void (*add_function)(work *w, int norm, double weight, const double *v,
                             int64_t dv);

static void add_key(work *w, const weighted *x, int64_t j, int lone) {
  add_function add = lone ? add_lone : add_norm;
  const double *v = x->v + j * x->v_stride;
  double p = w->p[j];
  add(w, NORM_A, p, v, x->dv);
  add(w, NORM_B, p * w->r[j], v, x->dv);
  if (x->up_projected) {
    add(w, NORM_NU, p, x->nu + j * x->dv, x->dv);
    add(w, NORM_R1, p * w->r1[j], v, x->dv);
    add(w, NORM_R2, p * w->r2[j], v, x->dv);
  }
  add_sums(w, x, j);
  if (x->subnormal_v || w->z[j] != 0) add_flushed(w, x, j);
}

static void add_keys(work *w, const weighted *x) {
  int norms = x->up_projected ? NORM_COUNT : NORM_NU;
  for (int64_t i = 0; i < x->n; i++) {
    int64_t bin = w->order[i].bin;
    int begins = i == 0 || w->order[i - 1].bin != bin;
    int ends = i + 1 == x->n || w->order[i + 1].bin != bin;
    add_key(w, x, w->order[i].j, begins && ends);
    for (int k = 0; k < norms && ends && !begins; k++) close_bin(w, k, x->dv);
  }
}

static void put_wide(const mla_row_sink *sink, int wide, int64_t row, int64_t d,
                     double value) {
  if (sink->wide[wide]) sink->wide[wide][row * sink->width + d] = value;
}

static void put_all(const work *w, const weighted *x, const mla_row_terms *t,
                    double sum, double root_latent, const mla_row_sink *sink,
                    int64_t row) {
  const double *out = sink->wide[MLA_WIDE_OUT] + row * sink->width;
  double sum_ps = 0, keep = t->keep;
  for (int64_t j = 0; j < x->n; j++) sum_ps += w->p[j] * x->s[j];
  for (int64_t d = 0; d < x->dv; d++) {
    double f = keep * (w->sum_s[d] - out[d] * sum_ps);
    double z = keep * (w->sum_z[d] + magnitude(out[d]) * t->z);
    put_wide(sink, MLA_WIDE_A, row, d, keep * mla_sqrt(w->square[NORM_A][d]));
    put_wide(sink, MLA_WIDE_B, row, d, keep * mla_sqrt(w->square[NORM_B][d]));
    put_wide(sink, MLA_WIDE_F, row, d, magnitude(f));
    put_wide(sink, MLA_WIDE_M, row, d, keep * w->sum_m[d]);
    put_wide(sink, MLA_WIDE_G, row, d, keep * w->sum_g[d] / sum);
    put_wide(sink, MLA_WIDE_Z, row, d, z);
    if (!x->up_projected) continue;
    /* Absorbed, the sink's part is taken off before the product: what that
       rounds to next to nothing is as large with a sink as without. */
    put_wide(sink, MLA_WIDE_R1, row, d,
             keep * mla_sqrt(w->square[NORM_R1][d]) + x->tiny);
    put_wide(sink, MLA_WIDE_R2, row, d, keep * mla_sqrt(w->square[NORM_R2][d]));
    put_wide(sink, MLA_WIDE_NU, row, d,
             root_latent * (keep * mla_sqrt(w->square[NORM_NU][d]) + 0x1p-126));
  }
}

/* Fills what the sums give; n, d, m, lse, keep stand already. */
static void finish(work *w, const weighted *x, mla_row_terms *t, double sum,
                   double latent, const mla_row_sink *sink, int64_t row) {
  double sum_ps = 0;
  t->z = 0;
  for (int64_t j = 0; j < x->n; j++) {
    w->order[j].bin = bin_of(t->m - x->s[j]);
    w->order[j].j = j;
    w->p[j] = x->e[j] / sum;
    sum_ps += w->p[j] * x->s[j];
    t->z += w->p[j] * w->z[j];
  }
  qsort(w->order, (size_t)x->n, sizeof *w->order, by_bin);
  add_keys(w, x);
  t->e = magnitude(sum_ps);
  t->c = mla_sqrt(w->c_square[NORM_B]);
  t->r1 = mla_sqrt(w->c_square[NORM_R1]);
  t->r2 = mla_sqrt(w->c_square[NORM_R2]);
  put_all(w, x, t, sum, mla_sqrt(latent), sink, row);
  sink->terms[row] = *t;
}

/* A sink is a key without a product and without a value: its weight's exponent
   rounds like that of a merged part. */
static void sink_terms(mla_row_terms *t, double sink) {
  t->keep = mla_sink_keep(t->lse, sink);
  if (mla_isinf(sink) || !(t->n > 0)) return;
  t->sink = (1 - t->keep) * (1 + magnitude(sink) + magnitude(sink - t->lse));
  t->rise = sink > t->m ? sink - t->m : 0;
}

void mla_terms_row(const mla_keys *keys, const double *q, const double *s,
                   const double *e, int64_t n, mla_softmax softmax, double sink,
                   void *scratch, const mla_row_sink *to, int64_t row) {
  work w;
  weighted x = {0};
  x.n = n;
  x.dv = keys->dv;
  x.v = keys->v;
  x.nu = keys->nu;
  x.v_stride = keys->v_stride;
  x.s = s;
  x.e = e;
  x.tiny = keys->tiny;
  x.subnormal_v = keys->subnormal_v;
  x.up_projected = keys->nope > 0;
  mla_row_terms t = {0};
  t.n = (double)n;
  t.d = (double)keys->d;
  t.m = softmax.m;
  t.lse = softmax.lse;
  sink_terms(&t, sink);
  lay_out(&w, scratch, n, keys->dv);
  score_terms(keys, q, s, n, &w);
  finish(&w, &x, &t, softmax.sum, (double)keys->latent, to, row);
}

int64_t mla_terms_merge_scratch(int64_t parts, int64_t width) {
  return scratch_bytes(parts, width);
}

void mla_terms_merge(const double *parts, const double *lse,
                     const double *weight, int64_t live, double merged_lse,
                     double largest, double sink, void *scratch,
                     const mla_row_sink *to, int64_t row) {
  work w;
  weighted x = {0};
  x.n = live;
  x.dv = x.v_stride = to->width;
  x.v = parts;
  x.s = lse;
  x.e = weight;
  mla_row_terms t = {0};
  double sum = 0;
  t.n = (double)live;
  t.d = 1;
  t.m = largest;
  t.lse = merged_lse;
  sink_terms(&t, sink);
  lay_out(&w, scratch, live, to->width);
  for (int64_t i = 0; i < live; i++) {
    w.r[i] = 1 + magnitude(lse[i]) + magnitude(lse[i] - largest);
    w.r1[i] = w.r2[i] = w.z[i] = 0;
    sum += weight[i];
  }
  finish(&w, &x, &t, sum, 0, to, row);
}
