/*
 * template_backend.c - the port to copy. It serves one operation, decode over
 * an f32 cache, by plain loops, and says no to the rest; make its name yours,
 * then replace one no at a time. What each member owes: mla/backend.h; the
 * way from here to a verdict: docs/porting.md.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mla/backend.h"

struct mla_handle {
  int32_t device;
};
struct mla_backend_plan {
  mla_problem problem;
};

/* Status and sentence of a failure. err may be NULL. */
static mla_status fail(mla_error *err, mla_status status, const char *field,
                       const char *why) {
  if (!err) return status;
  err->status = (int32_t)status;
  snprintf(err->field, sizeof err->field, "%s", field);
  snprintf(err->message, sizeof err->message, "%s: %s", field, why);
  return status;
}

/* A host of another minor may give a shorter struct: what it lacks is 0. */
static mla_problem full_problem(const mla_problem *given) {
  mla_problem p;
  memset(&p, 0, sizeof p);
  memcpy(&p, given, given->size < sizeof p ? given->size : sizeof p);
  if (p.head_dim == 0) p.head_dim = p.kv_lora_rank + p.qk_rope_head_dim;
  if (p.v_dim == 0) p.v_dim = p.kv_lora_rank;
  return p;
}

/* ---------------------------------------------------------------- device */

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
  snprintf(info->name, sizeof info->name, "plain loops");
  snprintf(info->arch, sizeof info->arch, "any");
  return MLA_OK;
}

static mla_status open_device(int32_t device, const char *options,
                              mla_handle **handle, mla_error *err) {
  if (options && *options)
    return fail(err, MLA_INVALID_ARGUMENT, "options", "there are none");
  *handle = malloc(sizeof **handle);
  if (!*handle) return fail(err, MLA_OUT_OF_MEMORY, "handle", "no memory");
  (*handle)->device = device;
  return MLA_OK;
}

static void close_device(mla_handle *handle) {
  free(handle);
}

/* --------------------------------------------------------- what it can do */

/* NULL: yes. A yes is a promise. */
static const char *why_not(const mla_problem *p) {
  const uint64_t flags =
      MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 | MLA_BATCH_INVARIANT;
  if (p->op != MLA_OP_DECODE) return "op: only decode";
  if (p->q_dtype != MLA_F32) return "q_dtype: only f32";
  if (p->out_dtype != MLA_F32) return "out_dtype: only f32";
  if (p->cache_format != MLA_CACHE_F32) return "cache_format: only f32";
  if (p->flags & ~flags) return "flags: only causal, lse, batch-invariant";
  if (p->window) return "window: no sliding window";
  if (p->logits_soft_cap != 0) return "logits_soft_cap: none";
  return NULL;
}

static mla_status query(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  mla_problem p = full_problem(problem);
  const char *no = why_not(&p);
  (void)handle;
  (void)limits;
  (void)err;
  answer->supported = no == NULL;
  snprintf(answer->reason, sizeof answer->reason, "%s", no ? no : "");
  if (no) return MLA_OK;
  answer->workspace_bytes = (uint64_t)p.v_dim * sizeof(double);
  answer->workspace_alignment = sizeof(double);
  answer->determinism = MLA_DETERMINISM_BATCH_INVARIANT;
  /* Sums in binary64 are better than f32, which zeros would declare too. */
  answer->numerics.u_acc = answer->numerics.u_p = ldexp(1, -24);
  snprintf(answer->kernel, sizeof answer->kernel, "plain loops");
  return MLA_OK;
}

static mla_status plan(mla_handle *handle, const mla_problem *problem,
                       const mla_limits *limits, mla_backend_plan **made,
                       mla_error *err) {
  (void)handle;
  (void)limits;
  *made = malloc(sizeof **made);
  if (!*made) return fail(err, MLA_OUT_OF_MEMORY, "plan", "no memory");
  (*made)->problem = full_problem(problem);
  return MLA_OK;
}

static void plan_free(mla_backend_plan *made) {
  free(made);
}

/* ---------------------------------------------------------------- decode */

/* Position j of a request in the cache, by its row of the block table. */
static const float *entry_at(const mla_tensor *cache, const int32_t *blocks,
                             int64_t j, int32_t block_size) {
  return (const float *)cache->data +
         blocks[j / block_size] * cache->stride[0] +
         j % block_size * cache->stride[1];
}

/* One query row over its first n positions; returns ln of the sum. The
   running maximum keeps exp() in range; acc is relative to it. */
static double attend(const mla_problem *p, const float *q,
                     const mla_tensor *cache, const int32_t *blocks, int64_t n,
                     double *acc) {
  double top = -INFINITY, sum = 0;
  memset(acc, 0, (size_t)p->v_dim * sizeof *acc);
  for (int64_t j = 0; j < n; j++) {
    const float *k = entry_at(cache, blocks, j, p->block_size);
    double score = 0;
    for (int32_t d = 0; d < p->head_dim; d++) score += (double)q[d] * k[d];
    score *= p->scale;
    double shrink = score > top ? exp(top - score) : 1;
    if (score > top) top = score;
    double weight = exp(score - top);
    sum = sum * shrink + weight;
    for (int32_t d = 0; d < p->v_dim; d++)
      acc[d] = acc[d] * shrink + weight * k[d];
  }
  for (int32_t d = 0; d < p->v_dim && n > 0; d++) acc[d] /= sum;
  return n > 0 ? top + log(sum) : -INFINITY;
}

/* All heads of query row `row`, which sees n positions: maybe none. */
static void decode_row(const mla_problem *p, const mla_args *args, int64_t row,
                       int64_t n, const int32_t *blocks, double *acc) {
  const mla_tensor *q = mla_arg(args, MLA_T_Q);
  const mla_tensor *out = mla_arg(args, MLA_T_OUT);
  const mla_tensor *lse = mla_arg(args, MLA_T_LSE);
  for (int32_t h = 0; h < p->num_heads; h++) {
    double l = attend(
        p, (const float *)q->data + row * q->stride[0] + h * q->stride[1],
        mla_arg(args, MLA_T_CACHE), blocks, n, acc);
    float *o = (float *)out->data + row * out->stride[0] + h * out->stride[1];
    for (int32_t d = 0; d < p->v_dim; d++) o[d] = (float)acc[d];
    if (p->flags & MLA_LSE_BASE2) l /= log(2.0);
    if (lse)
      ((float *)lse->data)[row * lse->stride[0] + h * lse->stride[1]] =
          (float)l;
  }
}

static mla_status run(const mla_backend_plan *made, const mla_args *args,
                      void *workspace, uint64_t workspace_bytes,
                      mla_stream stream, mla_error *err) {
  const mla_problem *p = &made->problem;
  const mla_tensor *table = mla_arg(args, MLA_T_BLOCK_TABLE);
  const mla_tensor *lens = mla_arg(args, MLA_T_SEQ_LENS);
  const int32_t *start = mla_arg(args, MLA_T_QUERY_START_LOC)->data;
  const int32_t *seq_len = lens->data;
  (void)workspace_bytes;
  (void)stream;
  (void)err;
  for (int64_t b = 0; b < lens->shape[0]; b++) {
    const int32_t *blocks = (const int32_t *)table->data + b * table->stride[0];
    for (int64_t row = start[b]; row < start[b + 1]; row++) {
      /* Bottom-right: the last row sees everything. */
      int64_t hidden = p->flags & MLA_CAUSAL ? start[b + 1] - 1 - row : 0;
      int64_t n = seq_len[b] > hidden ? seq_len[b] - hidden : 0;
      decode_row(p, args, row, n, blocks, workspace);
    }
  }
  return MLA_OK;
}

/* The table. Members left out are absent: tensors live in host memory. */
static const mla_backend table_of_port = {
    .size = sizeof(mla_backend),
    .major = MLA_ABI_MAJOR,
    .minor = MLA_ABI_MINOR,
    .name = "template",
    .version = "1",
    .description = "The port to copy: f32 decode by plain loops",
    .device_count = device_count,
    .device_info = device_info,
    .open = open_device,
    .close = close_device,
    .query = query,
    .plan = plan,
    .run = run,
    .plan_free = plan_free,
};

const mla_backend *mla_backend_get(uint32_t host_major, uint32_t host_minor) {
  (void)host_minor;
  return host_major == MLA_ABI_MAJOR ? &table_of_port : NULL;
}
