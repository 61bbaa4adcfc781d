/*
 * verdict.h - what the judge found out about one vector.
 *
 * Plain data without pointers, so that it can pass from a child process.
 */
#ifndef MLA_VERDICT_H
#define MLA_VERDICT_H

#include "bad_map.h"
#include "mla/mla.h"

typedef enum mla_verdict_kind {
  MLA_VERDICT_PASS = 0,
  MLA_VERDICT_FAIL = 1,
  MLA_VERDICT_UNSUPPORTED = 2, /* the backend said no, with a reason */
  MLA_VERDICT_ERROR = 3,       /* could not be judged: no memory, no device */
  MLA_VERDICT_BAD_VECTOR = 4   /* the vector contradicts the reference */
} mla_verdict_kind;

/* What the bits of equal calls follow, though they must not. */
typedef enum mla_follows {
  MLA_FOLLOWS_NOTHING = 0,
  MLA_FOLLOWS_UNUSED,    /* page tails, unused pages, padding */
  MLA_FOLLOWS_ADDRESS,   /* where the tensors lie */
  MLA_FOLLOWS_ALIGNMENT, /* and are right at multiples of 256 bytes */
  MLA_FOLLOWS_LEFT,      /* what a plan's later runs find in the workspace */
  MLA_FOLLOWS_RUNS       /* whether a plan ran before */
} mla_follows;

typedef enum mla_death {
  MLA_DEATH_NONE = 0,
  MLA_DEATH_SIGNAL,
  MLA_DEATH_TIMEOUT, /* it was killed */
  MLA_DEATH_EXIT     /* it ended by itself, without a verdict */
} mla_death;

/* One output of a call. */
typedef struct mla_output_verdict {
  int32_t slot;
  int32_t compare;    /* mla_compare */
  int64_t checked;    /* values (or bytes) compared */
  int64_t elements;   /* that must be written */
  int64_t bad;        /* of those checked: over budget, not equal */
  int64_t unwritten;  /* still hold the poison */
  int64_t not_finite; /* NaN or infinite where nobody expects it */
  double worst;       /* error / budget; infinite for a NaN or a wrong bit */
  double max_abs, max_rel, rel_l2;
  int32_t rank;
  int64_t index[MLA_MAX_RANK]; /* of the worst value */
  double expected, got, budget;
  int64_t shape[MLA_MAX_RANK]; /* of the tensor */
  char axes[64];               /* what its axes count: "token, head, dim" */
  mla_bad_map map;             /* of the bad and the unwritten */
  uint64_t digest;             /* of what the backend wrote (output_digest.h) */
  char at[160];                /* the worst, in words */
  char where[240];             /* of the bad ones, in words */
  char outside[160];           /* bytes changed that are no output; "" */
} mla_output_verdict;

/* What a failure looks like: a class of docs/hazards.md (explain.h). */
typedef struct mla_look {
  char cls[24];   /* "TAIL-NAN"; "" when nothing fits */
  char also[24];  /* another class that fits as well, or "" */
  char fault[32]; /* the planted fault that reproduces it, or "" */
  char what[120]; /* "a rows past seq_len are read" */
  int32_t a;      /* its parameters */
  double x;
  int64_t reproduced; /* of the wrong values looked at */
  int64_t of;         /* 0: known by traces, not by values */
} mla_look;

/* With another thread (crowd.c) a plan gives something else, or fails. */
typedef enum mla_crowded {
  MLA_CROWDED_BESIDE = 1, /* while that runs it, too */
  MLA_CROWDED_ELSEWHERE   /* when that runs it alone */
} mla_crowded;

#define MLA_VERDICT_OUTPUTS 6

typedef struct mla_verdict {
  int32_t kind; /* mla_verdict_kind */
  int32_t outputs;
  mla_output_verdict output[MLA_VERDICT_OUTPUTS];
  int64_t rows, rows_total; /* answered by the reference; 0, 0: all */
  int32_t determinism;      /* mla_determinism, as declared */
  int32_t excused;          /* unsupported, but nobody could be asked it */
  int32_t repeated;         /* runs after the first that were compared */
  int32_t differs;          /* one of those gave other bits */
  int32_t unstable;         /* so did another with the first one's poison */
  int32_t mates;            /* alone 1: the first request, 2: the others, 3:
                               a product's first rows get other bits */
  int32_t crowded;          /* mla_crowded: what another thread shows */
  int32_t follows;          /* mla_follows: what else changes the bits */
  int32_t died;             /* mla_death: how its process ended */
  int32_t signal;           /* that killed it, or its exit code */
  int32_t replayed;         /* as a graph that was captured elsewhere */
  char kernel[64];
  char reason[320]; /* of anything but a pass, one sentence */
  char fences[240]; /* what was touched and should not have been; "" */
  mla_look look;
} mla_verdict;

const char *mla_verdict_name(int32_t kind); /* "pass", "fail" ... */
/* The largest worst of all outputs but lse, and of lse; -1: none. */
double mla_verdict_worst(const mla_verdict *v, int lse);

#endif
