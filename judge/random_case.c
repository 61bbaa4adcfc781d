/*
 * random_case.c - drawing a case, and making what was drawn agree.
 */
#include "random_case.h"

#include <stdio.h>

#include "case_types.h"
#include "dtype.h"
#include "op_table.h"
#include "problem_check.h"
#include "rng.h"

#define MOST_TRIES 96
#define LONGEST 1024
#define MOST_VALUES 64 /* operations, formats */

/* One try at one case. */
typedef struct drawing {
  uint64_t seed, index;
  int tries;
  mla_case *c;
  mla_rng rng; /* of the attribute that is drawn */
  uint64_t at;
} drawing;

/* Each attribute has a stream of its own: one more attribute changes no other
   draw. */
static void turn_to(drawing *g, const char *what) {
  char name[96];
  snprintf(name, sizeof name, "random/%llu/%d/%s", (unsigned long long)g->index,
           g->tries, what);
  g->rng = mla_rng_named(g->seed, name);
  g->at = 0;
}

static int64_t below(drawing *g, int64_t n) {
  return (int64_t)mla_rng_below(g->rng, g->at++, (uint32_t)(n > 1 ? n : 1));
}

static int happens(drawing *g, int64_t percent) {
  return below(g, 100) < percent;
}

/* 1 to most, each power of two as often as any other. */
static int64_t spread(drawing *g, int64_t most) {
  int bits = 0;
  while (most >> bits > 1) bits++;
  int64_t high = (int64_t)1 << below(g, bits + 1);
  int64_t x = high + below(g, high);
  return x > most ? most : x;
}

/* A value from 1 on, as often as its weight says. */
static int32_t weighted(drawing *g, int32_t (*weight)(int32_t)) {
  int64_t sum = 0;
  for (int32_t v = 1; v < MOST_VALUES; v++) sum += weight(v);
  int64_t x = below(g, sum);
  int32_t v = 1;
  while (x >= weight(v)) x -= weight(v++);
  return v;
}

/* ------------------------------------------------------------------ lists */

/* Later tries are smaller, so that one of them fits. */
static int64_t longest(const drawing *g) {
  int64_t n = LONGEST >> g->tries / 12;
  return n > 4 ? n : 4;
}

static int64_t near_multiple(drawing *g, int64_t of) {
  int64_t most = longest(g) / of;
  return of * (1 + below(g, most < 4 ? most : 4)) + below(g, 3) - 1;
}

static int64_t length(drawing *g) {
  int64_t n;
  switch (below(g, 8)) {
    case 0: n = below(g, 3); break;
    case 1:
    case 2: n = near_multiple(g, g->c->num[MLA_K_PAGE]); break;
    case 3:
    case 4: n = near_multiple(g, (int64_t)16 << below(g, 5)); break;
    default: n = spread(g, longest(g));
  }
  return n > LONGEST ? LONGEST : n;
}

static int64_t queries(drawing *g) {
  int64_t kind = below(g, 10);
  if (kind < 1) return 0;
  if (g->c->op == MLA_OP_PREFILL && kind < 7) return spread(g, longest(g) / 8);
  if (kind < 5) return 1;
  return kind < 9 ? 1 + below(g, 8) : 1 + below(g, 40);
}

static void draw_list(drawing *g, int key, int how) {
  mla_case_list *list = &g->c->list[mla_key_spec_of(key)->list];
  int64_t requests = g->c->num[MLA_K_REQUESTS];
  if (happens(g, 20)) requests = 1;
  list->count = (int32_t)requests;
  for (int64_t b = 0; b < requests; b++)
    list->value[b] =
        (int32_t)(how == MLA_AXIS_QUERIES ? queries(g) : length(g));
}

/* --------------------------------------------------------------- one value */

static int64_t any_word(drawing *g, const mla_key_spec *spec) {
  int64_t n = 0;
  if (!spec->words) return 1;
  while (spec->words[n]) n++;
  return n > 1 ? 1 + below(g, n - 1) : 0;
}

static void draw_key(drawing *g, const mla_key_use *use) {
  const mla_key_spec *spec = mla_key_spec_of(use->key);
  mla_axis axis = mla_axis_of(g->c->op, use->key);
  turn_to(g, spec->name);
  if (!happens(g, axis.chance)) return;
  int64_t *num = &g->c->num[use->key];
  switch (axis.how) {
    case MLA_AXIS_AMONG: *num = axis.values[below(g, axis.count)]; break;
    case MLA_AXIS_REALS:
      g->c->real[use->key] = axis.reals[below(g, axis.count)];
      break;
    case MLA_AXIS_UP_TO: *num = spread(g, axis.values[0]); break;
    case MLA_AXIS_ANY: *num = any_word(g, spec); break;
    default: draw_list(g, use->key, axis.how);
  }
}

/* ---------------------------------------------------- what must go together */

/* Packed entries hold tiles of 64 or 128 values and numbers of 4 bytes; where a
   block's scales follow its rows there are no gaps; index keys have no rope. */
static void agree_on_format(drawing *g) {
  int64_t *num = g->c->num, latent = num[MLA_K_LORA];
  int32_t format = mla_case_cache_format(g->c);
  if (format != MLA_CACHE_FP8_DS_MLA) num[MLA_K_POW2] = 0;
  if (mla_format_dtype(format) != MLA_DTYPE_NONE) return;
  num[MLA_K_GAP] -= num[MLA_K_GAP] % 4;
  if (num[MLA_K_STRIDES] == MLA_STRIDES_ODD)
    num[MLA_K_STRIDES] = MLA_STRIDES_PADDED;
  if (format == MLA_CACHE_FP8_INDEX || format == MLA_CACHE_FP8_584)
    num[MLA_K_STRIDES] = MLA_STRIDES_DENSE;
  if (latent % 128) num[MLA_K_LORA] = 128 * (1 + latent % 3);
  if (format == MLA_CACHE_FP8_INDEX) num[MLA_K_ROPE] = 0;
}

static void agree_on_heads(drawing *g) {
  int64_t *num = g->c->num;
  if (!mla_key_use_of(g->c->op, MLA_K_KV_HEADS)) return;
  if (!num[MLA_K_SEPARATE_V]) {
    mla_problem p;
    num[MLA_K_KV_HEADS] = 1;
    p = mla_case_problem(g->c);
    if (mla_problem_v_dim(&p) > mla_problem_head_dim(&p)) num[MLA_K_V_DIM] = 0;
    p = mla_case_problem(g->c);
    if (mla_problem_v_dim(&p) > mla_problem_head_dim(&p))
      num[MLA_K_HEAD_DIM] = 0;
    return;
  }
  int64_t kvh = num[MLA_K_KV_HEADS], group = num[MLA_K_HEADS] / kvh;
  num[MLA_K_HEADS] = kvh * (group ? group : 1);
}

static void agree_on_blocks(drawing *g) {
  int64_t *num = g->c->num, page = num[MLA_K_PAGE];
  if (g->c->op == MLA_OP_KV_WRITE)
    num[MLA_K_BLOCKS] += (num[MLA_K_TOKENS] - 1) / page;
  if (g->c->op == MLA_OP_KV_COPY) {
    int64_t targets = num[MLA_K_BLOCKS];
    if (num[MLA_K_WITHIN] && targets < 2) targets = num[MLA_K_BLOCKS] = 2;
    if (num[MLA_K_WITHIN]) targets /= 2, num[MLA_K_SRC_BLOCKS] = 0;
    num[MLA_K_COPIES] = 1 + (num[MLA_K_COPIES] - 1) % targets;
  }
  int64_t blocks = mla_case_sym(g->c, MLA_S_NB);
  if (num[MLA_K_GAP] * blocks > (int64_t)1 << 18) num[MLA_K_GAP] %= 68;
  if (g->c->op == MLA_OP_ABSORB) {
    if (num[MLA_K_FUSED_Q] && !num[MLA_K_Q_LORA]) num[MLA_K_Q_LORA] = 24;
    if (num[MLA_K_FUSED_O] && !num[MLA_K_HIDDEN]) num[MLA_K_HIDDEN] = 40;
    if (!num[MLA_K_FUSED_Q]) num[MLA_K_Q_LORA] = 0;
    if (!num[MLA_K_FUSED_O]) num[MLA_K_HIDDEN] = 0;
  }
}

static int64_t power_of_two(int64_t n) {
  int64_t p = 1;
  while (2 * p <= n) p *= 2;
  return n < 1 ? 0 : p;
}

/* dist=exact: every row sees a power of two of keys. */
static void agree_on_exactness(drawing *g) {
  mla_case *c = g->c;
  int64_t dist = c->num[MLA_K_DIST];
  if (dist != MLA_DIST_EXACT && dist != MLA_DIST_ONEHOT) return;
  c->num[MLA_K_SINK] = 0;
  c->real[MLA_K_CAP] = 0;
  if (dist != MLA_DIST_EXACT) return;
  if (c->op == MLA_OP_MERGE) {
    c->num[MLA_K_PARTS] = power_of_two(c->num[MLA_K_PARTS]);
    if (c->num[MLA_K_EMPTY] != MLA_EMPTY_ALL)
      c->num[MLA_K_EMPTY] = MLA_EMPTY_NONE;
  }
  if (c->op != MLA_OP_DECODE && c->op != MLA_OP_PREFILL) return;
  mla_case_list *q = &c->list[mla_key_spec_of(MLA_K_Q)->list];
  mla_case_list *n =
      &c->list[mla_key_spec_of(c->op == MLA_OP_DECODE ? MLA_K_LEN : MLA_K_CTX)
                   ->list];
  for (int32_t b = 0; b < q->count; b++)
    if (q->value[b] > 1 && !c->num[MLA_K_FULL]) q->value[b] = 1;
  if (c->op == MLA_OP_PREFILL) { /* ctx + q is it: one of each, or q alone */
    for (int32_t b = 0; b < q->count; b++)
      q->value[b] = (int32_t)power_of_two(q->value[b]);
    for (int32_t b = 0; b < n->count; b++) n->value[b] = n->value[b] ? 1 : 0;
    if (n->count && q->count == 1 && q->value[0] != 1)
      n->count = 1, n->value[0] = q->value[0];
    if (n->count && q->count > 1) {
      n->count = q->count;
      for (int32_t b = 0; b < q->count; b++) n->value[b] = q->value[b];
    }
    return;
  }
  for (int32_t b = 0; b < n->count; b++)
    n->value[b] = (int32_t)power_of_two(n->value[b]);
}

/* One composition, and what belongs to it. */
static void agree_on_composition(drawing *g) {
  int64_t *num = g->c->num;
  if (num[MLA_K_RANKS]) num[MLA_K_CASCADE] = 0;
  if (!num[MLA_K_RANKS]) num[MLA_K_INTERLEAVE] = 1;
  if (num[MLA_K_RANKS] && num[MLA_K_INTERLEAVE] % num[MLA_K_PAGE])
    num[MLA_K_GAP] = num[MLA_K_STRIDES] = 0;
  if (num[MLA_K_CHUNKED] && !mla_case_list_given(g->c, MLA_K_CTX))
    num[MLA_K_CHUNKED] = 0;
  if (mla_case_composed(g->c)) num[MLA_K_CROWD] = 0;
}

/* -------------------------------------------------------------------- whole */

static int fits(drawing *g) {
  turn_to(g, "work");
  double most = MLA_RANDOM_FLOPS / (double)((int64_t)1 << below(g, 8));
  return mla_case_flops(g->c) <= most &&
         mla_case_bytes(g->c) <= MLA_RANDOM_BYTES;
}

/* Printed and read, it has its one spelling, and was checked. */
static int is_lawful(mla_case *c) {
  char id[MLA_CASE_ID_MAX];
  int n = mla_case_print(c, id, sizeof id);
  if (n <= 0 || (size_t)n >= sizeof id) return 0;
  if (mla_case_parse(id, c, NULL) != MLA_OK) return 0;
  mla_problem problem = mla_case_problem(c);
  mla_limits limits = mla_case_limits(c);
  return mla_problem_check(&problem, NULL) == MLA_OK &&
         mla_limits_check(&problem, &limits, NULL) == MLA_OK;
}

static int draw(drawing *g) {
  int32_t count, op, format;
  turn_to(g, "operation");
  op = weighted(g, mla_random_op_weight);
  format = weighted(g, mla_random_format_weight);
  const mla_key_use *uses = mla_key_uses(op, &count);
  mla_case_init(g->c, op, format);
  for (int32_t i = 0; i < count; i++) draw_key(g, &uses[i]);
  agree_on_format(g);
  agree_on_heads(g);
  agree_on_exactness(g);
  agree_on_blocks(g);
  agree_on_composition(g);
  return is_lawful(g->c) && fits(g);
}

int mla_random_case(uint64_t seed, uint64_t index, mla_case *c,
                    uint64_t *data_seed) {
  drawing g = {seed, index, 0, c, {0}, 0};
  turn_to(&g, "seed");
  *data_seed = 1 + (uint64_t)below(&g, INT32_MAX);
  for (; g.tries < MOST_TRIES; g.tries++)
    if (draw(&g)) return 1;
  return 0;
}
