/*
 * judge.c - the way of a vector through a backend.
 */
#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cause.h"
#include "compare.h"
#include "composed.h"
#include "dtype.h"
#include "hearing.h"
#include "problem_check.h"
#include "regroup.h"
#include "spans.h"
#include "tensor.h"

#define end mla_hearing_end

mla_judge_options mla_judge_defaults(void) {
  mla_judge_options o = {NULL, MLA_POISON_NAN, 1, 0, 0, 0, 0, NULL};
  return o;
}

int mla_hearing_end(hearing *h, int32_t kind, const char *format, ...) {
  va_list args;
  h->verdict->kind = kind;
  va_start(args, format);
  vsnprintf(h->verdict->reason, sizeof h->verdict->reason, format, args);
  va_end(args);
  return 0;
}

/* ------------------------------------------------------ what was promised */

/* A word that nobody knows is no promise. */
static int check_words(hearing *h) {
  const mla_answer *a = &h->answer;
  const struct {
    const char *name;
    int32_t value, last;
  } words[] = {{"determinism", a->determinism, MLA_DETERMINISM_BATCH_INVARIANT},
               {"dequant", a->numerics.dequant, MLA_DEQUANT_SCALE_AFTER},
               {"q_round", a->numerics.q_round, MLA_Q_ROUND_INT8_ROW}};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (words[i].value < 0 || words[i].value > words[i].last)
      return end(h, MLA_VERDICT_FAIL, "declares %s %d, 0 to %d are lawful",
                 words[i].name, (int)words[i].value, (int)words[i].last);
  return 1;
}

static int check_numerics(hearing *h) {
  const mla_numerics *n = &h->answer.numerics;
  double f32 = mla_unit_roundoff(MLA_F32);
  double u = mla_unit_roundoff(h->v->problem.q_dtype);
  if (u < f32) u = f32;
  if (!(n->u_acc >= 0 && n->u_acc <= f32))
    return end(h, MLA_VERDICT_FAIL,
               "declares u_acc %g, at most 2^-24 is "
               "lawful",
               n->u_acc);
  if (!(n->u_p >= 0 && n->u_p <= u))
    return end(h, MLA_VERDICT_FAIL,
               "declares u_p %g, at most %g (the "
               "roundoff of q's type) is lawful",
               n->u_p, u);
  if (!(n->u_mid >= 0 && n->u_mid <= u))
    return end(h, MLA_VERDICT_FAIL,
               "declares u_mid %g, at most %g (the "
               "roundoff of q's type) is lawful",
               n->u_mid, u);
  return 1;
}

static int ask(hearing *h) {
  mla_status status =
      mla_query(h->device, &h->v->problem, &h->limits, &h->answer, &h->err);
  snprintf(h->verdict->kernel, sizeof h->verdict->kernel, "%s",
           h->answer.kernel);
  if (status != MLA_OK)
    return end(h, MLA_VERDICT_FAIL,
               "query refuses a lawful problem with %s: "
               "%s",
               mla_status_name(status), h->err.message);
  if (!h->answer.supported && !h->answer.reason[0])
    return end(h, MLA_VERDICT_FAIL, "query says no without a reason");
  if (!h->answer.supported)
    return end(h, MLA_VERDICT_UNSUPPORTED, "%s", h->answer.reason);
  h->verdict->determinism = h->answer.determinism;
  if ((h->v->problem.flags & MLA_BATCH_INVARIANT) &&
      h->answer.determinism != MLA_DETERMINISM_BATCH_INVARIANT)
    return end(h, MLA_VERDICT_FAIL,
               "query says yes to batch invariance, but "
               "does not declare it");
  return check_words(h) && check_numerics(h);
}

/* A vector from a file may break any rule; the reference trusts it. */
static int is_lawful(hearing *h) {
  mla_args args = mla_vector_args(h->v);
  mla_answer any = mla_answer_init();
  mla_status status = mla_problem_check(&h->v->problem, &h->err);
  if (status == MLA_OK)
    status = mla_limits_check(&h->v->problem, &h->limits, &h->err);
  if (status == MLA_OK)
    status =
        mla_args_check(&h->v->problem, &h->limits, &any, &args, 1, &h->err);
  if (status == MLA_OK) return 1;
  return end(h, MLA_VERDICT_BAD_VECTOR, "no lawful call: %s", h->err.message);
}

/* --------------------------------------------------------- the reference */

/* The vector judges the reference: what it stores must be reproduced. Not
   when the reference emulates a backend's roundings. */
static int check_vector(hearing *h) {
  const mla_numerics *n = &h->answer.numerics;
  if (n->dequant || n->q_round) return 1;
  if (mla_expectation_check(h->v, &h->expectation, &h->err) != MLA_OK)
    return end(h, MLA_VERDICT_BAD_VECTOR, "%s", h->err.message);
  if (!h->options->has_digest) return 1;
  uint64_t digest = mla_expectation_digest(h->v, &h->expectation);
  if (digest == h->options->digest) return 1;
  return end(h, MLA_VERDICT_BAD_VECTOR,
             "the reference's values have the digest %016llx, the vector "
             "says %016llx",
             (unsigned long long)digest,
             (unsigned long long)h->options->digest);
}

static int expect(hearing *h) {
  mla_status status = mla_expectation_make(
      h->v, &h->answer.numerics, h->options->keep, &h->expectation, &h->err);
  h->verdict->rows = h->expectation.rows;
  h->verdict->rows_total = h->expectation.rows_total;
  if (status != MLA_OK)
    return end(h, MLA_VERDICT_ERROR, "the reference has no answer: %s",
               h->err.message);
  return check_vector(h);
}

/* ---------------------------------------------------------------- the run */

/* Another plan of the same problem with other limits, made after it and freed
   after the first run: a backend that keeps what is a plan's elsewhere runs by
   the newest, or by what is freed. One that says no to it may. */
static void plan_beside(hearing *h) {
  mla_limits other = h->limits;
  other.seq_lens = other.query_start_loc = NULL;
  other.max_seq_len >>= 1;
  if (mla_limits_check(&h->v->problem, &other, NULL) == MLA_OK)
    mla_plan_create(h->device, &h->v->problem, &other, &h->beside, NULL);
}

static void free_beside(hearing *h) {
  mla_plan_free(h->beside);
  mla_plan_free(h->stranger);
  h->beside = h->stranger = NULL;
}

static int plan(hearing *h) {
  mla_status status = mla_place_new(h->device, h->v, &h->answer,
                                    h->options->guards, &h->place, &h->err);
  if (status != MLA_OK)
    return end(h, MLA_VERDICT_ERROR, "no memory for the case: %s",
               h->err.message);
  mla_serve_stranger(h);
  status =
      mla_plan_create(h->device, &h->v->problem, &h->limits, &h->plan, &h->err);
  if (status != MLA_OK)
    return end(h, MLA_VERDICT_FAIL, "said yes, but the plan fails with %s: %s",
               mla_status_name(status), h->err.message);
  plan_beside(h);
  return 1;
}

static int fill(hearing *h, unsigned char poison, mla_side side) {
  mla_status status = mla_place_fill(&h->place, poison, side, &h->err);
  if (status == MLA_OK) return 1;
  return end(h, MLA_VERDICT_ERROR, "the case cannot be copied there: %s",
             h->err.message);
}

int mla_hearing_go(hearing *h) {
  mla_args args = mla_place_args(&h->place);
  mla_place_lock(&h->place, 1);
  mla_status status = mla_run(h->plan, &args, mla_place_workspace(&h->place),
                              h->answer.workspace_bytes, NULL, &h->err);
  mla_place_lock(&h->place, 0);
  if (status != MLA_OK)
    return end(h, MLA_VERDICT_FAIL, "said yes, but the run fails with %s: %s",
               mla_status_name(status), h->err.message);
  status = mla_place_fetch(&h->place, &h->err);
  if (status != MLA_OK)
    return end(h, MLA_VERDICT_FAIL, "the run ends with %s: %s",
               mla_status_name(status), h->err.message);
  return 1;
}

int mla_hearing_run(hearing *h, const mla_vector *v, unsigned char poison,
                    mla_side side) {
  h->place.vector = v;
  return fill(h, poison, side) && mla_hearing_go(h);
}

/* The plan serves shorter lengths first: what it keeps of them shows. */
int mla_hearing_serve_earlier(hearing *h, unsigned char poison) {
  const mla_tensor *lens = &h->v->tensor[MLA_T_SEQ_LENS];
  if (!h->v->has_recipe || !h->v->recipe.num[MLA_K_REPLAY] || !lens->data)
    return 1;
  size_t bytes = (size_t)mla_tensor_extent(lens);
  unsigned char *earlier = malloc(bytes + 1);
  if (!earlier) return end(h, MLA_VERDICT_ERROR, "no memory for lengths");
  memcpy(earlier, lens->data, bytes);
  mla_vector_put_earlier(h->v, earlier);
  int ok = fill(h, poison, MLA_SIDE_END);
  if (ok &&
      mla_place_put(&h->place, MLA_T_SEQ_LENS, earlier, &h->err) != MLA_OK)
    ok = end(h, MLA_VERDICT_ERROR, "%s", h->err.message);
  free(earlier);
  return ok && mla_hearing_go(h);
}

/* ------------------------------------------------------------ comparisons */

int mla_hearing_is_output(const hearing *h, int slot) {
  return h->v->role[slot] & MLA_ROLE_OUT;
}

mla_status mla_hearing_compare(hearing *h, int slot, unsigned char poison,
                               mla_output_verdict *o) {
  unsigned char own = h->v->role[slot] == MLA_ROLE_OUT
                          ? mla_vector_poison(h->v, slot, poison)
                          : 0;
  return mla_compare_output(h->place.vector, &h->expectation, slot,
                            &h->answer.numerics,
                            mla_place_bytes(&h->place, slot), own, o, &h->err);
}

static int compare(hearing *h) {
  mla_verdict *verdict = h->verdict;
  for (int s = 0; s < MLA_T_COUNT; s++) {
    if (!mla_hearing_is_output(h, s)) continue;
    if (verdict->outputs == MLA_VERDICT_OUTPUTS)
      return end(h, MLA_VERDICT_ERROR, "more outputs than can be judged");
    mla_output_verdict *o = &verdict->output[verdict->outputs++];
    mla_status status =
        mla_hearing_compare(h, s, (unsigned char)h->options->poison, o);
    if (status != MLA_OK)
      return end(h, MLA_VERDICT_ERROR, "%s", h->err.message);
    if (mla_output_fails(o)) verdict->kind = MLA_VERDICT_FAIL;
  }
  return 1;
}

static void report_touch(hearing *h, const char *what, const char *name,
                         int64_t at) {
  mla_verdict *verdict = h->verdict;
  verdict->kind = MLA_VERDICT_FAIL;
  if (verdict->fences[0]) return;
  snprintf(verdict->fences, sizeof verdict->fences,
           "%s %s was written, at "
           "byte %lld",
           what, name, (long long)at);
}

static void check_bands(hearing *h, unsigned char poison) {
  for (int s = -1; s < MLA_T_COUNT; s++) {
    int64_t hit = mla_place_band_hit(&h->place, s, poison);
    if (hit == 0) continue;
    report_touch(h, hit < 0 ? "memory before" : "memory behind",
                 s < 0 ? "the workspace" : mla_slot_name(s), hit);
  }
}

static void check_inputs(hearing *h) {
  const mla_vector *v = h->place.vector;
  for (int s = 0; s < MLA_T_COUNT; s++) {
    if (v->role[s] != MLA_ROLE_IN || v->alias[s] >= 0) continue;
    const unsigned char *before = v->tensor[s].data;
    const unsigned char *after = mla_place_bytes(&h->place, s);
    for (int64_t k = 0; k < mla_span_count(&v->tensor[s]); k++) {
      mla_span span = mla_span_at(&v->tensor[s], k);
      int64_t i = span.at;
      if (memcmp(before + i, after + i, (size_t)span.bytes) == 0) continue;
      while (before[i] == after[i]) i++;
      report_touch(h, "input", mla_slot_name(s), i);
    }
  }
}

void mla_hearing_check_fences(hearing *h, unsigned char poison) {
  check_bands(h, poison);
  check_inputs(h);
}

static int keep_first(hearing *h) {
  for (int s = 0; s < MLA_T_COUNT; s++) {
    if (!mla_hearing_is_output(h, s)) continue;
    const mla_tensor *t = &h->v->tensor[s];
    h->first[s] = calloc((size_t)mla_tensor_extent(t) + 1, 1);
    if (!h->first[s])
      return end(h, MLA_VERDICT_ERROR, "no memory for a second run");
    mla_span_copy(t, h->first[s], mla_place_bytes(&h->place, s));
  }
  return 1;
}

/* ------------------------------------------------------------ the hearing */

/* Bits that follow from a row's own data do so without its batch mates. */
static int regroup(hearing *h) {
  int differs = 0;
  if (h->answer.determinism != MLA_DETERMINISM_BATCH_INVARIANT ||
      h->verdict->differs || h->verdict->follows)
    return 1;
  mla_status status =
      mla_regroup_check(h->device, h->v, h->first, &differs, &h->err);
  if (status != MLA_OK)
    return end(h, MLA_VERDICT_FAIL, "a part of the batch: %s: %s",
               mla_status_name(status), h->err.message);
  if (differs) h->verdict->kind = MLA_VERDICT_FAIL;
  h->verdict->mates = differs;
  return 1;
}

static void observe(hearing *h, unsigned char poison) {
  const mla_judge_observer *o = h->options->observer;
  mla_evidence e = {.answer = &h->answer,
                    .limits = &h->limits,
                    .expectation = &h->expectation,
                    .poison = poison};
  mla_vector calm;
  if (!o || h->observed || h->verdict->kind != MLA_VERDICT_FAIL) return;
  for (int s = 0; s < MLA_T_COUNT; s++) e.got[s] = h->first[s];
  mla_find_calm(h, &calm, &e);
  o->failed(o->context, h->v, &e, h->verdict);
  h->place.vector = h->v;
  mla_vector_free(&calm);
}

static void release(hearing *h) {
  mla_place_free(&h->place);
  free_beside(h);
  mla_plan_free(h->plan);
  mla_expectation_free(&h->expectation);
  for (int s = 0; s < MLA_T_COUNT; s++) free(h->first[s]);
}

void mla_judge_vector(mla_device *device, const mla_vector *v,
                      const mla_judge_options *options, mla_verdict *verdict) {
  hearing h;
  memset(&h, 0, sizeof h);
  memset(verdict, 0, sizeof *verdict);
  h.device = h.base = device;
  h.v = v;
  h.options = options;
  h.verdict = verdict;
  h.answer = mla_answer_init();
  h.limits = mla_vector_limits(v);
  h.err = mla_error_init();
  int opened = mla_composed_device(device, v, &h.device, &h.err) == MLA_OK;
  if (!opened) end(&h, MLA_VERDICT_ERROR, "no composition: %s", h.err.message);
  unsigned char poison = (unsigned char)options->poison;
  if (opened && is_lawful(&h) && ask(&h) && expect(&h) && plan(&h) &&
      mla_hearing_serve_earlier(&h, poison) &&
      mla_hearing_run(&h, v, poison, MLA_SIDE_END) && compare(&h) &&
      keep_first(&h)) {
    mla_hearing_check_fences(&h, poison);
    free_beside(&h);
    mla_repeat(&h);
    if (options->repeat) mla_find_alignment(&h);
    if (options->repeat) mla_replay_graph(&h);
    if (options->repeat) mla_serve_others(&h);
    if (options->repeat) mla_crowd(&h);
    regroup(&h);
    if (options->repeat) mla_regroup_elsewhere(&h);
  }
  observe(&h, poison);
  release(&h);
  mla_composed_close(h.device, device);
}
