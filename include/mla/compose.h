/*
 * mla/compose.h - larger operations that any backend gets for free from its
 * decode, prefill and merge, with the results of the one operation they stand
 * for:
 *
 *   MLA_CASCADE          decode of requests that begin with the same cached
 *                        keys: these are attended once for all rows, the rest
 *                        request by request, and the two are merged
 *   MLA_CHUNKED_PREFILL  prefill with a context in bounded memory: chunk by
 *                        chunk it is gathered, up-projected and attended, and
 *                        merged to what the new tokens see of each other
 *   MLA_SHARDED          decode in `ranks` shards of the keys on one device:
 *                        context parallelism without the other devices
 *
 * As with a backend's own operations: ask, create, run; the caller owns all
 * memory, workspace is sized by the answer, and run neither allocates nor
 * waits. Data stay in the device's memory; what a run must know of the step
 * the host tells it (mla_step).
 *
 *   mla_composition what = {sizeof what, MLA_CASCADE, 0, 0, 0, 0};
 *   mla_compose(dev, &what, &problem, &limits, &composed, &err);
 *   mla_composed_run(composed, &args, &step, workspace, bytes, NULL, &err);
 */
#ifndef MLA_COMPOSE_H
#define MLA_COMPOSE_H

#include "mla/mla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mla_composition_kind {
  MLA_CASCADE = 1,
  MLA_CHUNKED_PREFILL = 2,
  MLA_SHARDED = 3
} mla_composition_kind;

typedef struct mla_composition {
  uint32_t size;
  int32_t kind;       /* mla_composition_kind */
  int32_t parts_only; /* nonzero: compose even where the backend does the
                         whole itself (it says yes to prefill with context, to
                         decode with MLA_COMMON_PREFIX) */
  int32_t ranks;      /* MLA_SHARDED: shards, >= 1 */
  int32_t interleave; /* MLA_SHARDED: consecutive positions of a shard, >= 1 */
  int32_t reserved;
} mla_composition;

/* What the host knows of a step. Host memory; borrowed for the call. */
typedef struct mla_step {
  uint32_t size;
  uint32_t reserved;
  int64_t requests;               /* B */
  const int32_t *query_start_loc; /* [B+1] */
  const int32_t *seq_lens;        /* [B] */
  const int32_t *block_table;     /* MLA_SHARDED: [B][W], else not read */
  int64_t table_stride;           /* elements from row to row of it */
  int64_t prefix_len; /* MLA_CASCADE: keys that all requests with a row have
                         in common, in the same blocks; what exceeds whole
                         blocks is read per request */
} mla_step;

typedef struct mla_composed mla_composed; /* a planned composition */

/*
 * `problem` and `limits` are those of the one operation: decode for
 * MLA_CASCADE and MLA_SHARDED, prefill with MLA_CONTEXT for
 * MLA_CHUNKED_PREFILL, whose chunks are of limits.context_chunk tokens (0:
 * 1024 at most). The answer is a backend's: yes with the workspace, the
 * weakest determinism and the coarsest arithmetic of its parts, or no with
 * the part that refuses. A cascade never is batch-invariant.
 */
MLA_API mla_status mla_compose_query(mla_device *dev,
                                     const mla_composition *what,
                                     const mla_problem *problem,
                                     const mla_limits *limits,
                                     mla_answer *answer, mla_error *err);
/* A "no" is UNSUPPORTED with the reason. Freed before the device is closed. */
MLA_API mla_status mla_compose(mla_device *dev, const mla_composition *what,
                               const mla_problem *problem,
                               const mla_limits *limits,
                               mla_composed **composed, mla_error *err);
MLA_API const mla_answer *mla_composed_answer(const mla_composed *composed);

/*
 * Checks as mla_run does; args are those of the one operation. `step` may be
 * NULL when the device's memory is the host's and there is no prefix: the
 * index tensors are then read in place. Else its lengths are what counts.
 * One run of a composition at a time: the stream must have passed it before
 * the next (it holds the small arrays that are on their way to the device).
 */
MLA_API mla_status mla_composed_run(mla_composed *composed,
                                    const mla_args *args, const mla_step *step,
                                    void *workspace, uint64_t workspace_bytes,
                                    mla_stream stream, mla_error *err);
MLA_API void mla_composed_free(mla_composed *composed); /* NULL is allowed */

/*
 * The longest prefix that MLA_CASCADE can use in a step: whole blocks that
 * all requests with a row have in common and that every row sees. 0: none,
 * or fewer than two requests have a row.
 */
MLA_API int64_t mla_common_prefix(const mla_step *step, int64_t table_width,
                                  int32_t block_size, int causal);

#ifdef __cplusplus
}
#endif
#endif
