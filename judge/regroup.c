/*
 * regroup.c - the first request of a batch, alone.
 */
#include "regroup.h"

#include <string.h>

#include "dtype.h"
#include "generate.h"
#include "place.h"
#include "tensor.h"

/* One run on the host's or the device's memory. */
typedef struct lone_run {
  mla_device *device;
  mla_vector v;
  mla_limits limits;
  mla_answer answer;
  mla_plan *plan;
  mla_place place;
} lone_run;

static int can_regroup(const mla_vector *v) {
  int attends =
      v->problem.op == MLA_OP_DECODE || v->problem.op == MLA_OP_PREFILL;
  return attends && v->has_recipe && v->recipe.num[MLA_K_REQUESTS] > 1 &&
         mla_case_at(&v->recipe, MLA_K_Q, 0) > 0;
}

static void first_request(mla_case *c) {
  c->num[MLA_K_REQUESTS] = 1;
  for (int i = 0; i < MLA_CASE_LISTS; i++)
    if (c->list[i].count > 1) c->list[i].count = 1;
}

static mla_status run(lone_run *r, mla_error *err) {
  const unsigned char poison = MLA_POISON_NAN;
  r->limits = mla_vector_limits(&r->v);
  r->answer = mla_answer_init();
  mla_status status =
      mla_query(r->device, &r->v.problem, &r->limits, &r->answer, err);
  if (status != MLA_OK || !r->answer.supported) return status;
  status = mla_plan_create(r->device, &r->v.problem, &r->limits, &r->plan, err);
  if (status == MLA_OK)
    status = mla_place_new(r->device, &r->v, &r->answer, 0, &r->place, err);
  if (status == MLA_OK)
    status = mla_place_fill(&r->place, poison, MLA_SIDE_END, err);
  if (status != MLA_OK) return status;
  mla_args args = mla_place_args(&r->place);
  status = mla_run(r->plan, &args, mla_place_workspace(&r->place),
                   r->answer.workspace_bytes, NULL, err);
  return status == MLA_OK ? mla_place_fetch(&r->place, err) : status;
}

/* Element by element: strides of the first axis may differ. */
static int same_rows(const mla_tensor *a, const unsigned char *x,
                     const mla_tensor *b, const unsigned char *y,
                     int64_t tokens) {
  size_t size = (size_t)(mla_dtype_bits(a->dtype) / 8);
  int64_t last = a->rank > 2 ? a->shape[2] : 1;
  for (int64_t t = 0; t < tokens; t++)
    for (int64_t h = 0; h < a->shape[1]; h++)
      for (int64_t d = 0; d < last; d++) {
        size_t i = (size_t)(mla_at2(a, t, h) + d) * size;
        size_t k = (size_t)(mla_at2(b, t, h) + d) * size;
        if (memcmp(x + i, y + k, size) != 0) return 0;
      }
  return 1;
}

mla_status mla_regroup_check(mla_device *device, const mla_vector *v,
                             unsigned char *const *got, int *differs,
                             mla_error *err) {
  lone_run r;
  *differs = 0;
  if (!can_regroup(v)) return MLA_OK;
  memset(&r, 0, sizeof r);
  r.device = device;
  mla_case c = v->recipe;
  first_request(&c);
  mla_status status = mla_generate(&c, v->seed, MLA_POISON_NAN, &r.v, err);
  if (status == MLA_OK) status = run(&r, err);
  for (int s = 0; s < MLA_T_COUNT; s++) {
    if (status != MLA_OK || !r.answer.supported || !got[s]) continue;
    if (s != MLA_T_OUT && s != MLA_T_LSE) continue;
    if (!same_rows(&v->tensor[s], got[s], &r.v.tensor[s],
                   mla_place_bytes(&r.place, s), mla_case_at(&c, MLA_K_Q, 0)))
      *differs = 1;
  }
  mla_place_free(&r.place);
  mla_plan_free(r.plan);
  mla_vector_free(&r.v);
  return status;
}
