/* The vtable of the planted backend: options, queries, plans. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_layout.h"
#include "dtype.h"
#include "error.h"
#include "planted_core.h"
#include "planted_kept.h"

static int32_t device_count(mla_error *err) {
  (void)err;
  return 1;
}

static mla_status device_info(int32_t device, mla_device_info *info,
                              mla_error *err) {
  (void)device;
  (void)err;
  info->memory_space = MLA_MEMORY_HOST;
  info->compute_units = 1;
  snprintf(info->name, sizeof info->name, "planted faults");
  snprintf(info->arch, sizeof info->arch, "portable");
  return MLA_OK;
}

/* ---------------------------------------------------------------- options */

static mla_status choose_fault(mla_handle *h, const char *name,
                               mla_error *err) {
  h->fault = planted_fault_find(name);
  h->a = planted_fault_at(h->fault)->a;
  h->x = planted_fault_at(h->fault)->x;
  if (h->fault != PLANTED_NONE || !strcmp(name, "none")) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "fault",
                  "there is no planted fault '%s'", name);
}

static mla_status set_option(mla_handle *h, const char *key, const char *value,
                             mla_error *err) {
  int32_t tries = planted_fault_at(h->fault)->tries;
  if (!strcmp(key, "fault")) return choose_fault(h, value, err);
  if (!strcmp(key, "x")) {
    h->x = strtod(value, NULL);
  } else if (!strcmp(key, "head")) {
    h->head = strtoll(value, NULL, 10);
  } else if (!strcmp(key, "request")) {
    h->request = strtoll(value, NULL, 10);
  } else if (!strcmp(key, "a")) {
    h->a = (int32_t)strtol(value, NULL, 10);
    if (h->a < 1 && tries != PLANTED_OFFSETS)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "a", "a is '%s', at least 1",
                      value);
  } else {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                    "unknown option '%s' (fault, a, x, head, request)", key);
  }
  return MLA_OK;
}

static mla_status parse_options(mla_handle *h, const char *options,
                                mla_error *err) {
  char text[256];
  snprintf(text, sizeof text, "%s", options ? options : "");
  for (char *rest = text; rest && *rest;) {
    char *pair = rest, *end = strchr(rest, ';');
    rest = end ? end + 1 : NULL;
    if (end) *end = 0;
    char *value = strchr(pair, '=');
    if (!value)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                      "option '%s' has no value", pair);
    *value++ = 0;
    mla_status st = set_option(h, pair, value, err);
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

/* Of each thread: has it opened a handle? */
static _Thread_local int opener;

int planted_is_opener(void) {
  return opener;
}

static mla_status open_device(int32_t device, const char *options,
                              mla_handle **handle, mla_error *err) {
  (void)device;
  mla_handle *h = calloc(1, sizeof *h);
  if (!h) return MLA_OUT_OF_MEMORY;
  h->head = h->request = -1;
  mla_status st = parse_options(h, options, err);
  if (st != MLA_OK) {
    free(h);
    return st;
  }
  opener = 1;
  *handle = h;
  return MLA_OK;
}

/* What belongs to handles and plans, as a careless port keeps it. */
static int64_t newest_length;
static double first_scale;
static int closed;

int64_t planted_newest_length(void) {
  return newest_length;
}

double planted_first_scale(void) {
  return first_scale;
}

int planted_is_closed(void) {
  return closed;
}

static void close_device(mla_handle *handle) {
  closed = 1;
  free(handle);
}

/* ---------------------------------------------------------------- queries */

static const char *cache_refusal(const mla_problem *p) {
  int attends = p->op == MLA_OP_DECODE || p->op == MLA_OP_PREFILL ||
                p->op == MLA_OP_INDEX;
  int32_t plain = mla_format_dtype(p->cache_format);
  mla_cache_layout layout = mla_cache_layout_of(p);
  if (p->cache_format == MLA_CACHE_F64)
    return "q_dtype: f64 needs the reference";
  if (attends && !layout.quantised && p->q_dtype != MLA_F32 &&
      plain != p->q_dtype)
    return "cache_format: must be that of q, or q f32";
  if (attends && mla_cache_mixed(p->cache_format) && p->q_dtype == MLA_F16)
    return "cache_format: holds bf16, which f16 queries do not";
  return NULL;
}

const char *planted_refusal(const mla_problem *p) {
  int uses_cache = p->op <= MLA_OP_KV_COPY || p->op == MLA_OP_DECODE ||
                   p->op == MLA_OP_INDEX ||
                   (p->op == MLA_OP_PREFILL && (p->flags & MLA_CONTEXT));
  if (p->window) return "window: no sliding window";
  if (p->flags & (MLA_ALIBI | MLA_OUTPUT_SCALE))
    return "flags: neither ALiBi nor an output scale";
  if ((p->flags & MLA_SPARSE) && (p->flags & MLA_SEPARATE_V))
    return "flags: no lists with values apart";
  if ((p->flags & MLA_BLOCK_SCALED) && (p->flags & (MLA_FUSED_Q | MLA_FUSED_O)))
    return "flags: no fused forms of scaled weights";
  if (p->q_dtype == MLA_F64 || p->out_dtype == MLA_F64 ||
      p->weight_dtype == MLA_F64)
    return "q_dtype: f64 needs the reference";
  if (uses_cache && cache_refusal(p)) return cache_refusal(p);
  if (mla_problem_v_dim(p) > 1024 || p->v_head_dim > 1024)
    return "v_dim: at most 1024";
  return NULL;
}

int64_t planted_scratch(int32_t fault, const mla_problem *p,
                        const mla_limits *limits) {
  int64_t dv = p->op == MLA_OP_DECODE ? mla_problem_v_dim(p) : p->v_head_dim;
  int more = fault == PLANTED_WS_CACHED || fault == PLANTED_EMPTY_SPLIT;
  if (p->op != MLA_OP_DECODE && p->op != MLA_OP_PREFILL) return 0;
  return planted_max_parts(p, limits) * (dv + 1) + more;
}

static uint64_t used_bytes(const mla_handle *handle, const mla_problem *p,
                           const mla_limits *limits) {
  return (uint64_t)planted_scratch(handle->fault, p, limits) * sizeof(float);
}

static mla_status query(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  (void)err;
  const char *no = planted_refusal(problem);
  uint64_t bytes = used_bytes(handle, problem, limits);
  answer->supported = !no;
  snprintf(answer->reason, sizeof answer->reason, "%s", no ? no : "");
  snprintf(answer->kernel, sizeof answer->kernel, "planted_%s",
           planted_fault_at(handle->fault)->name);
  if (FAULT(handle, WS_SHORT))
    bytes -= bytes > (uint64_t)handle->a ? (uint64_t)handle->a : bytes;
  answer->workspace_bytes = bytes;
  answer->workspace_alignment = 64;
  answer->determinism = MLA_DETERMINISM_BATCH_INVARIANT;
  return MLA_OK;
}

static mla_status make_plan(mla_handle *handle, const mla_problem *problem,
                            const mla_limits *limits, mla_backend_plan **plan,
                            mla_error *err) {
  (void)err;
  mla_backend_plan *p = calloc(1, sizeof *p);
  if (!p) return MLA_OUT_OF_MEMORY;
  newest_length = limits->max_seq_len;
  if (!(first_scale > 0)) first_scale = problem->scale;
  p->handle = *handle;
  p->problem = *problem;
  if (FAULT(handle, PLAN_SHAPES)) planted_share_plan(&p->problem);
  p->limits = *limits;
  p->workspace_bytes = used_bytes(handle, problem, limits);
  *plan = p;
  return MLA_OK;
}

static void free_plan(mla_backend_plan *plan) {
  if (!plan) return;
  free(plan->first_lens);
  free(plan->first_table);
  free(plan);
}

const mla_backend *mla_planted_backend(uint32_t major, uint32_t minor) {
  static const mla_backend backend = {
      .size = sizeof(mla_backend),
      .major = MLA_ABI_MAJOR,
      .minor = MLA_ABI_MINOR,
      .name = "planted",
      .version = "1",
      .description = "a model kernel that can be wrong in every known way",
      .device_count = device_count,
      .device_info = device_info,
      .open = open_device,
      .close = close_device,
      .query = query,
      .plan = make_plan,
      .run = planted_run,
      .plan_free = free_plan,
      .run_prefix = planted_run_prefix,
  };
  (void)minor;
  return major == MLA_ABI_MAJOR ? &backend : NULL;
}
