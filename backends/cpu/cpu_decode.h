/*
 * cpu_decode.h - what decode's files share: cpu_decode.c lays out memory and
 * shares out the work; cpu_decode_rows.c brings queries in and rows out;
 * cpu_decode_keys.c feeds keys of the cache to a tile; cpu_decode_fold.c makes
 * one of the parts of a request's splits.
 */
#ifndef MLA_CPU_DECODE_H
#define MLA_CPU_DECODE_H

#include "cpu_attend.h"
#include "cpu_codes.h"
#include "cpu_entry.h"
#include "cpu_rows.h"
#include "cpu_schedule.h"
#include "cpu_tiles.h"

/* What one thread works in. */
typedef struct mla_cpu_decode_scratch {
  mla_cpu_tile tile;
  mla_cpu_tiles tiles;  /* where a matrix unit serves; k to rows absent */
  mla_cpu_rows few;     /* where rows walk along the keys; k and v absent */
  mla_cpu_codes codes;  /* where scores come from codes; k absent */
  float *k, *v;         /* a block; v is k where values are part of keys */
  int64_t k_ld, v_ld;   /* row strides, in floats */
  float *whole, *split; /* parts of all panels: of all splits, of one */
  float *rows;       /* [MLA_CPU_LANES][width]: queries on the way to a panel */
  float *line;       /* [v_dim] */
  float *a, *b;      /* [splits][MLA_CPU_LANES]: of a fold of tiles */
  const float **acc; /* [splits] */
} mla_cpu_decode_scratch;

typedef struct mla_cpu_decode {
  const mla_cpu_context *c;
  const mla_tensor *q, *cache, *v_cache, *table, *seq_lens, *starts, *sink,
      *out, *lse;
  mla_cpu_entries k_entries, v_entries; /* where entries have scales */
  mla_cpu_schedule schedule;
  int far; /* a matrix unit's keys are fetched ahead */
  unsigned char *scratch;
  uint64_t scratch_bytes;
} mla_cpu_decode;

mla_cpu_decode_scratch mla_cpu_decode_scratch_of(const mla_cpu_decode *d,
                                                 int thread);

/* ------------------------------------------------------------------- rows */

/* A tile's queries, and how far each sees. Lanes without a row are copies of
   the last one that has: they change neither what is skipped nor masked. */
void mla_cpu_decode_queries(const mla_cpu_decode *d, const mla_cpu_unit *u,
                            mla_cpu_decode_scratch *s);

/* Writes `count` numbers of each row of a panel from the first on. */
void mla_cpu_decode_write(const mla_cpu_decode *d, const mla_cpu_unit *u,
                          int panel, mla_cpu_part part, int64_t first,
                          int64_t count, float *line);

/* ------------------------------------------------------------------- keys */

/* Computes split k of the unit into parts, one a panel. */
void mla_cpu_decode_split(const mla_cpu_decode *d, const mla_cpu_unit *u,
                          int64_t k, float *parts, mla_cpu_decode_scratch *s);

/* ------------------------------------------------------------------- fold */

/* part := part and other, of one panel; and a whole part to its rows. */
void mla_cpu_decode_fold_panel(const mla_cpu_decode *d, mla_cpu_part part,
                               mla_cpu_part other);
void mla_cpu_decode_write_panel(const mla_cpu_decode *d, const mla_cpu_unit *u,
                                int panel, mla_cpu_part part,
                                mla_cpu_decode_scratch *s);

/* Where the part of a shared unit's split and panel waits. */
float *mla_cpu_decode_slot(const mla_cpu_decode *d, const mla_cpu_unit *u,
                           int64_t split, int64_t panel);

/* The tasks that fold the shared units; one of them, an mla_cpu_task_fn on an
   mla_cpu_decode. */
int64_t mla_cpu_decode_folds(const mla_cpu_decode *d);
void mla_cpu_decode_fold(void *state, int64_t index, int thread);

#endif
