/*
 * generate_plain.c - weights, rows of activations, parts to merge.
 */
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "generate.h"
#include "tensor.h"

/* Runs over all rows (index of all axes but the last) of a tensor. */
typedef struct row_walk {
  const mla_tensor *t;
  int64_t row, rows, offset;
} row_walk;

static row_walk first_row(const mla_tensor *t) {
  row_walk w = {t, 0, t->data ? 1 : 0, 0};
  for (int32_t a = 0; a + 1 < t->rank; a++) w.rows *= t->shape[a];
  return w;
}

static int next_row(row_walk *w) {
  if (w->row >= w->rows) return 0;
  int64_t rest = w->row++;
  w->offset = 0;
  for (int32_t a = w->t->rank - 2; a >= 0; a--) {
    w->offset += rest % w->t->shape[a] * w->t->stride[a];
    rest /= w->t->shape[a];
  }
  return 1;
}

/* Every element from the slot's own stream under the case's distribution. */
static void fill_rows(mla_gen *g, int32_t slot) {
  const mla_tensor *t = &g->v->tensor[slot];
  row_walk w = first_row(t);
  mla_rng rng = mla_gen_stream(g, mla_slot_name(slot));
  while (next_row(&w)) {
    int64_t width = t->shape[t->rank - 1], first = (w.row - 1) * width;
    for (int64_t d = 0; d < width; d++)
      mla_put(t->data, t->dtype, w.offset + d,
              mla_gen_value(g, rng, first + d, d));
  }
}

/* What a writer with scales must quantise: the columns of an entry, of which
   the slot has those from `column` on. */
static void fill_tokens(mla_gen *g, int32_t slot, int64_t column) {
  const mla_tensor *t = &g->v->tensor[slot];
  mla_rng rng = mla_gen_stream(g, mla_slot_name(slot));
  int edge = g->c->num[MLA_K_DIST] == MLA_DIST_EDGE;
  for (int64_t token = 0; token < t->shape[0]; token++)
    for (int64_t d = 0; d < t->shape[1]; d++) {
      int64_t i = token * t->shape[1] + d;
      double x = edge
                     ? mla_gen_edge_value(g, rng, token, column + d)
                     : mla_gen_value(g, rng, i, d) *
                           mla_gen_amplitude(g, MLA_T_CACHE, token, column + d);
      mla_put(t->data, t->dtype, mla_at2(t, token, d), x);
    }
}

static void fill_written(mla_gen *g) {
  if (!g->rows.layout.quantised) {
    fill_rows(g, MLA_T_KV_C);
    fill_rows(g, MLA_T_K_PE);
    return;
  }
  fill_tokens(g, MLA_T_KV_C, 0);
  if (g->v->tensor[MLA_T_K_PE].data)
    fill_tokens(g, MLA_T_K_PE, g->v->problem.kv_lora_rank);
}

/* A weight: integers where nothing may round, else the bell times factor,
   whatever the activations are like. */
static void fill_weight(mla_gen *g, int32_t slot, double factor) {
  const mla_tensor *t = &g->v->tensor[slot];
  row_walk w = first_row(t);
  mla_rng rng = mla_gen_stream(g, mla_slot_name(slot));
  int exact = g->c->num[MLA_K_DIST] == MLA_DIST_EXACT;
  while (next_row(&w)) {
    int64_t width = t->shape[t->rank - 1], first = (w.row - 1) * width;
    for (int64_t d = 0; d < width; d++) {
      double x = exact ? mla_gen_value(g, rng, first + d, d)
                       : mla_rng_bell(rng, (uint64_t)(first + d)) * factor;
      mla_put(t->data, t->dtype, w.offset + d, x);
    }
  }
}

/*
 * kv_b_proj where nothing may round: each row takes one latent, with a sign,
 * so that up-projected values are the latents' integers.
 */
static void fill_selection(mla_gen *g) {
  const mla_tensor *t = &g->v->tensor[MLA_T_KV_B_PROJ];
  mla_rng rng = mla_gen_stream(g, "selection");
  for (int64_t r = 0; r < t->shape[0]; r++) {
    uint64_t bits = mla_rng_bits(rng, (uint64_t)r);
    int64_t column = (int64_t)(bits >> 1) % t->shape[1];
    if (column < 0) column += t->shape[1];
    for (int64_t l = 0; l < t->shape[1]; l++)
      mla_put(t->data, t->dtype, mla_at2(t, r, l),
              l != column ? 0
              : bits & 1  ? 1
                          : -1);
  }
}

/* Codes over most of their range, and scales that differ from block to block,
   which make of them weights of the same size as others. */
static void fill_scaled(mla_gen *g, int32_t slot, int32_t scale_slot,
                        double factor) {
  const mla_tensor *t = &g->v->tensor[scale_slot];
  mla_rng rng = mla_gen_stream(g, mla_slot_name(scale_slot));
  int exact = g->c->num[MLA_K_DIST] == MLA_DIST_EXACT;
  fill_weight(g, slot, 64);
  for (int64_t r = 0; r < t->shape[0]; r++)
    for (int64_t c = 0; c < t->shape[1]; c++) {
      uint32_t k = mla_rng_below(rng, (uint64_t)(r * t->shape[1] + c), 97);
      double scale = exact ? mla_ldexp(1, (int)(k % 3) - 1)
                           : factor / 64 * (0.5 + (double)k / 64);
      mla_put(t->data, t->dtype, mla_at2(t, r, c), scale);
    }
}

/* Weights are 2^-e of the bell, so that products keep the rows' size. */
static void fill_weights(mla_gen *g) {
  static const struct {
    int32_t slot;
    int axis; /* summed over: counted from the end, 1 the last */
    int32_t scale;
  } table[] = {{MLA_T_KV_B_PROJ, 1, MLA_T_KV_B_SCALE},
               {MLA_T_W_UK, 2, 0},
               {MLA_T_W_UV, 1, 0},
               {MLA_T_B, 1, 0},
               {MLA_T_Q_B_PROJ, 1, MLA_T_Q_B_SCALE},
               {MLA_T_O_PROJ, 1, MLA_T_O_SCALE}};
  int exact = g->c->num[MLA_K_DIST] == MLA_DIST_EXACT;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    const mla_tensor *t = &g->v->tensor[table[i].slot];
    if (!t->data || g->v->role[table[i].slot] != MLA_ROLE_IN) continue;
    double factor = mla_gen_weight_scale(t->shape[t->rank - table[i].axis]);
    if (table[i].scale && g->v->tensor[table[i].scale].data)
      fill_scaled(g, table[i].slot, table[i].scale, factor);
    else
      fill_weight(g, table[i].slot, factor);
  }
  if (exact && g->c->op == MLA_OP_PREFILL) fill_selection(g);
}

/* ------------------------------------------------------------------ merge */

/* 0: the part counts; else the sign of its infinite lse. */
static int is_nothing(const mla_gen *g, int64_t part, int64_t row) {
  const mla_tensor *t = &g->v->tensor[MLA_T_PARTS];
  mla_rng rng = mla_gen_stream(g, "empty");
  uint64_t i = (uint64_t)(row * t->shape[0] + part);
  int sign = mla_rng_bits(rng, 2 * i) & 1 ? 1 : -1;
  switch (g->c->num[MLA_K_EMPTY]) {
    case MLA_EMPTY_SOME:
      return mla_rng_below(rng, 2 * i + 1, 3) == 0 ? sign : 0;
    case MLA_EMPTY_FIRST: return part == 0 ? sign : 0;
    case MLA_EMPTY_ROWS: return row % 2 == 0 ? sign : 0;
    case MLA_EMPTY_ALL: return sign;
    default: return 0;
  }
}

static double part_lse(const mla_gen *g, int64_t part, int64_t row,
                       int64_t rows) {
  mla_rng rng = mla_gen_stream(g, "part_lses");
  int exact = g->c->num[MLA_K_DIST] == MLA_DIST_EXACT;
  int64_t i = exact ? row : part * rows + row;
  return mla_rng_bell(rng, (uint64_t)i) * g->c->real[MLA_K_AMP] + 3;
}

/* One part of one row; an empty one's values stay poison. */
static void fill_part(mla_gen *g, int64_t part, int64_t n, int64_t h) {
  const mla_tensor *t = &g->v->tensor[MLA_T_PARTS];
  const mla_tensor *l = &g->v->tensor[MLA_T_PART_LSES];
  mla_rng rng = mla_gen_stream(g, "parts");
  int64_t row = n * t->shape[2] + h, rows = t->shape[1] * t->shape[2];
  int64_t width = t->shape[3], at = mla_at4(t, part, n, h, 0);
  int nothing = is_nothing(g, part, row);
  int nan = g->c->num[MLA_K_DIST] == MLA_DIST_NAN && part == 1;
  double lse = nothing ? nothing * mla_inf() : part_lse(g, part, row, rows);
  if (nan && !nothing && row % 3 == 0) lse = mla_nan();
  mla_put(l->data, l->dtype, mla_at3(l, part, n, h), lse);
  for (int64_t d = 0; d < width && !nothing; d++) {
    double x = mla_gen_value(g, rng, (part * rows + row) * width + d, d);
    if (nan && row % 3 == 1 && d == width / 2) x = mla_nan();
    mla_put(t->data, t->dtype, at + d, x);
  }
}

static void fill_parts(mla_gen *g) {
  const mla_tensor *t = &g->v->tensor[MLA_T_PARTS];
  if (!t->data) return;
  for (int64_t s = 0; s < t->shape[0]; s++)
    for (int64_t n = 0; n < t->shape[1]; n++)
      for (int64_t h = 0; h < t->shape[2]; h++) fill_part(g, s, n, h);
}

/* Copies move bytes, whatever they mean. */
static void fill_source(mla_gen *g) {
  mla_tensor *t = &g->v->tensor[MLA_T_SRC_CACHE];
  if (!t->data || g->v->alias[MLA_T_SRC_CACHE] >= 0) return;
  mla_gen_bytes(mla_gen_stream(g, "src_cache"), t);
}

void mla_gen_plain(mla_gen *g) {
  fill_weights(g);
  switch (g->c->op) {
    case MLA_OP_KV_WRITE: fill_written(g); break;
    case MLA_OP_KV_COPY: fill_source(g); break;
    case MLA_OP_Q_ABSORB: fill_rows(g, MLA_T_Q_NOPE); break;
    case MLA_OP_V_EXPAND: fill_rows(g, MLA_T_O_LATENT); break;
    case MLA_OP_MATMUL: fill_rows(g, MLA_T_A); break;
    case MLA_OP_MERGE: fill_parts(g); break;
    default: break;
  }
}
