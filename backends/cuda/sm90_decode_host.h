/*
 * sm90_decode_host.h - what the host sides of sm_90a's decode kernels share:
 * their grid, workspace, outputs, the map of q, and the merge behind them.
 */
#ifndef MLA_SM90_DECODE_HOST_H
#define MLA_SM90_DECODE_HOST_H

#include "sm90_decode_cut.h"
#include "sm90_decode_rows.h"
#include "sm90_launch.h"
#include "sm90_tensor_map.h"

/* Grid: tiles of rows of a request, and parts of the batch. */
typedef struct mla_sm90_grid {
  int m_blocks, parts;
} mla_sm90_grid;

static inline mla_sm90_grid mla_sm90_grid_of(const mla_handle *h, int64_t rows,
                                             int tile = MLA_SM90_ROWS) {
  mla_sm90_grid g;
  g.m_blocks = (int)((rows + tile - 1) / tile);
  g.parts = h->units / g.m_blocks;
  if (g.parts < 1) g.parts = 1;
  if (g.parts > MLA_SM90_MOST_PARTS) g.parts = MLA_SM90_MOST_PARTS;
  return g;
}

static inline int64_t mla_sm90_scratch_rows(const mla_sm90_grid &g) {
  return 2 * (int64_t)g.parts * g.m_blocks * MLA_SM90_ROWS;
}

static inline uint64_t mla_sm90_workspace(const mla_sm90_grid &g) {
  return (uint64_t)mla_sm90_scratch_rows(g) * 513 * sizeof(float) +
         (uint64_t)g.parts * sizeof(mla_plan_split);
}

/* The sizes and flags that every one of them asks for. */
static inline int mla_sm90_decodes(const mla_handle *h, const mla_problem *p) {
  const uint64_t refused =
      MLA_SEPARATE_V | MLA_BATCH_INVARIANT | MLA_ALIBI | MLA_OUTPUT_SCALE;
  return h->major == 9 && h->minor == 0 && p->op == MLA_OP_DECODE &&
         !(p->flags & refused) && p->q_dtype == SM90_TYPE &&
         mla_problem_head_dim(p) == 576 && mla_problem_v_dim(p) == 512 &&
         mla_problem_kv_heads(p) == 1 && p->logits_soft_cap == 0 &&
         mla_tensor_map_encoder() != NULL;
}

/* Rows of a request, and the most of them: more is prefill's business. */
enum { MLA_SM90_MOST_ROWS = 2048 };
static inline int64_t mla_sm90_rows(const mla_problem *p, const mla_limits *l) {
  return (int64_t)p->num_heads * l->max_query_len;
}

/* Of requests' pages, not of lists. */
static inline int mla_sm90_decodes_pages(const mla_handle *h,
                                         const mla_problem *p,
                                         const mla_limits *l) {
  return mla_sm90_decodes(h, p) && !(p->flags & MLA_SPARSE) &&
         l->max_query_len >= 1 && mla_sm90_rows(p, l) <= MLA_SM90_MOST_ROWS;
}

/* The copy engine wants 16-byte steps and rows of q in one even walk; outputs
   are written 16 bytes at a time. */
static inline int mla_sm90_takes_rows(const mla_gpu_call *c) {
  const mla_tensor *q = mla_arg(c->args, MLA_T_Q);
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  const int64_t width = q->stride[1];
  if ((uintptr_t)q->data % 16 || width % 8) return 0;
  if (q->shape[0] > 1 && q->stride[0] != q->shape[1] * width) return 0;
  const int step = out->dtype == MLA_F32 ? 4 : 8;
  return out->stride[0] % step == 0 && out->stride[1] % step == 0 &&
         (uintptr_t)out->data % 16 == 0 && q->shape[0] > 0;
}

/* Keys by the copy engine too. */
static inline int mla_sm90_takes_boxes(const mla_gpu_call *c) {
  const mla_tensor *cache = mla_arg(c->args, MLA_T_CACHE);
  return mla_sm90_takes_rows(c) && (uintptr_t)cache->data % 16 == 0 &&
         cache->stride[0] % 8 == 0 && cache->stride[1] % 8 == 0;
}

/* Entries that warps bring are loaded by units, and found by 31 bits of them.
 */
static const int64_t MLA_SM90_REACH = (int64_t)16 << 31; /* 32 GiB */
static inline int mla_sm90_takes_units(const mla_tensor *t) {
  const int64_t unit = 16;
  const int bytes = mla_dtype_bits(t->dtype) / 8;
  const int64_t block = t->stride[0] * bytes, row = t->stride[1] * bytes;
  return (uintptr_t)t->data % unit == 0 && t->stride[2] == 1 &&
         block % unit == 0 && row % unit == 0 && block >= 0 && row >= 0 &&
         t->shape[0] * block + t->shape[1] * row <= MLA_SM90_REACH;
}

static inline mla_status mla_sm90_q_map(const mla_gpu_call *c, int rows_a_box,
                                        CUtensorMap *map) {
  const mla_tensor *q = mla_arg(c->args, MLA_T_Q);
  const uint64_t rows = (uint64_t)(q->shape[0] * q->shape[1]);
  const uint64_t size[3] = {64, rows, 9};
  const uint64_t stride[2] = {(uint64_t)q->stride[1] * 2, 128};
  const uint32_t box[3] = {64, (uint32_t)rows_a_box, 9};
  return mla_tensor_map(map, q->data, 3, size, stride, box, MLA_TENSOR_PAIRS,
                        c->err);
}

/* An entry is nine boxes of 64 numbers; `boxes` of them at once, of `keys` keys
   or a page. */
static inline mla_status mla_sm90_key_map(const mla_gpu_call *c, int keys,
                                          int boxes, int miss,
                                          CUtensorMap *map) {
  const mla_tensor *k = mla_arg(c->args, MLA_T_CACHE);
  const uint64_t page = (uint64_t)k->shape[1];
  const uint64_t size[4] = {64, page, 9, (uint64_t)k->shape[0]};
  const uint64_t stride[3] = {(uint64_t)k->stride[1] * 2, 128,
                              (uint64_t)k->stride[0] * 2};
  const uint32_t rows = page < (uint64_t)keys ? (uint32_t)page : (uint32_t)keys;
  const uint32_t box[4] = {64, rows, (uint32_t)boxes, 1};
  return mla_tensor_map(map, k->data, 4, size, stride, box, miss, c->err);
}

/* All but the plan and the keys. */
static inline mla_sm90_args mla_sm90_args_of(const mla_gpu_call *c,
                                             const mla_sm90_grid &g) {
  mla_sm90_args a = {};
  a.plan.parts = g.parts;
  a.heads = c->p->num_heads;
  a.causal = (c->p->flags & MLA_CAUSAL) != 0;
  a.scale = (float)(c->p->scale * 1.4426950408889634);
  a.part_out = (float *)c->workspace;
  a.part_lse = a.part_out + 512 * mla_sm90_scratch_rows(g);
  a.splits = (mla_plan_split *)(a.part_lse + mla_sm90_scratch_rows(g));
  mla_sm90_outputs(c, &a);
  return a;
}

/* Where a request has a part of its own and few blocks, or few and the card is
   full of them: none is split, and there is nothing to merge. Its blocks at
   most; 0: not so. */
static inline int mla_sm90_whole(const mla_gpu_call *c,
                                 const mla_sm90_grid &g) {
  const int64_t requests = mla_arg(c->args, MLA_T_SEQ_LENS)->shape[0];
  const int64_t keys = c->plan->limits.max_seq_len;
  const int64_t blocks = (keys + MLA_SM90_BLOCK - 1) / MLA_SM90_BLOCK;
  const int few =
      4 * requests < 3 * g.parts ? MLA_SM90_FEW_BLOCKS : MLA_SM90_FULL_BLOCKS;
  return requests > 1 && requests <= g.parts && blocks <= few ? (int)blocks : 0;
}

/* With the plan, where keys are requests' pages. */
static inline mla_sm90_args mla_sm90_paged_args(const mla_gpu_call *c,
                                                const mla_sm90_grid &g) {
  const mla_tensor *lens = mla_arg(c->args, MLA_T_SEQ_LENS);
  const mla_tensor *start = mla_arg(c->args, MLA_T_QUERY_START_LOC);
  const mla_tensor *table = mla_arg(c->args, MLA_T_BLOCK_TABLE);
  mla_sm90_args a = mla_sm90_args_of(c, g);
  a.plan.seq_lens = (const int32_t *)lens->data;
  a.plan.seq_lens_step = lens->stride[0];
  a.plan.start = (const int32_t *)start->data;
  a.plan.start_step = start->stride[0];
  a.plan.requests = (int)lens->shape[0];
  a.plan.parts_each = g.parts > a.plan.requests ? g.parts / a.plan.requests : 1;
  a.plan.whole = mla_sm90_whole(c, g);
  a.plan.requests_each = (a.plan.requests + g.parts - 1) / g.parts;
  a.table = (const int32_t *)table->data;
  a.table_row = table->stride[0];
  a.table_width = (int)table->shape[1];
  a.page = c->p->block_size;
  return a;
}

/* One request is nothing to cut. */
static inline int mla_sm90_is_cut(const mla_gpu_call *c) {
  const int64_t requests = mla_arg(c->args, MLA_T_SEQ_LENS)->shape[0];
  return requests > 1 && requests <= MLA_CUT_REQUESTS;
}

/* Warps of a tile that have rows, of requests with `rows` at most. */
static inline int mla_sm90_warps(int rows) {
  return rows < MLA_SM90_ROWS ? (rows + 15) / 16 : 4;
}

/* Pieces joined, behind a decode kernel of a type; a request's rows at most. */
mla_status mla_sm90_merge(const mla_gpu_call *c, const mla_sm90_args &a,
                          const mla_sm90_grid &g, int rows, int dtype);
/* Of a kernel with few rows a CTA. */
mla_status mla_sm90_merge_narrow(const mla_gpu_call *c, const mla_sm90_args &a,
                                 const mla_sm90_grid &g, int rows, int tile);

/* What they promise. */
static inline void mla_sm90_promise(mla_answer *answer) {
  answer->determinism = MLA_DETERMINISM_RUN_TO_RUN;
  answer->numerics.u_p = SM90_U;
  answer->numerics.flushes_subnormals = 1; /* of P, by ex2.approx.ftz */
}

#endif
