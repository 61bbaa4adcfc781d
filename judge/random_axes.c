/*
 * random_axes.c - what is drawn, and how often. Values that stand twice are
 * drawn twice as often.
 */
#include "random_case.h"

#define LENGTH(type, ...) \
  ((int32_t)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type)))
#define OF(op, key, chance, ...)                                   \
  {                                                                \
    key, op, chance, MLA_AXIS_AMONG, LENGTH(int64_t, __VA_ARGS__), \
        (const int64_t[]){__VA_ARGS__}, NULL                       \
  }
#define AMONG(key, chance, ...) OF(MLA_OP_NONE, key, chance, __VA_ARGS__)
#define UP_TO(op, key, most) \
  { key, op, 100, MLA_AXIS_UP_TO, 1, (const int64_t[]){most}, NULL }
#define REALS(key, chance, ...)                                        \
  {                                                                    \
    key, 0, chance, MLA_AXIS_REALS, LENGTH(double, __VA_ARGS__), NULL, \
        (const double[]) {                                             \
      __VA_ARGS__                                                      \
    }                                                                  \
  }
#define ANY(key, chance) \
  { key, 0, chance, MLA_AXIS_ANY, 0, NULL, NULL }
#define LIST(key, chance, how) \
  { key, 0, chance, how, 0, NULL, NULL }
#define TYPES MLA_F32, MLA_F16, MLA_BF16

static const int8_t op_weights[] = {
    [MLA_OP_DECODE] = 16,  [MLA_OP_PREFILL] = 9,  [MLA_OP_MERGE] = 6,
    [MLA_OP_KV_WRITE] = 4, [MLA_OP_KV_READ] = 4,  [MLA_OP_KV_COPY] = 2,
    [MLA_OP_ABSORB] = 2,   [MLA_OP_Q_ABSORB] = 2, [MLA_OP_V_EXPAND] = 2,
    [MLA_OP_MATMUL] = 3,
};
static const int8_t format_weights[] = {
    [MLA_CACHE_BF16] = 12, [MLA_CACHE_F32] = 6,        [MLA_CACHE_F16] = 6,
    [MLA_CACHE_F64] = 1,   [MLA_CACHE_FP8_DS_MLA] = 3,
};
#define OTHER_OP 3
#define OTHER_FORMAT 2

static const mla_axis axes[] = {
    /* how many */
    AMONG(MLA_K_REQUESTS, 75, 2, 2, 3, 3, 4, 5, 7, 9, 16),
    AMONG(MLA_K_HEADS, 95, 2, 3, 4, 5, 7, 8, 8, 16, 16, 20, 33, 40, 64, 128),
    AMONG(MLA_K_KV_HEADS, 70, 2, 3, 4, 8),
    OF(MLA_OP_KV_WRITE, MLA_K_TOKENS, 95, 2, 3, 7, 15, 16, 17, 40, 64, 65, 130),
    UP_TO(MLA_OP_NONE, MLA_K_TOKENS, 70),
    UP_TO(MLA_OP_NONE, MLA_K_M, 140),
    UP_TO(MLA_OP_NONE, MLA_K_N, 300),
    UP_TO(MLA_OP_NONE, MLA_K_K, 1200),
    AMONG(MLA_K_PARTS, 80, 1, 3, 4, 5, 8, 16, 31, 32, 64),
    UP_TO(MLA_OP_NONE, MLA_K_BLOCKS, 9),
    UP_TO(MLA_OP_NONE, MLA_K_COPIES, 9),
    AMONG(MLA_K_SRC_BLOCKS, 40, 1, 2, 3, 9),
    LIST(MLA_K_Q, 60, MLA_AXIS_QUERIES),
    LIST(MLA_K_LEN, 100, MLA_AXIS_LENGTHS),
    LIST(MLA_K_CTX, 65, MLA_AXIS_LENGTHS),
    LIST(MLA_K_START, 50, MLA_AXIS_LENGTHS),

    /* widths: the first is a model's, odd ones fill no vector */
    AMONG(MLA_K_LORA, 75, 256, 48, 64, 64, 64, 96, 128, 16, 32, 52, 37, 1),
    AMONG(MLA_K_ROPE, 65, 8, 8, 16, 16, 32, 12, 6, 2, 0),
    AMONG(MLA_K_NOPE, 70, 16, 32, 64, 192, 40, 17, 1),
    OF(MLA_OP_MERGE, MLA_K_VHEAD, 80, 128, 64, 32, 256, 36, 5, 1, 77),
    AMONG(MLA_K_VHEAD, 70, 32, 64, 256, 36, 5, 1),
    AMONG(MLA_K_HEAD_DIM, 15, 128, 192, 64, 96, 80, 33, 576),
    AMONG(MLA_K_V_DIM, 20, 128, 64, 32, 40, 19, 512, 576),
    AMONG(MLA_K_Q_LORA, 40, 24, 64, 7, 96),
    AMONG(MLA_K_HIDDEN, 40, 24, 64, 9, 130),

    /* pages and memory */
    AMONG(MLA_K_PAGE, 85, 1, 2, 3, 4, 5, 7, 8, 16, 16, 16, 32, 53, 64, 64, 128,
          256, 576),
    AMONG(MLA_K_WIDTH, 30, 1, 2, 5),
    AMONG(MLA_K_SPARE, 40, 0, 1, 9),
    AMONG(MLA_K_GAP, 20, 1, 5, 8, 64, 1000, 70000),
    AMONG(MLA_K_TAIL, 20, 1, 3, 6),
    ANY(MLA_K_STRIDES, 35),
    ANY(MLA_K_PAGES, 40),
    ANY(MLA_K_SLOTS, 75),
    ANY(MLA_K_WITHIN, 30),

    /* types */
    AMONG(MLA_K_ACT, 15, TYPES),
    AMONG(MLA_K_OUT, 25, TYPES),
    AMONG(MLA_K_WEIGHT, 20, TYPES),
    ANY(MLA_K_POW2, 40),
    AMONG(MLA_K_CACHE, 25, MLA_CACHE_F32, MLA_CACHE_BF16, MLA_CACHE_F16,
          MLA_CACHE_FP8_E4M3, MLA_CACHE_FP8_DS_MLA),

    /* numbers */
    REALS(MLA_K_SCALE, 35, 1, 0.25, 3.7, 0.041666, 0.0625),
    REALS(MLA_K_CAP, 20, 1, 5, 30, 50),
    REALS(MLA_K_AMP, 55, 0.05, 0.25, 1, 4, 8, 16, 60, 300),
    ANY(MLA_K_DIST, 45),
    ANY(MLA_K_EMPTY, 40),

    /* what is asked for */
    ANY(MLA_K_FULL, 25),
    ANY(MLA_K_BASE2, 25),
    ANY(MLA_K_SINK, 25),
    ANY(MLA_K_NOLSE, 12),
    ANY(MLA_K_SEPARATE_V, 18),
    ANY(MLA_K_INVARIANT, 8),
    ANY(MLA_K_FUSED_Q, 40),
    ANY(MLA_K_FUSED_O, 40),
    AMONG(MLA_K_SPLITS, 40, 1, 2, 3, 7, 16, 64),
    AMONG(MLA_K_CHUNK, 50, 1, 7, 16, 64, 100),
    ANY(MLA_K_LOOSE, 15),
    ANY(MLA_K_REPLAY, 12),
    ANY(MLA_K_CROWD, 4),
    ANY(MLA_K_UNALIGNED, 20),
    AMONG(MLA_K_LIMIT, 6, 3000, 131072),

    /* compositions */
    AMONG(MLA_K_PREFIX, 15, 1, 3, 16, 33, 64, 128),
    ANY(MLA_K_CASCADE, 8),
    AMONG(MLA_K_RANKS, 8, 1, 2, 3, 4, 7),
    AMONG(MLA_K_INTERLEAVE, 80, 1, 2, 3, 16, 16, 64),
    ANY(MLA_K_CHUNKED, 30),
};

/* Attributes without a line. */
static const int64_t few[] = {1, 2, 3, 5, 16};
static const int64_t few_types[] = {TYPES};
static const double few_reals[] = {0.5, 1, 2};

static mla_axis axis_without_line(int key) {
  mla_axis a = {(int16_t)key, 0, 15, MLA_AXIS_ANY, 0, NULL, NULL};
  switch (mla_key_spec_of(key)->kind) {
    case MLA_KIND_FLAG:
    case MLA_KIND_WORD: return a;
    case MLA_KIND_LIST: a.how = MLA_AXIS_LENGTHS; return a;
    case MLA_KIND_REAL:
      a.how = MLA_AXIS_REALS;
      a.count = (int32_t)(sizeof few_reals / sizeof few_reals[0]);
      a.reals = few_reals;
      return a;
    case MLA_KIND_DTYPE:
    case MLA_KIND_FORMAT:
      a.count = (int32_t)(sizeof few_types / sizeof few_types[0]);
      a.values = few_types;
      break;
    default: a.count = (int32_t)(sizeof few / sizeof few[0]); a.values = few;
  }
  a.how = MLA_AXIS_AMONG;
  return a;
}

mla_axis mla_axis_of(int32_t op, int key) {
  for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
    if (axes[i].key == key && (!axes[i].op || axes[i].op == op)) return axes[i];
  return axis_without_line(key);
}

static int32_t weight_of(const int8_t *weights, size_t count, int32_t value,
                         int32_t otherwise) {
  if (value < 0 || (size_t)value >= count || !weights[value]) return otherwise;
  return weights[value];
}

int32_t mla_random_op_weight(int32_t op) {
  int32_t count;
  if (!mla_key_uses(op, &count)) return 0;
  return weight_of(op_weights, sizeof op_weights, op, OTHER_OP);
}

int32_t mla_random_format_weight(int32_t format) {
  if (!mla_format_name(format)) return 0;
  return weight_of(format_weights, sizeof format_weights, format, OTHER_FORMAT);
}
