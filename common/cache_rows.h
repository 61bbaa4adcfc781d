/*
 * cache_rows.h - rows of a cache of any format, in and out.
 *
 * A reader gives what goes into a product: values dequantised and rounded as
 * docs/spec.md 2.4 says, by the way that a backend declared. A writer leaves
 * the bytes of 2.3.
 */
#ifndef MLA_CACHE_ROWS_H
#define MLA_CACHE_ROWS_H

#include "cache_layout.h"

typedef struct mla_cache_rows {
  const mla_tensor *cache; /* [NB,BS,E] or [NB,BS,KVH,E] */
  mla_cache_layout layout;
  double scale;      /* of the whole cache */
  int32_t compute;   /* type that dequantised values are rounded to */
  int32_t dequant;   /* mla_dequant */
  double value[256]; /* of each code, where codes have at most 8 bits */
} mla_cache_rows;

/*
 * The cache in `slot`: MLA_T_V_CACHE holds values, every other keys or
 * latents. compute is q_dtype where products follow, else the type read to.
 */
mla_cache_rows mla_cache_rows_of(const mla_problem *problem,
                                 const mla_args *args, int slot,
                                 int32_t compute, int32_t dequant);

/* to[0, width) = the entry of a block at an offset (and kv head, 0 with one
   head). A slot of the cache is block * block_size + offset. */
void mla_cache_load(const mla_cache_rows *rows, int64_t block, int64_t offset,
                    int64_t kv_head, double *to);
/*
 * Quantises x[0, width) into the entry: scaled formats only. pow2: scales
 * by the power-of-two rule. scales: those of each tile, instead of any rule
 * (NULL: by rule). Writes every byte of the entry, its scales and padding,
 * and no other.
 */
void mla_cache_store(const mla_cache_rows *rows, int64_t block, int64_t offset,
                     int64_t kv_head, const double *x, const double *scales,
                     int pow2);

/* The scale of codes with this largest magnitude. */
double mla_cache_scale(const mla_cache_layout *layout, double amax, int pow2);
/* One code of a value, as a writer rounds it. */
uint32_t mla_cache_code(const mla_cache_layout *layout, double x, double scale);
/* One value of a code and its scale, as a reader of this mode rounds it. */
double mla_cache_dequant(double code, double scale, int32_t compute,
                         int32_t dequant);

/* Where an entry lies: its row, and its scales behind the rows (or NULL). */
typedef struct mla_cache_place {
  unsigned char *row, *side;
} mla_cache_place;
mla_cache_place mla_cache_find(const mla_tensor *cache,
                               const mla_cache_layout *layout, int64_t block,
                               int64_t offset, int64_t kv_head);

#endif
