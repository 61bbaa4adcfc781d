/*
 * problem_check.c - the rules for a problem, driven by the operation table:
 * what an operation's tensors are made of tells which members it uses.
 */
#include "problem_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "args_check.h"
#include "cache_layout.h"
#include "dtype.h"
#include "error.h"
#include "op_table.h"

/* ------------------------------------------------------- members in use */

enum {
  USES_HEADS = 1 << 0,
  USES_KV_HEADS = 1 << 1,
  USES_LATENT = 1 << 2,
  USES_NOPE = 1 << 3,
  USES_ROPE = 1 << 4,
  USES_V = 1 << 5,
  USES_HEAD_DIM = 1 << 6,
  USES_V_DIM = 1 << 7,
  USES_Q_LORA = 1 << 8,
  USES_HIDDEN = 1 << 9,
  USES_BLOCK = 1 << 10,
  USES_TOPK = 1 << 11,
  USES_EXTRA_TOPK = 1 << 12,
  USES_EXTRA_BLOCK = 1 << 13,
  HAS_DEFAULT = USES_KV_HEADS | USES_HEAD_DIM | USES_V_DIM
};

static const struct {
  const char *name;
  size_t offset;
} members[] = {
    {"num_heads", offsetof(mla_problem, num_heads)},
    {"num_kv_heads", offsetof(mla_problem, num_kv_heads)},
    {"kv_lora_rank", offsetof(mla_problem, kv_lora_rank)},
    {"qk_nope_head_dim", offsetof(mla_problem, qk_nope_head_dim)},
    {"qk_rope_head_dim", offsetof(mla_problem, qk_rope_head_dim)},
    {"v_head_dim", offsetof(mla_problem, v_head_dim)},
    {"head_dim", offsetof(mla_problem, head_dim)},
    {"v_dim", offsetof(mla_problem, v_dim)},
    {"q_lora_rank", offsetof(mla_problem, q_lora_rank)},
    {"hidden_size", offsetof(mla_problem, hidden_size)},
    {"block_size", offsetof(mla_problem, block_size)},
    {"topk", offsetof(mla_problem, topk)},
    {"extra_topk", offsetof(mla_problem, extra_topk)},
    {"extra_block_size", offsetof(mla_problem, extra_block_size)},
};
#define MEMBERS ((int)(sizeof members / sizeof members[0]))

static const uint32_t symbol_uses[MLA_S_COUNT] = {
    [MLA_S_H] = USES_HEADS,
    [MLA_S_L] = USES_LATENT,
    [MLA_S_P] = USES_NOPE,
    [MLA_S_R] = USES_ROPE,
    [MLA_S_V] = USES_V,
    [MLA_S_D] = USES_HEAD_DIM,
    [MLA_S_DV] = USES_V_DIM,
    [MLA_S_LR] = USES_LATENT | USES_ROPE,
    [MLA_S_PR] = USES_NOPE | USES_ROPE,
    [MLA_S_HPV] = USES_HEADS | USES_NOPE | USES_V,
    [MLA_S_HPR] = USES_HEADS | USES_NOPE | USES_ROPE,
    [MLA_S_HV] = USES_HEADS | USES_V,
    [MLA_S_LQ] = USES_Q_LORA,
    [MLA_S_HIDDEN] = USES_HIDDEN,
    [MLA_S_KVH] = USES_KV_HEADS,
    [MLA_S_EV] = USES_V_DIM,
    [MLA_S_BS] = USES_BLOCK,
    [MLA_S_MK] = USES_Q_LORA,
    [MLA_S_MN] = USES_HIDDEN,
    [MLA_S_TOPK] = USES_TOPK,
    [MLA_S_XTOPK] = USES_EXTRA_TOPK,
    [MLA_S_XBS] = USES_EXTRA_BLOCK,
};

static int is_packed(const mla_problem *p) {
  return mla_format_dtype(p->cache_format) == MLA_DTYPE_NONE;
}

/* A head_dim or v_dim of 0 stands for sizes that are then in use. */
static uint32_t with_defaults(uint32_t uses, const mla_problem *p) {
  if ((uses & USES_HEAD_DIM) && p->head_dim == 0)
    uses |= USES_LATENT | USES_ROPE;
  if ((uses & USES_V_DIM) && p->v_dim == 0) uses |= USES_LATENT;
  return uses;
}

static uint32_t entry_uses(const mla_problem *p) {
  if (p->op == MLA_OP_INDEX) return USES_HEAD_DIM;
  if (p->op == MLA_OP_DECODE && !mla_cache_mixed(p->cache_format))
    return USES_HEAD_DIM;
  return USES_LATENT | USES_ROPE;
}

static uint32_t members_used(const mla_op_spec *spec, const mla_problem *p) {
  /* The pages of a table whose cache is not there. */
  uint32_t uses = p->op == MLA_OP_MAP_INDICES ? USES_BLOCK : 0;
  for (int32_t i = 0; i < spec->slot_count; i++) {
    const mla_slot_spec *slot = &spec->slots[i];
    if (!mla_slot_applies(slot, p)) continue;
    for (int axis = 0; axis < slot->rank; axis++)
      uses |= slot->dim[axis] == MLA_S_E ? entry_uses(p)
                                         : symbol_uses[slot->dim[axis]];
  }
  return with_defaults(uses, p);
}

/* Index keys are latents without a rope part. */
static int32_t least_of(int member, const mla_problem *p) {
  uint32_t use = (uint32_t)1 << member;
  int keys = p->op == MLA_OP_KV_WRITE || p->op == MLA_OP_KV_READ ||
             p->op == MLA_OP_KV_COPY || p->op == MLA_OP_INDEX;
  return (use & HAS_DEFAULT) || (use == USES_ROPE && keys) ? 0 : 1;
}

static mla_status check_sizes(const mla_op_spec *spec, const mla_problem *p,
                              mla_error *err) {
  uint32_t uses = members_used(spec, p);
  for (int i = 0; i < MEMBERS; i++) {
    int32_t value = *(const int32_t *)((const char *)p + members[i].offset);
    int32_t least = least_of(i, p);
    if ((uses >> i & 1) && value < least)
      return mla_fail(err, MLA_INVALID_ARGUMENT, members[i].name,
                      "%s is %d, at least %d for %s", members[i].name, value,
                      least, mla_op_name(p->op));
  }
  if ((uses & (USES_LATENT | USES_ROPE)) == (USES_LATENT | USES_ROPE) &&
      p->kv_lora_rank > INT32_MAX - p->qk_rope_head_dim)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "kv_lora_rank",
                    "kv_lora_rank %d + qk_rope_head_dim %d is more than %d",
                    p->kv_lora_rank, p->qk_rope_head_dim, INT32_MAX);
  return MLA_OK;
}

/* ---------------------------------------------------------------- flags */

static const char *const flag_names[] = {
    "MLA_CAUSAL",          "MLA_RETURN_LSE",    "MLA_LSE_BASE2",
    "MLA_HAS_SINK",        "MLA_SEPARATE_V",    "MLA_CONTEXT",
    "MLA_BATCH_INVARIANT", "MLA_FUSED_Q",       "MLA_FUSED_O",
    "MLA_ALIBI",           "MLA_OUTPUT_SCALE",  "MLA_SPARSE",
    "MLA_EXTRA_CACHE",     "MLA_SCALE_POW2",    "MLA_RETURN_LOGITS",
    "MLA_BLOCK_SCALED",    "MLA_COMMON_PREFIX",
};

static int lowest_bit(uint64_t bits) {
  int bit = 0;
  while (!(bits >> bit & 1)) bit++;
  return bit;
}

const char *mla_flag_name(uint64_t flags) {
  int bit = flags ? lowest_bit(flags) : 0;
  return flags & MLA_ALL_FLAGS ? flag_names[bit] : "an unknown flag";
}

static mla_status check_flags(const mla_op_spec *spec, const mla_problem *p,
                              mla_error *err) {
  uint64_t unknown = p->flags & ~MLA_ALL_FLAGS;
  if (unknown)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "flags",
                    "flags is 0x%llx; bit %d is unknown, known are 0x%llx",
                    (unsigned long long)p->flags, lowest_bit(unknown),
                    (unsigned long long)MLA_ALL_FLAGS);
  uint64_t idle = p->flags & ~spec->flags;
  if (idle)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "flags",
                    "flags is 0x%llx; %s means nothing for %s, which knows "
                    "0x%llx",
                    (unsigned long long)p->flags, mla_flag_name(idle),
                    mla_op_name(p->op), (unsigned long long)spec->flags);
  return MLA_OK;
}

/* ------------------------------------------------------ types and formats */

static const struct {
  const char *name;
  size_t offset;
  int rule;
} types[] = {
    {"q_dtype", offsetof(mla_problem, q_dtype), MLA_TYPE_Q},
    {"out_dtype", offsetof(mla_problem, out_dtype), MLA_TYPE_OUT},
    {"weight_dtype", offsetof(mla_problem, weight_dtype), MLA_TYPE_WEIGHT},
};

static int uses_type(const mla_op_spec *spec, const mla_problem *p, int rule) {
  for (int32_t i = 0; i < spec->slot_count; i++)
    if (spec->slots[i].type_rule == rule &&
        mla_slot_applies(&spec->slots[i], p))
      return 1;
  return 0;
}

static mla_status check_types(const mla_op_spec *spec, const mla_problem *p,
                              mla_error *err) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    int32_t value = *(const int32_t *)((const char *)p + types[i].offset);
    if (!uses_type(spec, p, types[i].rule)) continue;
    if (value < MLA_F64 || value > MLA_FP8_E5M2)
      return mla_fail(err, MLA_INVALID_ARGUMENT, types[i].name,
                      "%s is %d, not a type of real numbers (%d to %d)",
                      types[i].name, value, MLA_F64, MLA_FP8_E5M2);
  }
  return MLA_OK;
}

/* Scales follow a block's keys: whole words keep them aligned. */
static int fits_index_format(const mla_problem *p) {
  if (p->op == MLA_OP_INDEX) return mla_problem_head_dim(p) % 4 == 0;
  return p->kv_lora_rank % 4 == 0 && p->qk_rope_head_dim == 0;
}

static mla_status check_index_format(const mla_problem *p, mla_error *err) {
  int is_index = p->cache_format == MLA_CACHE_FP8_INDEX;
  const char *name = mla_format_name(p->cache_format);
  if (is_index && (p->op == MLA_OP_DECODE || p->op == MLA_OP_PREFILL))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "cache_format",
                    "cache_format is %s, which holds index keys, but %s reads "
                    "latents",
                    name, mla_op_name(p->op));
  if (is_index && !fits_index_format(p))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "cache_format",
                    "cache_format is %s: a key is a multiple of 4 values wide "
                    "and has no rope part, but kv_lora_rank is %d, "
                    "qk_rope_head_dim %d, head_dim %d",
                    name, p->kv_lora_rank, p->qk_rope_head_dim, p->head_dim);
  if (p->op == MLA_OP_INDEX && !is_index && is_packed(p))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "cache_format",
                    "cache_format is %s, but index keys are plain or %s", name,
                    mla_format_name(MLA_CACHE_FP8_INDEX));
  return MLA_OK;
}

static mla_status check_format(const mla_op_spec *spec, const mla_problem *p,
                               mla_error *err) {
  if (!uses_type(spec, p, MLA_TYPE_CACHE)) return MLA_OK;
  if (!mla_format_name(p->cache_format))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "cache_format",
                    "cache_format is %d, known are %d to %d", p->cache_format,
                    MLA_CACHE_F64, MLA_CACHE_FP8_INDEX);
  mla_status st = check_index_format(p, err);
  if (st != MLA_OK) return st;
  if (mla_problem_entry(p) <= 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "kv_lora_rank",
                    "kv_lora_rank is %d, cache_format %s needs a multiple of "
                    "%d",
                    p->kv_lora_rank, mla_format_name(p->cache_format),
                    p->cache_format == MLA_CACHE_FP8_584 ? 64 : 128);
  return MLA_OK;
}

/* ------------------------------------------------------------ attention */

static mla_status check_scale(const mla_problem *p, mla_error *err) {
  if (!isfinite(p->scale) || p->scale <= 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "scale",
                    "scale is %g, it must be finite and more than 0", p->scale);
  if (!isfinite(p->logits_soft_cap) || p->logits_soft_cap < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "logits_soft_cap",
                    "logits_soft_cap is %g, it must be finite and at least 0",
                    p->logits_soft_cap);
  if (p->window < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "window",
                    "window is %d, at least 0 (0: none)", p->window);
  return MLA_OK;
}

static mla_status check_separate_heads(const mla_problem *p, mla_error *err) {
  int32_t kv_heads = mla_problem_kv_heads(p);
  if (p->num_heads % kv_heads)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "num_kv_heads",
                    "num_kv_heads is %d, which does not divide num_heads %d",
                    kv_heads, p->num_heads);
  return MLA_OK;
}

/* One shared head, whose first v_dim values are V. */
static mla_status check_shared_head(const mla_problem *p, mla_error *err) {
  int32_t width = mla_problem_head_dim(p);
  if (p->num_kv_heads < 0 || p->num_kv_heads > 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "num_kv_heads",
                    "num_kv_heads is %d, at most 1 without MLA_SEPARATE_V",
                    p->num_kv_heads);
  if (mla_problem_v_dim(p) > width)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "v_dim",
                    "v_dim is %d, a key has %d values without MLA_SEPARATE_V",
                    mla_problem_v_dim(p), width);
  int fixed = p->cache_format == MLA_CACHE_FP8_DS_MLA ||
              p->cache_format == MLA_CACHE_FP8_584;
  if (fixed && width != p->kv_lora_rank + p->qk_rope_head_dim)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "head_dim",
                    "head_dim is %d, an entry of cache_format %s has %d "
                    "values",
                    width, mla_format_name(p->cache_format),
                    p->kv_lora_rank + p->qk_rope_head_dim);
  return MLA_OK;
}

/* The list of slots decides what a row sees. */
static mla_status check_sparse(const mla_problem *p, mla_error *err) {
  unsigned long long flags = (unsigned long long)p->flags;
  if ((p->flags & MLA_EXTRA_CACHE) && !(p->flags & MLA_SPARSE))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "flags",
                    "flags is 0x%llx; MLA_EXTRA_CACHE needs MLA_SPARSE", flags);
  if ((p->flags & MLA_COMMON_PREFIX) && (p->flags & MLA_SPARSE))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "flags",
                    "flags is 0x%llx; with MLA_SPARSE there is no prefix "
                    "(MLA_COMMON_PREFIX)",
                    flags);
  if ((p->flags & MLA_SPARSE) && (p->flags & MLA_CAUSAL))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "flags",
                    "flags is 0x%llx; with MLA_SPARSE the list decides what a "
                    "row sees, and MLA_CAUSAL means nothing",
                    flags);
  return MLA_OK;
}

static mla_status check_attention(const mla_op_spec *spec, const mla_problem *p,
                                  mla_error *err) {
  if (!(spec->flags & MLA_CAUSAL)) return MLA_OK; /* not attention */
  mla_status st = check_scale(p, err);
  if (st == MLA_OK) st = check_sparse(p, err);
  if (st != MLA_OK || !(spec->flags & MLA_SEPARATE_V)) return st;
  return p->flags & MLA_SEPARATE_V ? check_separate_heads(p, err)
                                   : check_shared_head(p, err);
}

/* -------------------------------------------------------------- products */

static int64_t length_of(int sym, const mla_problem *p,
                         const int64_t *free_value) {
  if (sym < MLA_S_FREE) return mla_sym_value(sym, p);
  return free_value ? free_value[sym] : 1;
}

/* "num_blocks 9 x block_size 4 x entry 12" */
static mla_status tell_product(const mla_slot_spec *slot, const mla_problem *p,
                               const int64_t *free_value, mla_error *err) {
  char factors[160] = "";
  const char *name = mla_slot_name(slot->slot);
  for (int axis = 0; axis < slot->rank; axis++) {
    size_t used = strlen(factors);
    int sym = slot->dim[axis];
    snprintf(factors + used, sizeof factors - used, "%s%s %lld",
             axis ? " x " : "", mla_sym_name(sym),
             (long long)length_of(sym, p, free_value));
  }
  return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                  "%s would have more than 2^63 - 1 bytes: %s", name, factors);
}

mla_status mla_products_check(const mla_problem *p, const int64_t *free_value,
                              mla_error *err) {
  const mla_op_spec *spec = mla_op_spec_of(p->op);
  for (int32_t i = 0; i < spec->slot_count; i++) {
    const mla_slot_spec *slot = &spec->slots[i];
    if (!mla_slot_applies(slot, p)) continue;
    int64_t bytes = (mla_dtype_bits(mla_slot_dtype(slot, p)) + 7) / 8;
    for (int axis = 0; axis < slot->rank; axis++) {
      int64_t n = length_of(slot->dim[axis], p, free_value);
      if (n > 0 && bytes > INT64_MAX / n)
        return tell_product(slot, p, free_value, err);
      if (n > 0) bytes *= n;
    }
  }
  return MLA_OK;
}

mla_status mla_problem_check(const mla_problem *p, mla_error *err) {
  const mla_op_spec *spec = mla_op_spec_of(p->op);
  if (!spec)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "op",
                    "op is %d, no operation that this libmla knows", p->op);
  mla_status st = check_flags(spec, p, err);
  if (st == MLA_OK) st = check_types(spec, p, err);
  if (st == MLA_OK) st = check_sizes(spec, p, err);
  if (st == MLA_OK) st = check_format(spec, p, err);
  if (st == MLA_OK) st = mla_scales_check(p, err);
  if (st == MLA_OK) st = check_attention(spec, p, err);
  if (st == MLA_OK) st = mla_products_check(p, NULL, err);
  return st;
}
