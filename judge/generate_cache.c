/*
 * generate_cache.c - entries of caches, and data that shows a wrong scale.
 *
 * A reader that takes another tile's or token's scale, or none, must be seen:
 * tiles differ in amplitude by factors of two and more, and so do tokens where
 * a token has one scale. Queries are larger where keys are smaller, so that
 * each tile has its share of the scores.
 */
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "generate.h"
#include "tensor.h"

static const mla_cache_rows *rows_of(const mla_gen *g, int32_t slot) {
  if (slot == MLA_T_EXTRA_CACHE) return &g->x_rows;
  return slot == MLA_T_V_CACHE ? &g->v_rows : &g->rows;
}

void mla_gen_caches(mla_gen *g) {
  const mla_problem *p = &g->v->problem;
  mla_args args = mla_vector_args(g->v);
  if (!g->v->tensor[MLA_T_CACHE].data) return;
  g->rows = mla_cache_rows_of(p, &args, MLA_T_CACHE, p->q_dtype, 0);
  if (p->flags & MLA_SEPARATE_V)
    g->v_rows = mla_cache_rows_of(p, &args, MLA_T_V_CACHE, p->q_dtype, 0);
  if (p->flags & MLA_EXTRA_CACHE)
    g->x_rows = mla_cache_rows_of(p, &args, MLA_T_EXTRA_CACHE, p->q_dtype, 0);
}

/* ------------------------------------------------------------- amplitudes */

static int varies(const mla_gen *g) {
  switch (g->c->num[MLA_K_DIST]) {
    case MLA_DIST_EXACT:
    case MLA_DIST_EDGE: return 0;
    default: return 1;
  }
}

double mla_gen_amplitude(const mla_gen *g, int32_t slot, int64_t token,
                         int64_t column) {
  static const double factor[] = {1, 0.25, 0.5, 0.125};
  const mla_cache_layout *x = &rows_of(g, slot)->layout;
  if (x->scale == MLA_DTYPE_NONE || column >= x->codes || !varies(g)) return 1;
  return factor[(x->tile == x->codes ? token : column / x->tile) & 3];
}

/* ---------------------------------------------------------------- entries */

/* Powers of two, so that codes of integers stay exact; of no order that
   neighbours share. */
static void exact_scales(const mla_cache_layout *x, int64_t token,
                         double *scale) {
  for (int64_t t = 0; t < x->codes / x->tile; t++)
    scale[t] = mla_ldexp(1, (int)((token + t) % 3) - 1);
}

void mla_gen_put_entry(mla_gen *g, int32_t slot, int64_t slot_at,
                       int64_t kv_head, int64_t token, const double *values) {
  const mla_cache_rows *rows = rows_of(g, slot);
  const mla_tensor *t = rows->cache;
  int64_t page = t->shape[1], block = slot_at / page, at = slot_at % page;
  int exact = g->c->num[MLA_K_DIST] == MLA_DIST_EXACT;
  int pow2 = rows->layout.format == MLA_CACHE_FP8_584 || g->c->num[MLA_K_POW2];
  if (!rows->layout.quantised) {
    int64_t offset = mla_at2(t, block, at);
    if (t->rank == 4) offset += kv_head * t->stride[2];
    mla_gen_put_row(g, slot, offset, values, rows->layout.width);
    return;
  }
  if (exact && rows->layout.scale) exact_scales(&rows->layout, token, g->scale);
  mla_cache_store(rows, block, at, kv_head, values, exact ? g->scale : NULL,
                  pow2);
}

/* Scales that no writer of ours would choose, all of them lawful to read. */
static double edge_scale(const mla_cache_layout *x, uint64_t bits) {
  static const double f32[] = {
      0x1p-126, 1e-20, 0.3333333432674408, 1, 448, 3e38, 0x1p-13, 1.5e-5};
  if (x->scale == MLA_E8M0)
    return bits % 16 ? mla_ldexp(1, (int)(bits % 255) - 127) : mla_nan();
  return mla_round_to(MLA_F32, f32[bits & 7]);
}

/* Any codes, NaN among them, under any scales. */
void mla_gen_edge_entry(mla_gen *g, int64_t slot_at, mla_rng rng,
                        int64_t token) {
  const mla_cache_rows *rows = &g->rows;
  const mla_cache_layout *x = &rows->layout;
  int64_t page = rows->cache->shape[1];
  mla_cache_place place =
      mla_cache_find(rows->cache, x, slot_at / page, slot_at % page, 0);
  uint64_t at = (uint64_t)(token * (x->width + 1));
  for (int64_t i = 0; i < x->width; i++) g->row[i] = 1;
  mla_cache_store(rows, slot_at / page, slot_at % page, 0, g->row, NULL, 0);
  int64_t bytes = (x->codes * mla_dtype_bits(x->code) + 7) / 8;
  for (int64_t i = 0; i < bytes; i++)
    place.row[i] = (unsigned char)mla_rng_bits(rng, at + (uint64_t)i);
  unsigned char *scales = place.side ? place.side : place.row + x->scale_at;
  for (int64_t t = 0; x->scale && t < x->codes / x->tile; t++)
    mla_put(scales, x->scale, t,
            edge_scale(x, mla_rng_bits(rng, at + (uint64_t)t) >> 32));
  for (int64_t i = x->codes; i < x->width; i++)
    mla_put(place.row + x->rest_at, MLA_BF16, i - x->codes,
            mla_rng_bell(rng, at + (uint64_t)i));
}

/* ---------------------------------------------------------- what is written */

static double largest(int32_t code) {
  return code == MLA_I8 ? 127 : code == MLA_I4 ? 7 : 448;
}

/* Half way between a code and the next. */
static double middle(int32_t code, uint64_t bits) {
  int count = code == MLA_I4 ? 7 : code == MLA_FP8_E5M2 ? 122 : 126;
  uint32_t low = (uint32_t)(bits % (uint64_t)count);
  double x = (mla_decode(code, low) + mla_decode(code, low + 1)) / 2;
  return bits >> 40 & 1 ? -x : x;
}

/* Round a dialect's largest code: where saturation begins. */
static double near_largest(int32_t code, uint64_t bits) {
  uint32_t last = code == MLA_FP8_E5M2 ? 0x7b : 0x7e;
  double most = mla_decode(code, code == MLA_FP8_E4M3FNUZ ? 0x7f : last);
  double x = most * (0.9 + (double)(bits & 0xff) / 1024);
  return bits >> 40 & 1 ? -x : x;
}

/* Under a scale that is given, anything may come: beyond the range, NaN. What
   is drawn from the highest bits is told from the others. */
static double edge_of_one(const mla_gen *g, uint64_t bits, double bell) {
  int32_t code = g->rows.layout.code;
  switch (bits >> 61) {
    case 0: return bell;
    case 1: return mla_gen_edge_any(bits & 0xffffff);
    case 2: return near_largest(code, bits) * g->rows.scale;
    default: return middle(code, bits) * g->rows.scale;
  }
}

/*
 * A token for a writer with a scale of its own: by turns tiles of ties under
 * a scale that is a power of two, of zeros, of one number above many that are
 * nothing beside it, of numbers below the least scale, of ordinary ones. No
 * NaN and no infinity: they leave a tile without a meaning.
 */
double mla_gen_edge_value(const mla_gen *g, mla_rng rng, int64_t token,
                          int64_t column) {
  const mla_cache_layout *x = &g->rows.layout;
  int64_t i = token * x->width + column, in_tile = column % x->tile;
  uint64_t bits = mla_rng_bits(rng, (uint64_t)i);
  double bell = mla_rng_bell(rng, (uint64_t)i);
  double unit = mla_ldexp(1, (int)(token % 7) - 5);
  if (!x->scale) return edge_of_one(g, bits, bell);
  if (column >= x->codes) return mla_gen_edge_number(bits & 0xffffff);
  switch ((token + column / x->tile) % 5) {
    case 0: return (in_tile ? middle(x->code, bits) : largest(x->code)) * unit;
    case 1: return bits & 1 ? 0.0 : -0.0;
    case 2: return in_tile == x->tile / 2 ? -30000 : bell * 0.01;
    case 3: return mla_ldexp(bell, -130);
    default: return bell;
  }
}
