/*
 * scale_check.c - the rules for scales: which formats, weights and flags go
 * together, and what a scale may be.
 */
#include <math.h>

#include "args_check.h"
#include "cache_layout.h"
#include "dtype.h"
#include "error.h"

/* Does the call turn codes into numbers, or numbers into codes? */
static int converts(const mla_problem *p) {
  switch (p->op) {
    case MLA_OP_KV_WRITE:
    case MLA_OP_KV_READ:
    case MLA_OP_DECODE: return 1;
    case MLA_OP_PREFILL: return (p->flags & MLA_CONTEXT) != 0;
    default: return 0;
  }
}

/* It is used as the f32 nearest to it. */
static mla_status check_one(const char *name, double scale, int32_t format,
                            mla_error *err) {
  double used = mla_round_to(MLA_F32, scale);
  if (isfinite(used) && used > 0) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                  "%s is %g, but the one scale of cache_format %s must be "
                  "finite and more than 0 as an f32",
                  name, scale, mla_format_name(format));
}

static mla_status check_cache(const mla_problem *p, mla_error *err) {
  mla_status st = MLA_OK;
  if ((p->flags & MLA_SCALE_POW2) && p->cache_format != MLA_CACHE_FP8_DS_MLA)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "flags",
                    "flags is 0x%llx; MLA_SCALE_POW2 is a rule for scales of "
                    "fp8_ds_mla, but cache_format is %s",
                    (unsigned long long)p->flags,
                    mla_format_name(p->cache_format));
  if ((p->flags & MLA_SEPARATE_V) && mla_cache_mixed(p->cache_format))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "cache_format",
                    "cache_format is %s, which holds latents: there is no "
                    "other cache for V, as MLA_SEPARATE_V says",
                    mla_format_name(p->cache_format));
  if (!converts(p) || !mla_cache_one_scale(p->cache_format)) return st;
  st = check_one("k_scale", p->k_scale, p->cache_format, err);
  if (st == MLA_OK && (p->flags & MLA_SEPARATE_V))
    st = check_one("v_scale", p->v_scale, p->cache_format, err);
  return st;
}

static mla_status check_weights(const mla_problem *p, mla_error *err) {
  int scaled = (p->flags & MLA_BLOCK_SCALED) != 0;
  int codes = p->weight_dtype == MLA_FP8_E4M3;
  if (scaled == codes) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, scaled ? "weight_dtype" : "flags",
                  scaled ? "weight_dtype is %s, but weights with scales "
                           "(MLA_BLOCK_SCALED) are fp8_e4m3"
                         : "weight_dtype is %s, and such weights have scales, "
                           "but flags lacks MLA_BLOCK_SCALED",
                  mla_dtype_name(p->weight_dtype));
}

mla_status mla_scales_check(const mla_problem *p, mla_error *err) {
  if (p->op == MLA_OP_ABSORB) return check_weights(p, err);
  return check_cache(p, err);
}
