/*
 * regroup.c - the first request of a batch, alone; the others without its
 * tokens; all of them, elsewhere. A product's first row alone, and half of its
 * rows.
 */
#include "regroup.h"

#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "dtype.h"
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
  int32_t op = v->problem.op;
  int by_request =
      op == MLA_OP_DECODE || op == MLA_OP_PREFILL || op == MLA_OP_INDEX;
  return by_request && v->has_recipe;
}

int mla_hearing_is_large(const mla_vector *v) {
  int64_t bytes = 0;
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (v->role[s] && v->alias[s] < 0)
      bytes += mla_tensor_extent(&v->tensor[s]);
  return bytes > MLA_REPEAT_BYTES;
}

static int can_be_alone(const mla_vector *v) {
  return can_regroup(v) && v->recipe.num[MLA_K_REQUESTS] > 1 &&
         mla_case_at(&v->recipe, MLA_K_Q, 0) > 0;
}

/* The first request asks nothing: tokens of the others move up. 0: none has
   any, or they are too many to be named. */
static int without_first(mla_case *c) {
  mla_case_list *q = &c->list[mla_key_spec_of(MLA_K_Q)->list];
  int64_t requests = c->num[MLA_K_REQUESTS], others = 0;
  if (requests > MLA_CASE_LIST_MAX) return 0;
  for (int64_t b = requests - 1; b > 0; b--) {
    q->value[b] = (int32_t)mla_case_at(c, MLA_K_Q, b);
    others += q->value[b];
  }
  q->value[0] = 0;
  q->count = (int32_t)requests;
  return others > 0;
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

/* Outputs whose rows are those of requests, wherever these lie. */
static int has_rows(int slot) {
  return slot == MLA_T_OUT || slot == MLA_T_LSE || slot == MLA_T_POSITIONS ||
         slot == MLA_T_LOGITS || slot == MLA_T_Q_LATENT;
}

/* Columns that both have: rows of logits are as long as the longest request
   in the batch. */
static int64_t columns(const mla_tensor *a, const mla_tensor *b) {
  return a->shape[1] < b->shape[1] ? a->shape[1] : b->shape[1];
}

/* Rows of a from a token on, and b's first. Element by element: strides of the
   first axis may differ. */
static int same_rows(const mla_tensor *a, int64_t from, const unsigned char *x,
                     const mla_tensor *b, const unsigned char *y,
                     int64_t tokens) {
  size_t size = (size_t)(mla_dtype_bits(a->dtype) / 8);
  int64_t last = a->rank > 2 ? a->shape[2] : 1;
  for (int64_t t = 0; t < tokens; t++)
    for (int64_t h = 0; h < columns(a, b); h++)
      for (int64_t d = 0; d < last; d++) {
        size_t i = (size_t)(mla_at2(a, from + t, h) + d) * size;
        size_t k = (size_t)(mla_at2(b, t, h) + d) * size;
        if (memcmp(x + i, y + k, size) != 0) return 0;
      }
  return 1;
}

static void release(lone_run *r) {
  mla_place_free(&r->place);
  mla_plan_free(r->plan);
  mla_vector_free(&r->v);
}

/* A part of the batch, whose first token is the batch's `from`-th. */
static mla_status check_part(mla_device *device, const mla_vector *v,
                             const mla_case *part, int64_t from,
                             unsigned char *const *got, int *differs,
                             mla_error *err) {
  lone_run r;
  memset(&r, 0, sizeof r);
  r.device = device;
  mla_status status = mla_generate(part, v->seed, MLA_POISON_NAN, &r.v, err);
  if (status == MLA_OK) status = run(&r, err);
  int64_t tokens = mla_case_live_tokens(part);
  for (int s = 0; s < MLA_T_COUNT; s++) {
    if (status != MLA_OK || !r.answer.supported || !got[s]) continue;
    if (!has_rows(s)) continue;
    if (!same_rows(&v->tensor[s], from, got[s], &r.v.tensor[s],
                   mla_place_bytes(&r.place, s), tokens))
      *differs = 1;
  }
  release(&r);
  return status;
}

/* Where a case says how many rows a product has; MLA_K_COUNT: it is none. */
static int32_t rows_of_product(const mla_vector *v) {
  if (!v->has_recipe) return MLA_K_COUNT;
  switch (v->problem.op) {
    case MLA_OP_MATMUL: return MLA_K_M;
    case MLA_OP_Q_ABSORB:
    case MLA_OP_V_EXPAND: return MLA_K_TOKENS;
    default: return MLA_K_COUNT;
  }
}

static mla_status check_rows(mla_device *device, const mla_vector *v,
                             int32_t key, unsigned char *const *got,
                             int *differs, mla_error *err) {
  mla_case part = v->recipe;
  const int64_t all = part.num[key];
  mla_status status = MLA_OK;
  for (int64_t n = 1; n < all && status == MLA_OK && !*differs;
       n = n < all / 2 ? all / 2 : all) {
    part.num[key] = n;
    status = check_part(device, v, &part, 0, got, differs, err);
  }
  *differs *= 3;
  return status;
}

mla_status mla_regroup_check(mla_device *device, const mla_vector *v,
                             unsigned char *const *got, int *differs,
                             mla_error *err) {
  const int32_t key = rows_of_product(v);
  *differs = 0;
  if (key != MLA_K_COUNT)
    return mla_hearing_is_large(v)
               ? MLA_OK
               : check_rows(device, v, key, got, differs, err);
  if (!can_be_alone(v)) return MLA_OK;
  mla_case part = v->recipe;
  first_request(&part);
  mla_status status = check_part(device, v, &part, 0, got, differs, err);
  part = v->recipe;
  if (status != MLA_OK || *differs || mla_hearing_is_large(v) ||
      !without_first(&part))
    return status;
  int64_t from = mla_case_at(&v->recipe, MLA_K_Q, 0);
  status = check_part(device, v, &part, from, got, differs, err);
  *differs *= 2;
  return status;
}

/* --------------------------------------------------------------- elsewhere */

#define WAYS 3

/* The same requests, ever less changed: a backend may say no to some. */
static int change(mla_case *c, int way) {
  const mla_key_use *splits = mla_key_use_of(c->op, MLA_K_SPLITS);
  const mla_key_use *chunk = mla_key_use_of(c->op, MLA_K_CHUNK);
  int64_t page = c->num[MLA_K_PAGE];
  c->num[MLA_K_PAGES] = c->num[MLA_K_PAGES] == MLA_PAGES_REVERSED
                            ? MLA_PAGES_RANDOM
                            : MLA_PAGES_REVERSED;
  if (way < 2)
    c->num[MLA_K_STRIDES] = c->num[MLA_K_STRIDES] == MLA_STRIDES_DENSE
                                ? MLA_STRIDES_PADDED
                                : MLA_STRIDES_DENSE;
  if (way < 1) {
    if (c->num[MLA_K_EXTRA]) c->num[MLA_K_EXTRA_PAGE] = mla_case_extra_page(c);
    /* Requests share whole pages of a prefix: other pages, other data. */
    if (!c->num[MLA_K_PREFIX])
      c->num[MLA_K_PAGE] = page % 2 || page < 2 ? page * 2 : page / 2;
    if (splits) c->num[MLA_K_SPLITS] = c->num[MLA_K_SPLITS] ? 0 : 3;
    if (chunk) c->num[MLA_K_CHUNK] = c->num[MLA_K_CHUNK] ? 0 : 16;
  }
  return mla_case_check(c, NULL) == MLA_OK;
}

static void say_elsewhere(const lone_run *r, const mla_output_verdict *o,
                          mla_verdict *verdict) {
  verdict->kind = MLA_VERDICT_FAIL;
  if (verdict->reason[0]) return;
  snprintf(verdict->reason, sizeof verdict->reason,
           "as %.200s, %s is wrong: %lld values, %lld not written", r->v.id,
           mla_slot_name(o->slot), (long long)o->bad, (long long)o->unwritten);
}

/* What failed is the case as it is there: that is judged, with all that is done
   to tell why, and explained. */
static void observe(hearing *h, const lone_run *r) {
  mla_judge_options how = *h->options;
  mla_verdict there;
  if (!how.observer) return;
  how.has_digest = 0;
  mla_judge_vector(h->base, &r->v, &how, &there);
  if (there.kind != MLA_VERDICT_FAIL) return;
  h->verdict->look = there.look;
  h->observed = 1;
}

/* Expected values are those of the case itself. */
static void compare_all(hearing *h, const lone_run *r) {
  int fails = 0;
  mla_error err = mla_error_init();
  for (int32_t i = 0; i < h->verdict->outputs; i++) {
    mla_output_verdict o = h->verdict->output[i];
    if (o.compare == MLA_COMPARE_BYTES) continue;
    unsigned char own = mla_vector_poison(&r->v, o.slot, MLA_POISON_NAN);
    if (mla_compare_output(&r->v, &h->expectation, o.slot, &r->answer.numerics,
                           mla_place_bytes(&r->place, o.slot), own, &o,
                           &err) != MLA_OK ||
        !mla_output_fails(&o))
      continue;
    say_elsewhere(r, &o, h->verdict);
    fails = 1;
  }
  if (fails) observe(h, r);
}

/* A row's bits follow from its own data, not from where that lies. */
static void compare_bits(hearing *h, const lone_run *r) {
  for (int s = 0; s < MLA_T_COUNT; s++) {
    if (!h->first[s] || !has_rows(s)) continue;
    int64_t live = mla_vector_live(h->v, s);
    if (live < 0) live = h->v->tensor[s].shape[0];
    if (same_rows(&h->v->tensor[s], 0, h->first[s], &r->v.tensor[s],
                  mla_place_bytes(&r->place, s), live))
      continue;
    mla_hearing_end(h, MLA_VERDICT_FAIL, "as %.200s, %s has other bits",
                    r->v.id, mla_slot_name(s));
    h->verdict->mates = 1;
  }
}

/* The expected values depend on how a backend says that it dequantises. */
static int same_numerics(const mla_numerics *a, const mla_numerics *b) {
  return a->u_acc == b->u_acc && a->u_p == b->u_p && a->u_mid == b->u_mid &&
         a->dequant == b->dequant && a->q_round == b->q_round;
}

/* 1: the backend takes it so. */
static int judge_way(hearing *h, int way, int bits) {
  lone_run r;
  mla_error err = mla_error_init();
  mla_case c = h->v->recipe;
  if (!change(&c, way)) return 0;
  memset(&r, 0, sizeof r);
  r.device = h->device;
  mla_status status = mla_generate(&c, h->v->seed, MLA_POISON_NAN, &r.v, &err);
  int made = status == MLA_OK;
  memcpy(r.v.hunts, h->v->hunts, sizeof r.v.hunts);
  if (made) status = run(&r, &err);
  int taken = made && r.answer.supported &&
              same_numerics(&r.answer.numerics, &h->answer.numerics);
  if (taken && status != MLA_OK)
    mla_hearing_end(h, MLA_VERDICT_FAIL, "as %.200s: %s: %.80s", r.v.id,
                    mla_status_name(status), err.message);
  else if (taken && bits)
    compare_bits(h, &r);
  else if (taken)
    compare_all(h, &r);
  release(&r);
  return taken;
}

void mla_regroup_elsewhere(hearing *h) {
  int taken = 0;
  if (!can_regroup(h->v) || mla_hearing_is_large(h->v)) return;
  if (h->verdict->kind != MLA_VERDICT_PASS) return;
  for (int way = 0; way < WAYS && !taken; way++) taken = judge_way(h, way, 0);
  if (h->answer.determinism == MLA_DETERMINISM_BATCH_INVARIANT &&
      h->verdict->kind == MLA_VERDICT_PASS)
    judge_way(h, 1, 1);
}
