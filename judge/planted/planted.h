/*
 * planted.h - a model kernel that can be wrong in every known way.
 *
 * One simple f32 backend ("planted") implements all operations for host
 * memory. With no fault it is right. With "fault=NAME" among its options it
 * makes exactly the named mistake, each a few lines at one place:
 *   - the suite is judged by it: every fault must be caught (selftest)
 *   - it explains failures: the fault that reproduces what a backend got
 *     names what the failure looks like
 * A new fault is a row in planted_list.h and an `if (FAULT(c, NAME))` where
 * the mistake happens. docs/hazards.md describes the classes.
 *
 * Options: "fault=NAME;a=INT;x=REAL;head=H;request=B". a and x are parameters
 * of the fault; head and request plant it in rows of one head or request only.
 */
#ifndef MLA_PLANTED_H
#define MLA_PLANTED_H

#include "mla/backend.h"

/* Which operations a fault shows in. */
#define PLANTED_DECODE (1u << MLA_OP_DECODE)
#define PLANTED_PREFILL (1u << MLA_OP_PREFILL)
#define PLANTED_MERGE (1u << MLA_OP_MERGE)
#define PLANTED_WRITE (1u << MLA_OP_KV_WRITE)
#define PLANTED_READ (1u << MLA_OP_KV_READ)
#define PLANTED_COPY (1u << MLA_OP_KV_COPY)
#define PLANTED_ABSORB (1u << MLA_OP_ABSORB)
#define PLANTED_Q (1u << MLA_OP_Q_ABSORB)
#define PLANTED_V (1u << MLA_OP_V_EXPAND)
#define PLANTED_MATMUL (1u << MLA_OP_MATMUL)
#define PLANTED_INDEX (1u << MLA_OP_INDEX)
#define PLANTED_MAP (1u << MLA_OP_MAP_INDICES)
#define PLANTED_ATTEND (PLANTED_DECODE | PLANTED_PREFILL)
#define PLANTED_SEES (PLANTED_ATTEND | PLANTED_INDEX)
#define PLANTED_PAGED (PLANTED_SEES | PLANTED_READ)
#define PLANTED_TABLED (PLANTED_PAGED | PLANTED_MAP)
#define PLANTED_HEADED (PLANTED_ATTEND | PLANTED_Q | PLANTED_V)
#define PLANTED_ANY (~0u)

/* How it is known again: by the values that it gives, or by traces alone (a
   crash, memory touched, runs that differ). */
#define PLANTED_SHOWS 1u
#define PLANTED_ROWS 2u    /* and row by row: it can be planted in one head */
#define PLANTED_SCRATCH 4u /* what it gives follows what lay in scratch */
#define PLANTED_FULL 8u    /* it takes sizes that profile smoke has not */
#define PLANTED_TRACES 0u

/* Which parameters are tried when a failure is explained. */
typedef enum planted_try {
  PLANTED_AS_IS,   /* the default alone */
  PLANTED_COUNTS,  /* a: 1 .. 8 */
  PLANTED_OFFSETS, /* a: -8 .. 8 */
  PLANTED_TILES,   /* a: 1 .. 256 */
  PLANTED_BITS,    /* a: 2 .. 40 */
  PLANTED_FACTORS, /* x: fitted between 1/8 and 8 */
  PLANTED_LIMITS   /* x: largest values of types, and steps between */
} planted_try;

/* X(ID, "name", "CLASS", operations, traits, try, a, x, a2, x2, "what") */
#include "planted_list.h"

typedef enum planted_fault_id {
  PLANTED_NONE = 0,
#define X(id, name, cls, ops, traits, tries, a, x, a2, x2, what) PLANTED_##id,
  PLANTED_LIST(X)
#undef X
      PLANTED_COUNT
} planted_fault_id;

typedef struct planted_fault {
  const char *name; /* "tail-nan" */
  const char *cls;  /* "TAIL-NAN": a class of docs/hazards.md */
  uint32_t ops;     /* bits 1 << mla_op */
  uint32_t traits;  /* PLANTED_SHOWS, PLANTED_ROWS */
  int32_t tries;    /* planted_try */
  int32_t a;        /* default parameters */
  double x;
  int32_t a2; /* what the self-test plants besides */
  double x2;
  const char *what; /* one line: "one row past seq_len is read" */
} planted_fault;

/* Row `id` of the table; id from 1 to PLANTED_COUNT - 1. */
const planted_fault *planted_fault_at(int32_t id);
int32_t planted_fault_find(const char *name); /* PLANTED_NONE: unknown */
/* Has it parameters of its own? */
int planted_has_variant(int32_t id);

/* A class of docs/hazards.md. */
typedef struct planted_class {
  const char *name;
  const char *what;
  const char *comes_with; /* the feature that will show it, or NULL */
} planted_class;

/* NULL past the last. */
const planted_class *planted_class_at(int32_t i);
int planted_class_known(const char *name);

/* The backend. */
const mla_backend *mla_planted_backend(uint32_t major, uint32_t minor);

/* Runs one call with a fault, outside of the vtable: to compare values. */
typedef struct planted_probe {
  int32_t fault, a;
  double x;
  const unsigned char *wanted; /* a byte for each row token * heads + head
                                  that is to be computed, or NULL: all */
  unsigned char poison;        /* of the workspace */
  const int32_t *stale_lens;   /* lengths of an earlier run, or NULL */
  int64_t prefix;              /* decode: what run_prefix is told, or 0 */
} planted_probe;

/*
 * Tensors in host memory; outputs hold what they held before the backend's
 * run. UNSUPPORTED: formats that the planted backend does not have, and
 * faults that show by traces alone.
 */
mla_status mla_planted_probe(const planted_probe *probe,
                             const mla_problem *problem,
                             const mla_limits *limits, const mla_args *args,
                             mla_error *err);

#endif
