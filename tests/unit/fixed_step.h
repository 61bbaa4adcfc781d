/*
 * fixed_step.h - a small lawful step of every operation, in host memory, for
 * tests that break it in one place.
 *
 * Sizes: N 5, B 3, W 4, NB 6, NBS 7, slots 4, copies 2, gathered 9, S 2,
 * H 2, L 8 (packed formats: 128), P 6, R 4, V 5, block 4, Lq 6, hidden 10.
 * decode       seq_lens 10 0 16, query_start_loc 0 2 2 5
 * prefill      seq_lens 2 0 3; MLA_CONTEXT: 6 3 4
 * kv_read      cu_seq_lens 0 4 4 9, seq_starts 3 0 1
 * kv_write     slot_mapping 0 -1 23 7
 * kv_copy      block_mapping 0->5, 6->1
 * block_table  used entries 5 0 3 2 by column; the others hold -7
 */
#ifndef MLA_FIXED_STEP_H
#define MLA_FIXED_STEP_H

#include "mla/mla.h"

typedef struct fixed_step {
  mla_problem problem;
  mla_limits limits;
  mla_tensor tensor[MLA_T_COUNT + 1];
  mla_args args;
  int64_t bytes[MLA_T_COUNT + 1]; /* of each tensor's allocation */
} fixed_step;

/* Every byte of outputs and caches is 0xA5. */
#define FIXED_POISON 0xA5

fixed_step *fixed_step_new(int32_t op, uint64_t flags, int32_t cache_format);
void fixed_step_free(fixed_step *step);
/* Are outputs and caches as they were made? */
int fixed_step_untouched(const fixed_step *step);

#endif
