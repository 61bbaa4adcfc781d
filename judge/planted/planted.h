/*
 * planted.h - a model kernel that can be wrong in every known way.
 *
 * One simple f32 backend ("planted") implements all operations for host
 * memory. With no fault it is right. With "fault=NAME;a=INT;x=REAL" among its
 * options it makes exactly the named mistake, each a few lines at one place:
 *   - the suite is judged by it: every fault must be caught (selftest)
 *   - it explains failures: the fault that reproduces what a backend got
 *     names what the failure looks like
 * A new fault is a row in planted_faults.c and an `if (FAULT(c, NAME))` where
 * the mistake happens. docs/hazards.md describes the classes.
 */
#ifndef MLA_PLANTED_H
#define MLA_PLANTED_H

#include "mla/backend.h"

/* X(ID, "name", "CLASS", default a, default x, "what it does wrong") */
#include "planted_list.h"

typedef enum planted_fault_id {
  PLANTED_NONE = 0,
#define X(id, name, cls, a, x, what) PLANTED_##id,
  PLANTED_LIST(X)
#undef X
      PLANTED_COUNT
} planted_fault_id;

typedef struct planted_fault {
  const char *name; /* "tail-nan" */
  const char *cls;  /* "TAIL-NAN": a class of docs/hazards.md */
  int32_t a;        /* default parameters: what the probe uses */
  double x;
  const char *what; /* one line: "one row past seq_len is read" */
} planted_fault;

/* Row `id` of the table; id from 1 to PLANTED_COUNT - 1. */
const planted_fault *planted_fault_at(int32_t id);
int32_t planted_fault_find(const char *name); /* PLANTED_NONE: unknown */

/* The backend; options "fault=NAME;a=INT;x=REAL". */
const mla_backend *mla_planted_backend(uint32_t major, uint32_t minor);

#endif
