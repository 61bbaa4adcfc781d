/*
 * abi_pinned.c - values and places that no later minor may change. Those of
 * structs are of the usual 64-bit layouts; a smaller int or pointer would
 * have others, as lawful.
 */
#include "mla/backend.h"
#include "mla/dlpack.h"

#define PINNED(name, value) \
  _Static_assert((name) == (value), #name " is " #value " for ever")
#define AT(type, member, offset)                     \
  _Static_assert(offsetof(type, member) == (offset), \
                 #type "." #member " lies at " #offset " for ever")
/* A struct may grow: what it has at this minor, it has at any later. */
#define AT_LEAST(type, bytes) \
  _Static_assert(sizeof(type) >= (bytes), #type " only grows")

PINNED(MLA_ABI_MAJOR, 1);
PINNED(sizeof(mla_status), 4);
PINNED(MLA_MAX_RANK, 5);

/* mla_status */
PINNED(MLA_OK, 0);
PINNED(MLA_INVALID_ARGUMENT, 1);
PINNED(MLA_UNSUPPORTED, 2);
PINNED(MLA_WORKSPACE_TOO_SMALL, 3);
PINNED(MLA_OUT_OF_MEMORY, 4);
PINNED(MLA_NOT_AVAILABLE, 5);
PINNED(MLA_DEVICE_ERROR, 6);
PINNED(MLA_VERSION_MISMATCH, 7);

/* mla_dtype */
PINNED(MLA_DTYPE_NONE, 0);
PINNED(MLA_F64, 1);
PINNED(MLA_F32, 2);
PINNED(MLA_F16, 3);
PINNED(MLA_BF16, 4);
PINNED(MLA_FP8_E4M3, 5);
PINNED(MLA_FP8_E4M3FNUZ, 6);
PINNED(MLA_FP8_E5M2, 7);
PINNED(MLA_E8M0, 8);
PINNED(MLA_I8, 9);
PINNED(MLA_I4, 10);
PINNED(MLA_U8, 11);
PINNED(MLA_I32, 12);
PINNED(MLA_I64, 13);

/* mla_cache_format */
PINNED(MLA_CACHE_NONE, 0);
PINNED(MLA_CACHE_F64, 1);
PINNED(MLA_CACHE_F32, 2);
PINNED(MLA_CACHE_F16, 3);
PINNED(MLA_CACHE_BF16, 4);
PINNED(MLA_CACHE_FP8_E4M3, 5);
PINNED(MLA_CACHE_FP8_E4M3FNUZ, 6);
PINNED(MLA_CACHE_FP8_E5M2, 7);
PINNED(MLA_CACHE_FP8_DS_MLA, 8);
PINNED(MLA_CACHE_FP8_584, 9);
PINNED(MLA_CACHE_FP8_TOKEN, 10);
PINNED(MLA_CACHE_INT8_TOKEN, 11);
PINNED(MLA_CACHE_INT4_TOKEN, 12);
PINNED(MLA_CACHE_FP8_INDEX, 13);

/* mla_op */
PINNED(MLA_OP_NONE, 0);
PINNED(MLA_OP_KV_WRITE, 1);
PINNED(MLA_OP_KV_READ, 2);
PINNED(MLA_OP_KV_COPY, 3);
PINNED(MLA_OP_ABSORB, 4);
PINNED(MLA_OP_Q_ABSORB, 5);
PINNED(MLA_OP_V_EXPAND, 6);
PINNED(MLA_OP_DECODE, 7);
PINNED(MLA_OP_PREFILL, 8);
PINNED(MLA_OP_MERGE, 9);
PINNED(MLA_OP_MATMUL, 10);
PINNED(MLA_OP_INDEX, 11);
PINNED(MLA_OP_MAP_INDICES, 12);

/* mla_slot */
PINNED(MLA_T_Q, 0);
PINNED(MLA_T_KV_C, 1);
PINNED(MLA_T_K_PE, 2);
PINNED(MLA_T_SLOT_MAPPING, 3);
PINNED(MLA_T_CACHE, 4);
PINNED(MLA_T_V_CACHE, 5);
PINNED(MLA_T_BLOCK_TABLE, 6);
PINNED(MLA_T_SEQ_LENS, 7);
PINNED(MLA_T_QUERY_START_LOC, 8);
PINNED(MLA_T_CU_SEQ_LENS, 9);
PINNED(MLA_T_SEQ_STARTS, 10);
PINNED(MLA_T_DST, 11);
PINNED(MLA_T_SRC_CACHE, 12);
PINNED(MLA_T_BLOCK_MAPPING, 13);
PINNED(MLA_T_KV_B_PROJ, 14);
PINNED(MLA_T_W_UK, 15);
PINNED(MLA_T_W_UV, 16);
PINNED(MLA_T_Q_NOPE, 17);
PINNED(MLA_T_Q_LATENT, 18);
PINNED(MLA_T_O_LATENT, 19);
PINNED(MLA_T_OUT, 20);
PINNED(MLA_T_LSE, 21);
PINNED(MLA_T_SINK, 22);
PINNED(MLA_T_PARTS, 23);
PINNED(MLA_T_PART_LSES, 24);
PINNED(MLA_T_A, 25);
PINNED(MLA_T_B, 26);
PINNED(MLA_T_Q_B_PROJ, 27);
PINNED(MLA_T_O_PROJ, 28);
PINNED(MLA_T_W_Q_UK, 29);
PINNED(MLA_T_W_QR, 30);
PINNED(MLA_T_W_UV_O, 31);
PINNED(MLA_T_INDICES, 32);
PINNED(MLA_T_TOPK_LEN, 33);
PINNED(MLA_T_EXTRA_CACHE, 34);
PINNED(MLA_T_EXTRA_INDICES, 35);
PINNED(MLA_T_EXTRA_TOPK_LEN, 36);
PINNED(MLA_T_INDEX_WEIGHTS, 37);
PINNED(MLA_T_LOGITS, 38);
PINNED(MLA_T_POSITIONS, 39);
PINNED(MLA_T_KV_B_SCALE, 40);
PINNED(MLA_T_Q_B_SCALE, 41);
PINNED(MLA_T_O_SCALE, 42);

/* mla_determinism */
PINNED(MLA_DETERMINISM_NONE, 0);
PINNED(MLA_DETERMINISM_RUN_TO_RUN, 1);
PINNED(MLA_DETERMINISM_BATCH_INVARIANT, 2);

/* mla_dequant */
PINNED(MLA_DEQUANT_ROUND_PRODUCT, 0);
PINNED(MLA_DEQUANT_ROUND_SCALE, 1);
PINNED(MLA_DEQUANT_F32, 2);
PINNED(MLA_DEQUANT_SCALE_AFTER, 3);

/* mla_q_round */
PINNED(MLA_Q_ROUND_NONE, 0);
PINNED(MLA_Q_ROUND_INT8_ROW, 1);

/* mla_memory_space */
PINNED(MLA_MEMORY_HOST, 1);
PINNED(MLA_MEMORY_CUDA, 2);
PINNED(MLA_MEMORY_ROCM, 10);

/* flags */
PINNED(MLA_CAUSAL, 0x1u);
PINNED(MLA_RETURN_LSE, 0x2u);
PINNED(MLA_LSE_BASE2, 0x4u);
PINNED(MLA_HAS_SINK, 0x8u);
PINNED(MLA_SEPARATE_V, 0x10u);
PINNED(MLA_CONTEXT, 0x20u);
PINNED(MLA_BATCH_INVARIANT, 0x40u);
PINNED(MLA_FUSED_Q, 0x80u);
PINNED(MLA_FUSED_O, 0x100u);
PINNED(MLA_ALIBI, 0x200u);
PINNED(MLA_OUTPUT_SCALE, 0x400u);
PINNED(MLA_SPARSE, 0x800u);
PINNED(MLA_EXTRA_CACHE, 0x1000u);
PINNED(MLA_SCALE_POW2, 0x2000u);
PINNED(MLA_RETURN_LOGITS, 0x4000u);
PINNED(MLA_BLOCK_SCALED, 0x8000u);
PINNED(MLA_COMMON_PREFIX, 0x10000u);

#if UINTPTR_MAX == UINT64_MAX
AT(mla_error, size, 0);
AT(mla_error, status, 4);
AT(mla_error, backend_code, 8);
AT(mla_error, field, 16);
AT(mla_error, message, 48);
AT_LEAST(mla_error, 288);

AT(mla_tensor, data, 0);
AT(mla_tensor, dtype, 8);
AT(mla_tensor, rank, 12);
AT(mla_tensor, shape, 16);
AT(mla_tensor, stride, 56);
PINNED(sizeof(mla_tensor), 96); /* frozen */

AT(mla_problem, size, 0);
AT(mla_problem, op, 4);
AT(mla_problem, flags, 8);
AT(mla_problem, q_dtype, 16);
AT(mla_problem, out_dtype, 20);
AT(mla_problem, weight_dtype, 24);
AT(mla_problem, cache_format, 28);
AT(mla_problem, num_heads, 32);
AT(mla_problem, num_kv_heads, 36);
AT(mla_problem, kv_lora_rank, 40);
AT(mla_problem, qk_nope_head_dim, 44);
AT(mla_problem, qk_rope_head_dim, 48);
AT(mla_problem, v_head_dim, 52);
AT(mla_problem, head_dim, 56);
AT(mla_problem, v_dim, 60);
AT(mla_problem, q_lora_rank, 64);
AT(mla_problem, hidden_size, 68);
AT(mla_problem, block_size, 72);
AT(mla_problem, window, 76);
AT(mla_problem, scale, 80);
AT(mla_problem, logits_soft_cap, 88);
AT(mla_problem, k_scale, 96);
AT(mla_problem, v_scale, 104);
AT(mla_problem, topk, 112);
AT(mla_problem, extra_topk, 116);
AT(mla_problem, extra_block_size, 120);
AT(mla_problem, reserved, 124);
AT_LEAST(mla_problem, 128);

AT(mla_limits, size, 0);
AT(mla_limits, num_splits, 4);
AT(mla_limits, requests, 8);
AT(mla_limits, tokens, 16);
AT(mla_limits, max_query_len, 24);
AT(mla_limits, max_seq_len, 32);
AT(mla_limits, num_blocks, 40);
AT(mla_limits, table_width, 48);
AT(mla_limits, parts, 56);
AT(mla_limits, context_chunk, 64);
AT(mla_limits, seq_lens, 72);
AT(mla_limits, query_start_loc, 80);
AT_LEAST(mla_limits, 88);

AT(mla_args, size, 0);
AT(mla_args, count, 4);
AT(mla_args, tensor, 8);
AT_LEAST(mla_args, 16);

AT(mla_numerics, u_acc, 0);
AT(mla_numerics, u_p, 8);
AT(mla_numerics, u_mid, 16);
AT(mla_numerics, dequant, 24);
AT(mla_numerics, q_round, 28);
AT(mla_numerics, flushes_subnormals, 32);
AT(mla_numerics, rounded_denominator, 36);
AT(mla_numerics, lse_empty_positive, 40);
AT(mla_numerics, reserved, 44);
AT_LEAST(mla_numerics, 48);

AT(mla_answer, size, 0);
AT(mla_answer, supported, 4);
AT(mla_answer, workspace_bytes, 8);
AT(mla_answer, workspace_alignment, 16);
AT(mla_answer, tensor_alignment, 24);
AT(mla_answer, determinism, 32);
AT(mla_answer, capture_safe, 36);
AT(mla_answer, numerics, 40);
AT(mla_answer, kernel, 88);
AT(mla_answer, reason, 152);
AT_LEAST(mla_answer, 312);

AT(mla_device_info, size, 0);
AT(mla_device_info, memory_space, 4);
AT(mla_device_info, compute_units, 8);
AT(mla_device_info, reserved, 12);
AT(mla_device_info, memory_bytes, 16);
AT(mla_device_info, name, 24);
AT(mla_device_info, arch, 88);
AT_LEAST(mla_device_info, 120);

AT(mla_backend, size, 0);
AT(mla_backend, major, 4);
AT(mla_backend, minor, 6);
AT(mla_backend, name, 8);
AT(mla_backend, version, 16);
AT(mla_backend, description, 24);
AT(mla_backend, device_count, 32);
AT(mla_backend, device_info, 40);
AT(mla_backend, open, 48);
AT(mla_backend, close, 56);
AT(mla_backend, query, 64);
AT(mla_backend, plan, 72);
AT(mla_backend, run, 80);
AT(mla_backend, plan_free, 88);
AT(mla_backend, mem_alloc, 96);
AT(mla_backend, mem_free, 104);
AT(mla_backend, mem_to_device, 112);
AT(mla_backend, mem_to_host, 120);
AT(mla_backend, stream_create, 128);
AT(mla_backend, stream_destroy, 136);
AT(mla_backend, stream_sync, 144);
AT(mla_backend, capture_begin, 152);
AT(mla_backend, capture_end, 160);
AT(mla_backend, graph_launch, 168);
AT(mla_backend, graph_free, 176);
AT(mla_backend, event_create, 184);
AT(mla_backend, event_record, 192);
AT(mla_backend, event_elapsed, 200);
AT(mla_backend, event_free, 208);
AT(mla_backend, run_prefix, 216);
AT_LEAST(mla_backend, 224);
#endif
