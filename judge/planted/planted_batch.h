/*
 * planted_batch.h - a plain builder of batches that can be wrong in every
 * known way: what planted.h is to a backend.
 *
 * It builds each element by itself, straight from docs/spec.md, and shares
 * nothing with the library's. With no fault it is right, and so judges that
 * one; with a fault it makes exactly this mistake.
 */
#ifndef MLA_PLANTED_BATCH_H
#define MLA_PLANTED_BATCH_H

#include "batch_case.h"

/* X(ID, "name", "CLASS", least, most, a, a2, "what") */
#include "planted_batch_list.h"

typedef enum planted_batch_id {
  PLANTED_BATCH_NONE = 0,
#define X(id, name, cls, least, most, a, a2, what) PLANTED_BATCH_##id,
  PLANTED_BATCH_LIST(X)
#undef X
      PLANTED_BATCH_COUNT
} planted_batch_id;

typedef struct planted_batch_fault {
  const char *name;    /* "batch-pad-slot" */
  const char *cls;     /* a class of docs/hazards.md */
  int32_t least, most; /* values of `a` that are tried to explain a failure */
  int32_t a, a2;       /* the default, and what the self-test plants besides */
  const char *what;
} planted_batch_fault;

/* Row `id`, from 1 to PLANTED_BATCH_COUNT - 1. */
const planted_batch_fault *planted_batch_at(int32_t id);

/* The arrays of all steps of a case. */
void planted_batch_build(const mla_batch_case *c, int32_t fault, int32_t a,
                         mla_batch_answer *to);

#endif
