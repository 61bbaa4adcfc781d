#include "op_table.h"

#include "cache_layout.h"
#include "dtype.h"

#define COUNT(a) ((int32_t)(sizeof(a) / sizeof((a)[0])))
#define IN MLA_ROLE_IN
#define OUT MLA_ROLE_OUT
#define INOUT MLA_ROLE_INOUT

/* { slot, role, type, optional, rank, {dims}, need, unless } */
static const mla_slot_spec kv_write_slots[] = {
    {MLA_T_KV_C, IN, MLA_TYPE_Q, 0, 2, {MLA_S_N, MLA_S_L}, 0, 0},
    {MLA_T_K_PE, IN, MLA_TYPE_Q, 0, 2, {MLA_S_N, MLA_S_R}, 0, 0},
    {MLA_T_SLOT_MAPPING, IN, MLA_TYPE_I64, 0, 1, {MLA_S_SLOTS}, 0, 0},
    {MLA_T_CACHE,
     INOUT,
     MLA_TYPE_CACHE,
     0,
     3,
     {MLA_S_NB, MLA_S_BS, MLA_S_E},
     0,
     0},
};
static const mla_slot_spec kv_read_slots[] = {
    {MLA_T_CACHE,
     IN,
     MLA_TYPE_CACHE,
     0,
     3,
     {MLA_S_NB, MLA_S_BS, MLA_S_E},
     0,
     0},
    {MLA_T_BLOCK_TABLE, IN, MLA_TYPE_I32, 0, 2, {MLA_S_B, MLA_S_W}, 0, 0},
    {MLA_T_CU_SEQ_LENS, IN, MLA_TYPE_I32, 0, 1, {MLA_S_B1}, 0, 0},
    {MLA_T_SEQ_STARTS, IN, MLA_TYPE_I32, 1, 1, {MLA_S_B}, 0, 0},
    {MLA_T_DST, INOUT, MLA_TYPE_OUT, 0, 2, {MLA_S_GATHERED, MLA_S_LR}, 0, 0},
};
static const mla_slot_spec kv_copy_slots[] = {
    {MLA_T_SRC_CACHE,
     IN,
     MLA_TYPE_CACHE,
     0,
     3,
     {MLA_S_NBS, MLA_S_BS, MLA_S_E},
     0,
     0},
    {MLA_T_BLOCK_MAPPING,
     IN,
     MLA_TYPE_I64,
     0,
     2,
     {MLA_S_COPIES, MLA_S_TWO},
     0,
     0},
    {MLA_T_CACHE,
     INOUT,
     MLA_TYPE_CACHE,
     0,
     3,
     {MLA_S_NB, MLA_S_BS, MLA_S_E},
     0,
     0},
};
static const mla_slot_spec absorb_slots[] = {
    {MLA_T_KV_B_PROJ, IN, MLA_TYPE_WEIGHT, 0, 2, {MLA_S_HPV, MLA_S_L}, 0, 0},
    {MLA_T_KV_B_SCALE,
     IN,
     MLA_TYPE_F32,
     0,
     2,
     {MLA_S_HPV_128, MLA_S_L_128},
     MLA_BLOCK_SCALED,
     0},
    {MLA_T_Q_B_PROJ,
     IN,
     MLA_TYPE_WEIGHT,
     0,
     2,
     {MLA_S_HPR, MLA_S_LQ},
     MLA_FUSED_Q,
     0},
    {MLA_T_O_PROJ,
     IN,
     MLA_TYPE_WEIGHT,
     0,
     2,
     {MLA_S_HIDDEN, MLA_S_HV},
     MLA_FUSED_O,
     0},
    {MLA_T_Q_B_SCALE,
     IN,
     MLA_TYPE_F32,
     0,
     2,
     {MLA_S_HPR_128, MLA_S_LQ_128},
     MLA_BLOCK_SCALED | MLA_FUSED_Q,
     0},
    {MLA_T_O_SCALE,
     IN,
     MLA_TYPE_F32,
     0,
     2,
     {MLA_S_HIDDEN_128, MLA_S_HV_128},
     MLA_BLOCK_SCALED | MLA_FUSED_O,
     0},
    {MLA_T_W_UK, OUT, MLA_TYPE_OUT, 0, 3, {MLA_S_H, MLA_S_P, MLA_S_L}, 0, 0},
    {MLA_T_W_UV, OUT, MLA_TYPE_OUT, 0, 3, {MLA_S_H, MLA_S_V, MLA_S_L}, 0, 0},
    {MLA_T_W_Q_UK,
     OUT,
     MLA_TYPE_OUT,
     0,
     3,
     {MLA_S_LQ, MLA_S_H, MLA_S_L},
     MLA_FUSED_Q,
     0},
    {MLA_T_W_QR,
     OUT,
     MLA_TYPE_OUT,
     0,
     3,
     {MLA_S_LQ, MLA_S_H, MLA_S_R},
     MLA_FUSED_Q,
     0},
    {MLA_T_W_UV_O,
     OUT,
     MLA_TYPE_OUT,
     0,
     3,
     {MLA_S_H, MLA_S_L, MLA_S_HIDDEN},
     MLA_FUSED_O,
     0},
};
static const mla_slot_spec q_absorb_slots[] = {
    {MLA_T_Q_NOPE, IN, MLA_TYPE_Q, 0, 3, {MLA_S_N, MLA_S_H, MLA_S_P}, 0, 0},
    {MLA_T_W_UK, IN, MLA_TYPE_WEIGHT, 0, 3, {MLA_S_H, MLA_S_P, MLA_S_L}, 0, 0},
    {MLA_T_Q_LATENT,
     OUT,
     MLA_TYPE_OUT,
     0,
     3,
     {MLA_S_N, MLA_S_H, MLA_S_L},
     0,
     0},
};
static const mla_slot_spec v_expand_slots[] = {
    {MLA_T_O_LATENT, IN, MLA_TYPE_Q, 0, 3, {MLA_S_N, MLA_S_H, MLA_S_L}, 0, 0},
    {MLA_T_W_UV, IN, MLA_TYPE_WEIGHT, 0, 3, {MLA_S_H, MLA_S_V, MLA_S_L}, 0, 0},
    {MLA_T_OUT, OUT, MLA_TYPE_OUT, 0, 3, {MLA_S_N, MLA_S_H, MLA_S_V}, 0, 0},
};
static const mla_slot_spec decode_slots[] = {
    {MLA_T_Q, IN, MLA_TYPE_Q, 0, 3, {MLA_S_N, MLA_S_H, MLA_S_D}, 0, 0},
    {MLA_T_CACHE,
     IN,
     MLA_TYPE_CACHE,
     0,
     3,
     {MLA_S_NB, MLA_S_BS, MLA_S_E},
     0,
     MLA_SEPARATE_V},
    {MLA_T_CACHE,
     IN,
     MLA_TYPE_CACHE,
     0,
     4,
     {MLA_S_NB, MLA_S_BS, MLA_S_KVH, MLA_S_E},
     MLA_SEPARATE_V,
     0},
    {MLA_T_V_CACHE,
     IN,
     MLA_TYPE_CACHE,
     0,
     4,
     {MLA_S_NB, MLA_S_BS, MLA_S_KVH, MLA_S_EV},
     MLA_SEPARATE_V,
     0},
    {MLA_T_BLOCK_TABLE,
     IN,
     MLA_TYPE_I32,
     0,
     2,
     {MLA_S_B, MLA_S_W},
     0,
     MLA_SPARSE},
    {MLA_T_SEQ_LENS, IN, MLA_TYPE_I32, 0, 1, {MLA_S_B}, 0, MLA_SPARSE},
    {MLA_T_QUERY_START_LOC, IN, MLA_TYPE_I32, 0, 1, {MLA_S_B1}, 0, MLA_SPARSE},
    {MLA_T_INDICES,
     IN,
     MLA_TYPE_I32,
     0,
     2,
     {MLA_S_N, MLA_S_TOPK},
     MLA_SPARSE,
     0},
    {MLA_T_TOPK_LEN, IN, MLA_TYPE_I32, 1, 1, {MLA_S_N}, MLA_SPARSE, 0},
    {MLA_T_EXTRA_CACHE,
     IN,
     MLA_TYPE_CACHE,
     0,
     3,
     {MLA_S_NBX, MLA_S_XBS, MLA_S_E},
     MLA_EXTRA_CACHE,
     0},
    {MLA_T_EXTRA_INDICES,
     IN,
     MLA_TYPE_I32,
     0,
     2,
     {MLA_S_N, MLA_S_XTOPK},
     MLA_EXTRA_CACHE,
     0},
    {MLA_T_EXTRA_TOPK_LEN,
     IN,
     MLA_TYPE_I32,
     1,
     1,
     {MLA_S_N},
     MLA_EXTRA_CACHE,
     0},
    {MLA_T_SINK, IN, MLA_TYPE_REAL, 0, 1, {MLA_S_H}, MLA_HAS_SINK, 0},
    {MLA_T_OUT, OUT, MLA_TYPE_OUT, 0, 3, {MLA_S_N, MLA_S_H, MLA_S_DV}, 0, 0},
    {MLA_T_LSE,
     OUT,
     MLA_TYPE_REAL,
     0,
     2,
     {MLA_S_N, MLA_S_H},
     MLA_RETURN_LSE,
     0},
};
static const mla_slot_spec prefill_slots[] = {
    {MLA_T_Q, IN, MLA_TYPE_Q, 0, 3, {MLA_S_N, MLA_S_H, MLA_S_PR}, 0, 0},
    {MLA_T_KV_C, IN, MLA_TYPE_Q, 0, 2, {MLA_S_N, MLA_S_L}, 0, 0},
    {MLA_T_K_PE, IN, MLA_TYPE_Q, 0, 2, {MLA_S_N, MLA_S_R}, 0, 0},
    {MLA_T_KV_B_PROJ, IN, MLA_TYPE_WEIGHT, 0, 2, {MLA_S_HPV, MLA_S_L}, 0, 0},
    {MLA_T_CACHE,
     IN,
     MLA_TYPE_CACHE,
     0,
     3,
     {MLA_S_NB, MLA_S_BS, MLA_S_E},
     MLA_CONTEXT,
     0},
    {MLA_T_BLOCK_TABLE,
     IN,
     MLA_TYPE_I32,
     0,
     2,
     {MLA_S_B, MLA_S_W},
     MLA_CONTEXT,
     0},
    {MLA_T_SEQ_LENS, IN, MLA_TYPE_I32, 0, 1, {MLA_S_B}, 0, 0},
    {MLA_T_QUERY_START_LOC, IN, MLA_TYPE_I32, 0, 1, {MLA_S_B1}, 0, 0},
    {MLA_T_SINK, IN, MLA_TYPE_REAL, 0, 1, {MLA_S_H}, MLA_HAS_SINK, 0},
    {MLA_T_OUT, OUT, MLA_TYPE_OUT, 0, 3, {MLA_S_N, MLA_S_H, MLA_S_V}, 0, 0},
    {MLA_T_LSE,
     OUT,
     MLA_TYPE_REAL,
     0,
     2,
     {MLA_S_N, MLA_S_H},
     MLA_RETURN_LSE,
     0},
};
static const mla_slot_spec merge_slots[] = {
    {MLA_T_PARTS,
     IN,
     MLA_TYPE_Q,
     0,
     4,
     {MLA_S_PARTS, MLA_S_N, MLA_S_H, MLA_S_V},
     0,
     0},
    {MLA_T_PART_LSES,
     IN,
     MLA_TYPE_REAL,
     0,
     3,
     {MLA_S_PARTS, MLA_S_N, MLA_S_H},
     0,
     0},
    {MLA_T_SINK, IN, MLA_TYPE_REAL, 0, 1, {MLA_S_H}, MLA_HAS_SINK, 0},
    {MLA_T_OUT, OUT, MLA_TYPE_OUT, 0, 3, {MLA_S_N, MLA_S_H, MLA_S_V}, 0, 0},
    {MLA_T_LSE,
     OUT,
     MLA_TYPE_REAL,
     0,
     2,
     {MLA_S_N, MLA_S_H},
     MLA_RETURN_LSE,
     0},
};
static const mla_slot_spec matmul_slots[] = {
    {MLA_T_A, IN, MLA_TYPE_Q, 0, 2, {MLA_S_N, MLA_S_MK}, 0, 0},
    {MLA_T_B, IN, MLA_TYPE_WEIGHT, 0, 2, {MLA_S_MN, MLA_S_MK}, 0, 0},
    {MLA_T_OUT, OUT, MLA_TYPE_OUT, 0, 2, {MLA_S_N, MLA_S_MN}, 0, 0},
};

static const mla_slot_spec index_slots[] = {
    {MLA_T_Q, IN, MLA_TYPE_Q, 0, 3, {MLA_S_N, MLA_S_H, MLA_S_D}, 0, 0},
    {MLA_T_CACHE,
     IN,
     MLA_TYPE_CACHE,
     0,
     3,
     {MLA_S_NB, MLA_S_BS, MLA_S_E},
     0,
     0},
    {MLA_T_INDEX_WEIGHTS, IN, MLA_TYPE_REAL, 0, 2, {MLA_S_N, MLA_S_H}, 0, 0},
    {MLA_T_BLOCK_TABLE, IN, MLA_TYPE_I32, 0, 2, {MLA_S_B, MLA_S_W}, 0, 0},
    {MLA_T_SEQ_LENS, IN, MLA_TYPE_I32, 0, 1, {MLA_S_B}, 0, 0},
    {MLA_T_QUERY_START_LOC, IN, MLA_TYPE_I32, 0, 1, {MLA_S_B1}, 0, 0},
    {MLA_T_POSITIONS, OUT, MLA_TYPE_I32, 0, 2, {MLA_S_N, MLA_S_TOPK}, 0, 0},
    {MLA_T_LOGITS,
     OUT,
     MLA_TYPE_REAL,
     0,
     2,
     {MLA_S_N, MLA_S_LOGITS},
     MLA_RETURN_LOGITS,
     0},
};
static const mla_slot_spec map_indices_slots[] = {
    {MLA_T_POSITIONS, IN, MLA_TYPE_I32, 0, 2, {MLA_S_N, MLA_S_TOPK}, 0, 0},
    {MLA_T_BLOCK_TABLE, IN, MLA_TYPE_I32, 0, 2, {MLA_S_B, MLA_S_W}, 0, 0},
    {MLA_T_QUERY_START_LOC, IN, MLA_TYPE_I32, 0, 1, {MLA_S_B1}, 0, 0},
    {MLA_T_INDICES, OUT, MLA_TYPE_I32, 0, 2, {MLA_S_N, MLA_S_TOPK}, 0, 0},
};

#define ATTENTION_FLAGS                                         \
  (MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 | MLA_HAS_SINK | \
   MLA_BATCH_INVARIANT | MLA_ALIBI | MLA_OUTPUT_SCALE)
#define ROW(op, slots, flags) \
  { op, COUNT(slots), slots, flags }

static const mla_op_spec op_specs[] = {
    ROW(MLA_OP_KV_WRITE, kv_write_slots, MLA_SCALE_POW2),
    ROW(MLA_OP_KV_READ, kv_read_slots, 0),
    ROW(MLA_OP_KV_COPY, kv_copy_slots, 0),
    ROW(MLA_OP_ABSORB, absorb_slots,
        MLA_FUSED_Q | MLA_FUSED_O | MLA_BLOCK_SCALED),
    ROW(MLA_OP_Q_ABSORB, q_absorb_slots, MLA_BATCH_INVARIANT),
    ROW(MLA_OP_V_EXPAND, v_expand_slots, MLA_BATCH_INVARIANT),
    ROW(MLA_OP_DECODE, decode_slots,
        ATTENTION_FLAGS | MLA_SEPARATE_V | MLA_SPARSE | MLA_EXTRA_CACHE |
            MLA_COMMON_PREFIX),
    ROW(MLA_OP_PREFILL, prefill_slots, ATTENTION_FLAGS | MLA_CONTEXT),
    ROW(MLA_OP_MERGE, merge_slots,
        MLA_RETURN_LSE | MLA_LSE_BASE2 | MLA_HAS_SINK | MLA_BATCH_INVARIANT),
    ROW(MLA_OP_MATMUL, matmul_slots, MLA_BATCH_INVARIANT),
    ROW(MLA_OP_INDEX, index_slots, MLA_RETURN_LOGITS | MLA_BATCH_INVARIANT),
    ROW(MLA_OP_MAP_INDICES, map_indices_slots, 0),
};

const mla_op_spec *mla_op_spec_of(int32_t op) {
  for (int32_t i = 0; i < COUNT(op_specs); i++)
    if (op_specs[i].op == op) return &op_specs[i];
  return NULL;
}

/* Index keys are written without a rope part, and so without k_pe. */
static int has_no_width(const mla_slot_spec *slot, const mla_problem *problem) {
  return problem->op == MLA_OP_KV_WRITE && slot->slot == MLA_T_K_PE &&
         problem->qk_rope_head_dim == 0;
}

int mla_slot_applies(const mla_slot_spec *slot, const mla_problem *problem) {
  return (problem->flags & slot->need) == slot->need &&
         !(problem->flags & slot->unless) && !has_no_width(slot, problem);
}

int32_t mla_slot_dtype(const mla_slot_spec *slot, const mla_problem *problem) {
  switch (slot->type_rule) {
    case MLA_TYPE_Q: return problem->q_dtype;
    case MLA_TYPE_OUT: return problem->out_dtype;
    case MLA_TYPE_WEIGHT: return problem->weight_dtype;
    case MLA_TYPE_REAL: return problem->q_dtype == MLA_F64 ? MLA_F64 : MLA_F32;
    case MLA_TYPE_F32: return MLA_F32;
    case MLA_TYPE_I32: return MLA_I32;
    case MLA_TYPE_I64: return MLA_I64;
    default: break;
  }
  int32_t plain = mla_format_dtype(problem->cache_format);
  return plain == MLA_DTYPE_NONE ? MLA_U8 : plain;
}

static int64_t v_entry(const mla_problem *problem) {
  mla_cache_layout layout = mla_cache_layout_of_v(problem);
  return mla_cache_entry(&layout);
}

/* Blocks of 128 scaled weights. */
static int64_t blocks_of_128(int64_t n) {
  return n / 128 + (n % 128 > 0);
}

int64_t mla_sym_value(int sym, const mla_problem *p) {
  int64_t h = p->num_heads, nope = p->qk_nope_head_dim;
  int64_t rope = p->qk_rope_head_dim, v = p->v_head_dim;
  switch (sym) {
    case MLA_S_H: return h;
    case MLA_S_L: return p->kv_lora_rank;
    case MLA_S_P: return nope;
    case MLA_S_R: return rope;
    case MLA_S_V: return v;
    case MLA_S_D: return mla_problem_head_dim(p);
    case MLA_S_DV: return mla_problem_v_dim(p);
    case MLA_S_LR: return p->kv_lora_rank + rope;
    case MLA_S_PR: return nope + rope;
    case MLA_S_HPV: return h * (nope + v);
    case MLA_S_HPR: return h * (nope + rope);
    case MLA_S_HV: return h * v;
    case MLA_S_LQ:
    case MLA_S_MK: return p->q_lora_rank;
    case MLA_S_HIDDEN:
    case MLA_S_MN: return p->hidden_size;
    case MLA_S_KVH: return mla_problem_kv_heads(p);
    case MLA_S_BS: return p->block_size;
    case MLA_S_E: return mla_problem_entry(p);
    case MLA_S_EV: return v_entry(p);
    case MLA_S_TWO: return 2;
    case MLA_S_TOPK: return p->topk;
    case MLA_S_XTOPK: return p->extra_topk;
    case MLA_S_XBS: return p->extra_block_size;
    case MLA_S_HPV_128: return blocks_of_128(h * (nope + v));
    case MLA_S_HPR_128: return blocks_of_128(h * (nope + rope));
    case MLA_S_HV_128: return blocks_of_128(h * v);
    case MLA_S_L_128: return blocks_of_128(p->kv_lora_rank);
    case MLA_S_LQ_128: return blocks_of_128(p->q_lora_rank);
    case MLA_S_HIDDEN_128: return blocks_of_128(p->hidden_size);
    default: return -1;
  }
}

const char *mla_sym_name(int sym) {
  static const char *const names[MLA_S_COUNT] = {
      [MLA_S_NONE] = "none",
      [MLA_S_H] = "num_heads",
      [MLA_S_L] = "kv_lora_rank",
      [MLA_S_P] = "qk_nope_head_dim",
      [MLA_S_R] = "qk_rope_head_dim",
      [MLA_S_V] = "v_head_dim",
      [MLA_S_D] = "head_dim",
      [MLA_S_DV] = "v_dim",
      [MLA_S_LR] = "kv_lora_rank + qk_rope_head_dim",
      [MLA_S_PR] = "qk_nope_head_dim + qk_rope_head_dim",
      [MLA_S_HPV] = "num_heads * (qk_nope_head_dim + v_head_dim)",
      [MLA_S_HPR] = "num_heads * (qk_nope_head_dim + qk_rope_head_dim)",
      [MLA_S_HV] = "num_heads * v_head_dim",
      [MLA_S_LQ] = "q_lora_rank",
      [MLA_S_HIDDEN] = "hidden_size",
      [MLA_S_KVH] = "num_kv_heads",
      [MLA_S_BS] = "block_size",
      [MLA_S_E] = "entry",
      [MLA_S_EV] = "entry of v_cache",
      [MLA_S_TWO] = "2",
      [MLA_S_MK] = "matmul's K (q_lora_rank)",
      [MLA_S_MN] = "matmul's N (hidden_size)",
      [MLA_S_TOPK] = "topk",
      [MLA_S_XTOPK] = "extra_topk",
      [MLA_S_XBS] = "extra_block_size",
      [MLA_S_HPV_128] = "blocks of 128 in kv_b_proj's rows",
      [MLA_S_HPR_128] = "blocks of 128 in q_b_proj's rows",
      [MLA_S_HV_128] = "blocks of 128 in o_proj's columns",
      [MLA_S_L_128] = "blocks of 128 in kv_lora_rank",
      [MLA_S_LQ_128] = "blocks of 128 in q_lora_rank",
      [MLA_S_HIDDEN_128] = "blocks of 128 in hidden_size",
      [MLA_S_NBX] = "num_blocks of the extra cache",
      [MLA_S_LOGITS] = "positions",
      [MLA_S_N] = "tokens",
      [MLA_S_B] = "requests",
      [MLA_S_B1] = "requests + 1",
      [MLA_S_W] = "table_width",
      [MLA_S_NB] = "num_blocks",
      [MLA_S_NBS] = "num_blocks of the source",
      [MLA_S_SLOTS] = "slots",
      [MLA_S_COPIES] = "copies",
      [MLA_S_GATHERED] = "gathered tokens",
      [MLA_S_PARTS] = "parts",
  };
  return sym >= 0 && sym < MLA_S_COUNT ? names[sym] : "unknown";
}
