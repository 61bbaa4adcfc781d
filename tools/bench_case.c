/*
 * bench_case.c - a case from its name to its time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "compare.h"
#include "dtype.h"
#include "generate.h"
#include "place.h"
#include "tensor.h"

enum { MOST_SETS = 64 };

/* One call, and the same with other pages. */
typedef struct setting {
  mla_case recipe;
  mla_vector v;
  mla_limits limits;
  mla_answer answer;
  mla_plan *plan;
  mla_place place;
  int sets;
  int32_t moved; /* the slot that differs from set to set */
  mla_tensor tensor[MOST_SETS][MLA_T_COUNT];
  void *memory[MOST_SETS]; /* of the slot that differs */
  mla_args args[MOST_SETS];
  mla_error err;
} setting;

static int end(bench_result *r, int state, const char *reason) {
  r->state = state;
  snprintf(r->reason, sizeof r->reason, "%s", reason);
  return 0;
}

/* ------------------------------------------------------------------- work */

/* What a call must at least move: each tensor once, a cache's used entries
   alone. */
static double least_bytes(const mla_case *c) {
  mla_case bare = *c;
  bare.num[MLA_K_SPARE] = 0;
  double bytes = mla_case_bytes(&bare);
  mla_problem p = mla_case_problem(&bare);
  if (!(p.flags & MLA_SPARSE)) return bytes;
  double entry = (double)mla_problem_entry(&p) *
                 mla_dtype_bits(mla_format_dtype(p.cache_format)) / 8;
  if (mla_format_dtype(p.cache_format) == MLA_DTYPE_NONE)
    entry = (double)mla_problem_entry(&p);
  double slots = (double)mla_case_sym(&bare, MLA_S_NB) * p.block_size;
  double listed = (double)mla_case_tokens(&bare) * p.topk;
  return listed < slots ? bytes - (slots - listed) * entry : bytes;
}

/* ------------------------------------------------------- pages and weights */

/* Does it read pages, so that others would do as well? */
static int reads_pages(int32_t op) {
  return op == MLA_OP_DECODE || op == MLA_OP_INDEX || op == MLA_OP_KV_READ;
}

static int32_t slot_to_move(const mla_vector *v) {
  if (v->problem.flags & MLA_SPARSE) return MLA_T_INDICES;
  return reads_pages(v->problem.op) && v->role[MLA_T_BLOCK_TABLE]
             ? MLA_T_BLOCK_TABLE
             : -1;
}

/* Weights of a product, which a layer reads once; -1: there are none. */
static int32_t weights_of(int32_t op) {
  switch (op) {
    case MLA_OP_MATMUL: return MLA_T_B;
    case MLA_OP_Q_ABSORB: return MLA_T_W_UK;
    case MLA_OP_V_EXPAND: return MLA_T_W_UV;
    default: return -1;
  }
}

/* Blocks that one set needs. */
static int64_t used_blocks(const mla_case *c) {
  mla_case bare = *c;
  bare.num[MLA_K_SPARE] = 0;
  return mla_case_sym(&bare, MLA_S_NB);
}

/* Spare blocks for as many sets as walk through `rotate` bytes. */
static void add_pages(mla_case *c, int64_t rotate) {
  mla_problem p = mla_case_problem(c);
  if (!reads_pages(c->op) || !mla_key_use_of(c->op, MLA_K_SPARE)) return;
  int64_t used = used_blocks(c);
  int32_t plain = mla_format_dtype(p.cache_format);
  int64_t bits = plain == MLA_DTYPE_NONE ? 8 : mla_dtype_bits(plain);
  int64_t bytes = used * p.block_size * mla_problem_entry(&p) * bits / 8;
  int64_t sets = bytes > 0 ? rotate / bytes + 1 : 1;
  if (sets > MOST_SETS) sets = MOST_SETS;
  c->num[MLA_K_SPARE] = used * (sets - 1);
}

/* The k-th set's list: every block that is one moves on by what a set uses. */
static void move_list(const setting *s, int k, void *to) {
  const mla_tensor *t = &s->v.tensor[s->moved];
  int64_t page = s->moved == MLA_T_INDICES ? s->v.problem.block_size : 1;
  int64_t all = s->v.tensor[MLA_T_CACHE].shape[0] * page;
  int64_t step = used_blocks(&s->recipe) * page * k;
  int64_t n = mla_tensor_extent(t) / (int64_t)sizeof(int32_t);
  const int32_t *from = t->data;
  int32_t *list = to;
  for (int64_t i = 0; i < n; i++)
    list[i] = from[i] < 0 || from[i] >= all ? from[i]
                                            : (int32_t)((from[i] + step) % all);
}

/* What set k has instead: a list moved on, or the same weights elsewhere. */
static mla_status put_moved(setting *s, mla_device *device, int k) {
  const mla_backend *b = mla_device_backend(device);
  const mla_tensor *from = &s->v.tensor[s->moved];
  uint64_t bytes = (uint64_t)mla_tensor_extent(from);
  void *list = malloc((size_t)bytes);
  if (!list) return MLA_OUT_OF_MEMORY;
  if (s->moved == weights_of(s->v.problem.op))
    memcpy(list, from->data, (size_t)bytes);
  else
    move_list(s, k, list);
  if (!b->mem_alloc) {
    s->memory[k] = list;
    return MLA_OK;
  }
  mla_handle *h = mla_device_handle(device);
  mla_status status = b->mem_alloc(h, bytes, &s->memory[k], &s->err);
  if (status == MLA_OK)
    status = b->mem_to_device(h, s->memory[k], list, bytes, NULL, &s->err);
  if (status == MLA_OK && b->stream_sync)
    status = b->stream_sync(h, NULL, &s->err);
  free(list);
  return status;
}

/* How many sets there are, and what differs. */
static void choose_sets(setting *s, int64_t rotate) {
  const int32_t weights = weights_of(s->v.problem.op);
  int64_t sets = 1;
  s->moved = weights >= 0 ? weights : slot_to_move(&s->v);
  if (weights >= 0)
    sets += rotate / mla_tensor_extent(&s->v.tensor[weights]);
  else if (s->moved >= 0)
    sets = s->v.tensor[MLA_T_CACHE].shape[0] / used_blocks(&s->recipe);
  s->sets = (int)(sets < MOST_SETS ? sets : MOST_SETS);
}

static mla_status make_sets(setting *s, mla_device *device, int64_t rotate) {
  mla_status status = MLA_OK;
  choose_sets(s, rotate);
  for (int k = 0; k < s->sets && status == MLA_OK; k++) {
    memcpy(s->tensor[k], s->place.tensor, sizeof s->tensor[k]);
    s->args[k] =
        (mla_args){(uint32_t)sizeof s->args[k], MLA_T_COUNT, s->tensor[k]};
    if (k == 0) continue;
    status = put_moved(s, device, k);
    s->tensor[k][s->moved].data = s->memory[k];
  }
  return status;
}

static void drop_sets(setting *s, mla_device *device) {
  const mla_backend *b = mla_device_backend(device);
  for (int k = 1; k < s->sets; k++) {
    if (!b->mem_alloc)
      free(s->memory[k]);
    else if (s->memory[k])
      b->mem_free(mla_device_handle(device), s->memory[k]);
  }
}

/* ------------------------------------------------------------- the answer */

static int compare_all(setting *s, const mla_expectation *e, bench_result *r) {
  for (int slot = 0; slot < MLA_T_COUNT; slot++) {
    mla_output_verdict o;
    int is_output =
        s->v.role[slot] == MLA_ROLE_OUT || s->v.role[slot] == MLA_ROLE_INOUT;
    if (!is_output || s->v.compare[slot] == MLA_COMPARE_NONE) continue;
    memset(&o, 0, sizeof o);
    mla_status status =
        mla_compare_output(&s->v, e, slot, &s->answer.numerics,
                           mla_place_bytes(&s->place, slot), 0, &o, &s->err);
    if (status != MLA_OK) return end(r, BENCH_ERROR, s->err.message);
    if (o.worst > r->ratio) r->ratio = o.worst;
    if (mla_output_fails(&o))
      return end(r, BENCH_WRONG, "the answer is wrong: mlacheck run --case");
  }
  return 1;
}

/* A time is worth something only when the answer is right. */
static int check(setting *s, bench_result *r) {
  mla_expectation e;
  memset(&e, 0, sizeof e);
  uint64_t bytes = s->answer.workspace_bytes;
  mla_status status =
      mla_expectation_few(&s->v, &s->answer.numerics, &e, &s->err);
  if (status == MLA_OK)
    status = mla_run(s->plan, &s->args[0], mla_place_workspace(&s->place),
                     bytes, NULL, &s->err);
  if (status == MLA_OK) status = mla_place_fetch(&s->place, &s->err);
  int ok = status == MLA_OK ? compare_all(s, &e, r)
                            : end(r, BENCH_ERROR, s->err.message);
  mla_expectation_free(&e);
  return ok;
}

static int prepare(setting *s, mla_device *device, const bench_how *how,
                   bench_result *r) {
  mla_status status = mla_case_parse(r->id, &s->recipe, &s->err);
  if (status != MLA_OK) return end(r, BENCH_ERROR, s->err.message);
  r->flops = mla_case_flops(&s->recipe);
  r->bytes = least_bytes(&s->recipe);
  add_pages(&s->recipe, how->rotate);
  mla_problem p = mla_case_problem(&s->recipe);
  s->limits = mla_case_limits(&s->recipe);
  s->answer = mla_answer_init();
  status = mla_query(device, &p, &s->limits, &s->answer, &s->err);
  if (status != MLA_OK) return end(r, BENCH_ERROR, s->err.message);
  if (!s->answer.supported) return end(r, BENCH_UNSUPPORTED, s->answer.reason);
  snprintf(r->kernel, sizeof r->kernel, "%s", s->answer.kernel);
  status = mla_generate_large(&s->recipe, 1, &s->v, &s->err);
  if (status == MLA_OK) s->limits = mla_vector_limits(&s->v);
  if (status == MLA_OK)
    status =
        mla_plan_create(device, &s->v.problem, &s->limits, &s->plan, &s->err);
  if (status == MLA_OK) s->answer = *mla_plan_answer(s->plan);
  if (status == MLA_OK)
    status = mla_place_new(device, &s->v, &s->answer, 0, &s->place, &s->err);
  if (status == MLA_OK)
    status = mla_place_fill(&s->place, 0, MLA_SIDE_START, &s->err);
  if (status == MLA_OK) status = make_sets(s, device, how->rotate);
  return status == MLA_OK ? 1 : end(r, BENCH_ERROR, s->err.message);
}

static void measure(setting *s, mla_device *device, const bench_how *how,
                    bench_result *r) {
  bench_times t = {0, 0, 0};
  mla_status status =
      bench_measure(device, s->plan, s->args, s->sets,
                    mla_place_workspace(&s->place), how, &t, &s->err);
  r->runs = t.runs;
  r->seconds_min = t.min;
  r->seconds_median = t.median;
  r->state = BENCH_TIMED;
  if (status != MLA_OK) end(r, BENCH_ERROR, s->err.message);
}

void bench_case(mla_device *device, const char *id, const bench_how *how,
                bench_result *r) {
  setting *s = calloc(1, sizeof *s);
  memset(r, 0, sizeof *r);
  r->id = malloc(strlen(id) + 1);
  if (!s || !r->id) {
    free(s);
    end(r, BENCH_ERROR, "no memory");
    return;
  }
  memcpy(r->id, id, strlen(id) + 1);
  s->err = mla_error_init();
  mla_vector_init(&s->v);
  if (prepare(s, device, how, r) && check(s, r)) measure(s, device, how, r);
  drop_sets(s, device);
  mla_place_free(&s->place);
  mla_plan_free(s->plan);
  mla_vector_free(&s->v);
  free(s);
}

double bench_peak_share(const bench_result *r, const peaks *p) {
  double s = r->seconds_min, share = 0;
  if (r->state != BENCH_TIMED || s <= 0) return 0;
  if (p->flops > 0) share = r->flops / s / p->flops;
  if (p->bytes > 0 && r->bytes / s / p->bytes > share)
    share = r->bytes / s / p->bytes;
  return share;
}

/* A case's seconds; 0: the device does not do it. */
static bench_result time_of(mla_device *device, const char *id,
                            const bench_how *how) {
  bench_result r;
  bench_case(device, id, how, &r);
  free(r.id);
  if (r.state != BENCH_TIMED) r.flops = r.bytes = 0;
  return r;
}

/* A copy writes as much as it reads, the merge reads eight times as much. */
void peaks_of_device(mla_device *device, const bench_how *how, peaks *p) {
  static const char product[] = "matmul:bf16:m8192,n8192,k8192";
  static const char *const moves[] = {"kv_copy:bf16:nb4096,nbs4096,copies4096",
                                      "merge:f32:n256,h128,s8,v512"};
  memset(p, 0, sizeof *p);
  bench_result r = time_of(device, product, how);
  if (r.flops > 0) p->flops = r.flops / r.seconds_min;
  snprintf(p->flops_by, sizeof p->flops_by, "%s, its own kernel", product);
  for (int i = 0; i < 2; i++) {
    r = time_of(device, moves[i], how);
    if (r.bytes <= 0 || r.bytes / r.seconds_min <= p->bytes) continue;
    p->bytes = r.bytes / r.seconds_min;
    snprintf(p->bytes_by, sizeof p->bytes_by, "%s, read and written", moves[i]);
  }
}
