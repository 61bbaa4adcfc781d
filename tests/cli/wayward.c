/*
 * wayward.c - the reference, and how it misbehaves on request.
 */
#define _POSIX_C_SOURCE 200809L
#include "wayward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "host_backends.h"
#include "tensor.h"

struct mla_handle {
  mla_handle *ref;
  char fault[32];
};

struct mla_backend_plan {
  mla_backend_plan *ref;
  char fault[32];
  int32_t op, splits;
};

static const mla_backend *ref(void) {
  return mla_ref_backend(MLA_ABI_MAJOR, MLA_ABI_MINOR);
}

static int is(const char *fault, const char *name) {
  return strcmp(fault, name) == 0;
}

static int32_t device_count(mla_error *err) {
  return ref()->device_count(err);
}

static mla_status device_info(int32_t device, mla_device_info *info,
                              mla_error *err) {
  return ref()->device_info(device, info, err);
}

static mla_status own_device_info(int32_t device, mla_device_info *info,
                                  mla_error *err) {
  mla_status status = ref()->device_info(device, info, err);
  info->memory_space = MLA_MEMORY_CUDA;
  return status;
}

static mla_status open_device(int32_t device, const char *options,
                              mla_handle **handle, mla_error *err) {
  mla_handle *h = calloc(1, sizeof *h);
  const char *fault = options ? strstr(options, "fault=") : NULL;
  if (!h) return mla_fail(err, MLA_OUT_OF_MEMORY, "handle", "no memory");
  snprintf(h->fault, sizeof h->fault, "%s", fault ? fault + 6 : "none");
  if (is(h->fault, "open-says"))
    fprintf(stderr, "opened by %ld\n", (long)getpid());
  mla_status status = ref()->open(device, NULL, &h->ref, err);
  if (status != MLA_OK)
    free(h);
  else
    *handle = h;
  return status;
}

static void close_device(mla_handle *h) {
  ref()->close(h->ref);
  free(h);
}

/* ------------------------------------------------------------------ query */

static int refuses(const char *fault, const mla_problem *p) {
  if (is(fault, "nothing") || is(fault, "no-reason")) return 1;
  if (!is(fault, "only-decode")) return 0;
  return p->op != MLA_OP_DECODE ||
         (p->q_dtype != MLA_F32 && p->q_dtype != MLA_BF16);
}

static void declare(const char *fault, mla_answer *a) {
  if (is(fault, "u-acc")) a->numerics.u_acc = 1e-3;
  if (is(fault, "u-p")) a->numerics.u_p = 0.5;
  if (is(fault, "u-mid")) a->numerics.u_mid = 0.5;
  if (is(fault, "dequant")) a->numerics.dequant = 4;
  if (is(fault, "q-round")) a->numerics.q_round = -1;
  if (is(fault, "determinism")) a->determinism = 9;
  if (is(fault, "empty-positive")) a->numerics.lse_empty_positive = 1;
  if (is(fault, "workspace") || is(fault, "zero")) a->workspace_bytes = 64;
}

static mla_status query(mla_handle *h, const mla_problem *p,
                        const mla_limits *limits, mla_answer *a,
                        mla_error *err) {
  if (is(h->fault, "query-error"))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "problem", "no such mood");
  mla_status status = ref()->query(h->ref, p, limits, a, err);
  if (status != MLA_OK || !a->supported) return status;
  declare(h->fault, a);
  snprintf(a->kernel, sizeof a->kernel, "wayward_%s", h->fault);
  if (!refuses(h->fault, p)) return MLA_OK;
  a->supported = 0;
  snprintf(a->reason, sizeof a->reason, "%s",
           is(h->fault, "no-reason") ? "" : "op: this port does less");
  return MLA_OK;
}

static mla_status plan(mla_handle *h, const mla_problem *p,
                       const mla_limits *limits, mla_backend_plan **made,
                       mla_error *err) {
  if (is(h->fault, "plan"))
    return mla_fail(err, MLA_UNSUPPORTED, "op", "on second thoughts, no");
  mla_backend_plan *x = calloc(1, sizeof *x);
  if (!x) return mla_fail(err, MLA_OUT_OF_MEMORY, "plan", "no memory");
  memcpy(x->fault, h->fault, sizeof x->fault);
  x->op = p->op;
  x->splits = limits->num_splits;
  mla_status status = ref()->plan(h->ref, p, limits, &x->ref, err);
  if (status != MLA_OK)
    free(x);
  else
    *made = x;
  return status;
}

static void plan_free(mla_backend_plan *x) {
  ref()->plan_free(x->ref);
  free(x);
}

/* -------------------------------------------------------------------- run */

static const mla_tensor *output(const mla_args *args) {
  static const int slots[] = {MLA_T_OUT,  MLA_T_DST,     MLA_T_Q_LATENT,
                              MLA_T_W_UK, MLA_T_INDICES, MLA_T_POSITIONS,
                              MLA_T_CACHE};
  for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
    if (mla_arg(args, slots[i])) return mla_arg(args, slots[i]);
  return NULL;
}

static const mla_tensor *input(const mla_args *args) {
  static const int slots[] = {
      MLA_T_Q,         MLA_T_PARTS,       MLA_T_A,
      MLA_T_Q_NOPE,    MLA_T_O_LATENT,    MLA_T_KV_C,
      MLA_T_KV_B_PROJ, MLA_T_BLOCK_TABLE, MLA_T_BLOCK_MAPPING};
  for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
    if (mla_arg(args, slots[i])) return mla_arg(args, slots[i]);
  return NULL;
}

static int is_real(const mla_tensor *t) {
  return t->dtype != MLA_U8 && mla_unit_roundoff(t->dtype) > 0;
}

static void spoil_value(const char *fault, const mla_tensor *out) {
  double x = mla_get(out->data, out->dtype, 0);
  if (is(fault, "nan")) x = mla_nan();
  if (is(fault, "value")) x = x == 0 || mla_isnan(x) ? 1 : x * 1.25 + 0.25;
  mla_put(out->data, out->dtype, 0, x);
}

static void spoil_lse(const char *fault, const mla_tensor *lse) {
  for (int64_t n = 0; n < lse->shape[0]; n++)
    for (int64_t h = 0; h < lse->shape[1]; h++) {
      int64_t at = mla_at2(lse, n, h);
      double x = mla_get(lse->data, lse->dtype, at);
      int empty = mla_isinf(x) < 0;
      if (empty && !is(fault, "lse"))
        x = mla_inf();
      else if (is(fault, "lse") && n == 0 && h == 0)
        x += 0.01;
      mla_put(lse->data, lse->dtype, at, x);
    }
}

static void flip(void *memory, int64_t at) {
  ((unsigned char *)memory)[at] ^= 1;
}

static void touch_round(const char *fault, const mla_args *args,
                        void *workspace, uint64_t bytes) {
  const mla_tensor *out = output(args);
  int64_t size = mla_dtype_bits(out->dtype) / 8;
  int64_t extent = mla_tensor_extent(out);
  int64_t row = out->shape[out->rank - 1];
  if (is(fault, "before")) flip(out->data, -1);
  if (is(fault, "behind")) flip(out->data, extent);
  if (is(fault, "input")) flip(input(args)->data, 0);
  if (is(fault, "workspace")) flip(workspace, (int64_t)bytes);
  if (is(fault, "byte")) flip(out->data, 0);
  if (is(fault, "gap") && out->stride[out->rank - 2] > row)
    flip(out->data, row * size);
}

static void spoil(const char *fault, const mla_args *args, void *workspace,
                  uint64_t bytes) {
  static int runs; /* flicker: one is different from the next */
  const mla_tensor *out = output(args), *lse = mla_arg(args, MLA_T_LSE);
  if (is(fault, "nan") || is(fault, "value")) spoil_value(fault, out);
  if (is(fault, "lse") && lse) spoil_lse(fault, lse);
  if (strncmp(fault, "empty-", 6) == 0 && lse) spoil_lse(fault, lse);
  if (is(fault, "flicker") && ++runs % 2 == 0 && is_real(out))
    flip(out->data, 0);
  if (is(fault, "zero") && ((unsigned char *)workspace)[0] > 0x7f)
    flip(out->data, 0);
  touch_round(fault, args, workspace, bytes);
}

/* Reads that change nothing. */
static void peek(const char *fault, const mla_args *args) {
  const mla_tensor *in = input(args);
  const volatile unsigned char *bytes = in->data;
  int64_t extent = mla_tensor_extent(in);
  if (is(fault, "peek-before")) (void)bytes[-1];
  if (is(fault, "peek-behind")) (void)bytes[extent];
}

/* What no status can say. */
static void die(const char *fault, int32_t op) {
  volatile uintptr_t nowhere = 16;
  int merge = op == MLA_OP_MERGE;
  if (is(fault, "crash") || (is(fault, "crash-merge") && merge))
    *(volatile unsigned char *)nowhere = 1;
  if (is(fault, "abort")) abort();
  if (is(fault, "exit")) exit(7);
  while (is(fault, "hang") || (is(fault, "hang-merge") && merge)) sleep(1);
}

static mla_status run(const mla_backend_plan *x, const mla_args *args,
                      void *workspace, uint64_t bytes, mla_stream stream,
                      mla_error *err) {
  if (is(x->fault, "run"))
    return mla_fail(err, MLA_DEVICE_ERROR, "device", "it fell over");
  if (is(x->fault, "idle")) return MLA_OK;
  die(x->fault, x->op);
  peek(x->fault, args);
  mla_status status = ref()->run(x->ref, args, workspace, bytes, stream, err);
  if (status == MLA_OK) spoil(x->fault, args, workspace, bytes);
  if (status == MLA_OK && is(x->fault, "splits") && x->splits)
    spoil_value("value", output(args));
  return status;
}

/* ----------------------------------------------------------------- memory */

static mla_status mem_alloc(mla_handle *h, uint64_t bytes, void **memory,
                            mla_error *err) {
  (void)h;
  *memory = malloc((size_t)bytes + 1);
  if (*memory) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "memory", "no memory");
}

static void mem_free(mla_handle *h, void *memory) {
  (void)h;
  free(memory);
}

static mla_status mem_copy(mla_handle *h, void *to, const void *from,
                           uint64_t bytes, mla_stream stream, mla_error *err) {
  (void)h;
  (void)stream;
  (void)err;
  memcpy(to, from, (size_t)bytes);
  return MLA_OK;
}

static mla_backend table(const char *name) {
  mla_backend t;
  memset(&t, 0, sizeof t);
  t.size = (uint32_t)sizeof t;
  t.major = MLA_ABI_MAJOR;
  t.minor = MLA_ABI_MINOR;
  t.name = name;
  t.version = "1";
  t.description = "the reference, misbehaving on request";
  t.device_count = device_count;
  t.device_info = device_info;
  t.open = open_device;
  t.close = close_device;
  t.query = query;
  t.plan = plan;
  t.run = run;
  t.plan_free = plan_free;
  return t;
}

const mla_backend *wayward_backend(void) {
  static mla_backend t;
  if (!t.size) t = table("wayward");
  return &t;
}

const mla_backend *wayward_device_backend(void) {
  static mla_backend t;
  if (t.size) return &t;
  t = table("wayward-device");
  t.device_info = own_device_info;
  t.mem_alloc = mem_alloc;
  t.mem_free = mem_free;
  t.mem_to_device = mem_copy;
  t.mem_to_host = mem_copy;
  return &t;
}
