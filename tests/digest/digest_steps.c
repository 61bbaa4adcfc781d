/*
 * digest_steps.c - building batches, maps of ranks, compositions.
 */
#include <stdlib.h>

#include "digest_group.h"
#include "fixed_steps.h"

static void ints(const int32_t *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) digest_bits((uint64_t)(int64_t)x[i]);
}
static void longs(const int64_t *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) digest_bits((uint64_t)x[i]);
}

static void step(const mla_batch *b) {
  longs(b->positions, b->tokens);
  longs(b->slot_mapping, b->tokens);
  ints(b->query_start_loc, b->requests + 1);
  ints(b->seq_lens, b->requests);
  ints(b->block_table, b->requests * b->room.table_width);
  ints(b->order, b->requests);
  ints(b->rows, b->tokens);
  ints(b->token_ids, b->tokens);
  longs(&b->decodes, 1);
}

static void digest_batches(void) {
  digest_begin();
  for (int i = 0; i < FIXED_BATCHES; i++) {
    fixed_batch b;
    fixed_batch_new(&b, i);
    step(&b.batch);
    fixed_batch_advance(&b);
    step(&b.batch);
    fixed_batch_free(&b);
  }
  for (int64_t n = 0; n < 70000; n += 97)
    digest_bits((uint64_t)mla_num_splits(n, 19, 0));
  digest_end("batch");
}

static void ranks_of(const mla_batch *b) {
  const mla_cp_table table = {b->block_table, b->room.table_width,
                              b->room.table_width};
  int64_t slots[512];
  int32_t lens[512], starts[513];
  int32_t *ids = malloc(512 * 32 * sizeof *ids);
  if (!ids) exit(3);
  for (int32_t rank = 0; rank < 3; rank++) {
    mla_cp_map map = {3, 2, rank, b->room.block_size};
    if (mla_cp_slots(&map, b, &table, slots, NULL) != MLA_OK ||
        mla_cp_rows(&map, b, &table, 1, lens, starts, ids, NULL) != MLA_OK)
      exit(1);
    longs(slots, b->tokens);
    ints(lens, b->tokens);
    ints(ids, b->tokens * b->room.table_width);
  }
  free(ids);
}

static void digest_ranks(void) {
  digest_begin();
  for (int i = 0; i < FIXED_BATCHES; i++) {
    fixed_batch b;
    fixed_batch_new(&b, i);
    ranks_of(&b.batch);
    fixed_batch_free(&b);
  }
  digest_end("ranks");
}

void digest_steps(void) {
  digest_batches();
  digest_ranks();
  for (int i = 0; i < FIXED_COMPOSED; i++) {
    fixed_composed x;
    fixed_composed_new(&x, i);
    digest_begin();
    digest_tensor(&x.c.tensor[MLA_T_OUT]);
    digest_tensor(&x.c.tensor[MLA_T_LSE]);
    digest_end(x.name);
    fixed_composed_free(&x);
  }
}
