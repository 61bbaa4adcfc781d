/*
 * invalid.h - calls that must be refused, and how.
 *
 * An invalid case is a valid one with one change:
 *
 *   problem.scale=0   limits.requests=0     members, by number or name
 *   q.dtype=f32  q.rank=2  q.shape[1]=3  q.stride[0]=7
 *   q.data=null  q.data=1                   absent; or that many bytes further
 *   seq_lens[0]=-1  block_table[0,1]=99     an element of an index tensor
 *   workspace=1                             bytes fewer than asked for
 *
 * The call must return a status, with a sentence whose field is named, and
 * leave every output as it was. Both follow from what was changed, unless
 * ":STATUS" or ":STATUS:FIELD" stands behind it.
 */
#ifndef MLA_INVALID_H
#define MLA_INVALID_H

#include "judge.h"

typedef struct mla_change {
  char path[64];   /* "seq_lens[0]" */
  char object[40]; /* "seq_lens", "problem", "limits", "workspace" */
  char member[40]; /* "scale", "shape", "data" or "" */
  char value[64];
  int indices;
  int64_t index[2];
  int32_t status; /* mla_status to be returned */
  char field[32];
} mla_change;

/* What stands behind "!" in a case's name. */
mla_status mla_change_parse(const char *text, mla_change *change,
                            mla_error *err);

/* v is the valid vector. */
void mla_judge_invalid(mla_device *device, const mla_vector *v,
                       const mla_change *change, mla_verdict *verdict);

#endif
