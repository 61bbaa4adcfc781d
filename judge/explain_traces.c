/*
 * explain_traces.c - classes that are known without computing anything again.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "dmath.h"
#include "dtype.h"
#include "explain.h"
#include "spans.h"
#include "tensor.h"

static int starts(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

/* ------------------------------------------------------------------ fences */

static int explain_fence(const char *fence, mla_look *look) {
  if (!fence[0]) return 0;
  if (strstr(fence, "the workspace"))
    return mla_look_set(look, "WORKSPACE",
                        "more workspace is written than is declared");
  if (starts(fence, "input"))
    return mla_look_set(look, "HONESTY", "an input is written");
  if (strstr(fence, "cache"))
    return mla_look_set(look, "SLOT-WRITE",
                        "memory round the cache is written");
  return mla_look_set(look, "HEADS",
                      "memory round an output is written, as by whole tiles");
}

/* ------------------------------------------------------------ all unwritten */

static const char with_mates[] =
    "a request, or a row, gets other bits without its batch mates";

/* Rows that are not empty: there is something to compute. */
static int has_live_rows(const mla_evidence *e) {
  int32_t index;
  mla_expected_view lse = mla_expectation_of(e->expectation, MLA_T_LSE, &index);
  if (index < 0) return 1;
  for (int64_t r = 0; r < lse.rows; r++)
    if (mla_isinf(lse.value[r]) >= 0) return 1;
  return 0;
}

static int is_untouched(const mla_vector *v, const mla_evidence *e, int slot) {
  const mla_tensor *t = &v->tensor[slot];
  return mla_span_same(t, e->got[slot], t->data);
}

static int nothing_is_written(const mla_vector *v, const mla_evidence *e,
                              const mla_verdict *verdict) {
  int wrong = 0;
  for (int32_t i = 0; i < verdict->outputs; i++) {
    const mla_output_verdict *o = &verdict->output[i];
    if (!e->got[o->slot] || !is_untouched(v, e, o->slot)) return 0;
    wrong |= o->bad > 0 || o->unwritten > 0;
  }
  return wrong && has_live_rows(e);
}

/* More runs have told what it is (cause.h). */
static int explain_follows(mla_verdict *verdict) {
  static const struct {
    const char *cls, *what;
  } looks[] = {
      [MLA_FOLLOWS_ALIGNMENT] = {"STRIDES",
                                 "tensors are taken to begin at multiples of "
                                 "more than was promised"},
      [MLA_FOLLOWS_LEFT] = {"WORKSPACE",
                            "later runs of a plan find in the workspace what "
                            "the first left there"},
      [MLA_FOLLOWS_RUNS] = {"STALE-META",
                            "a plan keeps something of its first run"},
  };
  if (verdict->follows < MLA_FOLLOWS_ALIGNMENT) return 0;
  return mla_look_set(&verdict->look, looks[verdict->follows].cls,
                      looks[verdict->follows].what);
}

int mla_explain_traces(const mla_vector *v, const mla_evidence *e,
                       mla_verdict *verdict) {
  mla_look *look = &verdict->look;
  if (verdict->crowded == MLA_CROWDED_ELSEWHERE)
    return mla_look_set(look, "HONESTY",
                        "a plan works in the thread that made it alone");
  if (starts(verdict->reason, "said yes") || starts(verdict->reason, "query") ||
      starts(verdict->reason, "declares"))
    return mla_look_set(look, "HONESTY", "what query promises is not kept");
  if (explain_fence(verdict->fences, look)) return 1;
  if (verdict->crowded)
    return mla_look_set(look, "RACE", "runs of two threads meet in memory");
  if (explain_follows(verdict)) return 1;
  if (verdict->unstable && v->problem.op == MLA_OP_INDEX &&
      !mla_outputs_fail(verdict))
    return mla_look_set(look, "TOPK",
                        "a choice, or its order, varies from run to run");
  if (verdict->unstable)
    return mla_look_set(look, "RACE", "equal runs give different bits");
  if (verdict->mates && !mla_outputs_fail(verdict))
    return mla_look_set(look, "INVARIANCE", with_mates);
  if (verdict->outputs && nothing_is_written(v, e, verdict))
    return mla_look_set(look, "HONESTY", "says yes and writes nothing");
  return 0;
}

/* ------------------------------------------------- where the bad values are */

/* Sums over the rows [token, head] of out and lse. */
typedef struct places {
  int64_t bad_rows, bad_empty;   /* rows with a wrong value; without keys */
  int64_t bad_heads, half_heads; /* heads that are wrong in all, in some rows */
  int64_t rows;                  /* the fewest of a head */
  int out_bad, lse_bad, lse_unwritten;
} places;

static int row_is_wrong(const mla_vector *v, const mla_evidence *e,
                        mla_expected_view view, int64_t r) {
  const mla_tensor *t = &v->tensor[view.slot];
  int64_t row = view.row_index ? view.row_index[r] : r;
  int64_t heads = t->shape[1], at = mla_at2(t, row / heads, row % heads);
  for (int64_t d = 0; d < view.width; d++) {
    double got = mla_get(e->got[view.slot], t->dtype, at + d);
    double want = view.value[r * view.width + d];
    if (mla_isnan(got) != mla_isnan(want)) return 1;
    if (mla_isinf(got) != mla_isinf(want)) return 1;
    if (mla_fabs(got - want) > 0.02 * mla_fabs(want) + 1e-3) return 1;
  }
  return 0;
}

static void look_at_rows(const mla_vector *v, const mla_evidence *e,
                         places *p) {
  int32_t index;
  mla_expected_view out = mla_expectation_of(e->expectation, MLA_T_OUT, &index);
  mla_expected_view lse = mla_expectation_of(e->expectation, MLA_T_LSE, &index);
  int64_t heads = v->problem.num_heads;
  memset(p, 0, sizeof *p);
  if (out.slot < 0 || !e->got[MLA_T_OUT] || v->tensor[MLA_T_OUT].rank != 3)
    return;
  for (int64_t r = 0; r < out.rows; r++) {
    int wrong = row_is_wrong(v, e, out, r);
    int empty = lse.slot >= 0 && mla_isinf(lse.value[r]) < 0;
    if (lse.slot >= 0 && e->got[MLA_T_LSE]) wrong |= row_is_wrong(v, e, lse, r);
    p->bad_rows += wrong;
    p->bad_empty += wrong && empty;
  }
  p->rows = out.rows;
  for (int64_t h = 0; h < heads; h++) {
    int64_t rows = 0, wrong = 0;
    for (int64_t r = 0; r < out.rows; r++) {
      int64_t row = out.row_index ? out.row_index[r] : r;
      if (row % heads != h) continue;
      rows++;
      wrong += row_is_wrong(v, e, out, r);
    }
    if (rows < p->rows) p->rows = rows;
    p->bad_heads += rows > 0 && wrong == rows;
    p->half_heads += wrong > 0 && wrong < rows;
  }
}

static void look_at_outputs(const mla_verdict *verdict, places *p) {
  for (int32_t i = 0; i < verdict->outputs; i++) {
    const mla_output_verdict *o = &verdict->output[i];
    int bad = o->bad > 0 || o->unwritten > 0;
    if (o->slot == MLA_T_LSE) {
      p->lse_bad |= bad;
      p->lse_unwritten |= o->unwritten > 0;
    } else {
      p->out_bad |= bad;
    }
  }
}

static int touched_outside(const mla_verdict *verdict) {
  for (int32_t i = 0; i < verdict->outputs; i++)
    if (verdict->output[i].outside[0]) return 1;
  return 0;
}

static int has_tail(const mla_vector *v) {
  int64_t live = mla_vector_live(v, MLA_T_OUT);
  return live >= 0 && v->tensor[MLA_T_OUT].data &&
         live < v->tensor[MLA_T_OUT].shape[0];
}

int mla_explain_places(const mla_vector *v, const mla_evidence *e,
                       mla_verdict *verdict) {
  mla_look *look = &verdict->look;
  places p;
  if (!verdict->outputs) return 0;
  if (verdict->differs)
    return mla_look_set(look, "WORKSPACE",
                        "results follow what lay in the workspace");
  look_at_rows(v, e, &p);
  look_at_outputs(verdict, &p);
  if (p.bad_rows && p.bad_rows == p.bad_empty)
    return v->problem.op == MLA_OP_MERGE
               ? mla_look_set(look, "EMPTY-MERGE",
                              "rows without a live part are wrong")
               : mla_look_set(look, "EMPTY-ROW", "rows without keys are wrong");
  if (touched_outside(verdict) && has_tail(v))
    return mla_look_set(look, "GRAPH-PAD", "padding rows are written");
  if (touched_outside(verdict))
    return mla_look_set(look, "STRIDES", "gaps between rows are written");
  if (p.lse_bad && !p.out_bad)
    return mla_look_set(look, "LSE-LAYOUT",
                        p.lse_unwritten ? "a part of lse is not written"
                                        : "out is right, lse is not");
  if (verdict->mates) return mla_look_set(look, "INVARIANCE", with_mates);
  if (verdict->follows == MLA_FOLLOWS_ADDRESS)
    return mla_look_set(look, "STRIDES",
                        "the bits follow where tensors lie in memory");
  if (verdict->follows == MLA_FOLLOWS_UNUSED)
    return mla_look_set(look, "OOB-READ",
                        "the bits follow bytes that must not be read");
  if (p.bad_heads && !p.half_heads && p.bad_heads < v->problem.num_heads &&
      p.rows > 1)
    return mla_look_set(look, "HEADS", "whole heads are wrong, others right");
  return 0;
}

/* -------------------------------------------------------------------- death */

static int has_empty_request(const mla_vector *v) {
  const mla_tensor *lens = v ? &v->tensor[MLA_T_SEQ_LENS] : NULL;
  if (!lens || !lens->data) return 0;
  for (int64_t b = 0; b < lens->shape[0]; b++)
    if (mla_get_int(lens->data, lens->dtype, mla_at1(lens, b)) == 0) return 1;
  return 0;
}

/* Does a list of slots hold an entry that names none? */
static int has_hole(const mla_vector *v) {
  const mla_tensor *t = v ? &v->tensor[MLA_T_INDICES] : NULL;
  if (!t || !t->data || v->role[MLA_T_INDICES] != MLA_ROLE_IN) return 0;
  for (int64_t n = 0; n < t->shape[0]; n++)
    for (int64_t i = 0; i < t->shape[1]; i++)
      if (mla_get_int(t->data, t->dtype, mla_at2(t, n, i)) < 0) return 1;
  return 0;
}

void mla_explain_death(const mla_vector *v, int signal, mla_look *look) {
  memset(look, 0, sizeof *look);
  if (signal == 0)
    mla_look_set(look, "SPLIT-REDUCE",
                 "the run does not end, as when parts wait for each other");
  else if (signal == SIGILL)
    mla_look_set(look, "CPU-ISA", "an instruction that this CPU does not have");
  else if (signal == SIGABRT)
    mla_look_set(look, "HONESTY", "the process is aborted on a lawful call");
  else if (signal != SIGSEGV && signal != SIGBUS)
    return;
  else if (has_empty_request(v))
    mla_look_set(look, "GRAPH-PAD",
                 "memory is touched for a request of length 0");
  else if (has_hole(v))
    mla_look_set(look, "SPARSE-IDX",
                 "memory is touched for an entry that names no key");
  else
    mla_look_set(look, "OOB-READ", "memory is touched that belongs to nobody");
}

/* -------------------------------------------------------------- vast gaps */

/* Of spans far apart: is the first right, and one behind it wrong? */
static int wrong_beyond(const mla_vector *v, const mla_evidence *e, int slot) {
  const mla_tensor *t = &v->tensor[slot];
  int32_t index;
  mla_expected_view view = mla_expectation_of(e->expectation, slot, &index);
  mla_span near = mla_span_at(t, 0);
  if (!view.bytes || !e->got[slot] || !mla_span_is_vast(t)) return 0;
  return memcmp(e->got[slot], view.bytes, (size_t)near.bytes) == 0 &&
         !mla_span_same(t, e->got[slot], view.bytes);
}

int mla_explain_vast(const mla_vector *v, const mla_evidence *e,
                     mla_verdict *verdict) {
  for (int32_t i = 0; i < verdict->outputs; i++)
    if (wrong_beyond(v, e, verdict->output[i].slot))
      return mla_look_set(&verdict->look, "INT32",
                          "what lies gigabytes from the start is wrong");
  return 0;
}
