/*
 * mla/batch.h - from the requests of a step to the arrays that operations
 * take. Host code only: it allocates nothing, touches no device and no data.
 *
 *   mla_batch batch;
 *   mla_batch_room room = {sizeof room, 64, 64, 8192, 128};
 *   void *memory = malloc(mla_batch_bytes(&room));
 *   mla_batch_place(&batch, &room, memory, bytes, &err);    once
 *   mla_batch_build(&batch, &input, &err);                  a new step
 *   mla_batch_pad(&batch, 16, 64, &err);                    of a fixed size
 *   mla_batch_advance(&batch, &next, &err);                 one step further
 *
 * A step has B requests, whose tokens are packed without padding: rows
 * query_start_loc[b] .. query_start_loc[b+1]-1 are those of request b, at
 * positions context_len .. context_len + query_len - 1. slot = block id *
 * block_size + offset (docs/spec.md, sections 1 to 3; docs/batch.md).
 *
 * Every function checks all it is given before it writes: what returns a
 * status other than MLA_OK has changed nothing but `err`, which has a
 * sentence with the field, its value and the limit. One batch serves one
 * thread at a time.
 */
#ifndef MLA_BATCH_H
#define MLA_BATCH_H

#include "mla/mla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- memory */

/* How large steps may become. */
typedef struct mla_batch_room {
  uint32_t size;
  int32_t block_size;  /* entries of a cache block; >= 1 */
  int64_t requests;    /* B at most, padding included; >= 1 */
  int64_t tokens;      /* rows at most, padding included; 1 to 2^31 - 1 */
  int64_t table_width; /* blocks of one request at most; >= 1 */
} mla_batch_room;

/*
 * A step. The arrays lie in the memory that the caller gave to
 * mla_batch_place, and the members are read only for all but this library.
 * The struct grows only with a new major.
 * A "place" is a request's index in the batch: 0 .. requests - 1, padding
 * last.
 */
typedef struct mla_batch {
  uint32_t size;
  int32_t pad_block; /* unused entries of block_table; 0 unless set here
                        before mla_batch_build */
  mla_batch_room room;
  int64_t num_blocks; /* of the cache */

  int64_t requests, tokens;           /* of the launch, padding included */
  int64_t live_requests, live_tokens; /* without it */
  int64_t pad_requests, pad_tokens;   /* what mla_batch_pad asked; 0: none */
  int32_t decode_threshold;           /* 0: the order of the input is kept */
  int32_t reserved;
  int64_t decodes; /* places [0, decodes) have at most decode_threshold rows:
                      all of that kind after build */
  int64_t decode_tokens; /* their rows, the first of the step */

  int64_t *positions;       /* [tokens]; padding 0 */
  int64_t *slot_mapping;    /* [tokens]; padding -1 */
  int32_t *query_start_loc; /* [requests + 1]; padding repeats the last */
  int32_t *seq_lens;        /* [requests], this step's tokens included;
                               padding 0 */
  int32_t *block_table;     /* [requests][room.table_width] */
  int32_t *block_counts;    /* [requests], entries of the row that are used */
  int32_t *order;           /* [requests]: the input's request at this place;
                               padding -1 */
  int32_t *rows;            /* [tokens]: the row of the input's packed tokens
                               that is this row, padding -1; after advance
                               the row itself */
  int32_t *token_ids;       /* [tokens]; 0 without any, and in padding */
} mla_batch;

/* Bytes that a step of this room needs; 0: a member is out of its range, or
   the product overflows. The memory is aligned as malloc's. */
MLA_API uint64_t mla_batch_bytes(const mla_batch_room *room);
/* Lays the arrays out in `memory`; an empty step. WORKSPACE_TOO_SMALL: fewer
   bytes than mla_batch_bytes says. */
MLA_API mla_status mla_batch_place(mla_batch *batch, const mla_batch_room *room,
                                   void *memory, uint64_t bytes,
                                   mla_error *err);

/* ---------------------------------------------------------------- a step */

typedef struct mla_batch_input {
  uint32_t size;
  int32_t decode_threshold;    /* requests of at most so many rows come first,
                                  in the input's order; 0: nothing moves */
  int64_t requests;            /* B, 0 allowed */
  int64_t num_blocks;          /* of the cache: ids are below it */
  const int32_t *context_lens; /* [B] entries cached before the step */
  const int32_t *query_lens;   /* [B] tokens of the step, 0 allowed */
  const int32_t *block_ids;    /* the requests' block lists, one by one */
  const int64_t *block_starts; /* [B+1] where each begins in block_ids */
  const int32_t *token_ids;    /* packed in the input's order, or NULL */
} mla_batch_input;

/* Lists may be longer than the step needs. Padding is gone afterwards. */
MLA_API mla_status mla_batch_build(mla_batch *batch,
                                   const mla_batch_input *input,
                                   mla_error *err);

/*
 * Makes the launch one of `requests` and `tokens`, at least the live ones and
 * at most the room: requests without a row and rows without a request. It
 * stays so through mla_batch_advance.
 */
MLA_API mla_status mla_batch_pad(mla_batch *batch, int64_t requests,
                                 int64_t tokens, mla_error *err);

/* More blocks for the request at a live place. */
MLA_API mla_status mla_batch_extend(mla_batch *batch, int64_t place,
                                    const int32_t *block_ids, int64_t count,
                                    mla_error *err);

/* What follows a step. By place. */
typedef struct mla_batch_next {
  uint32_t size;
  uint32_t reserved;
  int64_t requests;          /* the first so many go on, at most the live ones;
                                the others end, and are padding if there is
                                any */
  const int32_t *kept;       /* [requests] rows of the last step, from its
                                first, that stay in the cache (a draft may be
                                rejected); NULL: all */
  const int32_t *query_lens; /* [requests] rows of the next step; NULL: 1 */
  const int32_t *sampled;    /* token ids of the next step's rows, packed; or
                                NULL: all 0 */
} mla_batch_next;

/*
 * The next step in place: contexts grow by what was kept; prefills become
 * decodes. Places do not change, so `decodes` may end before a decode that
 * stands behind a prefill. Fails when a list lacks a block (extend it first)
 * or when the step outgrows its padding.
 */
MLA_API mla_status mla_batch_advance(mla_batch *batch,
                                     const mla_batch_next *next,
                                     mla_error *err);

/* lens[tokens]: keys that each row sees; causal: seq_len - query_len + row +
   1; else seq_len. Padding 0. */
MLA_API void mla_batch_row_lens(const mla_batch *batch, int causal,
                                int32_t *lens);

/* The index tensors of decode, prefill and kv_write that the batch has, as
   views of its arrays: slot_mapping, block_table, seq_lens, query_start_loc.
   tensor[MLA_T_COUNT]; the others are left alone. */
MLA_API void mla_batch_tensors(const mla_batch *batch, mla_tensor *tensor);

/* ------------------------------------------------------ splits and limits */

/*
 * Parts in which the keys of a request are attended: the next power of two of
 * ceil(max_seq_len / 512), at most twice the compute units, at least 1; 1
 * when a row's bits must not depend on its mates. Never decreases with
 * max_seq_len.
 */
MLA_API int32_t mla_num_splits(int64_t max_seq_len, int32_t compute_units,
                               int batch_invariant);

/* The size of a step, or of the largest step to come. */
typedef struct mla_batch_bounds {
  uint32_t size;
  int32_t compute_units;   /* mla_device_info */
  int32_t batch_invariant; /* nonzero: one split */
  int32_t reserved;
  int64_t requests, tokens; /* padding included */
  int64_t max_query_len, max_seq_len;
  int64_t num_blocks, table_width;
} mla_batch_bounds;

/* The bounds of this very step. */
MLA_API mla_batch_bounds mla_batch_measure(const mla_batch *batch,
                                           int32_t compute_units,
                                           int batch_invariant);
/*
 * Limits for query and plan. The one way both to reserve (bounds of the
 * largest step) and to run (bounds of the step): splits follow from
 * max_seq_len by mla_num_splits, so that no step within the bounds asks for
 * more parts than were reserved. Zeros in a step's bounds count as 1.
 */
MLA_API mla_status mla_batch_limits(const mla_batch_bounds *bounds,
                                    mla_limits *limits, mla_error *err);

#ifdef __cplusplus
}
#endif
#endif
