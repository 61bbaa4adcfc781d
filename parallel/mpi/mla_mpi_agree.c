/*
 * mla_mpi_agree.c - one status for all ranks.
 */
#include <string.h>

#include "error.h"
#include "mla_mpi_internal.h"

mla_status mla_mpi_check(int code, const char *what, mla_error *err) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (code == MPI_SUCCESS) return MLA_OK;
  MPI_Error_string(code, text, &length);
  return mla_fail(err, MLA_DEVICE_ERROR, "mpi", "%s fails: %.150s", what, text);
}

/* The sentence of rank `who`, on all. */
static void share(const mla_mpi *m, int who, mla_status status,
                  const mla_error *own, mla_error *err) {
  struct {
    char field[sizeof own->field];
    char message[sizeof own->message];
  } said;
  memset(&said, 0, sizeof said);
  if (m->rank == who) {
    memcpy(said.field, own->field, sizeof said.field);
    memcpy(said.message, own->message, sizeof said.message);
  }
  MPI_Bcast(&said, (int)sizeof said, MPI_BYTE, who, m->comm);
  said.field[sizeof said.field - 1] = 0;
  said.message[sizeof said.message - 1] = 0;
  mla_fail(err, status, said.field, "rank %d: %s", who,
           said.message[0] ? said.message : mla_status_name(status));
}

mla_status mla_mpi_agree(const mla_mpi *m, mla_status own, mla_error *err) {
  struct {
    int status, rank;
  } mine = {(int)own, m->rank}, worst = {0, 0};
  mla_error kept = mla_error_init();
  if (err) {
    memcpy(kept.field, err->field, sizeof kept.field);
    memcpy(kept.message, err->message, sizeof kept.message);
  }
  int code = MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, m->comm);
  if (code != MPI_SUCCESS) return mla_mpi_check(code, "agreeing", err);
  if (worst.status == MLA_OK) return MLA_OK;
  share(m, worst.rank, (mla_status)worst.status, &kept, err);
  return (mla_status)worst.status;
}
