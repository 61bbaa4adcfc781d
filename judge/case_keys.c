/*
 * case_keys.c - the attributes of a case: names, kinds, limits, defaults.
 */
#include "case.h"

#define COUNT(a) ((int32_t)(sizeof(a) / sizeof((a)[0])))

static const char *const dist_words[] = {
    "bell",  "exact", "onehot", "needle", "outlier", "repeat",
    "equal", "big",   "tiny",   "edge",   "nan",     NULL};
static const char *const empty_words[] = {"none", "some", "first",
                                          "rows", "all",  NULL};
static const char *const slot_words[] = {"random", "inorder", "holes",
                                         "none",   "short",   NULL};
static const char *const page_words[] = {"random", "inorder", "reversed", NULL};
static const char *const list_words[] = {"front", "holes", "late", "repeat",
                                         "rows",  "none",  NULL};
static const char *const stride_words[] = {"dense", "padded", "odd", "turned",
                                           NULL};

#define INT(name, help) \
  { name, help, MLA_KIND_INT, 1, 0, NULL }
#define EQ_INT(name, help) \
  { name, help, MLA_KIND_INT, 0, 0, NULL }
#define FLAG(name, help) \
  { name, help, MLA_KIND_FLAG, 0, 0, NULL }
#define REAL(name, help) \
  { name, help, MLA_KIND_REAL, 0, 0, NULL }
#define TYPE(name, help) \
  { name, help, MLA_KIND_DTYPE, 0, 0, NULL }
#define WORD(name, words, help) \
  { name, help, MLA_KIND_WORD, 0, 0, words }
#define LIST(name, bare, which, help) \
  { name, help, MLA_KIND_LIST, bare, which, NULL }

static const mla_key_spec specs[MLA_K_COUNT] = {
    [MLA_K_REQUESTS] = INT("b", "requests in the batch"),
    [MLA_K_HEADS] = INT("h", "query heads"),
    [MLA_K_KV_HEADS] = INT("kvh", "key heads (with sepv)"),
    [MLA_K_TOKENS] = INT("n", "tokens"),
    [MLA_K_M] = INT("m", "rows of a"),
    [MLA_K_N] = INT("n", "rows of b: columns of out"),
    [MLA_K_K] = INT("k", "columns of a and b"),
    [MLA_K_PARTS] = INT("s", "partial results to merge"),
    [MLA_K_BLOCKS] = INT("nb", "blocks of the cache"),
    [MLA_K_SRC_BLOCKS] = INT("nbs", "blocks of the source cache"),
    [MLA_K_COPIES] = INT("copies", "blocks to copy"),
    [MLA_K_Q] = LIST("q", 1, 0, "query tokens, of all or each request"),
    [MLA_K_PAGE] = INT("page", "entries a cache block"),
    [MLA_K_LEN] = LIST("len", 0, 1, "keys, of all or each request"),
    [MLA_K_CTX] = LIST("ctx", 0, 2, "keys already cached before the step"),
    [MLA_K_START] = LIST("start", 0, 3, "first position to read (seq_starts)"),
    [MLA_K_LORA] = INT("l", "kv_lora_rank"),
    [MLA_K_ROPE] = INT("r", "qk_rope_head_dim"),
    [MLA_K_NOPE] = INT("p", "qk_nope_head_dim"),
    [MLA_K_VHEAD] = INT("v", "v_head_dim"),
    [MLA_K_HEAD_DIM] = INT("d", "head_dim; 0: l + r"),
    [MLA_K_V_DIM] = INT("dv", "v_dim; 0: l"),
    [MLA_K_Q_LORA] = INT("lq", "q_lora_rank (with fusedq)"),
    [MLA_K_HIDDEN] = INT("hid", "hidden_size (with fusedo)"),
    [MLA_K_ACT] = TYPE("act", "type of queries and activations"),
    [MLA_K_OUT] = TYPE("out", "type of the outputs"),
    [MLA_K_WEIGHT] = TYPE("w", "type of the weights"),
    [MLA_K_CACHE] = {"cache", "format of the cached context", MLA_KIND_FORMAT,
                     0, 0, NULL},
    [MLA_K_K_SCALE] = REAL("kscale",
                           "the one scale of an 8-bit cache (k_scale); "
                           "0: one that no code hides"),
    [MLA_K_V_SCALE] = REAL("vscale", "that of the values' cache, with sepv"),
    [MLA_K_POW2] = FLAG("pow2", "scales of tiles are powers of two"),
    [MLA_K_SCALE] = REAL("scale",
                         "softmax scale; 0: (128 + r)^-1/2, prefill "
                         "(p + r)^-1/2"),
    [MLA_K_CAP] = REAL("cap", "logits_soft_cap"),
    [MLA_K_AMP] = REAL("amp", "standard deviation of the scores"),
    [MLA_K_DIST] = WORD("dist", dist_words, "what the numbers are like"),
    [MLA_K_FULL] = FLAG("full", "no causal mask"),
    [MLA_K_BASE2] = FLAG("base2", "lse in base 2"),
    [MLA_K_SINK] = FLAG("sink", "with a sink per head"),
    [MLA_K_NOLSE] = FLAG("nolse", "without lse"),
    [MLA_K_SEPARATE_V] = FLAG("sepv", "K and V in caches of their own"),
    [MLA_K_INVARIANT] = FLAG("invariant", "batch invariance is asked for"),
    [MLA_K_FUSED_Q] = FLAG("fusedq", "also w_q_uk and w_qr"),
    [MLA_K_FUSED_O] = FLAG("fusedo", "also w_uv_o"),
    [MLA_K_WITHIN] = FLAG("within", "source and target are one cache"),
    [MLA_K_SPLITS] = EQ_INT("splits", "KV splits; 0: the backend chooses"),
    [MLA_K_CHUNK] = EQ_INT("chunk",
                           "context tokens up-projected at once; 0: "
                           "the backend chooses"),
    [MLA_K_EMPTY] = WORD("empty", empty_words, "parts that hold nothing"),
    [MLA_K_SLOTS] = WORD("slots", slot_words, "pattern of slot_mapping"),
    [MLA_K_PAGES] = WORD("pages", page_words, "physical order of the pages"),
    [MLA_K_STRIDES] = WORD("strides", stride_words,
                           "gaps inside tensors, or axes in another order"),
    [MLA_K_WIDTH] = EQ_INT("width", "columns of the table never used"),
    [MLA_K_SPARE] = EQ_INT("spare", "blocks never used"),
    [MLA_K_GAP] = EQ_INT("gap", "elements between two blocks"),
    [MLA_K_TAIL] = EQ_INT("tail", "padding rows past the last token"),
    [MLA_K_LOOSE] = FLAG("loose", "limits far above the contents"),
    [MLA_K_REPLAY] = FLAG("replay", "the plan has served shorter lengths"),
    [MLA_K_CROWD] = FLAG("crowd", "another thread runs the plan, too"),
    [MLA_K_UNALIGNED] =
        FLAG("unaligned", "tensors lie as badly as the interface allows"),
    [MLA_K_LIMIT] = EQ_INT("limit", "limits.max_seq_len, when above the keys"),
    [MLA_K_PREFIX] = EQ_INT("prefix", "first keys, the same for all requests"),
    [MLA_K_CASCADE] = FLAG("cascade", "composed: the prefix is attended once"),
    [MLA_K_RANKS] = EQ_INT("ranks", "composed: keys in so many shards"),
    [MLA_K_INTERLEAVE] =
        EQ_INT("interleave", "consecutive positions of a shard"),
    [MLA_K_CHUNKED] = FLAG("chunked",
                           "composed: context gathered, up-projected and "
                           "merged in chunks"),
    [MLA_K_TOPK] = EQ_INT("topk", "entries of a row's list; 0: dense decode"),
    [MLA_K_EXTRA] = EQ_INT("extra", "entries of a list into a second cache"),
    [MLA_K_EXTRA_PAGE] =
        EQ_INT("xpage", "entries a block of it; 0: as the first"),
    [MLA_K_EXTRA_BLOCKS] = EQ_INT("xnb", "blocks of it"),
    [MLA_K_LISTS] = WORD("lists", list_words, "pattern of the lists"),
    [MLA_K_TOPK_LEN] = FLAG("tlen", "lists of lengths 0 to topk"),
    [MLA_K_LOGITS] = FLAG("logits", "logits are written too"),
    [MLA_K_ROOM] = EQ_INT("room", "columns of logits beyond every position"),
};

#define MAX32 INT32_MAX
#define USE(key, always, min, max, def) \
  { key, always, min, max, def }
#define SIZES(l_def, r_def) \
  USE(MLA_K_LORA, 0, 1, MAX32, l_def), USE(MLA_K_ROPE, 0, 0, MAX32, r_def)
#define USE_FLAG(key) \
  { key, 0, 0, 1, 0 }

static const mla_key_use decode_uses[] = {
    USE(MLA_K_REQUESTS, 1, 1, 65536, 1),
    USE(MLA_K_HEADS, 1, 1, 4096, 1),
    USE(MLA_K_KV_HEADS, 0, 1, 4096, 1),
    USE(MLA_K_Q, 1, 0, MAX32, 1),
    USE(MLA_K_PAGE, 1, 1, MAX32, 64),
    USE(MLA_K_LEN, 1, 0, MAX32, 1),
    USE(MLA_K_TOPK, 0, 0, MAX32, 0),
    USE(MLA_K_EXTRA, 0, 0, MAX32, 0),
    USE(MLA_K_EXTRA_PAGE, 0, 0, MAX32, 0),
    USE(MLA_K_EXTRA_BLOCKS, 0, 1, MAX32, 2),
    SIZES(512, 64),
    USE(MLA_K_HEAD_DIM, 0, 0, MAX32, 0),
    USE(MLA_K_V_DIM, 0, 0, MAX32, 0),
    USE(MLA_K_ACT, 0, 0, 0, 0),
    USE(MLA_K_OUT, 0, 0, 0, 0),
    USE(MLA_K_K_SCALE, 0, 0, 0, 0),
    USE(MLA_K_V_SCALE, 0, 0, 0, 0),
    USE_FLAG(MLA_K_POW2),
    USE(MLA_K_SCALE, 0, 0, 0, 0),
    USE(MLA_K_CAP, 0, 0, 0, 0),
    USE(MLA_K_AMP, 0, 0, 0, 2),
    USE(MLA_K_DIST, 0, 0, 0, 0),
    USE(MLA_K_LISTS, 0, 0, 0, 0),
    USE_FLAG(MLA_K_TOPK_LEN),
    USE_FLAG(MLA_K_FULL),
    USE_FLAG(MLA_K_BASE2),
    USE_FLAG(MLA_K_SINK),
    USE_FLAG(MLA_K_NOLSE),
    USE_FLAG(MLA_K_SEPARATE_V),
    USE_FLAG(MLA_K_INVARIANT),
    USE(MLA_K_SPLITS, 0, 0, 65536, 0),
    USE(MLA_K_PAGES, 0, 0, 0, 0),
    USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE(MLA_K_WIDTH, 0, 0, MAX32, 0),
    USE(MLA_K_SPARE, 0, 0, MAX32, 2),
    USE(MLA_K_GAP, 0, 0, INT64_MAX / 16, 0),
    USE(MLA_K_TAIL, 0, 0, MAX32, 0),
    USE_FLAG(MLA_K_LOOSE),
    USE_FLAG(MLA_K_REPLAY),
    USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
    USE(MLA_K_LIMIT, 0, 0, MAX32, 0),
    USE(MLA_K_PREFIX, 0, 0, MAX32, 0),
    USE_FLAG(MLA_K_CASCADE),
    USE(MLA_K_RANKS, 0, 0, 64, 0),
    USE(MLA_K_INTERLEAVE, 0, 1, MAX32, 1),
};
static const mla_key_use prefill_uses[] = {
    USE(MLA_K_REQUESTS, 1, 1, 65536, 1),
    USE(MLA_K_HEADS, 1, 1, 4096, 1),
    USE(MLA_K_Q, 1, 0, MAX32, 1),
    USE(MLA_K_PAGE, 0, 1, MAX32, 64),
    USE(MLA_K_CTX, 0, 0, MAX32, 0),
    SIZES(512, 64),
    USE(MLA_K_NOPE, 0, 1, MAX32, 128),
    USE(MLA_K_VHEAD, 0, 1, MAX32, 128),
    USE(MLA_K_OUT, 0, 0, 0, 0),
    USE(MLA_K_WEIGHT, 0, 0, 0, 0),
    USE(MLA_K_CACHE, 0, 0, 0, 0),
    USE(MLA_K_K_SCALE, 0, 0, 0, 0),
    USE_FLAG(MLA_K_POW2),
    USE(MLA_K_SCALE, 0, 0, 0, 0),
    USE(MLA_K_CAP, 0, 0, 0, 0),
    USE(MLA_K_AMP, 0, 0, 0, 2),
    USE(MLA_K_DIST, 0, 0, 0, 0),
    USE_FLAG(MLA_K_FULL),
    USE_FLAG(MLA_K_BASE2),
    USE_FLAG(MLA_K_SINK),
    USE_FLAG(MLA_K_NOLSE),
    USE_FLAG(MLA_K_INVARIANT),
    USE(MLA_K_SPLITS, 0, 0, 65536, 0),
    USE(MLA_K_CHUNK, 0, 0, MAX32, 0),
    USE(MLA_K_PAGES, 0, 0, 0, 0),
    USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE(MLA_K_WIDTH, 0, 0, MAX32, 0),
    USE(MLA_K_SPARE, 0, 0, MAX32, 2),
    USE(MLA_K_GAP, 0, 0, INT64_MAX / 16, 0),
    USE(MLA_K_TAIL, 0, 0, MAX32, 0),
    USE_FLAG(MLA_K_LOOSE),
    USE_FLAG(MLA_K_REPLAY),
    USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
    USE(MLA_K_LIMIT, 0, 0, MAX32, 0),
    USE_FLAG(MLA_K_CHUNKED),
};
static const mla_key_use merge_uses[] = {
    USE(MLA_K_TOKENS, 1, 1, MAX32, 1),
    USE(MLA_K_HEADS, 1, 1, 4096, 1),
    USE(MLA_K_PARTS, 1, 1, 65536, 2),
    USE(MLA_K_VHEAD, 0, 1, MAX32, 512),
    USE(MLA_K_OUT, 0, 0, 0, 0),
    USE(MLA_K_AMP, 0, 0, 0, 2),
    USE(MLA_K_DIST, 0, 0, 0, 0),
    USE_FLAG(MLA_K_BASE2),
    USE_FLAG(MLA_K_SINK),
    USE_FLAG(MLA_K_NOLSE),
    USE_FLAG(MLA_K_INVARIANT),
    USE(MLA_K_EMPTY, 0, 0, 0, 0),
    USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE_FLAG(MLA_K_LOOSE),
    USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
};
static const mla_key_use kv_write_uses[] = {
    USE(MLA_K_TOKENS, 1, 1, MAX32, 1),
    USE(MLA_K_PAGE, 1, 1, MAX32, 64),
    USE(MLA_K_BLOCKS, 1, 1, MAX32, 2),
    SIZES(512, 64),
    USE(MLA_K_ACT, 0, 0, 0, 0),
    USE(MLA_K_K_SCALE, 0, 0, 0, 0),
    USE_FLAG(MLA_K_POW2),
    USE(MLA_K_DIST, 0, 0, 0, 0),
    USE(MLA_K_SLOTS, 0, 0, 0, 0),
    USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE(MLA_K_GAP, 0, 0, INT64_MAX / 16, 0),
    USE_FLAG(MLA_K_LOOSE),
    USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
};
static const mla_key_use kv_read_uses[] = {
    USE(MLA_K_REQUESTS, 1, 1, 65536, 1),
    USE(MLA_K_PAGE, 1, 1, MAX32, 64),
    USE(MLA_K_LEN, 1, 0, MAX32, 1),
    USE(MLA_K_START, 0, 0, MAX32, 0),
    SIZES(512, 64),
    USE(MLA_K_OUT, 0, 0, 0, 0),
    USE(MLA_K_K_SCALE, 0, 0, 0, 0),
    USE_FLAG(MLA_K_POW2),
    USE(MLA_K_DIST, 0, 0, 0, 0),
    USE(MLA_K_PAGES, 0, 0, 0, 0),
    USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE(MLA_K_WIDTH, 0, 0, MAX32, 0),
    USE(MLA_K_SPARE, 0, 0, MAX32, 2),
    USE(MLA_K_GAP, 0, 0, INT64_MAX / 16, 0),
    USE(MLA_K_TAIL, 0, 0, MAX32, 0),
    USE_FLAG(MLA_K_LOOSE),
    USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
};
static const mla_key_use kv_copy_uses[] = {
    USE(MLA_K_BLOCKS, 1, 1, MAX32, 4),
    USE(MLA_K_SRC_BLOCKS, 0, 0, MAX32, 0),
    USE(MLA_K_COPIES, 1, 1, MAX32, 1),
    USE(MLA_K_PAGE, 1, 1, MAX32, 64),
    SIZES(512, 64),
    USE_FLAG(MLA_K_WITHIN),
    USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE(MLA_K_GAP, 0, 0, INT64_MAX / 16, 0),
    USE_FLAG(MLA_K_LOOSE),
    USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
};
static const mla_key_use absorb_uses[] = {
    USE(MLA_K_HEADS, 1, 1, 4096, 1),
    SIZES(512, 64),
    USE(MLA_K_NOPE, 0, 1, MAX32, 128),
    USE(MLA_K_VHEAD, 0, 1, MAX32, 128),
    USE(MLA_K_Q_LORA, 0, 0, MAX32, 0),
    USE(MLA_K_HIDDEN, 0, 0, MAX32, 0),
    USE(MLA_K_OUT, 0, 0, 0, 0),
    USE(MLA_K_WEIGHT, 0, 0, 0, 0),
    USE(MLA_K_DIST, 0, 0, 0, 0),
    USE_FLAG(MLA_K_FUSED_Q),
    USE_FLAG(MLA_K_FUSED_O),
    USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
};
/* Of a product a head, latents on one side and `width` on the other. */
#define HEAD_PRODUCT(width)                                            \
  USE(MLA_K_TOKENS, 1, 1, MAX32, 1), USE(MLA_K_HEADS, 1, 1, 4096, 1),  \
      USE(MLA_K_LORA, 0, 1, MAX32, 512), USE(width, 0, 1, MAX32, 128), \
      USE(MLA_K_OUT, 0, 0, 0, 0), USE(MLA_K_WEIGHT, 0, 0, 0, 0),       \
      USE(MLA_K_DIST, 0, 0, 0, 0), USE_FLAG(MLA_K_INVARIANT),          \
      USE(MLA_K_STRIDES, 0, 0, 0, 0), USE_FLAG(MLA_K_LOOSE),           \
      USE_FLAG(MLA_K_CROWD), USE_FLAG(MLA_K_UNALIGNED)

static const mla_key_use q_absorb_uses[] = {HEAD_PRODUCT(MLA_K_NOPE)};
static const mla_key_use v_expand_uses[] = {HEAD_PRODUCT(MLA_K_VHEAD)};
static const mla_key_use matmul_uses[] = {
    USE(MLA_K_M, 1, 1, MAX32, 1),  USE(MLA_K_N, 1, 1, MAX32, 1),
    USE(MLA_K_K, 1, 1, MAX32, 1),  USE(MLA_K_OUT, 0, 0, 0, 0),
    USE(MLA_K_WEIGHT, 0, 0, 0, 0), USE(MLA_K_DIST, 0, 0, 0, 0),
    USE_FLAG(MLA_K_INVARIANT),     USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE_FLAG(MLA_K_LOOSE),         USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
};

static const mla_key_use index_uses[] = {
    USE(MLA_K_REQUESTS, 1, 1, 65536, 1),
    USE(MLA_K_HEADS, 1, 1, 4096, 1),
    USE(MLA_K_Q, 1, 0, MAX32, 1),
    USE(MLA_K_PAGE, 1, 1, MAX32, 64),
    USE(MLA_K_LEN, 1, 0, MAX32, 1),
    USE(MLA_K_TOPK, 1, 1, MAX32, 64),
    USE(MLA_K_HEAD_DIM, 0, 1, MAX32, 128),
    USE(MLA_K_ACT, 0, 0, 0, 0),
    USE(MLA_K_K_SCALE, 0, 0, 0, 0),
    USE(MLA_K_AMP, 0, 0, 0, 2),
    USE(MLA_K_DIST, 0, 0, 0, 0),
    USE_FLAG(MLA_K_LOGITS),
    USE(MLA_K_ROOM, 0, 0, MAX32, 0),
    USE_FLAG(MLA_K_INVARIANT),
    USE(MLA_K_PAGES, 0, 0, 0, 0),
    USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE(MLA_K_WIDTH, 0, 0, MAX32, 0),
    USE(MLA_K_SPARE, 0, 0, MAX32, 2),
    USE(MLA_K_GAP, 0, 0, INT64_MAX / 16, 0),
    USE(MLA_K_TAIL, 0, 0, MAX32, 0),
    USE(MLA_K_LIMIT, 0, 0, MAX32, 0),
    USE_FLAG(MLA_K_LOOSE),
    USE_FLAG(MLA_K_REPLAY),
    USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
};
static const mla_key_use map_uses[] = {
    USE(MLA_K_REQUESTS, 1, 1, 65536, 1),
    USE(MLA_K_Q, 1, 0, MAX32, 1),
    USE(MLA_K_PAGE, 1, 1, MAX32, 64),
    USE(MLA_K_LEN, 1, 0, MAX32, 1),
    USE(MLA_K_TOPK, 1, 1, MAX32, 64),
    USE(MLA_K_LISTS, 0, 0, 0, 0),
    USE(MLA_K_PAGES, 0, 0, 0, 0),
    USE(MLA_K_STRIDES, 0, 0, 0, 0),
    USE(MLA_K_WIDTH, 0, 0, MAX32, 0),
    USE(MLA_K_SPARE, 0, 0, MAX32, 2),
    USE(MLA_K_TAIL, 0, 0, MAX32, 0),
    USE_FLAG(MLA_K_LOOSE),
    USE_FLAG(MLA_K_CROWD),
    USE_FLAG(MLA_K_UNALIGNED),
};

static const struct {
  int32_t op, count;
  const mla_key_use *uses;
} ops[] = {
    {MLA_OP_KV_WRITE, COUNT(kv_write_uses), kv_write_uses},
    {MLA_OP_KV_READ, COUNT(kv_read_uses), kv_read_uses},
    {MLA_OP_KV_COPY, COUNT(kv_copy_uses), kv_copy_uses},
    {MLA_OP_ABSORB, COUNT(absorb_uses), absorb_uses},
    {MLA_OP_Q_ABSORB, COUNT(q_absorb_uses), q_absorb_uses},
    {MLA_OP_V_EXPAND, COUNT(v_expand_uses), v_expand_uses},
    {MLA_OP_DECODE, COUNT(decode_uses), decode_uses},
    {MLA_OP_PREFILL, COUNT(prefill_uses), prefill_uses},
    {MLA_OP_MERGE, COUNT(merge_uses), merge_uses},
    {MLA_OP_MATMUL, COUNT(matmul_uses), matmul_uses},
    {MLA_OP_INDEX, COUNT(index_uses), index_uses},
    {MLA_OP_MAP_INDICES, COUNT(map_uses), map_uses},
};

const mla_key_spec *mla_key_spec_of(int key) {
  return key >= 0 && key < MLA_K_COUNT ? &specs[key] : NULL;
}

const mla_key_use *mla_key_uses(int32_t op, int32_t *count) {
  for (int32_t i = 0; i < COUNT(ops); i++) {
    if (ops[i].op != op) continue;
    *count = ops[i].count;
    return ops[i].uses;
  }
  *count = 0;
  return NULL;
}

const mla_key_use *mla_key_use_of(int32_t op, int key) {
  int32_t count;
  const mla_key_use *uses = mla_key_uses(op, &count);
  for (int32_t i = 0; i < count; i++)
    if (uses[i].key == key) return &uses[i];
  return NULL;
}
