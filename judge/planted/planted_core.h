/*
 * planted_core.h - what the files of the planted backend share.
 */
#ifndef MLA_PLANTED_CORE_H
#define MLA_PLANTED_CORE_H

#include "planted.h"

struct mla_handle {
  int32_t fault; /* planted_fault_id */
  int32_t a;
  double x;
  int64_t head, request; /* the only ones that are wrong; -1: all */
};

struct mla_backend_plan {
  mla_handle handle;
  mla_problem problem;
  mla_limits limits;
  uint64_t workspace_bytes; /* used; what is declared may be less */
  int32_t runs;
  int32_t *first_lens; /* STALE_LENS: what the first run saw */
  int64_t first_count;
  void *first_table; /* TABLE_KEPT: likewise */
};

/* One run: everything a kernel needs. */
typedef struct planted_call {
  mla_backend_plan *plan;
  const mla_problem *p;
  const mla_args *args;
  float *ws; /* partial results of one row: parts x (dv + 1) */
  int64_t ws_floats;
  int32_t fault, a;
  double x;
  const unsigned char *wanted; /* rows token * heads + head, or NULL */
  int64_t only_head, only_request;
  int64_t prefix; /* keys that all requests have in common, or 0 */
} planted_call;

#define FAULT(c, NAME) ((c)->fault == PLANTED_##NAME)

/* A half-open range of keys; each gives one partial result. */
typedef struct planted_range {
  int64_t lo, hi;
} planted_range;

/* The keys of one request and kv head, widened to f32. */
typedef struct planted_keys {
  const float *k, *v;
  int64_t k_stride, v_stride;
  int32_t dk, dv;
  int64_t over; /* rows after the visible ones that a fault multiplies by 0 */
} planted_keys;

/* Where one row's results go. */
typedef struct planted_row {
  int64_t token, head;
  int64_t visible; /* keys the row sees */
  const float *q;
  int64_t seq;   /* decode: keys of its request, seen or not; else 0 */
  int64_t bound; /* keys from here on are masked */
} planted_row;

const mla_tensor *planted_arg(const planted_call *c, int slot);

/* planted_run.c: the vtable's run, and the kernel of the operation. */
mla_status planted_run(const mla_backend_plan *plan, const mla_args *args,
                       void *workspace, uint64_t workspace_bytes,
                       mla_stream stream, mla_error *err);
/* Likewise of decodes that are told of a common prefix. */
mla_status planted_run_prefix(const mla_backend_plan *plan,
                              const mla_args *args, int64_t prefix_len,
                              void *workspace, uint64_t workspace_bytes,
                              mla_stream stream, mla_error *err);
mla_status planted_dispatch(const planted_call *c);

/* planted_backend.c */
const char *planted_refusal(const mla_problem *p);
/* Has a handle been closed? */
int planted_is_closed(void);
/* Has this thread opened a handle? */
int planted_is_opener(void);
/* Workspace used, in floats; the last one is the fault's, if it needs one. */
int64_t planted_scratch(int32_t fault, const mla_problem *p,
                        const mla_limits *limits);
/* planted_lens.c: is this row of an output to be computed? */
int planted_wants(const planted_call *c, int64_t token, int64_t head);

/* planted_lens.c: lengths and masks. */
int64_t planted_int(const mla_tensor *t, int64_t i);
int64_t planted_seq_len(const planted_call *c, int64_t request);
/* planted_backend.c: max_seq_len of the plan that was made last. */
int64_t planted_newest_length(void);
/* ... the scale of the plan that was made first. */
double planted_first_scale(void);
int64_t planted_query_start(const planted_call *c, int64_t request);
/* Rows of an output past the last request's, which faults write. */
void planted_spoil_padding(const planted_call *c);
int64_t planted_visible(const planted_call *c, int64_t seq, int64_t queries,
                        int64_t t);

/* planted_gather.c: rows of a paged cache, widened. */
int64_t planted_slot_of(const planted_call *c, int64_t request, int64_t j);
int64_t planted_cache_offset(const planted_call *c, const mla_tensor *cache,
                             int64_t slot);
/* One slot of a cache, whoever named it. */
void planted_slot_load(const planted_call *c, const mla_tensor *cache,
                       int64_t slot, int64_t kv_head, int64_t width, float *to);
void planted_gather_row(const planted_call *c, const mla_tensor *cache,
                        int64_t request, int64_t j, int64_t kv_head,
                        int64_t width, float *to);

/* planted_cache.c: entries and weights with scales. Do the problem's? */
int planted_scaled(const planted_call *c);
void planted_entry_load(const planted_call *c, const mla_tensor *cache,
                        int64_t slot, int64_t kv_head, float *to);
void planted_entry_store(const planted_call *c, const mla_tensor *cache,
                         int64_t slot, const double *values);
/* A weight's number from its code; the code itself where none are scaled. */
double planted_weight(const planted_call *c, int32_t scale_slot, double code,
                      int64_t row, int64_t column);

/* planted_product.c: the row of kv_b_proj that holds row i (P keys, then V
   values) of a head. */
int64_t planted_weight_row(const planted_call *c, int64_t head, int64_t i);

/* planted_decode.c: a row of q; is a head left out? */
void planted_query_row(const planted_call *c, int64_t token, int64_t head,
                       int64_t width, float *to);
int planted_skips_head(const planted_call *c, int64_t head);

/* planted_row.c: sums of products; to nearest with `bits` of mantissa. */
float planted_dot(const float *a, const float *b, int32_t n);
float planted_rounded(float x, int32_t bits);

/* planted_topk.c: the best of the logits of positions 0 .. n-1, as entries of
   the token's row. */
mla_status planted_choose(const planted_call *c, const float *logit, int64_t n,
                          int64_t token);

/* planted_row.c: one row over ranges of keys, merged, written. */
void planted_attend(const planted_call *c, const planted_row *row,
                    const planted_keys *keys, const planted_range *ranges,
                    int32_t range_count, float *scores);

/* planted_shard.c: decode as if keys were sharded; is key j lost by it? */
int planted_shard_loses(const planted_call *c, const planted_row *row,
                        int64_t j);

/* planted_merge.c: parts[S][dv] and natural lses[S] -> out, lse. */
void planted_combine(const planted_call *c, int32_t parts, int32_t dv,
                     const float *outs, const float *lses, float *out,
                     float *lse);
/* Sink, base and the faults of writing; out[dv], natural lse. */
void planted_store(const planted_call *c, const planted_row *row, int32_t dv,
                   float *out, float lse);

mla_status planted_sparse(const planted_call *c);
mla_status planted_index(const planted_call *c);
mla_status planted_map(const planted_call *c);
mla_status planted_decode(const planted_call *c);
mla_status planted_prefill(const planted_call *c);
mla_status planted_merge(const planted_call *c);
mla_status planted_kv_write(const planted_call *c);
mla_status planted_kv_read(const planted_call *c);
mla_status planted_kv_copy(const planted_call *c);
mla_status planted_absorb(const planted_call *c);
mla_status planted_q_absorb(const planted_call *c);
mla_status planted_v_expand(const planted_call *c);
mla_status planted_matmul(const planted_call *c);

/* Parts of a row at most, within the limits: sizes the workspace. */
int64_t planted_max_parts(const mla_problem *p, const mla_limits *limits);

#endif
