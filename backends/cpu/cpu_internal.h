/*
 * cpu_internal.h - what the files of the CPU backend share.
 */
#ifndef MLA_CPU_INTERNAL_H
#define MLA_CPU_INTERNAL_H

#include "cpu_arena.h"
#include "cpu_table.h"
#include "mla/backend.h"

#define MLA_CPU_MAX_THREADS 1024

typedef struct mla_cpu_onednn mla_cpu_onednn;

struct mla_handle {
  mla_cpu_table table;
  int threads;
  mla_cpu_onednn *onednn; /* NULL: our products alone */
};

/* A problem within limits, on this many threads: what sizes depend on. */
typedef struct mla_cpu_context {
  mla_problem problem; /* defaults filled in: head_dim, v_dim, num_kv_heads */
  mla_limits limits;   /* without the host arrays */
  mla_cpu_table table;
  int threads;
  const mla_cpu_onednn *onednn;
} mla_cpu_context;

/* One operation of the backend. */
typedef struct mla_cpu_op {
  int32_t op;
  const char *name;
  /* Why not, naming the field; NULL: it can be served. */
  const char *(*refuse)(const mla_problem *problem);
  uint64_t (*workspace)(const mla_cpu_context *context);
  void (*run)(const mla_cpu_context *context, const mla_args *args,
              void *workspace);
} mla_cpu_op;

struct mla_backend_plan {
  mla_cpu_context context;
  const mla_cpu_op *op;
  uint64_t workspace_bytes;
};

/* NULL: not an operation of this backend. */
const mla_cpu_op *mla_cpu_op_of(int32_t op);
/* Copies what the caller's structs hold and fills in defaults. */
mla_cpu_context mla_cpu_context_make(const mla_handle *handle,
                                     const mla_problem *problem,
                                     const mla_limits *limits);

mla_status mla_cpu_query(mla_handle *handle, const mla_problem *problem,
                         const mla_limits *limits, mla_answer *answer,
                         mla_error *err);
mla_status mla_cpu_plan(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_backend_plan **plan,
                        mla_error *err);
mla_status mla_cpu_run(const mla_backend_plan *plan, const mla_args *args,
                       void *workspace, uint64_t workspace_bytes,
                       mla_stream stream, mla_error *err);
void mla_cpu_plan_free(mla_backend_plan *plan);

/* The operations, one file each or a few of a kind. */
extern const mla_cpu_op mla_cpu_op_kv_write, mla_cpu_op_kv_read,
    mla_cpu_op_kv_copy, mla_cpu_op_absorb, mla_cpu_op_q_absorb,
    mla_cpu_op_v_expand, mla_cpu_op_decode, mla_cpu_op_prefill,
    mla_cpu_op_merge, mla_cpu_op_matmul, mla_cpu_op_index,
    mla_cpu_op_map_indices;

/* Does a matrix unit do it, with probabilities (and up-projected keys and
   values) rounded to bf16? */
int mla_cpu_decode_by_tiles(const mla_cpu_context *context);

int mla_cpu_prefill_by_tiles(const mla_cpu_context *context);

/* Does each row walk along the keys, instead of many lying side by side? */
int mla_cpu_decode_by_rows(const mla_cpu_context *context);

/* Are scores sums of int8 products? */
int mla_cpu_decode_by_codes(const mla_cpu_context *context);

/* Reasons that several operations give. */
const char *mla_cpu_refuse_types(const mla_problem *problem, int weights);
const char *mla_cpu_refuse_cache(const mla_problem *problem);
const char *mla_cpu_refuse_attention(const mla_problem *problem);

/* ----------------------------------------------------------------- small */

static inline int64_t mla_cpu_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t mla_cpu_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static inline int64_t mla_cpu_ceil(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}
static inline int64_t mla_cpu_round_up(int64_t a, int64_t b) {
  return mla_cpu_ceil(a, b) * b;
}

/*
 * Row stride, in floats, of a block whose columns are walked: an odd number of
 * cache lines, so that a column's rows fall into different sets of the cache.
 */
static inline int64_t mla_cpu_stride(int64_t width) {
  return mla_cpu_ceil(width, 16) * 16 + (mla_cpu_ceil(width, 16) % 2 ? 0 : 16);
}

/* Address of element `offset`, counted in elements of a type. */
static inline const void *mla_cpu_at(const void *data, int type,
                                     int64_t offset) {
  return (const unsigned char *)data + offset * (type == MLA_CPU_F32 ? 4 : 2);
}
static inline void *mla_cpu_at_mut(void *data, int type, int64_t offset) {
  return (unsigned char *)data + offset * (type == MLA_CPU_F32 ? 4 : 2);
}

#endif
