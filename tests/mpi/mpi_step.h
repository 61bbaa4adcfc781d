/*
 * mpi_step.h - one decode, as one rank sees it and as all do.
 */
#ifndef MPI_STEP_H
#define MPI_STEP_H

#include "mla_mpi.h"
#include "oracle.h"

enum { STEP_REQUESTS = 4 };

/* Data of the whole follow from `seed`, the same on all ranks. */
typedef struct step_case {
  const char *name;
  int32_t requests;
  int32_t context[STEP_REQUESTS], rows[STEP_REQUESTS];
  int32_t heads_a_rank, latent, rope, page, interleave;
  int32_t dtype; /* of queries and cache; outputs too */
  int32_t causal;
  uint64_t flags; /* MLA_LSE_BASE2, MLA_HAS_SINK */
} step_case;

typedef struct mpi_step {
  const step_case *c;
  int rank, ranks;
  int64_t n, heads; /* rows; all heads */
  mla_problem problem;
  mla_limits limits;
  mla_mpi_step step; /* of the rank, of its heads */
  /* The whole, for the reference: one cache with all keys. */
  mla_tensor whole[MLA_T_COUNT];
  mla_problem whole_problem;
} mpi_step;

/* Everything is allocated; keys are written through kv_write by slots of
   mla_cp_slots. Ends the process when it cannot be made. */
void mpi_step_new(mpi_step *s, mla_device *dev, const step_case *c, int rank,
                  int ranks);
void mpi_step_free(mpi_step *s);
/* Outputs of all heads in place of the rank's own. */
void mpi_step_all_heads(mpi_step *s);
/* Outputs to bytes that show when they are not written. */
void mpi_step_poison(mpi_step *s);
int mpi_step_untouched(const mpi_step *s);

#endif
