/*
 * cause.c - a failure that other runs of the same call tell more of: what the
 * bits follow though they must not, and whether it is where tensors begin.
 */
#include "cause.h"

#include <stdio.h>

#include "compare.h"

static unsigned char poison_of(const hearing *h) {
  return (unsigned char)h->options->poison;
}

/* The same call once more: 1 the first run's bits, 0 others, -1 it failed. */
static int again(hearing *h, mla_side side) {
  h->verdict->repeated++;
  return mla_hearing_run_again(h, h->v, poison_of(h), side);
}

static void say(hearing *h, mla_follows follows, const char *reason) {
  h->verdict->follows = follows;
  snprintf(h->verdict->reason, sizeof h->verdict->reason, "%s", reason);
}

/* ------------------------------------------------------- what a plan keeps */

/* Bit i of *same: run i of a plan of its own gives the first one's bits. From
   the second on the workspace holds the poison, or what the last run left. */
static int run_fresh_plan(hearing *h, int runs, int scratch, unsigned *same) {
  mla_plan *own = h->plan, *fresh = NULL;
  int ok = mla_plan_create(h->device, &h->v->problem, &h->limits, &fresh,
                           &h->err) == MLA_OK;
  *same = 0;
  h->plan = fresh;
  ok = ok && mla_hearing_serve_earlier(h, poison_of(h));
  for (int i = 0; i < runs && ok; i++) {
    if (i > 0) h->place.scratch = scratch;
    int is = again(h, MLA_SIDE_END);
    ok = is >= 0;
    if (is > 0) *same |= 1u << i;
  }
  h->place.scratch = MLA_SCRATCH_POISON;
  h->plan = own;
  mla_plan_free(fresh);
  return ok;
}

/* Are later runs right with such a workspace? */
static int is_saved_by(hearing *h, int scratch) {
  unsigned same;
  return run_fresh_plan(h, 3, scratch, &same) && same == 7;
}

/* Later runs of the plan gave other bits. Chance, or does every plan begin so
   and change with its second run? Numbers of runs differ, so that what changes
   with every other run of all is not taken for it. */
static void find_what_is_kept(hearing *h) {
  unsigned three, two;
  if (!run_fresh_plan(h, 3, MLA_SCRATCH_POISON, &three) ||
      !run_fresh_plan(h, 2, MLA_SCRATCH_POISON, &two) || (three & 3) != 1 ||
      two != 1)
    return;
  if (is_saved_by(h, MLA_SCRATCH_LEFT) || is_saved_by(h, MLA_POISON_ZERO))
    say(h, MLA_FOLLOWS_LEFT,
        "later runs of a plan need a workspace as the first left it, or zeros");
  else
    say(h, MLA_FOLLOWS_RUNS, "later runs of a plan differ from its first");
}

/* --------------------------------------------------------- what bits follow */

/* With something else in the workspace, and in nothing but it. */
static int follows_scratch(hearing *h) {
  static const unsigned char others[] = {MLA_POISON_LARGE, MLA_POISON_ZERO};
  int follows = 0;
  for (size_t i = 0; i < sizeof others && !follows; i++) {
    h->place.scratch = others[i];
    follows = again(h, MLA_SIDE_END) == 0;
  }
  h->place.scratch = MLA_SCRATCH_POISON;
  return follows;
}

void mla_find_cause(hearing *h) {
  mla_verdict *verdict = h->verdict;
  verdict->kind = MLA_VERDICT_FAIL;
  for (int i = 0; i < 2; i++) {
    int same = again(h, MLA_SIDE_END);
    if (same < 0) return;
    if (same) continue;
    verdict->differs = verdict->unstable = 1;
    find_what_is_kept(h);
    return;
  }
  verdict->differs = follows_scratch(h);
  if (verdict->differs) return;
  if (again(h, MLA_SIDE_START) == 0)
    say(h, MLA_FOLLOWS_ADDRESS, "the bits follow where tensors lie in memory");
  else
    say(h, MLA_FOLLOWS_UNUSED,
        "the bits follow bytes that must not be read: page tails, unused "
        "pages, padding, what lies round a tensor");
}

/* ---------------------------------------------------- where tensors begin */

/* Is every output right, of a run with the tensors there? */
static int is_right(hearing *h, mla_side side) {
  if (!mla_hearing_run(h, h->v, poison_of(h), side)) return 0;
  h->verdict->repeated++;
  for (int32_t i = 0; i < h->verdict->outputs; i++) {
    mla_output_verdict o;
    if (mla_hearing_compare(h, h->verdict->output[i].slot, poison_of(h), &o) !=
            MLA_OK ||
        mla_output_fails(&o))
      return 0;
  }
  return 1;
}

void mla_find_alignment(hearing *h) {
  mla_verdict *verdict = h->verdict;
  if (!mla_outputs_fail(verdict) || verdict->differs || verdict->fences[0])
    return;
  if (is_right(h, MLA_SIDE_EVEN) && !is_right(h, MLA_SIDE_END))
    say(h, MLA_FOLLOWS_ALIGNMENT,
        "right where tensors begin at multiples of 256 bytes, wrong where "
        "they may begin as well");
}

/* ------------------------------------------------- what is hidden by NaN */

/* Of what is compared as values: is something wrong, and is all of that not
   finite? */
static int is_blank(const hearing *h) {
  int64_t bad = 0, blank = 0;
  for (int32_t i = 0; i < h->verdict->outputs; i++) {
    const mla_output_verdict *o = &h->verdict->output[i];
    if (o->compare == MLA_COMPARE_BYTES || o->unwritten || !h->first[o->slot])
      return 0;
    bad += o->bad;
    blank += o->not_finite;
  }
  return bad > 0 && bad == blank;
}

void mla_find_calm(hearing *h, mla_vector *calm, mla_evidence *e) {
  const mla_verdict *v = h->verdict;
  mla_vector_init(calm);
  if (!h->v->has_recipe || v->differs || v->fences[0] || !is_blank(h)) return;
  if (mla_generate(&h->v->recipe, h->v->seed, MLA_POISON_ZERO, calm, &h->err) !=
          MLA_OK ||
      !mla_hearing_serve_earlier(h, MLA_POISON_ZERO) ||
      !mla_hearing_run(h, calm, MLA_POISON_ZERO, MLA_SIDE_END))
    return;
  e->calm = calm;
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (h->first[s]) e->calm_got[s] = mla_place_bytes(&h->place, s);
}
