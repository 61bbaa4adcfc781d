/*
 * names.c - the words for statuses, operations, slots, types and formats.
 */
#include <string.h>

#include "mla/mla.h"

#define COUNT(table) ((int32_t)(sizeof(table) / sizeof((table)[0])))

/* Each table is indexed by its enum; a hole is NULL. */
static const char *const status_names[] = {
    [MLA_OK] = "OK",
    [MLA_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [MLA_UNSUPPORTED] = "UNSUPPORTED",
    [MLA_WORKSPACE_TOO_SMALL] = "WORKSPACE_TOO_SMALL",
    [MLA_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
    [MLA_NOT_AVAILABLE] = "NOT_AVAILABLE",
    [MLA_DEVICE_ERROR] = "DEVICE_ERROR",
    [MLA_VERSION_MISMATCH] = "VERSION_MISMATCH",
};

static const char *const op_names[] = {
    [MLA_OP_KV_WRITE] = "kv_write", [MLA_OP_KV_READ] = "kv_read",
    [MLA_OP_KV_COPY] = "kv_copy",   [MLA_OP_ABSORB] = "absorb",
    [MLA_OP_Q_ABSORB] = "q_absorb", [MLA_OP_V_EXPAND] = "v_expand",
    [MLA_OP_DECODE] = "decode",     [MLA_OP_PREFILL] = "prefill",
    [MLA_OP_MERGE] = "merge",       [MLA_OP_MATMUL] = "matmul",
    [MLA_OP_INDEX] = "index",       [MLA_OP_MAP_INDICES] = "map_indices",
};

static const char *const slot_names[] = {
    [MLA_T_Q] = "q",
    [MLA_T_KV_C] = "kv_c",
    [MLA_T_K_PE] = "k_pe",
    [MLA_T_SLOT_MAPPING] = "slot_mapping",
    [MLA_T_CACHE] = "cache",
    [MLA_T_V_CACHE] = "v_cache",
    [MLA_T_BLOCK_TABLE] = "block_table",
    [MLA_T_SEQ_LENS] = "seq_lens",
    [MLA_T_QUERY_START_LOC] = "query_start_loc",
    [MLA_T_CU_SEQ_LENS] = "cu_seq_lens",
    [MLA_T_SEQ_STARTS] = "seq_starts",
    [MLA_T_DST] = "dst",
    [MLA_T_SRC_CACHE] = "src_cache",
    [MLA_T_BLOCK_MAPPING] = "block_mapping",
    [MLA_T_KV_B_PROJ] = "kv_b_proj",
    [MLA_T_W_UK] = "w_uk",
    [MLA_T_W_UV] = "w_uv",
    [MLA_T_Q_NOPE] = "q_nope",
    [MLA_T_Q_LATENT] = "q_latent",
    [MLA_T_O_LATENT] = "o_latent",
    [MLA_T_OUT] = "out",
    [MLA_T_LSE] = "lse",
    [MLA_T_SINK] = "sink",
    [MLA_T_PARTS] = "parts",
    [MLA_T_PART_LSES] = "part_lses",
    [MLA_T_A] = "a",
    [MLA_T_B] = "b",
    [MLA_T_Q_B_PROJ] = "q_b_proj",
    [MLA_T_O_PROJ] = "o_proj",
    [MLA_T_W_Q_UK] = "w_q_uk",
    [MLA_T_W_QR] = "w_qr",
    [MLA_T_W_UV_O] = "w_uv_o",
    [MLA_T_INDICES] = "indices",
    [MLA_T_TOPK_LEN] = "topk_len",
    [MLA_T_EXTRA_CACHE] = "extra_cache",
    [MLA_T_EXTRA_INDICES] = "extra_indices",
    [MLA_T_EXTRA_TOPK_LEN] = "extra_topk_len",
    [MLA_T_INDEX_WEIGHTS] = "index_weights",
    [MLA_T_LOGITS] = "logits",
    [MLA_T_POSITIONS] = "positions",
    [MLA_T_KV_B_SCALE] = "kv_b_scale",
    [MLA_T_Q_B_SCALE] = "q_b_scale",
    [MLA_T_O_SCALE] = "o_scale",
};

static const char *const dtype_names[] = {
    [MLA_F64] = "f64",
    [MLA_F32] = "f32",
    [MLA_F16] = "f16",
    [MLA_BF16] = "bf16",
    [MLA_FP8_E4M3] = "fp8_e4m3",
    [MLA_FP8_E4M3FNUZ] = "fp8_e4m3fnuz",
    [MLA_FP8_E5M2] = "fp8_e5m2",
    [MLA_E8M0] = "e8m0",
    [MLA_I8] = "i8",
    [MLA_I4] = "i4",
    [MLA_U8] = "u8",
    [MLA_I32] = "i32",
    [MLA_I64] = "i64",
};

static const uint8_t dtype_bits[] = {
    [MLA_F64] = 64,     [MLA_F32] = 32,     [MLA_F16] = 16,
    [MLA_BF16] = 16,    [MLA_FP8_E4M3] = 8, [MLA_FP8_E4M3FNUZ] = 8,
    [MLA_FP8_E5M2] = 8, [MLA_E8M0] = 8,     [MLA_I8] = 8,
    [MLA_I4] = 4,       [MLA_U8] = 8,       [MLA_I32] = 32,
    [MLA_I64] = 64,
};

static const char *const format_names[] = {
    [MLA_CACHE_F64] = "f64",
    [MLA_CACHE_F32] = "f32",
    [MLA_CACHE_F16] = "f16",
    [MLA_CACHE_BF16] = "bf16",
    [MLA_CACHE_FP8_E4M3] = "fp8_e4m3",
    [MLA_CACHE_FP8_E4M3FNUZ] = "fp8_e4m3fnuz",
    [MLA_CACHE_FP8_E5M2] = "fp8_e5m2",
    [MLA_CACHE_FP8_DS_MLA] = "fp8_ds_mla",
    [MLA_CACHE_FP8_584] = "fp8_584",
    [MLA_CACHE_FP8_TOKEN] = "fp8_token",
    [MLA_CACHE_INT8_TOKEN] = "int8_token",
    [MLA_CACHE_INT4_TOKEN] = "int4_token",
    [MLA_CACHE_FP8_INDEX] = "fp8_index",
};

static const char *name_of(const char *const *table, int32_t count,
                           int32_t value) {
  return value >= 0 && value < count ? table[value] : NULL;
}

static int32_t value_of(const char *const *table, int32_t count,
                        const char *name, int32_t unknown) {
  if (!name) return unknown;
  for (int32_t i = 0; i < count; i++) {
    if (table[i] && strcmp(table[i], name) == 0) return i;
  }
  return unknown;
}

const char *mla_status_name(mla_status status) {
  const char *name =
      name_of(status_names, COUNT(status_names), (int32_t)status);
  return name ? name : "UNKNOWN_STATUS"; /* it goes straight into printf */
}

const char *mla_op_name(int32_t op) {
  return name_of(op_names, COUNT(op_names), op);
}

int32_t mla_op_from_name(const char *name) {
  return value_of(op_names, COUNT(op_names), name, MLA_OP_NONE);
}

const char *mla_slot_name(int32_t slot) {
  return name_of(slot_names, COUNT(slot_names), slot);
}

int32_t mla_slot_from_name(const char *name) {
  return value_of(slot_names, COUNT(slot_names), name, -1);
}

const char *mla_dtype_name(int32_t dtype) {
  return name_of(dtype_names, COUNT(dtype_names), dtype);
}

int32_t mla_dtype_from_name(const char *name) {
  return value_of(dtype_names, COUNT(dtype_names), name, MLA_DTYPE_NONE);
}

const char *mla_format_name(int32_t cache_format) {
  return name_of(format_names, COUNT(format_names), cache_format);
}

int32_t mla_format_from_name(const char *name) {
  return value_of(format_names, COUNT(format_names), name, MLA_CACHE_NONE);
}

int32_t mla_dtype_bits(int32_t dtype) {
  return dtype >= 0 && dtype < COUNT(dtype_bits) ? dtype_bits[dtype] : 0;
}
