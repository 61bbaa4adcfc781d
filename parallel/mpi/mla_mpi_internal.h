/*
 * mla_mpi_internal.h - what the files of mla_mpi share.
 */
#ifndef MLA_MPI_INTERNAL_H
#define MLA_MPI_INTERNAL_H

#include "mla_mpi.h"

/* Memory that the device can read and the host can fill. */
typedef struct mla_mpi_buffer {
  unsigned char *host;
  unsigned char *device; /* the same on host memory */
  uint64_t bytes;
} mla_mpi_buffer;

enum { MLA_MPI_SHARD, MLA_MPI_JOIN, MLA_MPI_JOIN_ALL, MLA_MPI_PLANS };

struct mla_mpi {
  MPI_Comm comm;
  int rank, ranks;
  mla_device *dev;
  int on_host;
  mla_problem problem; /* of all heads */
  mla_limits limits;
  mla_answer answer;
  mla_problem part[MLA_MPI_PLANS];
  mla_limits bounds[MLA_MPI_PLANS];
  mla_plan *plan[MLA_MPI_PLANS];
  mla_answer promise[MLA_MPI_PLANS];
  mla_mpi_buffer workspace;
  mla_mpi_buffer q;                   /* [N,H,D] */
  mla_mpi_buffer starts, lens, table; /* of rows */
  mla_mpi_buffer out, lse;            /* the rank's part, all heads */
  mla_mpi_buffer parts, part_lses;    /* [W,N,..] what is merged */
  mla_mpi_buffer sink, merged, merged_lse;
  unsigned char *send, *receive; /* packed messages */
  uint64_t message_bytes;        /* of each */
  mla_mpi_observer observer;
  void *observer_context;
};

/*
 * All ranks call it: the worst status of any, and the sentence of the first
 * rank that has it, on all.
 */
mla_status mla_mpi_agree(const mla_mpi *m, mla_status own, mla_error *err);
/* MPI's code as a status. */
mla_status mla_mpi_check(int code, const char *what, mla_error *err);

mla_status mla_mpi_buffer_new(const mla_mpi *m, mla_mpi_buffer *b,
                              uint64_t count, uint64_t each, mla_error *err);
void mla_mpi_buffer_free(const mla_mpi *m, mla_mpi_buffer *b);
/* The first `bytes`, to the device and back; both wait. */
mla_status mla_mpi_push(const mla_mpi *m, const mla_mpi_buffer *b,
                        uint64_t bytes, mla_error *err);
mla_status mla_mpi_pull(const mla_mpi *m, const mla_mpi_buffer *b,
                        uint64_t bytes, mla_error *err);

#endif
