/*
 * case_check.c - attributes that contradict each other, said in a sentence.
 */
#include "cache_layout.h"
#include "case.h"
#include "case_sparse.h"
#include "case_types.h"
#include "dtype.h"
#include "error.h"

#define BIT(x) (1u << (x))
#define FAIL(...) mla_fail(err, MLA_INVALID_ARGUMENT, "case", __VA_ARGS__)

/* What each operation's generator knows how to make. */
static unsigned dists_of(int32_t op) {
  unsigned plain = BIT(MLA_DIST_BELL);
  switch (op) {
    case MLA_OP_DECODE:
    case MLA_OP_PREFILL:
      return plain | BIT(MLA_DIST_EXACT) | BIT(MLA_DIST_ONEHOT) |
             BIT(MLA_DIST_NEEDLE) | BIT(MLA_DIST_OUTLIER) |
             BIT(MLA_DIST_REPEAT) | BIT(MLA_DIST_EQUAL) | BIT(MLA_DIST_BIG) |
             BIT(MLA_DIST_TINY) | BIT(MLA_DIST_NAN);
    case MLA_OP_KV_WRITE:
    case MLA_OP_KV_READ: return plain | BIT(MLA_DIST_EDGE);
    case MLA_OP_MERGE:
      return plain | BIT(MLA_DIST_EXACT) | BIT(MLA_DIST_BIG) |
             BIT(MLA_DIST_NAN);
    case MLA_OP_INDEX:
      return plain | BIT(MLA_DIST_EXACT) | BIT(MLA_DIST_OUTLIER) |
             BIT(MLA_DIST_REPEAT) | BIT(MLA_DIST_EQUAL) | BIT(MLA_DIST_BIG) |
             BIT(MLA_DIST_TINY);
    case MLA_OP_MAP_INDICES: return plain;
    default:
      return plain | BIT(MLA_DIST_OUTLIER) | BIT(MLA_DIST_EXACT) |
             BIT(MLA_DIST_BIG) | BIT(MLA_DIST_TINY);
  }
}

static mla_status check_lists(const mla_case *c, mla_error *err) {
  static const int keys[] = {MLA_K_Q, MLA_K_LEN, MLA_K_CTX, MLA_K_START};
  for (int i = 0; i < MLA_CASE_LISTS; i++) {
    const mla_key_spec *spec = mla_key_spec_of(keys[i]);
    int32_t count = c->list[spec->list].count;
    if (count > 1 && count != c->num[MLA_K_REQUESTS])
      return FAIL("case: %s has %d values, but b is %lld", spec->name,
                  (int)count, (long long)c->num[MLA_K_REQUESTS]);
  }
  if (mla_case_tokens(c) > INT32_MAX)
    return FAIL("case: %lld tokens, at most %d have an index",
                (long long)mla_case_tokens(c), INT32_MAX);
  return MLA_OK;
}

static int64_t row_sees(const mla_case *c, int64_t b, int64_t t) {
  int64_t len = mla_case_seq_len(c, b);
  if (c->num[MLA_K_FULL]) return len;
  int64_t n = len - mla_case_at(c, MLA_K_Q, b) + t + 1;
  return n < 0 ? 0 : n;
}

/* Equal probabilities: few enough that f32 sums stay within the budget's
   model; and a power of two where the quotient must be exact. */
static mla_status check_equal_keys(const mla_case *c, mla_error *err) {
  int exact = c->num[MLA_K_DIST] == MLA_DIST_EXACT;
  if (!exact && c->num[MLA_K_DIST] != MLA_DIST_EQUAL) return MLA_OK;
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++) {
    for (int64_t t = 0; t < mla_case_at(c, MLA_K_Q, b); t++) {
      int64_t n = mla_case_is_sparse(c) ? mla_case_row_keys(c, b, t)
                                        : row_sees(c, b, t);
      if (n > 1024)
        return FAIL(
            "case: request %lld has %lld keys of one probability, "
            "at most 1024 are in contract",
            (long long)b, (long long)n);
      if (exact && (n & (n - 1)))
        return FAIL(
            "case: dist=exact, but row %lld of request %lld sees "
            "%lld keys, no power of two",
            (long long)t, (long long)b, (long long)n);
    }
  }
  return MLA_OK;
}

/* Quotients must be exact, and nothing may join the sum. */
static mla_status check_exactness(const mla_case *c, mla_error *err) {
  int64_t dist = c->num[MLA_K_DIST], parts = c->num[MLA_K_PARTS];
  int bits = dist == MLA_DIST_EXACT || dist == MLA_DIST_ONEHOT;
  if (bits && (c->num[MLA_K_SINK] || c->real[MLA_K_CAP] > 0))
    return FAIL("case: dist=%s with a sink or a cap is not exact",
                mla_key_spec_of(MLA_K_DIST)->words[dist]);
  if (c->op != MLA_OP_MERGE) return MLA_OK;
  if (dist == MLA_DIST_EXACT &&
      ((parts & (parts - 1)) || c->num[MLA_K_EMPTY] == MLA_EMPTY_SOME ||
       c->num[MLA_K_EMPTY] == MLA_EMPTY_FIRST))
    return FAIL(
        "case: dist=exact, but %lld parts are no power of two, or "
        "some are empty",
        (long long)parts);
  if (dist == MLA_DIST_NAN && parts < 2)
    return FAIL("case: dist=nan needs a second part");
  return MLA_OK;
}

/* Every other request is spoiled: there is one that is not, and its entries
   can hold NaN. */
static mla_status check_spoiled(const mla_case *c, mla_error *err) {
  int32_t format = mla_case_cache_format(c);
  int holds = mla_dtype_bits(mla_format_dtype(format)) >= 16 ||
              mla_cache_one_scale(format);
  if (c->num[MLA_K_DIST] != MLA_DIST_NAN || c->op == MLA_OP_MERGE)
    return MLA_OK;
  if (c->num[MLA_K_REQUESTS] < 2)
    return FAIL("case: dist=nan spoils every other request: b is at least 2");
  if (!holds || c->num[MLA_K_EXTRA])
    return FAIL("case: dist=nan needs one cache that can hold NaN");
  return MLA_OK;
}

static mla_status check_heads(const mla_case *c, mla_error *err) {
  int64_t h = c->num[MLA_K_HEADS], kvh = c->num[MLA_K_KV_HEADS];
  if (kvh > 1 && !c->num[MLA_K_SEPARATE_V])
    return FAIL("case: kvh above 1 needs sepv");
  if (kvh > 1 && h % kvh)
    return FAIL("case: kvh %lld does not divide h %lld", (long long)kvh,
                (long long)h);
  mla_problem p = mla_case_problem(c);
  if (c->op == MLA_OP_DECODE && !c->num[MLA_K_SEPARATE_V] &&
      mla_problem_v_dim(&p) > mla_problem_head_dim(&p))
    return FAIL("case: dv %d is wider than the key, %d",
                (int)mla_problem_v_dim(&p), (int)mla_problem_head_dim(&p));
  if (c->num[MLA_K_SEPARATE_V] && mla_cache_mixed(c->format))
    return FAIL("case: sepv, but %s holds latents", mla_format_name(c->format));
  return MLA_OK;
}

static mla_status check_blocks(const mla_case *c, mla_error *err) {
  int64_t nb = c->num[MLA_K_BLOCKS], copies = c->num[MLA_K_COPIES];
  if (c->op == MLA_OP_KV_WRITE &&
      (c->num[MLA_K_TOKENS] - 1) / c->num[MLA_K_PAGE] >= nb)
    return FAIL("case: n %lld tokens do not fit nb %lld blocks",
                (long long)c->num[MLA_K_TOKENS], (long long)nb);
  if (c->op == MLA_OP_KV_COPY &&
      (copies > nb || (c->num[MLA_K_WITHIN] && copies > nb / 2)))
    return FAIL("case: copies %lld, but only %lld targets", (long long)copies,
                (long long)(c->num[MLA_K_WITHIN] ? nb / 2 : nb));
  return MLA_OK;
}

/* Attributes that say what scales are like. */
static mla_status check_scales(const mla_case *c, mla_error *err) {
  int32_t format = mla_case_cache_format(c);
  int one = mla_cache_one_scale(format);
  mla_problem p = mla_case_problem(c);
  mla_cache_layout layout = mla_cache_layout_of(&p);
  int ds_mla = format == MLA_CACHE_FP8_DS_MLA;
  /* Types without scales have them to show that nobody applies them. */
  int any = one || !layout.quantised;
  if ((c->real[MLA_K_K_SCALE] > 0 && !any) ||
      (c->real[MLA_K_V_SCALE] > 0 && !(any && c->num[MLA_K_SEPARATE_V])))
    return FAIL("case: kscale is for formats of one scale, vscale for sepv");
  if (c->num[MLA_K_POW2] && !ds_mla)
    return FAIL("case: pow2 is for fp8_ds_mla, not %s",
                mla_format_name(format));
  if (layout.quantised && c->num[MLA_K_DIST] == MLA_DIST_TINY)
    return FAIL("case: dist=tiny is below the least scale of %s",
                mla_format_name(format));
  if (p.cache_format && mla_problem_entry(&p) <= 0)
    return FAIL("case: l %d and r %d make no entry of %s", p.kv_lora_rank,
                p.qk_rope_head_dim, mla_format_name(format));
  if (mla_cache_mixed(p.cache_format) && c->num[MLA_K_HEAD_DIM] &&
      p.head_dim != p.kv_lora_rank + p.qk_rope_head_dim)
    return FAIL("case: d %d, but an entry of %s has %d values", p.head_dim,
                mla_format_name(format), p.kv_lora_rank + p.qk_rope_head_dim);
  return MLA_OK;
}

static mla_status check_formats(const mla_case *c, mla_error *err) {
  int cached =
      mla_key_use_of(c->op, MLA_K_PAGE) != NULL && c->op != MLA_OP_MAP_INDICES;
  int32_t plain = mla_format_dtype(c->format);
  if ((!cached || c->op == MLA_OP_PREFILL) && mla_dtype_bits(plain) < 16)
    return FAIL("case: %s is no type of activations; f64, f32, f16, bf16 are",
                mla_format_name(c->format));
  if (c->num[MLA_K_FUSED_Q] && !c->num[MLA_K_Q_LORA])
    return FAIL("case: fusedq needs lq");
  if (c->num[MLA_K_FUSED_O] && !c->num[MLA_K_HIDDEN])
    return FAIL("case: fusedo needs hid");
  return MLA_OK;
}

/* A prefix is part of every request that has keys, and of what each of its
   rows sees; the first that has any must reach as far. */
static mla_status check_prefix(const mla_case *c, mla_error *err) {
  int64_t prefix = c->num[MLA_K_PREFIX], dist = c->num[MLA_K_DIST];
  if (prefix == 0) return MLA_OK;
  if (dist != MLA_DIST_BELL && dist != MLA_DIST_OUTLIER)
    return FAIL("case: dist=%s knows no keys of several requests",
                mla_key_spec_of(MLA_K_DIST)->words[dist]);
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++) {
    int64_t first = mla_case_at(c, MLA_K_Q, b) ? row_sees(c, b, 0) : prefix;
    if (b == mla_case_first(c) && mla_case_cached(c, b) < first)
      first = mla_case_cached(c, b);
    if (first < prefix)
      return FAIL(
          "case: prefix %lld, but the first row of request %lld sees "
          "%lld keys",
          (long long)prefix, (long long)b, (long long)first);
  }
  return MLA_OK;
}

static mla_status check_composed(const mla_case *c, mla_error *err) {
  if (c->num[MLA_K_CASCADE] && c->num[MLA_K_RANKS])
    return FAIL("case: cascade and ranks are two compositions");
  if (c->num[MLA_K_CROWD] && mla_case_composed(c))
    return FAIL("case: crowd, but a composition runs once at a time");
  if (c->num[MLA_K_INTERLEAVE] > 1 && !c->num[MLA_K_RANKS])
    return FAIL("case: interleave needs ranks");
  if (c->num[MLA_K_RANKS] && (c->num[MLA_K_GAP] || c->num[MLA_K_STRIDES]) &&
      c->num[MLA_K_INTERLEAVE] % c->num[MLA_K_PAGE])
    return FAIL("case: ranks whose interleave divides pages need dense ones");
  if (c->num[MLA_K_CHUNKED] && !mla_case_list_given(c, MLA_K_CTX))
    return FAIL("case: chunked needs ctx");
  return check_prefix(c, err);
}

mla_status mla_case_check(const mla_case *c, mla_error *err) {
  mla_status status = check_lists(c, err);
  if (!(dists_of(c->op) & BIT(c->num[MLA_K_DIST])))
    return FAIL("case: dist=%s is nothing that %s has",
                mla_key_spec_of(MLA_K_DIST)->words[c->num[MLA_K_DIST]],
                mla_op_name(c->op));
  if (status == MLA_OK) status = check_formats(c, err);
  if (status == MLA_OK) status = check_scales(c, err);
  if (status == MLA_OK) status = check_exactness(c, err);
  if (status == MLA_OK) status = check_spoiled(c, err);
  if (status == MLA_OK) status = check_heads(c, err);
  if (status == MLA_OK) status = check_blocks(c, err);
  if (status == MLA_OK) status = check_composed(c, err);
  if (status == MLA_OK) status = mla_case_check_sparse(c, err);
  if (status == MLA_OK && (c->op == MLA_OP_DECODE || c->op == MLA_OP_PREFILL))
    status = check_equal_keys(c, err);
  return status;
}
