/* The vtable of the planted backend, and the faults outside the kernels. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dtype.h"
#include "error.h"
#include "planted_core.h"
#include "tensor.h"

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

static mla_status set_option(mla_handle *h, const char *key, const char *value,
                             mla_error *err) {
  if (!strcmp(key, "fault")) {
    h->fault = planted_fault_find(value);
    if (h->fault == PLANTED_NONE && strcmp(value, "none"))
      return mla_fail(err, MLA_INVALID_ARGUMENT, "fault",
                      "there is no planted fault '%s'", value);
    h->a = planted_fault_at(h->fault)->a;
    h->x = planted_fault_at(h->fault)->x;
  } else if (!strcmp(key, "a")) {
    h->a = (int32_t)strtol(value, NULL, 10);
  } else if (!strcmp(key, "x")) {
    h->x = strtod(value, NULL);
  } else {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                    "unknown option '%s' (fault, a, x)", key);
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

static mla_status open_device(int32_t device, const char *options,
                              mla_handle **handle, mla_error *err) {
  (void)device;
  mla_handle *h = calloc(1, sizeof *h);
  if (!h) return MLA_OUT_OF_MEMORY;
  mla_status st = parse_options(h, options, err);
  if (st != MLA_OK) {
    free(h);
    return st;
  }
  *handle = h;
  return MLA_OK;
}

static void close_device(mla_handle *handle) {
  free(handle);
}

static const char *why_not(const mla_problem *p) {
  if (p->window) return "window: no sliding window";
  if (p->flags & (MLA_ALIBI | MLA_OUTPUT_SCALE))
    return "flags: neither ALiBi nor an output scale";
  if (p->q_dtype == MLA_F64 || p->out_dtype == MLA_F64 ||
      p->weight_dtype == MLA_F64 || p->cache_format == MLA_CACHE_F64)
    return "q_dtype: f64 needs the reference";
  int uses_cache = p->op <= MLA_OP_KV_COPY || p->op == MLA_OP_DECODE ||
                   (p->op == MLA_OP_PREFILL && (p->flags & MLA_CONTEXT));
  int32_t plain = mla_format_dtype(p->cache_format);
  if (uses_cache && plain == MLA_DTYPE_NONE) return "cache_format: plain only";
  int attends = p->op == MLA_OP_DECODE || p->op == MLA_OP_PREFILL;
  if (uses_cache && attends && p->q_dtype != MLA_F32 && plain != p->q_dtype)
    return "cache_format: must be that of q, or q f32";
  if (mla_problem_v_dim(p) > 1024 || p->v_head_dim > 1024)
    return "v_dim: at most 1024";
  return NULL;
}

static uint64_t workspace_floats(const mla_problem *p, const mla_limits *l) {
  int64_t dv = p->op == MLA_OP_DECODE ? mla_problem_v_dim(p) : p->v_head_dim;
  if (p->op != MLA_OP_DECODE && p->op != MLA_OP_PREFILL) return 0;
  return (uint64_t)(planted_max_parts(p, l) * (dv + 1));
}

static mla_status query(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  (void)err;
  const char *no = why_not(problem);
  answer->supported = !no;
  snprintf(answer->reason, sizeof answer->reason, "%s", no ? no : "");
  snprintf(answer->kernel, sizeof answer->kernel, "planted_%s",
           planted_fault_at(handle->fault)->name);
  answer->workspace_bytes = workspace_floats(problem, limits) * sizeof(float);
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
  p->handle = *handle;
  p->problem = *problem;
  p->limits = *limits;
  p->workspace_bytes = workspace_floats(problem, limits) * sizeof(float);
  *plan = p;
  return MLA_OK;
}

static void free_plan(mla_backend_plan *plan) {
  if (!plan) return;
  free(plan->first_lens);
  free(plan);
}

static void remember_lens(mla_backend_plan *plan, const mla_args *args) {
  const mla_tensor *lens = mla_arg(args, MLA_T_SEQ_LENS);
  if (plan->handle.fault != PLANTED_STALE_LENS || !lens || plan->first_lens)
    return;
  plan->first_lens = calloc((size_t)lens->shape[0] + 1, sizeof(int32_t));
  if (!plan->first_lens) return;
  plan->first_count = lens->shape[0];
  for (int64_t i = 0; i < lens->shape[0]; i++)
    plan->first_lens[i] =
        (int32_t)mla_get_int(lens->data, lens->dtype, mla_at1(lens, i));
}

static void write_past_out(const planted_call *c) {
  const mla_tensor *t = planted_arg(c, MLA_T_OUT);
  if (!t) return;
  int64_t end = mla_tensor_extent(t);
  memset((unsigned char *)t->data + end, 0x5a, (size_t)c->a);
}

static void write_input(const planted_call *c) {
  const mla_tensor *t = planted_arg(c, MLA_T_Q);
  if (!t) t = planted_arg(c, MLA_T_KV_C);
  if (t) mla_put(t->data, t->dtype, 0, 0.5);
}

/* Mistakes made before or after the kernel. Nonzero: the kernel is skipped. */
static int misbehave(const planted_call *c, mla_status *st, mla_error *err) {
  if (FAULT(c, CRASH)) raise(SIGSEGV);
  if (FAULT(c, ABORT)) abort();
  if (FAULT(c, ISA_ZERO_SUM)) raise(SIGILL);
  while (FAULT(c, HANG)) sleep(1);
  if (FAULT(c, WS_OVERRUN) && c->ws_floats)
    memset((unsigned char *)c->ws + c->ws_floats * (int64_t)sizeof(float), 0x5a,
           (size_t)c->a);
  if (FAULT(c, OVERRUN)) write_past_out(c);
  if (FAULT(c, WRITE_INPUT)) write_input(c);
  if (FAULT(c, HONESTY_REFUSE)) {
    *st = mla_fail(err, MLA_UNSUPPORTED, "op", "run refuses what query took");
    return 1;
  }
  *st = MLA_OK;
  return FAULT(c, HONESTY_NOTHING);
}

static mla_status run(const mla_backend_plan *plan, const mla_args *args,
                      void *workspace, uint64_t workspace_bytes,
                      mla_stream stream, mla_error *err) {
  typedef mla_status (*kernel)(const planted_call *);
  static const kernel kernels[] = {
      [MLA_OP_KV_WRITE] = planted_kv_write,
      [MLA_OP_KV_READ] = planted_kv_read,
      [MLA_OP_KV_COPY] = planted_kv_copy,
      [MLA_OP_ABSORB] = planted_absorb,
      [MLA_OP_Q_ABSORB] = planted_q_absorb,
      [MLA_OP_V_EXPAND] = planted_v_expand,
      [MLA_OP_DECODE] = planted_decode,
      [MLA_OP_PREFILL] = planted_prefill,
      [MLA_OP_MERGE] = planted_merge,
      [MLA_OP_MATMUL] = planted_matmul,
  };
  mla_status st;
  (void)stream;
  (void)workspace_bytes;
  mla_backend_plan *own = (mla_backend_plan *)(uintptr_t)plan;
  remember_lens(own, args);
  planted_call c = {own,
                    &plan->problem,
                    args,
                    workspace,
                    (int64_t)(plan->workspace_bytes / sizeof(float)),
                    plan->handle.fault,
                    plan->handle.a,
                    plan->handle.x};
  if (misbehave(&c, &st, err)) return st;
  return kernels[plan->problem.op](&c);
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
      .run = run,
      .plan_free = free_plan,
  };
  (void)minor;
  return major == MLA_ABI_MAJOR ? &backend : NULL;
}
