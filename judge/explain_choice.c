#include "explain_choice.h"

#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "explain_bench.h"
#include "tensor.h"

/* --------------------------------------------------------------- one row */

/* Entries of row r in memory, with the judge's marks. Returns how many are
   wrong. */
static int64_t read_row(choice_bench *b, int64_t r, const unsigned char *from,
                        choice_entry *to) {
  int64_t row = b->view.row_index ? b->view.row_index[r] : r, wrong = 0;
  mla_topk_row at = b->row;
  at.logit += r * at.width;
  at.budget += r * at.width;
  for (int64_t i = 0; i < at.topk; i++)
    b->chosen[i] = mla_get_int(from, b->t->dtype, mla_at2(b->t, row, i));
  mla_topk_judge(&at, b->chosen, b->fault);
  for (int64_t i = 0; i < at.topk; i++) {
    to[i].position = b->chosen[i];
    to[i].wrong = b->fault[i].ratio > 1;
    wrong += to[i].wrong;
  }
  return wrong;
}

/* How often entry x stands among the first n. */
static int64_t times(const choice_entry *row, int64_t n, choice_entry x) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++)
    count += row[i].position == x.position && row[i].wrong == x.wrong;
  return count;
}

static int is_chosen(const choice_entry *row, int64_t n, int64_t position) {
  for (int64_t i = 0; i < n; i++)
    if (row[i].position == position) return 1;
  return 0;
}

static void compare_row(choice_bench *b, int right, int64_t probe_wrong,
                        choice_score *score) {
  int64_t n = b->row.topk;
  for (int64_t i = 0; i < n; i++) {
    choice_entry x = b->got[i];
    if (right) {
      score->good_of++;
      score->good += probe_wrong == 0;
    } else if (x.wrong) {
      score->bad_of++;
      score->bad += times(b->probe, n, x) >= times(b->got, i + 1, x);
    } else {
      score->near_of++;
      score->near += is_chosen(b->probe, n, x.position);
    }
  }
}

void choice_compare(choice_bench *b, const unsigned char *got,
                    const unsigned char *probe, choice_score *score) {
  for (int64_t r = 0; b->t && r < b->view.rows; r++) {
    if (!b->mark[r]) continue;
    read_row(b, r, got, b->got);
    int64_t wrong = read_row(b, r, probe, b->probe);
    compare_row(b, b->mark[r] == 2, wrong, score);
  }
}

/* ---------------------------------------------------------------- making */

static int allocate(choice_bench *b, const mla_evidence *e) {
  size_t rows = (size_t)b->view.rows, topk = (size_t)b->view.width;
  b->row.logit = mla_expected_logits(e->expectation->expected, &b->row.width);
  b->row.topk = b->view.width;
  size_t width = (size_t)b->row.width;
  b->budget = calloc(rows * width + 1, sizeof *b->budget);
  b->row.taken = malloc(width + 1);
  b->mark = calloc(rows + 1, 1);
  b->got = calloc(topk + 1, sizeof *b->got);
  b->probe = calloc(topk + 1, sizeof *b->probe);
  b->chosen = calloc(topk + 1, sizeof *b->chosen);
  b->fault = calloc(topk + 1, sizeof *b->fault);
  b->row.budget = b->budget;
  return b->budget && b->row.taken && b->mark && b->got && b->probe &&
         b->chosen && b->fault;
}

int choice_new(choice_bench *b, const mla_vector *v, const mla_evidence *e,
               int64_t bad_rows, int64_t good_rows) {
  int32_t index;
  memset(b, 0, sizeof *b);
  if (v->compare[MLA_T_POSITIONS] != MLA_COMPARE_CHOICE ||
      !e->got[MLA_T_POSITIONS])
    return 1;
  b->view = mla_expectation_of(e->expectation, MLA_T_POSITIONS, &index);
  if (index < 0) return 1;
  if (!allocate(b, e)) return 0;
  b->t = &v->tensor[MLA_T_POSITIONS];
  mla_expected_logits_budget(e->expectation->expected, &e->answer->numerics,
                             b->budget);
  for (int64_t r = 0; r < b->view.rows; r++)
    b->mark[r] = read_row(b, r, e->got[MLA_T_POSITIONS], b->got) ? 1 : 2;
  bench_thin_out(b->mark, b->view.rows, 1, bad_rows);
  bench_thin_out(b->mark, b->view.rows, 2, good_rows);
  return 1;
}

void choice_free(choice_bench *b) {
  free(b->budget);
  free(b->row.taken);
  free(b->mark);
  free(b->got);
  free(b->probe);
  free(b->chosen);
  free(b->fault);
  memset(b, 0, sizeof *b);
}
