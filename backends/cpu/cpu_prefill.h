/*
 * cpu_prefill.h - what prefill's files share: cpu_prefill.c lays out memory,
 * forms waves and up-projects; cpu_prefill_attend.c attends.
 */
#ifndef MLA_CPU_PREFILL_H
#define MLA_CPU_PREFILL_H

#include "cpu_attend.h"
#include "cpu_entry.h"

#define MLA_CPU_PREFILL_PANELS 8 /* of a tile: 128 query tokens of one head */

/* A chunk of a request in the current wave. */
typedef struct mla_cpu_chunk {
  int64_t first, count; /* keys of the request */
  int64_t at;           /* row in the buffers */
  int64_t task;         /* its first attention task of a head */
  int64_t query, length, context;
  int32_t request;
  int32_t last; /* nonzero: the request's last chunk */
} mla_cpu_chunk;

typedef struct mla_cpu_prefill {
  const mla_cpu_context *c;
  const mla_tensor *q, *kv_c, *k_pe, *weight, *cache, *table, *seq_lens,
      *starts, *sink, *out, *lse;
  mla_cpu_entries entries; /* of the context, where they have scales */
  int64_t capacity;        /* tokens of a wave */
  int64_t heads;           /* of a group, at most */
  int64_t ld_latent, ld_rope, ld_kv;
  float *latent, *rope; /* [capacity][ld] */
  float *kv;            /* [heads][capacity][ld_kv]: P + R of key, V of value */
  float *state;         /* [heads][panels of a request] parts */
  int64_t state_panels;
  mla_cpu_chunk *wave;
  int64_t chunks, tokens, tasks; /* of the wave; tasks of one head */
  int64_t first_head, group;     /* the current heads */
  unsigned char *scratch;
  uint64_t scratch_bytes;
} mla_cpu_prefill;

/* What one thread works in. */
typedef struct mla_cpu_prefill_scratch {
  mla_cpu_tile tile;
  float *parts;   /* of the tile */
  float *rows;    /* [LANES][max(L, P + R)] on the way to a panel */
  float *panel;   /* a few times [L][LANES] of weights */
  float *product; /* [BLOCK][LANES] */
  float *line;    /* [V] */
} mla_cpu_prefill_scratch;

mla_cpu_prefill_scratch mla_cpu_prefill_scratch_of(const mla_cpu_prefill *f,
                                                   int thread);

/* Tiles of a request's query tokens. */
int64_t mla_cpu_prefill_tiles(int64_t query);

/* `width` elements at an offset, in f32. */
void mla_cpu_prefill_load(const mla_cpu_prefill *f, const mla_tensor *t,
                          int64_t offset, int64_t width, float *to);

/* An mla_cpu_task_fn on an mla_cpu_prefill: one tile of queries of one head of
   the group against one chunk of the wave. */
void mla_cpu_prefill_attend(void *state, int64_t index, int thread);

#endif
