/*
 * cache_layout.h - where the bytes of a cache entry lie (docs/spec.md 2.2).
 *
 * One description for all formats: some codes, scales for every `tile` of
 * them, and values that are not codes. Rows stand one after another in a
 * block; scales stand in the row, or together behind all rows of a block.
 */
#ifndef MLA_CACHE_LAYOUT_H
#define MLA_CACHE_LAYOUT_H

#include "mla/mla.h"

typedef struct mla_cache_layout {
  int32_t format;
  int32_t code;       /* element type of the codes, or of a plain entry */
  int32_t scale;      /* that of the scales; MLA_DTYPE_NONE: none inside */
  int32_t quantised;  /* a value is code * scale */
  int64_t width;      /* values of an entry: codes, then bf16 values */
  int64_t codes;      /* how many are codes; the others are bf16 */
  int64_t tile;       /* codes that share a scale */
  int64_t rest_at;    /* byte of the row where the bf16 values begin */
  int64_t scale_at;   /* byte of the row where the scales begin */
  int64_t row_bytes;  /* plain: elements */
  int64_t side_bytes; /* scales of an entry that stand behind the rows; or 0 */
  int64_t block_unit; /* a block is padded to a multiple of these bytes */
} mla_cache_layout;

/*
 * The layout for a key or latent entry, or, with MLA_SEPARATE_V, for a value
 * entry. row_bytes is 0 for a format or widths that do not go together.
 */
mla_cache_layout mla_cache_layout_of(const mla_problem *problem);
mla_cache_layout mla_cache_layout_of_v(const mla_problem *problem);

/* The length of the cache tensor's last axis. */
int64_t mla_cache_entry(const mla_cache_layout *layout);
/* Bytes that a block of `entries` needs at least, its padding included. */
int64_t mla_cache_block_bytes(const mla_cache_layout *layout, int64_t entries);

/* Has the format one scale for the whole cache (k_scale, v_scale)? */
int mla_cache_one_scale(int32_t format);
/* Does an entry hold bf16 values beside its codes? */
int mla_cache_mixed(int32_t format);

#endif
