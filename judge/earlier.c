/*
 * earlier.c - calls before a call: what a backend keeps of one must not show
 * in the next. Contents change behind the same addresses, as they do from step
 * to step, and plans of the same shapes differ in all else.
 */
#include <string.h>

#include "compare.h"
#include "hearing.h"
#include "tensor.h"

#define MOST_FLOPS 2e6 /* of a case: what is kept does not ask for more */

static int is_worth_it(const hearing *h) {
  return h->options->repeat && mla_hearing_can_remake(h->v) &&
         !mla_hearing_is_large(h->v) &&
         mla_case_flops(&h->v->recipe) <= MOST_FLOPS;
}

static int same_places(const mla_vector *a, const mla_vector *b) {
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (a->role[s] != b->role[s] || a->alias[s] != b->alias[s] ||
        mla_tensor_extent(&a->tensor[s]) != mla_tensor_extent(&b->tensor[s]))
      return 0;
  return 1;
}

static mla_status put(hearing *h, const mla_vector *v) {
  h->place.vector = v;
  mla_status status =
      mla_place_fill(&h->place, MLA_POISON_ZERO, MLA_SIDE_END, &h->err);
  h->place.vector = h->v;
  return status;
}

int mla_hearing_put_others(hearing *h) {
  mla_vector other;
  mla_vector_init(&other);
  mla_status status = mla_generate(&h->v->recipe, h->v->seed + 1,
                                   MLA_POISON_ZERO, &other, &h->err);
  void *lens = other.tensor[MLA_T_SEQ_LENS].data;
  if (status == MLA_OK && lens) mla_vector_put_earlier(&other, lens);
  if (status == MLA_OK) status = put(h, &other);
  mla_vector_free(&other);
  return status == MLA_OK ||
         mla_hearing_end(h, MLA_VERDICT_ERROR, "no other contents: %s",
                         h->err.message);
}

/* ------------------------------------------------------ before the plan */

static int uses(const mla_case *c, int key) {
  return mla_key_use_of(c->op, key) != NULL;
}

/* The same shapes; way 1 leaves what a backend may say no to. 0: no case. */
static int make_strange(mla_case *c, int way) {
  const mla_problem p = mla_case_problem(c);
  if (uses(c, MLA_K_SCALE)) c->real[MLA_K_SCALE] = 2 * p.scale;
  if (uses(c, MLA_K_K_SCALE)) c->real[MLA_K_K_SCALE] = 2 * p.k_scale;
  if (way == 0) {
    if (uses(c, MLA_K_FULL)) c->num[MLA_K_FULL] ^= 1;
    if (uses(c, MLA_K_BASE2) && !c->num[MLA_K_NOLSE]) c->num[MLA_K_BASE2] ^= 1;
    if (uses(c, MLA_K_CAP)) c->real[MLA_K_CAP] = p.logits_soft_cap > 0 ? 0 : 3;
  }
  return mla_case_check(c, NULL) == MLA_OK;
}

/* Where the case's own tensors and workspace will be. */
static void run_strange(hearing *h, const mla_vector *v, const mla_answer *a) {
  if (a->workspace_bytes > h->answer.workspace_bytes || !same_places(h->v, v) ||
      put(h, v) != MLA_OK)
    return;
  mla_args args = mla_place_args(&h->place);
  if (mla_run(h->stranger, &args, mla_place_workspace(&h->place),
              h->answer.workspace_bytes, NULL, NULL) == MLA_OK)
    mla_place_fetch(&h->place, NULL);
}

/* 1: the backend takes it so. */
static int serve_strange(hearing *h, int way) {
  mla_case c = h->v->recipe;
  mla_vector v;
  mla_answer a = mla_answer_init();
  mla_vector_init(&v);
  int ok =
      make_strange(&c, way) &&
      mla_generate(&c, h->v->seed + 1, MLA_POISON_ZERO, &v, NULL) == MLA_OK;
  mla_limits limits = mla_vector_limits(&v);
  ok = ok && mla_query(h->device, &v.problem, &limits, &a, NULL) == MLA_OK &&
       a.supported &&
       mla_plan_create(h->device, &v.problem, &limits, &h->stranger, NULL) ==
           MLA_OK;
  if (ok) run_strange(h, &v, &a);
  mla_vector_free(&v);
  return ok;
}

void mla_serve_stranger(hearing *h) {
  if (h->options->alone || !is_worth_it(h)) return;
  for (int way = 0; way < 2; way++)
    if (serve_strange(h, way)) return;
}

/* -------------------------------------------------------- within a plan */

static int serve_others_first(hearing *h) {
  unsigned char poison = (unsigned char)h->options->poison;
  return mla_hearing_put_others(h) && mla_hearing_go(h) &&
         mla_hearing_run(h, h->v, poison, MLA_SIDE_END);
}

void mla_serve_others(hearing *h) {
  mla_plan *own = h->plan, *fresh = NULL;
  int s;
  if (h->verdict->kind != MLA_VERDICT_PASS || !is_worth_it(h)) return;
  if (mla_plan_create(h->device, &h->v->problem, &h->limits, &fresh, &h->err) !=
      MLA_OK) {
    mla_hearing_end(h, MLA_VERDICT_FAIL, "said yes, but a second plan fails");
    return;
  }
  h->plan = fresh;
  if (serve_others_first(h) && !mla_hearing_is_again(h, &s)) {
    mla_hearing_end(h, MLA_VERDICT_FAIL,
                    "a plan that served other contents at the same addresses "
                    "gives another %s",
                    mla_slot_name(s));
    h->verdict->follows = MLA_FOLLOWS_RUNS;
  }
  h->plan = own;
  mla_plan_free(fresh);
}
