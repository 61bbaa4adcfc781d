/*
 * args_check.h - the parts of problem_check.h, for each other.
 */
#ifndef MLA_ARGS_CHECK_H
#define MLA_ARGS_CHECK_H

#include "op_table.h"

/* What the tensors of a call say about the free symbols. */
typedef struct mla_dims {
  int64_t value[MLA_S_COUNT]; /* -1: nobody has said */
  int8_t slot[MLA_S_COUNT];   /* who said so first */
} mla_dims;

/* A tensor of the call, also when it is empty and without data; else NULL. */
const mla_tensor *mla_given(const mla_args *args, int slot);

/* "MLA_CAUSAL": the lowest of the flags. */
const char *mla_flag_name(uint64_t flags);

/*
 * No tensor's bytes overflow, taking free symbols from the array (indexed by
 * mla_sym) or as 1 without one.
 */
mla_status mla_products_check(const mla_problem *problem,
                              const int64_t *free_value, mla_error *err);

/* Scales of caches and weights: scale_check.c. */
mla_status mla_scales_check(const mla_problem *problem, mla_error *err);

/* Strides, overlap, extent and address of one tensor of the right shape. */
mla_status mla_layout_check(const mla_slot_spec *slot,
                            const mla_problem *problem,
                            const mla_answer *answer, const mla_tensor *tensor,
                            mla_error *err);

/* Bytes that the address of a slot's tensor is a multiple of; what a backend
   asks for beyond its elements' is in the answer, which may be NULL. */
uint64_t mla_slot_alignment(const mla_slot_spec *slot,
                            const mla_problem *problem,
                            const mla_answer *answer);

/* Contents of the index tensors, in host memory, whose shapes passed. */
mla_status mla_contents_check(const mla_problem *problem,
                              const mla_limits *limits, const mla_args *args,
                              const mla_dims *dims, mla_error *err);

/* query_start_loc and seq_lens as plain arrays of B + 1 and B entries;
   tokens: the rows there are. */
mla_status mla_lengths_check(const mla_problem *problem,
                             const mla_limits *limits,
                             const int32_t *query_start_loc,
                             const int32_t *seq_lens, int64_t requests,
                             int64_t tokens, mla_error *err);

/* query_start_loc alone, where an operation has no seq_lens. */
mla_status mla_starts_check(const mla_limits *limits,
                            const int32_t *query_start_loc, int64_t requests,
                            int64_t tokens, mla_error *err);

/* args_check_sparse.c: the lengths of sparse decode's lists; that index's
   logits have room for every position. */
mla_status mla_lists_check(const mla_problem *problem, const mla_args *args,
                           mla_error *err);
mla_status mla_logits_check(const mla_args *args, mla_error *err);

#endif
