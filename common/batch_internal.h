/*
 * batch_internal.h - what the files of batch building share.
 */
#ifndef MLA_BATCH_INTERNAL_H
#define MLA_BATCH_INTERNAL_H

#include "mla/batch.h"

static inline int64_t mla_batch_blocks(const mla_batch *batch, int64_t length) {
  int64_t size = batch->room.block_size;
  return length / size + (length % size != 0);
}

static inline int32_t mla_batch_rows_of(const mla_batch *batch, int64_t place) {
  return batch->query_start_loc[place + 1] - batch->query_start_loc[place];
}

static inline int32_t *mla_batch_table(const mla_batch *batch, int64_t place) {
  return batch->block_table + place * batch->room.table_width;
}

/* NULL or not laid out: INVALID_ARGUMENT. */
mla_status mla_batch_check(const mla_batch *batch, mla_error *err);

/*
 * Positions and slots of the rows of a place, whose query_start_loc, seq_len
 * and table are set; `rows` and token_ids are the caller's to fill.
 */
void mla_batch_fill_rows(mla_batch *batch, int64_t place);
/* Everything past the live requests and rows, and the counts that follow. */
void mla_batch_fill_padding(mla_batch *batch);
/* How far requests of at most decode_threshold rows reach from the front. */
void mla_batch_count_decodes(mla_batch *batch);

#endif
