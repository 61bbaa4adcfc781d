#include <math.h>
#include <stdlib.h>

#include "dtype.h"
#include "measured.h"
#include "rng.h"

#define DV 19
#define HEADS 3
#define TOKENS 40
#define MOST_PARTS 64

/* One merged row, exactly; and the laws of its elements. */
typedef struct merged {
  int64_t live;
  double value[MOST_PARTS * DV], lse[MOST_PARTS];
  double x[MOST_PARTS], p[MOST_PARTS], out_d[DV];
  mpfr_t *out, *weight, lse_exact, work;
  error_law law[DV], lse_law;
} merged;

static void load(merged *row, const fixed_case *c, int64_t token,
                 int64_t head) {
  const mla_tensor *parts = &c->tensor[MLA_T_PARTS];
  const mla_tensor *lses = &c->tensor[MLA_T_PART_LSES];
  row->live = 0;
  for (int64_t s = 0; s < parts->shape[0]; s++) {
    int64_t i = (s * TOKENS + token) * HEADS + head;
    double lse = mla_get(lses->data, lses->dtype, fixed_case_at(lses, i));
    if (isinf(lse)) continue;
    row->lse[row->live] = lse;
    for (int64_t d = 0; d < DV; d++)
      row->value[row->live * DV + d] =
          mla_get(parts->data, parts->dtype, fixed_case_at(parts, i * DV + d));
    row->live++;
  }
}

/* weight[i] = b^(lse_i - largest) / sum; lse. */
static void weigh(merged *row, double largest, int base2) {
  mpfr_t sum;
  mpfr_init2(sum, EXACT_BITS);
  mpfr_set_zero(sum, 1);
  for (int64_t i = 0; i < row->live; i++) {
    mpfr_set_d(row->weight[i], row->lse[i], MPFR_RNDN);
    mpfr_sub_d(row->weight[i], row->weight[i], largest, MPFR_RNDN);
    if (base2) {
      mpfr_exp2(row->weight[i], row->weight[i], MPFR_RNDN);
    } else {
      mpfr_exp(row->weight[i], row->weight[i], MPFR_RNDN);
    }
    mpfr_add(sum, sum, row->weight[i], MPFR_RNDN);
  }
  for (int64_t i = 0; i < row->live; i++) {
    mpfr_div(row->weight[i], row->weight[i], sum, MPFR_RNDN);
    row->p[i] = mpfr_get_d(row->weight[i], MPFR_RNDN);
  }
  if (base2) {
    mpfr_log2(row->lse_exact, sum, MPFR_RNDN);
  } else {
    mpfr_log(row->lse_exact, sum, MPFR_RNDN);
  }
  mpfr_add_d(row->lse_exact, row->lse_exact, largest, MPFR_RNDN);
  mpfr_clear(sum);
}

/* 1 / (1 + b^(sink - lse)); the sink is natural always. */
static double keep_of(merged *row, double sink, double ln_base) {
  mpfr_set_d(row->work, ln_base, MPFR_RNDN);
  if (ln_base != 1) mpfr_const_log2(row->work, MPFR_RNDN);
  mpfr_mul(row->work, row->work, row->lse_exact, MPFR_RNDN);
  mpfr_d_sub(row->work, sink, row->work, MPFR_RNDN);
  mpfr_exp(row->work, row->work, MPFR_RNDN);
  mpfr_add_ui(row->work, row->work, 1, MPFR_RNDN);
  mpfr_ui_div(row->work, 1, row->work, MPFR_RNDN);
  return mpfr_get_d(row->work, MPFR_RNDN);
}

static void evaluate(merged *row, const fixed_case *c, int64_t head) {
  const mla_tensor *sinks = &c->tensor[MLA_T_SINK];
  int base2 = (c->problem.flags & MLA_LSE_BASE2) != 0;
  double largest = -INFINITY, sink = -INFINITY, keep = 1;
  double ln_base = base2 ? log(2) : 1;
  mpfr_t product;
  mpfr_init2(product, EXACT_BITS);
  for (int64_t i = 0; i < row->live; i++) largest = fmax(largest, row->lse[i]);
  weigh(row, largest, base2);
  mpfr_set_ui(row->work, 1, MPFR_RNDN);
  if (sinks->data) {
    sink = mla_get(sinks->data, sinks->dtype, head);
    keep = keep_of(row, sink, ln_base);
  }
  for (int64_t d = 0; d < DV; d++) {
    mpfr_set_zero(row->out[d], 1);
    for (int64_t i = 0; i < row->live; i++) {
      mpfr_mul_d(product, row->weight[i], row->value[i * DV + d], MPFR_RNDN);
      mpfr_add(row->out[d], row->out[d], product, MPFR_RNDN);
    }
    mpfr_mul(row->out[d], row->out[d], row->work, MPFR_RNDN);
    row->out_d[d] = mpfr_get_d(row->out[d], MPFR_RNDN);
  }
  for (int64_t i = 0; i < row->live; i++)
    row->x[i] = ln_base * (row->lse[i] - largest);
  double lse = mpfr_get_d(row->lse_exact, MPFR_RNDN);
  double gap = sinks->data ? fabs(sink - lse * ln_base) : 0;
  merge_row law = {row->live, DV,      row->value, row->x, row->p, row->out_d,
                   lse,       largest, ln_base,    keep,   gap};
  error_law_merge(&law, row->law, &row->lse_law);
  mpfr_clear(product);
}

static void measure_rows(const fixed_case *c, const answers *got, merged *row,
                         error_stats *out, error_stats *lse) {
  for (int64_t r = 0; r < TOKENS * HEADS; r++) {
    load(row, c, r / HEADS, r % HEADS);
    if (!row->live) continue; /* 0 and -infinity: the unit tests' business */
    evaluate(row, c, r % HEADS);
    for (int64_t d = 0; d < DV; d++)
      error_stats_add(out, got->out[r * DV + d], row->out[d], &row->law[d]);
    error_stats_add(lse, got->lse[r], row->lse_exact, &row->lse_law);
  }
}

/* Some parts are empty, by either infinity. */
static void empty_some(fixed_case *c) {
  mla_tensor *lses = &c->tensor[MLA_T_PART_LSES];
  mla_rng rng = mla_rng_named(c->seed, "empty");
  int64_t count = lses->shape[0] * TOKENS * HEADS;
  for (int64_t i = 0; i < count; i++) {
    uint32_t kind = mla_rng_below(rng, (uint64_t)i, 8);
    if (kind < 2)
      mla_put(lses->data, lses->dtype, i, kind ? INFINITY : -INFINITY);
  }
}

static void merge_case(merged *row, int64_t parts, uint64_t flags,
                       double spread, error_stats *out, error_stats *lse) {
  mla_problem p = mla_problem_init(MLA_OP_MERGE);
  p.flags = flags | MLA_RETURN_LSE;
  p.q_dtype = p.out_dtype = MLA_F64;
  p.num_heads = HEADS;
  p.v_head_dim = DV;
  fixed_case c = fixed_case_of(&p, 31 + (uint64_t)parts);
  c.size[MLA_S_N] = c.limits.tokens = TOKENS;
  c.size[MLA_S_PARTS] = c.limits.parts = parts;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_PARTS, 0, 1);
  fixed_case_fill(&c, MLA_T_PART_LSES, 7, spread);
  if (flags & MLA_HAS_SINK) fixed_case_fill(&c, MLA_T_SINK, 7, 1);
  empty_some(&c);
  answers got = answers_run(&c);
  measure_rows(&c, &got, row, out, lse);
  answers_free(&got);
  fixed_case_free(&c);
}

int64_t measure_merge(void) {
  static const int64_t parts[] = {1, 2, 3, 7, 64};
  static const double spreads[] = {0, 0.5, 4, 200};
  error_stats out = {0}, lse = {0};
  merged *row = calloc(1, sizeof *row);
  if (!row) exit(3);
  row->out = exact_new(DV, EXACT_BITS);
  row->weight = exact_new(MOST_PARTS, EXACT_BITS);
  mpfr_inits2(EXACT_BITS, row->lse_exact, row->work, (mpfr_ptr)0);
  for (int i = 0; i < 5; i++)
    for (int s = 0; s < 4; s++) {
      merge_case(row, parts[i], 0, spreads[s], &out, &lse);
      merge_case(row, parts[i], MLA_LSE_BASE2, spreads[s], &out, &lse);
      merge_case(row, parts[i], MLA_HAS_SINK, spreads[s], &out, &lse);
    }
  exact_free(row->out, DV);
  exact_free(row->weight, MOST_PARTS);
  mpfr_clears(row->lse_exact, row->work, (mpfr_ptr)0);
  free(row);
  int64_t refused = error_stats_print(&out, "merge", "out") +
                    error_stats_print(&lse, "merge", "lse");
  error_stats_free(&out);
  error_stats_free(&lse);
  return refused;
}
