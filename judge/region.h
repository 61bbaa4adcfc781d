/*
 * region.h - which part of an index space is bad, in words.
 *
 * Marks are collected axis by axis, "request 0, head 17, all 512 dims", and
 * in a small map.
 */
#ifndef MLA_REGION_H
#define MLA_REGION_H

#include "bad_map.h"
#include "vector.h"

typedef struct mla_region {
  const mla_vector *vector;
  int32_t slot, rank;
  unsigned char *mark[MLA_MAX_RANK]; /* mark[axis][index] */
  int64_t marks;
  mla_bad_count bad;
} mla_region;

mla_status mla_region_new(const mla_vector *v, int32_t slot, mla_region *r,
                          mla_error *err);
void mla_region_free(mla_region *r);
void mla_region_mark(mla_region *r, const int64_t *index);
/* "" when nothing was marked. */
void mla_region_describe(const mla_region *r, char *text, size_t size);

/* "token, head, dim": what the axes count. */
void mla_region_axes(const mla_region *r, char *text, size_t size);

/* What an axis of a slot counts: "head", "heads". */
const char *mla_axis_name(const mla_vector *v, int32_t slot, int32_t axis,
                          int plural);

#endif
