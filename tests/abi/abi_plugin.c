/*
 * abi_plugin.c - plugins for test_abi_plugins.c, one a definition:
 *   ABI_GOOD         keeps the rules
 *   ABI_OLD          of an older minor: its table ends with plan_free, and it
 *                    knows only the beginnings of the structs
 *   ABI_NEWER        of a newer minor: a longer table
 *   ABI_WRONG_MAJOR  returns a table of another major
 *   ABI_NULL_TABLE   returns NULL, as it should to another major
 *   ABI_DUPLICATE    calls itself as ABI_GOOD does
 *   ABI_REF          calls itself "ref"
 *   ABI_HALF_GROUP   has mem_alloc, but no other memory member
 *   ABI_NO_RUN       lacks a required member
 * It "computes" matmul: every element of out is the sum of its row of a.
 */
#include <string.h>

#include "mla/backend.h"

#if defined(ABI_OLD)
#define NAME "abi-old"
#elif defined(ABI_NEWER)
#define NAME "abi-newer"
#elif defined(ABI_REF)
#define NAME "ref"
#elif defined(ABI_GOOD) || defined(ABI_DUPLICATE)
#define NAME "abi-good"
#else
#define NAME "abi-other"
#endif

/* What a header of an older minor would have said. */
typedef struct old_problem {
  uint32_t size;
  int32_t op;
  uint64_t flags;
  int32_t q_dtype;
} old_problem;
typedef struct old_answer {
  uint32_t size;
  int32_t supported;
  uint64_t workspace_bytes;
} old_answer;

static int32_t device_count(mla_error *err) {
  (void)err;
  return 1;
}

static mla_status device_info(int32_t device, mla_device_info *info,
                              mla_error *err) {
  (void)device;
  (void)err;
  info->memory_space = MLA_MEMORY_HOST;
  return MLA_OK;
}

static mla_status open_device(int32_t device, const char *options,
                              mla_handle **handle, mla_error *err) {
  (void)device;
  (void)options;
  (void)err;
  *handle = NULL;
  return MLA_OK;
}

static void close_device(mla_handle *handle) {
  (void)handle;
}

static mla_status query(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  old_problem p;
  old_answer a = {sizeof a, 0, 0};
  (void)handle;
  (void)limits;
  (void)err;
  if (problem->size < sizeof p || answer->size < sizeof a)
    return MLA_VERSION_MISMATCH;
  memcpy(&p, problem, sizeof p);
  a.size = answer->size;
  a.supported = p.op == MLA_OP_MATMUL && p.q_dtype == MLA_F32;
  memcpy(answer, &a, sizeof a);
  return MLA_OK;
}

static mla_status plan(mla_handle *handle, const mla_problem *problem,
                       const mla_limits *limits, mla_backend_plan **made,
                       mla_error *err) {
  (void)handle;
  (void)problem;
  (void)limits;
  (void)err;
  *made = NULL;
  return MLA_OK;
}

#if !defined(ABI_NO_RUN)
static mla_status run(const mla_backend_plan *made, const mla_args *args,
                      void *workspace, uint64_t workspace_bytes,
                      mla_stream stream, mla_error *err) {
  const mla_tensor *a = mla_arg(args, MLA_T_A);
  const mla_tensor *out = mla_arg(args, MLA_T_OUT);
  (void)made;
  (void)workspace;
  (void)workspace_bytes;
  (void)stream;
  (void)err;
  for (int64_t i = 0; i < a->shape[0]; i++) {
    float sum = 0;
    for (int64_t k = 0; k < a->shape[1]; k++)
      sum += ((const float *)a->data)[i * a->stride[0] + k];
    for (int64_t j = 0; j < out->shape[1]; j++)
      ((float *)out->data)[i * out->stride[0] + j] = sum;
  }
  return MLA_OK;
}
#endif

static void plan_free(mla_backend_plan *made) {
  (void)made;
}

#if defined(ABI_HALF_GROUP)
static mla_status mem_alloc(mla_handle *handle, uint64_t bytes, void **memory,
                            mla_error *err) {
  (void)handle;
  (void)bytes;
  (void)memory;
  (void)err;
  return MLA_OUT_OF_MEMORY;
}
#endif

/* A longer table, whose tail this host does not know. */
typedef struct newer_table {
  mla_backend table;
  void (*more)(mla_handle *handle);
} newer_table;

static const newer_table the_table = {
    .table =
        {
#if defined(ABI_OLD)
            .size = offsetof(mla_backend, mem_alloc),
#elif defined(ABI_NEWER)
            .size = sizeof(newer_table),
            .minor = MLA_ABI_MINOR + 1,
#else
            .size = sizeof(mla_backend),
#endif
#if defined(ABI_WRONG_MAJOR)
            .major = MLA_ABI_MAJOR + 1,
#else
            .major = MLA_ABI_MAJOR,
#endif
            .name = NAME,
            .device_count = device_count,
            .device_info = device_info,
            .open = open_device,
            .close = close_device,
            .query = query,
            .plan = plan,
#if !defined(ABI_NO_RUN)
            .run = run,
#endif
            .plan_free = plan_free,
#if defined(ABI_HALF_GROUP)
            .mem_alloc = mem_alloc,
#endif
        },
    .more = close_device,
};

const mla_backend *mla_backend_get(uint32_t host_major, uint32_t host_minor) {
  (void)host_minor;
#if defined(ABI_NULL_TABLE)
  host_major += host_major == MLA_ABI_MAJOR; /* as if it were another */
#elif defined(ABI_WRONG_MAJOR)
  host_major = MLA_ABI_MAJOR; /* one that does not look */
#endif
  return host_major == MLA_ABI_MAJOR ? &the_table.table : NULL;
}
