/*
 * case_size.c - the sizes that follow from a case: problem, limits, shapes.
 */
#include <string.h>

#include "cache_layout.h"
#include "case.h"
#include "case_sparse.h"
#include "case_types.h"
#include "dmath.h"
#include "dtype.h"
#include "op_table.h"

void mla_case_init(mla_case *c, int32_t op, int32_t format) {
  int32_t count;
  const mla_key_use *uses = mla_key_uses(op, &count);
  memset(c, 0, sizeof *c);
  c->op = op;
  c->format = format;
  for (int32_t i = 0; i < count; i++) {
    const mla_key_spec *spec = mla_key_spec_of(uses[i].key);
    c->num[uses[i].key] = uses[i].def;
    c->real[uses[i].key] = (double)uses[i].def;
    if (spec->kind == MLA_KIND_LIST && uses[i].always) {
      c->list[spec->list].count = 1;
      c->list[spec->list].value[0] = (int32_t)uses[i].def;
    }
  }
}

static const mla_case_list *list_of(const mla_case *c, int key) {
  return &c->list[mla_key_spec_of(key)->list];
}

int mla_case_list_given(const mla_case *c, int key) {
  return list_of(c, key)->count > 0;
}

int32_t mla_case_at(const mla_case *c, int key, int64_t b) {
  const mla_case_list *list = list_of(c, key);
  if (list->count == 0) return 0;
  return list->value[list->count == 1 ? 0 : b];
}

int64_t mla_case_cached(const mla_case *c, int64_t b) {
  if (c->op == MLA_OP_PREFILL) return mla_case_at(c, MLA_K_CTX, b);
  return mla_case_at(c, MLA_K_LEN, b);
}

int mla_case_composed(const mla_case *c) {
  return c->num[MLA_K_CASCADE] || c->num[MLA_K_RANKS] || c->num[MLA_K_CHUNKED];
}

int64_t mla_case_first(const mla_case *c) {
  int64_t b = 0;
  while (b < c->num[MLA_K_REQUESTS] && mla_case_cached(c, b) == 0) b++;
  return b;
}

int64_t mla_case_shared(const mla_case *c, int64_t b) {
  int64_t n = mla_case_cached(c, b);
  if (!c->num[MLA_K_PREFIX] || b == mla_case_first(c)) return 0;
  n = n < c->num[MLA_K_PREFIX] ? n : c->num[MLA_K_PREFIX];
  return n / c->num[MLA_K_PAGE] * c->num[MLA_K_PAGE];
}

int64_t mla_case_seq_len(const mla_case *c, int64_t b) {
  if (c->op != MLA_OP_PREFILL) return mla_case_at(c, MLA_K_LEN, b);
  return (int64_t)mla_case_at(c, MLA_K_CTX, b) + mla_case_at(c, MLA_K_Q, b);
}

/* ------------------------------------------------------------------ types */

int32_t mla_case_default_act(const mla_case *c) {
  int32_t plain = mla_format_dtype(c->format);
  return mla_dtype_bits(plain) >= 16 ? plain : MLA_BF16;
}

static int32_t type_or(const mla_case *c, int key, int32_t otherwise) {
  return c->num[key] ? (int32_t)c->num[key] : otherwise;
}

int32_t mla_case_act(const mla_case *c) {
  return type_or(c, MLA_K_ACT, mla_case_default_act(c));
}
int32_t mla_case_out(const mla_case *c) {
  return type_or(c, MLA_K_OUT, mla_case_act(c));
}
int32_t mla_case_weight(const mla_case *c) {
  return type_or(c, MLA_K_WEIGHT, mla_case_act(c));
}
int32_t mla_case_cache_format(const mla_case *c) {
  return type_or(c, MLA_K_CACHE, c->format);
}

/* ----------------------------------------------------------------- totals */

static int64_t sum_list(const mla_case *c, int key) {
  int64_t sum = 0;
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++)
    sum += mla_case_at(c, key, b);
  return sum;
}

static int64_t max_of(const mla_case *c,
                      int64_t (*of)(const mla_case *, int64_t)) {
  int64_t max = 0;
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++)
    if (of(c, b) > max) max = of(c, b);
  return max;
}

int64_t mla_case_live_tokens(const mla_case *c) {
  switch (c->op) {
    case MLA_OP_DECODE:
    case MLA_OP_PREFILL:
    case MLA_OP_INDEX:
    case MLA_OP_MAP_INDICES: return sum_list(c, MLA_K_Q);
    case MLA_OP_KV_READ: return sum_list(c, MLA_K_LEN);
    case MLA_OP_MATMUL: return c->num[MLA_K_M];
    default: return c->num[MLA_K_TOKENS];
  }
}

int64_t mla_case_tokens(const mla_case *c) {
  int64_t n = mla_case_live_tokens(c) + c->num[MLA_K_TAIL];
  return n ? n : 1; /* a tensor has at least one row */
}

static int64_t query_len(const mla_case *c, int64_t b) {
  return mla_case_at(c, MLA_K_Q, b);
}

/* Pages of request b that the call reads, and the table columns they need. */
static int64_t used_pages(const mla_case *c, int64_t b) {
  int64_t page = c->num[MLA_K_PAGE], start = 0;
  if (c->op == MLA_OP_KV_READ) start = mla_case_at(c, MLA_K_START, b);
  int64_t n = mla_case_cached(c, b);
  return n ? (start + n - 1) / page - start / page + 1 : 0;
}
static int64_t used_columns(const mla_case *c, int64_t b) {
  int64_t page = c->num[MLA_K_PAGE], start = 0;
  if (c->op == MLA_OP_KV_READ) start = mla_case_at(c, MLA_K_START, b);
  int64_t n = mla_case_cached(c, b);
  return n ? (start + n + page - 1) / page : 0;
}

static int64_t table_width(const mla_case *c) {
  int64_t w = max_of(c, used_columns) + c->num[MLA_K_WIDTH];
  return w ? w : 1;
}

static int64_t num_blocks(const mla_case *c) {
  if (c->op == MLA_OP_KV_WRITE || c->op == MLA_OP_KV_COPY)
    return c->num[MLA_K_BLOCKS];
  int64_t n = c->num[MLA_K_SPARE];
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++) n += used_pages(c, b);
  return n ? n : 1;
}

static int64_t source_blocks(const mla_case *c) {
  if (c->num[MLA_K_WITHIN] || !c->num[MLA_K_SRC_BLOCKS])
    return c->num[MLA_K_BLOCKS];
  return c->num[MLA_K_SRC_BLOCKS];
}

int32_t mla_case_extra_page(const mla_case *c) {
  int64_t page = c->num[MLA_K_EXTRA_PAGE];
  return (int32_t)(page ? page : c->num[MLA_K_PAGE]);
}

static int64_t logits_width(const mla_case *c) {
  int64_t n = max_of(c, mla_case_seq_len) + c->num[MLA_K_ROOM];
  return n ? n : 1;
}

int64_t mla_case_sym(const mla_case *c, int sym) {
  switch (sym) {
    case MLA_S_N:
    case MLA_S_GATHERED: return mla_case_tokens(c);
    case MLA_S_B: return c->num[MLA_K_REQUESTS];
    case MLA_S_B1: return c->num[MLA_K_REQUESTS] + 1;
    case MLA_S_W: return table_width(c);
    case MLA_S_NB: return num_blocks(c);
    case MLA_S_NBS: return source_blocks(c);
    case MLA_S_SLOTS:
      if (c->num[MLA_K_SLOTS] == MLA_SLOTS_SHORT)
        return (c->num[MLA_K_TOKENS] + 1) / 2;
      return c->num[MLA_K_TOKENS];
    case MLA_S_COPIES: return c->num[MLA_K_COPIES];
    case MLA_S_PARTS: return c->num[MLA_K_PARTS];
    case MLA_S_NBX: return c->num[MLA_K_EXTRA_BLOCKS];
    case MLA_S_LOGITS: return logits_width(c);
    default: return -1;
  }
}

/* ---------------------------------------------------------------- problem */

static uint64_t flags_of(const mla_case *c) {
  static const struct {
    int key;
    uint64_t flag;
  } table[] = {
      {MLA_K_BASE2, MLA_LSE_BASE2},
      {MLA_K_SINK, MLA_HAS_SINK},
      {MLA_K_SEPARATE_V, MLA_SEPARATE_V},
      {MLA_K_INVARIANT, MLA_BATCH_INVARIANT},
      {MLA_K_FUSED_Q, MLA_FUSED_Q},
      {MLA_K_FUSED_O, MLA_FUSED_O},
      {MLA_K_EXTRA, MLA_EXTRA_CACHE},
      {MLA_K_LOGITS, MLA_RETURN_LOGITS},
  };
  uint64_t flags = 0;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (c->num[table[i].key]) flags |= table[i].flag;
  if (mla_case_is_sparse(c))
    flags |= MLA_SPARSE;
  else if (mla_key_use_of(c->op, MLA_K_FULL) && !c->num[MLA_K_FULL])
    flags |= MLA_CAUSAL;
  if (mla_key_use_of(c->op, MLA_K_NOLSE) && !c->num[MLA_K_NOLSE])
    flags |= MLA_RETURN_LSE;
  if (c->op == MLA_OP_PREFILL && mla_case_list_given(c, MLA_K_CTX))
    flags |= MLA_CONTEXT;
  if (c->op == MLA_OP_KV_WRITE && c->num[MLA_K_POW2]) flags |= MLA_SCALE_POW2;
  if (c->op == MLA_OP_ABSORB && mla_case_weight(c) == MLA_FP8_E4M3)
    flags |= MLA_BLOCK_SCALED;
  return flags;
}

static double scale_of(const mla_case *c) {
  if (!mla_key_use_of(c->op, MLA_K_SCALE)) return 0;
  if (c->real[MLA_K_SCALE] > 0) return c->real[MLA_K_SCALE];
  int64_t nope = c->op == MLA_OP_PREFILL ? c->num[MLA_K_NOPE] : 128;
  return 1 / mla_sqrt((double)(nope + c->num[MLA_K_ROPE]));
}

/* Scales of no special form, and apart; where nothing may be rounded, powers
   of two; where numbers are huge, as huge. */
static double one_scale(const mla_case *c, int key, double otherwise) {
  if (c->real[key] > 0) return c->real[key];
  switch (c->num[MLA_K_DIST]) {
    case MLA_DIST_EXACT: return key == MLA_K_K_SCALE ? 0.5 : 2;
    case MLA_DIST_BIG:
      return mla_ldexp(otherwise, mla_case_act(c) == MLA_F16 ? 11 : 60);
    default: return otherwise;
  }
}

static void put_scales(const mla_case *c, mla_problem *p) {
  if (!mla_cache_one_scale(p->cache_format)) {
    p->k_scale = c->real[MLA_K_K_SCALE];
    p->v_scale = c->real[MLA_K_V_SCALE];
    return;
  }
  if (c->op == MLA_OP_KV_COPY) return;
  p->k_scale = one_scale(c, MLA_K_K_SCALE, 0.0371);
  if (p->flags & MLA_SEPARATE_V)
    p->v_scale = one_scale(c, MLA_K_V_SCALE, 0.0529);
}

static int has_cache(const mla_case *c) {
  return c->op == MLA_OP_DECODE || c->op == MLA_OP_KV_WRITE ||
         c->op == MLA_OP_KV_READ || c->op == MLA_OP_KV_COPY ||
         c->op == MLA_OP_INDEX ||
         (c->op == MLA_OP_PREFILL && mla_case_list_given(c, MLA_K_CTX));
}

mla_problem mla_case_problem(const mla_case *c) {
  mla_problem p = mla_problem_init((mla_op)c->op);
  int matmul = c->op == MLA_OP_MATMUL;
  p.flags = flags_of(c);
  p.q_dtype = mla_case_act(c);
  p.out_dtype = mla_case_out(c);
  p.weight_dtype = mla_case_weight(c);
  if (has_cache(c)) {
    p.cache_format = mla_case_cache_format(c);
    p.block_size = (int32_t)c->num[MLA_K_PAGE];
  }
  if (c->op == MLA_OP_MAP_INDICES) p.block_size = (int32_t)c->num[MLA_K_PAGE];
  p.topk = (int32_t)c->num[MLA_K_TOPK];
  p.extra_topk = (int32_t)c->num[MLA_K_EXTRA];
  if (c->num[MLA_K_EXTRA]) p.extra_block_size = mla_case_extra_page(c);
  p.num_heads = (int32_t)c->num[MLA_K_HEADS];
  if (c->num[MLA_K_KV_HEADS] > 1)
    p.num_kv_heads = (int32_t)c->num[MLA_K_KV_HEADS];
  p.kv_lora_rank = (int32_t)c->num[MLA_K_LORA];
  p.qk_nope_head_dim = (int32_t)c->num[MLA_K_NOPE];
  p.qk_rope_head_dim = (int32_t)c->num[MLA_K_ROPE];
  p.v_head_dim = (int32_t)c->num[MLA_K_VHEAD];
  p.head_dim = (int32_t)c->num[MLA_K_HEAD_DIM];
  p.v_dim = (int32_t)c->num[MLA_K_V_DIM];
  p.q_lora_rank = (int32_t)c->num[matmul ? MLA_K_K : MLA_K_Q_LORA];
  p.hidden_size = (int32_t)c->num[matmul ? MLA_K_N : MLA_K_HIDDEN];
  p.scale = scale_of(c);
  p.logits_soft_cap = c->real[MLA_K_CAP];
  put_scales(c, &p);
  return p;
}

static int64_t at_least_one(int64_t n) {
  return n > 1 ? n : 1;
}

mla_limits mla_case_limits(const mla_case *c) {
  mla_limits l = mla_limits_init();
  int64_t copies = c->op == MLA_OP_KV_COPY;
  int64_t nb = num_blocks(c), nbs = copies ? source_blocks(c) : 0;
  if (c->num[MLA_K_EXTRA]) nbs = c->num[MLA_K_EXTRA_BLOCKS];
  int loose = c->num[MLA_K_LOOSE] ? 2 : 1, more = loose - 1;
  l.num_splits = (int32_t)c->num[MLA_K_SPLITS];
  l.context_chunk = c->num[MLA_K_CHUNK];
  l.requests = c->num[MLA_K_REQUESTS] * loose;
  l.tokens = copies ? c->num[MLA_K_COPIES] : mla_case_tokens(c) * loose + more;
  l.max_query_len = at_least_one(max_of(c, query_len)) * loose + more;
  l.max_seq_len = at_least_one(max_of(c, mla_case_seq_len)) * loose + 3 * more;
  if (l.max_seq_len < c->num[MLA_K_LIMIT]) l.max_seq_len = c->num[MLA_K_LIMIT];
  if (has_cache(c)) l.num_blocks = (nb > nbs ? nb : nbs) + 5 * more;
  if (has_cache(c) || c->op == MLA_OP_MAP_INDICES)
    l.table_width = table_width(c) + more;
  l.parts = c->num[MLA_K_PARTS] * loose;
  return l;
}
