/*
 * answer_backend.c - outputs in a file, as a backend.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "op_table.h"
#include "question.h"
#include "safetensors.h"
#include "safetensors_types.h"
#include "tensor.h"

struct mla_handle {
  mla_st *file;        /* NULL: there is no answer to anything */
  mla_numerics said;   /* members below zero: not said */
  const char *refusal; /* or NULL; in the file */
};

struct mla_backend_plan {
  const mla_handle *handle;
  mla_problem problem;
};

static int32_t device_count(mla_error *err) {
  (void)err;
  return 1;
}

static mla_status device_info(int32_t device, mla_device_info *info,
                              mla_error *err) {
  (void)device;
  (void)err;
  info->memory_space = MLA_MEMORY_HOST;
  snprintf(info->name, sizeof info->name, "files of answers");
  snprintf(info->arch, sizeof info->arch, "none");
  return MLA_OK;
}

/* ---------------------------------------------------------------- opening */

static void close_device(mla_handle *h) {
  if (!h) return;
  mla_st_close(h->file);
  free(h);
}

static mla_status read_numerics(mla_handle *h, mla_error *err) {
  const char *text = mla_st_meta(h->file, "mla-numerics");
  h->said.u_p = h->said.u_mid = -1;
  if (!text) return MLA_OK;
  cJSON *json = cJSON_Parse(text);
  mla_status status = mla_numerics_read(json, &h->said, err);
  cJSON_Delete(json);
  return status;
}

static mla_status open_device(int32_t device, const char *options,
                              mla_handle **handle, mla_error *err) {
  static const char key[] = "file=";
  mla_handle *h = calloc(1, sizeof *h);
  mla_status status = MLA_OK;
  (void)device;
  *handle = NULL;
  if (!h) return MLA_OUT_OF_MEMORY;
  if (options && strncmp(options, key, sizeof key - 1) != 0)
    status = mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                      "the only option is file=PATH");
  if (options && status == MLA_OK)
    status = mla_st_open(options + sizeof key - 1, &h->file, err);
  if (h->file) {
    h->refusal = mla_st_meta(h->file, "mla-unsupported");
    status = read_numerics(h, err);
  }
  if (status == MLA_OK)
    *handle = h;
  else
    close_device(h);
  return status;
}

/* ---------------------------------------------------------------- answers */

static mla_numerics numerics_of(const mla_handle *h, const mla_problem *p) {
  mla_numerics n = h->said;
  double f32 = mla_unit_roundoff(MLA_F32);
  double q = mla_unit_roundoff(p->q_dtype);
  if (q < f32) q = f32;
  if (n.u_p < 0) n.u_p = q;
  if (n.u_mid < 0) n.u_mid = q;
  return n;
}

/* NULL: there is an answer. */
static const char *refusal_of(const mla_handle *h, const mla_problem *p) {
  if (!h->file) return "there is no file";
  if (h->refusal) return *h->refusal ? h->refusal : "no reason is given";
  if (p->flags & MLA_BATCH_INVARIANT)
    return "flags: one file does not show whether bits depend on the batch";
  return NULL;
}

static mla_status query(mla_handle *h, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  const char *why = refusal_of(h, problem);
  (void)limits;
  (void)err;
  answer->supported = !why;
  snprintf(answer->reason, sizeof answer->reason, "%s", why ? why : "");
  answer->determinism = MLA_DETERMINISM_NONE;
  if (h->file) answer->numerics = numerics_of(h, problem);
  snprintf(answer->kernel, sizeof answer->kernel, "file");
  return MLA_OK;
}

static mla_status make_plan(mla_handle *h, const mla_problem *problem,
                            const mla_limits *limits, mla_backend_plan **plan,
                            mla_error *err) {
  mla_backend_plan *p = calloc(1, sizeof *p);
  (void)limits;
  (void)err;
  if (!p) return MLA_OUT_OF_MEMORY;
  p->handle = h;
  p->problem = *problem;
  *plan = p;
  return MLA_OK;
}

static void free_plan(mla_backend_plan *plan) {
  free(plan);
}

/* 16-bit types may come as the integers that hold their bits, and types
   without a name in the format do. */
static int is_of_type(const mla_st_tensor *t, int32_t dtype) {
  const mla_st_type *type = mla_st_type_of(dtype);
  if (type && strcmp(type->name, t->dtype_name) == 0) return 1;
  if (mla_dtype_bits(dtype) == 16) return strcmp(t->dtype_name, "U16") == 0;
  return mla_dtype_bits(dtype) == 8 && strcmp(t->dtype_name, "U8") == 0;
}

static int has_shape(const mla_st_tensor *t, const mla_tensor *like) {
  if (t->rank != like->rank) return 0;
  for (int32_t a = 0; a < t->rank; a++)
    if (t->shape[a] != like->shape[a]) return 0;
  return 1;
}

static void print_shape(const int64_t *shape, int32_t rank, char *text,
                        size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int32_t a = 0; a < rank && used < size; a++) {
    int n = snprintf(text + used, size - used, "%s%lld", a ? "," : "",
                     (long long)shape[a]);
    if (n < 0) return;
    used += (size_t)n;
  }
}

static mla_status check(const mla_st_tensor *t, const char *name,
                        const mla_tensor *to, mla_error *err) {
  char is[100], asked[100];
  if (!t)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "the file holds no tensor called %s", name);
  if (!is_of_type(t, to->dtype))
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s is of type %.16s, %s is asked for", name, t->dtype_name,
                    mla_dtype_name(to->dtype));
  print_shape(t->shape, t->rank, is, sizeof is);
  print_shape(to->shape, to->rank, asked, sizeof asked);
  if (!has_shape(t, to))
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s has the shape [%s], [%s] is asked for", name, is,
                    asked);
  return MLA_OK;
}

/* Rows of the first axis that a call writes; the others are nobody's. */
static int64_t rows_written(const mla_args *args, int32_t slot,
                            const mla_tensor *t) {
  int32_t sums = slot == MLA_T_DST     ? MLA_T_CU_SEQ_LENS
                 : slot == MLA_T_CACHE ? -1
                                       : MLA_T_QUERY_START_LOC;
  const mla_tensor *starts = sums < 0 ? NULL : mla_arg(args, sums);
  if (!starts) return t->shape[0];
  return mla_get_int(starts->data, starts->dtype,
                     mla_at1(starts, starts->shape[0] - 1));
}

/* From dense rows to the tensor's. */
static void copy(const mla_st_tensor *from, const mla_tensor *to,
                 int64_t rows) {
  int64_t size = mla_dtype_bits(to->dtype) / 8, width = to->shape[to->rank - 1];
  int64_t index[MLA_MAX_RANK] = {0}, dense = 0, count = 1;
  const unsigned char *bytes = from->data;
  for (int32_t a = 0; a + 1 < to->rank; a++) count *= a ? to->shape[a] : rows;
  if (to->rank == 1) width = rows;
  for (int64_t r = 0; r < count; r++, dense += width) {
    int64_t at = 0, rest = r;
    for (int32_t a = to->rank - 2; a >= 0; a--) {
      index[a] = rest % to->shape[a];
      rest /= to->shape[a];
      at += index[a] * to->stride[a];
    }
    memcpy((unsigned char *)to->data + at * size, bytes + dense * size,
           (size_t)(width * size));
  }
}

static mla_status run(const mla_backend_plan *plan, const mla_args *args,
                      void *workspace, uint64_t workspace_bytes,
                      mla_stream stream, mla_error *err) {
  const mla_op_spec *op = mla_op_spec_of(plan->problem.op);
  (void)workspace;
  (void)workspace_bytes;
  (void)stream;
  for (int32_t i = 0; i < op->slot_count; i++) {
    const mla_slot_spec *slot = &op->slots[i];
    const mla_tensor *to = mla_arg(args, slot->slot);
    const char *name = mla_slot_name(slot->slot);
    if (!(slot->role & MLA_ROLE_OUT) || !to ||
        !mla_slot_applies(slot, &plan->problem))
      continue;
    const mla_st_tensor *from = mla_st_find(plan->handle->file, name);
    mla_status status = check(from, name, to, err);
    if (status != MLA_OK) return status;
    if (mla_tensor_count(to))
      copy(from, to, rows_written(args, slot->slot, to));
  }
  return MLA_OK;
}

const mla_backend *mla_answers_backend(void) {
  static const mla_backend backend = {
      .size = sizeof(mla_backend),
      .major = MLA_ABI_MAJOR,
      .minor = MLA_ABI_MINOR,
      .name = "answers",
      .version = "1",
      .description = "outputs that another program wrote",
      .device_count = device_count,
      .device_info = device_info,
      .open = open_device,
      .close = close_device,
      .query = query,
      .plan = make_plan,
      .run = run,
      .plan_free = free_plan,
  };
  return &backend;
}
