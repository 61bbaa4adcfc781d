#include "cache_layout.h"

#include "dtype.h"

/* What is the same for all widths. */
typedef struct format_spec {
  int32_t code, scale;
  int32_t tile;   /* codes a scale serves; 0: all of the entry's */
  int32_t mixed;  /* the rotary part is bf16 */
  int32_t behind; /* scales stand behind the rows of a block ... */
  int32_t side;   /* ... padded to a multiple of these bytes an entry */
  int32_t unit;   /* the row, or for `behind` the block, is padded to these */
} format_spec;

static const format_spec specs[] = {
    [MLA_CACHE_FP8_DS_MLA] = {MLA_FP8_E4M3, MLA_F32, 128, 1, 0, 1, 1},
    [MLA_CACHE_FP8_584] = {MLA_FP8_E4M3, MLA_E8M0, 64, 1, 1, 8, 576},
    [MLA_CACHE_FP8_TOKEN] = {MLA_FP8_E4M3, MLA_F32, 0, 0, 0, 1, 16},
    [MLA_CACHE_INT8_TOKEN] = {MLA_I8, MLA_F32, 0, 0, 0, 1, 16},
    [MLA_CACHE_INT4_TOKEN] = {MLA_I4, MLA_F32, 0, 0, 0, 1, 16},
    [MLA_CACHE_FP8_INDEX] = {MLA_FP8_E4M3, MLA_F32, 0, 0, 1, 4, 1},
};
#define SPECS ((int32_t)(sizeof specs / sizeof specs[0]))

static const format_spec *spec_of(int32_t format) {
  if (format < 0 || format >= SPECS || !specs[format].code) return NULL;
  return &specs[format];
}

int mla_cache_one_scale(int32_t format) {
  return format == MLA_CACHE_FP8_E4M3 || format == MLA_CACHE_FP8_E4M3FNUZ ||
         format == MLA_CACHE_FP8_E5M2;
}

int mla_cache_mixed(int32_t format) {
  const format_spec *spec = spec_of(format);
  return spec && spec->mixed;
}

static int64_t padded(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

static void lay_out_plain(mla_cache_layout *x) {
  x->code = mla_format_dtype(x->format);
  x->quantised = mla_cache_one_scale(x->format);
  x->codes = x->tile = x->row_bytes = x->width;
  x->block_unit = 1;
}

static void lay_out_packed(mla_cache_layout *x, const format_spec *spec,
                           int64_t rope) {
  int64_t bits = mla_dtype_bits(spec->code), bytes, scales;
  x->code = spec->code;
  x->scale = spec->scale;
  x->quantised = 1;
  x->codes = spec->mixed ? x->width - rope : x->width;
  x->tile = spec->tile ? spec->tile : x->codes;
  if (x->codes <= 0 || x->codes % x->tile != 0) return;
  if (x->format == MLA_CACHE_FP8_INDEX && (x->codes % 4 || rope)) return;
  scales = x->codes / x->tile * (mla_dtype_bits(spec->scale) / 8);
  bytes = (x->codes * bits + 7) / 8;
  x->block_unit = 1;
  if (spec->behind) {
    x->rest_at = bytes;
    x->row_bytes = bytes + 2 * (x->width - x->codes);
    x->side_bytes = padded(scales, spec->side);
    x->block_unit = spec->unit;
    return;
  }
  x->scale_at = bytes;
  x->rest_at = bytes + scales;
  x->row_bytes = padded(bytes + scales + 2 * (x->width - x->codes), spec->unit);
}

static mla_cache_layout layout(int32_t format, int64_t width, int64_t rope) {
  mla_cache_layout x = {0};
  const format_spec *spec = spec_of(format);
  x.format = format;
  x.width = width;
  if (mla_format_dtype(format) != MLA_DTYPE_NONE)
    lay_out_plain(&x);
  else if (spec)
    lay_out_packed(&x, spec, rope);
  return x;
}

/* Formats that tell latents from rope follow L and R, not head_dim. */
mla_cache_layout mla_cache_layout_of(const mla_problem *p) {
  int64_t width = (int64_t)p->kv_lora_rank + p->qk_rope_head_dim;
  int by_head = p->op == MLA_OP_DECODE || p->op == MLA_OP_INDEX;
  if (width > INT32_MAX) width = 0;
  if (by_head && p->head_dim && !mla_cache_mixed(p->cache_format))
    return layout(p->cache_format, p->head_dim, 0);
  return layout(p->cache_format, width, p->qk_rope_head_dim);
}

mla_cache_layout mla_cache_layout_of_v(const mla_problem *p) {
  return layout(p->cache_format, mla_problem_v_dim(p), 0);
}

int64_t mla_cache_entry(const mla_cache_layout *x) {
  return x->row_bytes + x->side_bytes;
}

int64_t mla_cache_block_bytes(const mla_cache_layout *x, int64_t entries) {
  return padded(entries * mla_cache_entry(x), x->block_unit);
}
