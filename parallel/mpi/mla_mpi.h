/*
 * mla_mpi.h - context-parallel decode over MPI (library mla_mpi).
 *
 * W ranks, H query heads. A rank projects the queries of H / W heads, and has
 * the keys that mla/context_parallel.h gives it. One call of mla_mpi_decode
 * on every rank:
 *
 *   gather   queries over heads: every rank gets all H
 *   decode   all rows and heads against the rank's own keys
 *   gather   lse of every rank's part; exchange of the parts themselves
 *   merge    this rank's heads (or all), in the order of the ranks
 *
 * The parts are merged by the backend's merge, in one order on all ranks:
 * bits do not depend on the rank that merges, nor on how messages travel.
 *
 * A rank that fails makes the call fail on all of them, with its status and
 * its sentence: before every exchange the ranks agree that all have come so
 * far. Nobody waits for one that has given up. (A rank that dies takes the
 * others with it: that is MPI's.)
 *
 * Queries and results are in host memory; caches in the device's.
 */
#ifndef MLA_MPI_H
#define MLA_MPI_H

#include <mpi.h>

#include "mla/context_parallel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mla_mpi mla_mpi;

/*
 * Collective over comm (duplicated, and so free for other use). `problem` is
 * the decode of all heads: num_heads is H, a multiple of the ranks; flags may
 * be MLA_RETURN_LSE, MLA_LSE_BASE2, MLA_HAS_SINK, MLA_SEPARATE_V and
 * MLA_BATCH_INVARIANT (what a row sees, the step says). `limits` bound the
 * step of a rank: tokens rows, max_seq_len the keys of a row that a rank has,
 * num_blocks and table_width those of the rank's cache. All ranks must give
 * the same problem and tokens.
 */
mla_status mla_mpi_create(MPI_Comm comm, mla_device *dev,
                          const mla_problem *problem, const mla_limits *limits,
                          mla_mpi **mpi, mla_error *err);
/* Collective. NULL is allowed. */
void mla_mpi_free(mla_mpi *mpi);
/* What the rank's own device promises, merge included. */
const mla_answer *mla_mpi_answer(const mla_mpi *mpi);

typedef struct mla_mpi_step {
  uint32_t size;
  int32_t all_heads; /* nonzero: every rank gets the results of all heads, bit
                        by bit the same on all of them */
  int64_t rows;      /* N, the same on all ranks */
  mla_tensor q;      /* [N,H/W,D] this rank's heads: rank * H/W and on */
  mla_tensor cache, v_cache; /* the rank's, as in decode */
  /* From mla_cp_rows: each row is a request. Host memory. */
  const int32_t *seq_lens;    /* [N] */
  const int32_t *block_table; /* [N][table_width] */
  int64_t table_width;
  mla_tensor sink; /* [H/W], or [H] with all_heads; absent without the flag */
  mla_tensor out;  /* [N,H/W,v_dim] or [N,H,v_dim] */
  mla_tensor lse;  /* [N,H/W] or [N,H]; absent without MLA_RETURN_LSE */
} mla_mpi_step;

/* Collective. On an error no rank has written its results. */
mla_status mla_mpi_decode(mla_mpi *mpi, const mla_mpi_step *step,
                          mla_error *err);

/* What mla_mpi_decode does, in order. */
typedef enum mla_mpi_stage {
  MLA_MPI_CHECK = 0,
  MLA_MPI_PACK = 1,
  MLA_MPI_DECODE = 2,
  MLA_MPI_EXCHANGE = 3,
  MLA_MPI_MERGE = 4,
  MLA_MPI_STAGES = 5
} mla_mpi_stage;

/*
 * Called on this rank as each stage begins. A status other than MLA_OK fails
 * the stage, as if the rank's own work had: to stop all ranks from one.
 */
typedef mla_status (*mla_mpi_observer)(void *context, mla_mpi_stage stage,
                                       mla_error *err);
void mla_mpi_observe(mla_mpi *mpi, mla_mpi_observer observer, void *context);

#ifdef __cplusplus
}
#endif
#endif
