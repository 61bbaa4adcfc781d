/*
 * op_table.h - what tensors each operation takes, as data.
 *
 * One table serves everything that must know the shapes: the checks before a
 * run, the generator and fences of the judge, files of vectors, copies to a
 * device. A new operation is a new row here, not a new switch elsewhere.
 */
#ifndef MLA_OP_TABLE_H
#define MLA_OP_TABLE_H

#include "mla/mla.h"

/*
 * A dimension of a tensor. Bound symbols follow from the problem; free ones
 * are whatever the first tensor that has them says, and all must agree.
 */
typedef enum mla_sym {
  MLA_S_NONE = 0,
  /* bound */
  MLA_S_H,
  MLA_S_L,
  MLA_S_P,
  MLA_S_R,
  MLA_S_V,
  MLA_S_D,      /* decode: head_dim */
  MLA_S_DV,     /* decode: v_dim */
  MLA_S_LR,     /* L + R */
  MLA_S_PR,     /* P + R */
  MLA_S_HPV,    /* H * (P + V) */
  MLA_S_HPR,    /* H * (P + R) */
  MLA_S_HV,     /* H * V */
  MLA_S_LQ,     /* q_lora_rank */
  MLA_S_HIDDEN, /* hidden_size */
  MLA_S_KVH,
  MLA_S_BS,  /* block_size */
  MLA_S_E,   /* elements of a cache entry */
  MLA_S_EV,  /* of an entry of v_cache */
  MLA_S_TWO, /* the constant 2 */
  MLA_S_MK,  /* matmul: K (q_lora_rank) */
  MLA_S_MN,  /* matmul: N (hidden_size) */
  MLA_S_TOPK,
  MLA_S_XTOPK,   /* extra_topk */
  MLA_S_XBS,     /* extra_block_size */
  MLA_S_HPV_128, /* blocks of 128 in H * (P + V) ... */
  MLA_S_HPR_128,
  MLA_S_HV_128,
  MLA_S_L_128,
  MLA_S_LQ_128,
  MLA_S_HIDDEN_128,
  /* free */
  MLA_S_FREE,
  MLA_S_N = MLA_S_FREE, /* query tokens, rows */
  MLA_S_B,              /* requests */
  MLA_S_B1,             /* requests + 1 */
  MLA_S_W,              /* width of the block table */
  MLA_S_NB,             /* cache blocks */
  MLA_S_NBS,            /* blocks of the source cache */
  MLA_S_SLOTS,          /* slot_mapping's length, <= N */
  MLA_S_COPIES,         /* rows of block_mapping */
  MLA_S_GATHERED,       /* tokens of dst, >= cu_seq_lens[B] */
  MLA_S_PARTS,
  MLA_S_NBX,    /* blocks of the extra cache */
  MLA_S_LOGITS, /* positions that logits have room for */
  MLA_S_COUNT
} mla_sym;

typedef enum mla_role {
  MLA_ROLE_IN = 1,
  MLA_ROLE_OUT = 2,  /* every element is written */
  MLA_ROLE_INOUT = 3 /* written in part: a cache */
} mla_role;

/* Which element type a slot has, given the problem. */
typedef enum mla_type_rule {
  MLA_TYPE_Q,      /* q_dtype */
  MLA_TYPE_OUT,    /* out_dtype */
  MLA_TYPE_WEIGHT, /* weight_dtype */
  MLA_TYPE_CACHE,  /* by cache_format; MLA_U8 when packed */
  MLA_TYPE_REAL,   /* f32; f64 when q_dtype is f64 */
  MLA_TYPE_F32,
  MLA_TYPE_I32,
  MLA_TYPE_I64
} mla_type_rule;

typedef struct mla_slot_spec {
  int8_t slot; /* mla_slot */
  int8_t role;
  int8_t type_rule;
  int8_t optional; /* absent is lawful */
  int8_t rank;
  int8_t dim[MLA_MAX_RANK]; /* mla_sym */
  uint64_t need;            /* present only if these flags are all set */
  uint64_t unless;          /* and none of these */
} mla_slot_spec;

typedef struct mla_op_spec {
  int32_t op;
  int32_t slot_count;
  const mla_slot_spec *slots;
  uint64_t flags; /* flag bits that mean something here */
} mla_op_spec;

/* NULL for an unknown operation. */
const mla_op_spec *mla_op_spec_of(int32_t op);
/* Does this slot belong to the call, given the flags? */
int mla_slot_applies(const mla_slot_spec *slot, const mla_problem *problem);
int32_t mla_slot_dtype(const mla_slot_spec *slot, const mla_problem *problem);
/* The value of a bound symbol; -1 for a free one. */
int64_t mla_sym_value(int sym, const mla_problem *problem);
/* "num_heads", "block_size", "requests"...: for sentences. */
const char *mla_sym_name(int sym);

#endif
