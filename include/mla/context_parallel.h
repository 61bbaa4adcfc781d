/*
 * mla/context_parallel.h - the keys of a request spread over ranks.
 *
 * W ranks, interleave I: position j lives on rank (j / I) % W, there at local
 * index (j / (I * W)) * I + j % I. Each rank writes its own keys into its own
 * cache, decodes all heads against them, and the parts are merged by lse.
 *
 * A row that sees n keys sees mla_cp_local_len(n) of a rank's, which is not
 * the rank's length less what follows: with several rows a request each row
 * becomes a request of its own (mla_cp_rows). Host code, without allocation.
 *
 * Where interleave divides block_size, one list of block ids can serve all
 * ranks: build the batch (mla/batch.h) with blocks of block_size * ranks
 * positions; its k-th block is then the k-th block of every rank's cache.
 */
#ifndef MLA_CONTEXT_PARALLEL_H
#define MLA_CONTEXT_PARALLEL_H

#include "mla/batch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mla_cp_map {
  int32_t ranks;      /* W, >= 1 */
  int32_t interleave; /* I, >= 1 */
  int32_t rank;       /* 0 .. W - 1 */
  int32_t block_size; /* entries of a block of the rank's cache */
} mla_cp_map;

/* INVALID_ARGUMENT with the member that is out of its range. */
MLA_API mla_status mla_cp_check(const mla_cp_map *map, mla_error *err);

/* Of the first n positions, how many live on the rank:
   floor(n / (I * W)) * I + clamp(n mod (I * W) - rank * I, 0, I). */
MLA_API int64_t mla_cp_local_len(const mla_cp_map *map, int64_t n);
/* The rank of a position, and its index there. */
MLA_API int32_t mla_cp_rank_of(const mla_cp_map *map, int64_t position);
MLA_API int64_t mla_cp_local_index(const mla_cp_map *map, int64_t position);
/* The position of the rank's local index. */
MLA_API int64_t mla_cp_position(const mla_cp_map *map, int64_t local_index);

/* A rank's blocks: row b, of the request at place b, holds the ids of its
   blocks in order. */
typedef struct mla_cp_table {
  const int32_t *block_ids;
  int64_t stride; /* elements from row to row */
  int64_t width;  /* ids in a row */
} mla_cp_table;

/*
 * slots[batch->tokens]: where this rank writes the tokens of a step; -1 for
 * tokens of other ranks and for padding. The batch's positions count, its
 * own table and slots do not. INVALID_ARGUMENT: a row is too short.
 */
MLA_API mla_status mla_cp_slots(const mla_cp_map *map, const mla_batch *batch,
                                const mla_cp_table *table, int64_t *slots,
                                mla_error *err);

/*
 * The step as this rank decodes it, each row a request of one row without a
 * mask: seq_lens[tokens], query_start_loc[tokens + 1] and block_table[tokens]
 * [table->width]. Padding rows have length 0, and ids of 0. Columns past what
 * a row sees are copied as they are.
 */
MLA_API mla_status mla_cp_rows(const mla_cp_map *map, const mla_batch *batch,
                               const mla_cp_table *table, int causal,
                               int32_t *seq_lens, int32_t *query_start_loc,
                               int32_t *block_table, mla_error *err);

#ifdef __cplusplus
}
#endif
#endif
