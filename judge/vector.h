/*
 * vector.h - one call of one operation, in host memory, before it is made.
 *
 * A vector holds the problem, the limits and every tensor. It comes from a
 * case and a seed (generate.h) or from a file (vector_file.h), and is never
 * given to a backend itself: a backend works on a copy (place.h), so that
 * afterwards every byte can be compared with what stood here.
 *
 * A tensor's memory reaches from its first to its last element, gaps between
 * strides included. What a call must not read holds poison.
 */
#ifndef MLA_VECTOR_H
#define MLA_VECTOR_H

#include "case.h"
#include "op_table.h"

/* How an output is judged. */
typedef enum mla_compare {
  MLA_COMPARE_NONE = 0,
  MLA_COMPARE_BUDGET, /* within the derived error of each value */
  MLA_COMPARE_BITS,   /* the value rounded once: no other rounding happens */
  MLA_COMPARE_SUMS,   /* likewise, but for the error of the last sums */
  MLA_COMPARE_BYTES,  /* the memory of the whole tensor */
  MLA_COMPARE_CHOICE  /* positions: any choice that their logits' budgets
                         allow (compare_topk.h) */
} mla_compare;

#define MLA_HUNTS_MAX 200

/* A stored expectation, when the vector came from a file. */
typedef struct mla_stored {
  int64_t rows, width;
  const double *value; /* rows x width, dense; NULL: none */
  const unsigned char *bytes;
  int64_t byte_count;
} mla_stored;

typedef struct mla_vector {
  char *id;
  uint64_t seed;
  char hunts[MLA_HUNTS_MAX]; /* "PAGE-SIZE, TAIL-NAN" */
  int has_recipe;
  mla_case recipe;
  mla_problem problem;
  mla_limits limits;
  mla_tensor tensor[MLA_T_COUNT]; /* data: owned, unless alias */
  int8_t role[MLA_T_COUNT];       /* mla_role; 0: absent */
  int8_t alias[MLA_T_COUNT];      /* the slot whose memory it is, or -1 */
  int8_t compare[MLA_T_COUNT];    /* mla_compare, of outputs */
  uint64_t lazy[MLA_T_COUNT];     /* bytes, when data is mla_lazy_take's */
  int hints;                      /* give host lengths to query and plan */
  mla_stored stored[MLA_T_COUNT];
  int stored_exactly;      /* expected values are our reference's own */
  double stored_agreement; /* otherwise: fraction of the largest */
} mla_vector;

/* Empty, with problem and limits initialised. Free it with vector_free. */
void mla_vector_init(mla_vector *v);
void mla_vector_free(mla_vector *v);

/*
 * Shapes and strides of every slot of v->problem must be in v->tensor; takes
 * memory for each (zeroed) unless it has some or is an alias. The judge
 * compares outputs by `compare` as set here: BYTES for tensors written in
 * part, BUDGET for the rest. MLA_UNSUPPORTED: more bytes than addresses.
 */
mla_status mla_vector_alloc(mla_vector *v, mla_error *err);

/* Rows of an output that must be written: tokens past query_start_loc[B] and
   rows past cu_seq_lens[B] must not. -1: all. A row is one index of the first
   axis. */
/* Has an output gaps of gigabytes (spans.h)? */
int mla_vector_has_vast_output(const mla_vector *v);
int64_t mla_vector_live(const mla_vector *v, int32_t slot);
/* What an output of the slot holds before a run under a poison: bytes of 0xff
   are -1 in whole numbers, which is a lawful answer. */
unsigned char mla_vector_poison(const mla_vector *v, int32_t slot,
                                unsigned char poison);
/* The arguments, with hints in limits when v->hints. */
mla_args mla_vector_args(const mla_vector *v);
mla_limits mla_vector_limits(const mla_vector *v);

/* The length that request b had when the plan served it before (replay):
   about half of it, lawful wherever its own is. */
int64_t mla_vector_earlier_len(const mla_vector *v, int64_t b);
/* Those of all requests, into memory laid out as seq_lens. */
void mla_vector_put_earlier(const mla_vector *v, void *lens);

/* Which request a token belongs to, and its index there; -1: none. */
int64_t mla_vector_request(const mla_vector *v, int64_t token, int64_t *within);

#endif
