/*
 * repeat.c - the same call again, where other bytes lie in what it must not
 * read.
 */
#include <stdio.h>
#include <string.h>

#include "cause.h"
#include "compare.h"
#include "hearing.h"
#include "spans.h"
#include "tensor.h"

static int64_t bytes_of(const mla_vector *v) {
  int64_t bytes = 0;
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (v->role[s] && v->alias[s] < 0) bytes += mla_span_bytes(&v->tensor[s]);
  return bytes;
}

/* Files hold their own bytes: those are what was asked. */
int mla_hearing_can_remake(const mla_vector *v) {
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (v->stored[s].value || v->stored[s].bytes) return 0;
  return v->has_recipe;
}

/* ------------------------------------------------------------ the same bits */

/*
 * A byte that the first run wrote is written alike. One that it left alone
 * may hold what the second call put there, or what a write of the very same
 * byte put there in the first.
 */
static int same_bytes(const hearing *h, int s) {
  const unsigned char *before = h->v->tensor[s].data, *first = h->first[s];
  const unsigned char *other = h->place.vector->tensor[s].data;
  const unsigned char *second = mla_place_bytes(&h->place, s);
  const mla_tensor *t = &h->v->tensor[s];
  if (mla_span_same(t, first, second)) return 1;
  if (other == before) return 0;
  for (int64_t k = 0; k < mla_span_count(t); k++) {
    mla_span span = mla_span_at(t, k);
    for (int64_t i = span.at; i < span.at + span.bytes; i++) {
      if (second[i] == first[i]) continue;
      if (first[i] != before[i] || second[i] != other[i]) return 0;
    }
  }
  return 1;
}

int mla_hearing_run_again(hearing *h, const mla_vector *v, unsigned char poison,
                          mla_side side) {
  int same = 1;
  if (!mla_hearing_run(h, v, poison, side)) return -1;
  mla_hearing_check_fences(h, poison);
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (h->first[s]) same &= same_bytes(h, s);
  return same;
}

/* -------------------------------------------------------- without promises */

/* Bits may differ; values must be right again. Only the first failure is
   kept: the first run's figures are the report's. */
static void compare_again(hearing *h, unsigned char poison) {
  mla_verdict *verdict = h->verdict;
  for (int32_t i = 0; i < verdict->outputs; i++) {
    mla_output_verdict *kept = &verdict->output[i], o;
    if (kept->compare == MLA_COMPARE_BYTES || mla_output_fails(kept)) continue;
    mla_status status = mla_hearing_compare(h, kept->slot, poison, &o);
    if (status != MLA_OK || !mla_output_fails(&o)) continue;
    *kept = o;
    verdict->kind = MLA_VERDICT_FAIL;
  }
}

/* ---------------------------------------------------------------- together */

/* 1: nothing new came out. */
static int repeat_with(hearing *h, mla_poison poison, mla_side side) {
  mla_verdict *verdict = h->verdict;
  const mla_vector *v = h->v;
  mla_vector other;
  int same = 1;
  mla_vector_init(&other);
  if (mla_hearing_can_remake(v) &&
      mla_generate(&v->recipe, v->seed, poison, &other, &h->err) == MLA_OK)
    v = &other;
  if (h->answer.determinism != MLA_DETERMINISM_NONE) {
    same = mla_hearing_run_again(h, v, (unsigned char)poison, side);
    verdict->repeated++;
  } else if (mla_hearing_run(h, v, (unsigned char)poison, side)) {
    mla_hearing_check_fences(h, (unsigned char)poison);
    compare_again(h, (unsigned char)poison);
  }
  h->place.vector = h->v;
  mla_vector_free(&other);
  if (same == 0) mla_find_cause(h);
  return same > 0;
}

void mla_repeat(hearing *h) {
  if (!h->options->repeat) return;
  if (!repeat_with(h, MLA_POISON_LARGE, MLA_SIDE_START)) return;
  if (bytes_of(h->v) <= MLA_REPEAT_BYTES)
    repeat_with(h, MLA_POISON_ZERO, MLA_SIDE_END);
}
