/*
 * cpu_prefill.h - what prefill's files share: cpu_prefill.c lays out memory,
 * forms waves and up-projects; cpu_prefill_attend.c attends;
 * cpu_prefill_tiles.c has both where a matrix unit multiplies bf16.
 */
#ifndef MLA_CPU_PREFILL_H
#define MLA_CPU_PREFILL_H

#include "cpu_attend.h"
#include "cpu_entry.h"
#include "cpu_parallel.h"
#include "cpu_tiles.h"

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
  /* By tiles, instead of those: [capacity][ld16_latent] with zeros behind
     latents; [capacity][R]; [heads][panels of W_UK and W_UV]; [heads][capacity]
     [ld16_key] with zeros behind keys; [heads] of V * capacity, as
     cpu_kernels.h has values. */
  uint16_t *latent16, *rope16, *weight16, *key16, *value16;
  int64_t ld16_latent, ld16_key;
  float *state; /* [heads][panels of a request] parts */
  int64_t state_panels;
  int by_tiles;
  mla_cpu_progress *progress; /* [heads] */
  mla_cpu_chunk *wave;
  int64_t chunks, tokens, tasks; /* of the wave; tasks of one head */
  int64_t first_head, group;     /* the current heads */
  unsigned char *scratch;
  uint64_t scratch_bytes;
} mla_cpu_prefill;

/* What one thread works in. */
typedef struct mla_cpu_prefill_scratch {
  mla_cpu_tile tile;
  float *parts;        /* of the tile */
  float *rows;         /* [LANES][max(L, P + R)] on the way to a panel */
  float *panel;        /* a few times [L][LANES] of weights */
  float *product;      /* [BLOCK][LANES] */
  float *line;         /* [V] */
  mla_cpu_tiles tiles; /* instead of rows, panel, product */
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

/* ------------------------------------------------------------- by tiles */

void mla_cpu_prefill_tiles_take(mla_cpu_arena *arena, mla_cpu_prefill *f);

/* Row `at` of the buffers from where they lie; both NULL: zeros. */
void mla_cpu_prefill_tiles_gather(const mla_cpu_prefill *f, int64_t at,
                                  const uint16_t *latent, const uint16_t *rope);

/* From latents to attention, head by head of the group. */
void mla_cpu_prefill_tiles_run(mla_cpu_prefill *f);

/* A panel's queries from its rows. */
void mla_cpu_prefill_tiles_queries(const mla_cpu_prefill *f, int panel,
                                   const uint16_t *const *rows,
                                   mla_cpu_prefill_scratch *s);

/* Feeds keys of a chunk before `end` to the tile's parts. */
void mla_cpu_prefill_tiles_attend(const mla_cpu_prefill *f,
                                  const mla_cpu_chunk *k, int64_t head,
                                  int64_t end, mla_cpu_prefill_scratch *s);

#endif
