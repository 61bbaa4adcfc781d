#include "case_sparse.h"

#include "cache_layout.h"
#include "case_types.h"
#include "dtype.h"
#include "error.h"

#define FAIL(...) mla_fail(err, MLA_INVALID_ARGUMENT, "case", __VA_ARGS__)

int mla_case_is_sparse(const mla_case *c) {
  return c->op == MLA_OP_DECODE && c->num[MLA_K_TOPK] > 0;
}

int64_t mla_case_list_width(const mla_case *c, mla_list list) {
  return c->num[list == MLA_LIST_EXTRA ? MLA_K_EXTRA : MLA_K_TOPK];
}

static int64_t positions_seen(const mla_case *c, int64_t b, int64_t t) {
  int64_t n = mla_case_seq_len(c, b) - mla_case_at(c, MLA_K_Q, b) + t + 1;
  return n < 0 ? 0 : n;
}

int64_t mla_case_list_keys(const mla_case *c, mla_list list, int64_t b,
                           int64_t t) {
  if (list == MLA_LIST_MAIN) return positions_seen(c, b, t);
  return c->num[MLA_K_EXTRA_BLOCKS] * mla_case_extra_page(c);
}

int64_t mla_case_list_length(const mla_case *c, mla_list list, int64_t b,
                             int64_t t) {
  int64_t width = mla_case_list_width(c, list);
  if (!c->num[MLA_K_TOPK_LEN]) return width;
  switch ((b * 3 + t + list) % 5) {
    case 0: return (width + 1) / 2;
    case 1: return 0;
    case 2: return width;
    case 3: return 1;
    default: return width - 1;
  }
}

/* Entry i before lengths: `next` counts the keys so far. */
static int64_t entry(const mla_case *c, int64_t i, int64_t width, int64_t row,
                     int64_t next) {
  switch (c->num[MLA_K_LISTS]) {
    case MLA_LISTS_HOLES:
      return i % 3 == 0   ? MLA_ENTRY_HOLE
             : i % 7 == 5 ? MLA_ENTRY_STRANGER
                          : next;
    case MLA_LISTS_LATE: return i < width - width / 4 ? MLA_ENTRY_HOLE : next;
    case MLA_LISTS_REPEAT: return i / (row % 2 ? 3 : 2);
    case MLA_LISTS_ROWS: return row % 2 ? MLA_ENTRY_HOLE : next;
    case MLA_LISTS_NONE: return i % 2 ? MLA_ENTRY_HOLE : MLA_ENTRY_STRANGER;
    default: return next;
  }
}

int64_t mla_case_list_row(const mla_case *c, mla_list list, int64_t b,
                          int64_t t, int64_t *rank) {
  int64_t width = mla_case_list_width(c, list), count = 0;
  int64_t keys = mla_case_list_keys(c, list, b, t);
  int64_t length = mla_case_list_length(c, list, b, t);
  for (int64_t i = 0; i < width; i++) {
    int64_t r = entry(c, i, width, b + t, count);
    if (r >= keys) r = MLA_ENTRY_HOLE;
    if (i >= length) r = MLA_ENTRY_UNREAD;
    count += r >= 0;
    if (rank) rank[i] = r;
  }
  return count;
}

int64_t mla_case_row_keys(const mla_case *c, int64_t b, int64_t t) {
  int64_t n = mla_case_list_row(c, MLA_LIST_MAIN, b, t, NULL);
  if (c->num[MLA_K_EXTRA])
    n += mla_case_list_row(c, MLA_LIST_EXTRA, b, t, NULL);
  return n;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

int64_t mla_case_list_key(int64_t n, int64_t rank, int64_t t) {
  int64_t step = n * 5 / 8;
  while (step < 1 || common_divisor(step, n) != 1) step++;
  return (rank * step + t * 7 + 3) % n;
}

/* ---------------------------------------------------------------- checking */

static mla_status check_lists(const mla_case *c, mla_error *err) {
  int64_t topk = c->num[MLA_K_TOPK], extra = c->num[MLA_K_EXTRA];
  if (c->op != MLA_OP_DECODE) return MLA_OK;
  if (!topk && (extra || c->num[MLA_K_LISTS] || c->num[MLA_K_TOPK_LEN]))
    return FAIL("case: extra, lists and tlen need topk");
  if (!extra && (c->num[MLA_K_EXTRA_PAGE] || c->num[MLA_K_EXTRA_BLOCKS] != 2))
    return FAIL("case: xpage and xnb need extra");
  if (!topk) return MLA_OK;
  if (c->num[MLA_K_FULL])
    return FAIL("case: full with topk: the lists say what a row sees");
  if (c->num[MLA_K_SEPARATE_V])
    return FAIL("case: sepv with topk is served by nobody");
  if (c->num[MLA_K_CASCADE] || c->num[MLA_K_RANKS] || c->num[MLA_K_PREFIX])
    return FAIL("case: cascade, ranks and prefix are of dense decode");
  return MLA_OK;
}

/* The format of index keys, and the formats that they can have. */
static mla_status check_keys(const mla_case *c, mla_error *err) {
  int32_t format = mla_case_cache_format(c);
  int keys = format == MLA_CACHE_FP8_INDEX;
  const char *name = mla_format_name(format);
  int64_t width =
      c->op == MLA_OP_INDEX ? c->num[MLA_K_HEAD_DIM] : c->num[MLA_K_LORA];
  if (keys && (c->op == MLA_OP_DECODE || c->op == MLA_OP_PREFILL))
    return FAIL("case: %s holds index keys, %s attends to latents", name,
                mla_op_name(c->op));
  if (keys && (width % 4 || c->num[MLA_K_ROPE]))
    return FAIL("case: a key of %s is a multiple of 4 wide, with r0", name);
  if (c->op == MLA_OP_INDEX && !keys &&
      mla_format_dtype(format) == MLA_DTYPE_NONE)
    return FAIL("case: index keys are plain or %s, not %s",
                mla_format_name(MLA_CACHE_FP8_INDEX), name);
  return MLA_OK;
}

mla_status mla_case_check_sparse(const mla_case *c, mla_error *err) {
  mla_status status = check_lists(c, err);
  return status == MLA_OK ? check_keys(c, err) : status;
}
