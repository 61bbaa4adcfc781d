/*
 * batch_case.h - cases of batch building: requests and what follows their
 * step are given, the arrays of every step must come out (docs/batch.md).
 *
 * Like an operation's case, one has a name from which everything follows:
 *
 *   batch:b3,page16,ctx=33+0+15,q=1+5+1,threshold=1,pad=2+3,next=2
 *
 *   b, page       requests; entries of a cache block
 *   ctx, q        cached entries and new rows of each (one value: of all)
 *   threshold     requests of at most so many rows come first; 0: as given
 *   pad=R+T       R requests and T rows more than the first step has
 *   next          steps that follow in place, of one row a request, or with
 *     draft=N     of 1 to N rows, of which with
 *     reject      not all are kept; with
 *     end         some requests end
 *   full          rows see all keys of their request (no causal mask)
 *   units, invariant   compute units for splits; batch invariance
 *   ranks, interleave  the step as each rank of context parallelism has it
 *   spare, far    table columns never used; blocks beyond 2^31 entries
 *
 * Block lists, token ids and what is drawn for the steps follow from the seed.
 */
#ifndef MLA_BATCH_CASE_H
#define MLA_BATCH_CASE_H

#include <stddef.h>

#include "vector.h"

enum {
  MLA_BATCH_REQUESTS = 24, /* of a step at most, padding included */
  MLA_BATCH_ROWS = 512,
  MLA_BATCH_WIDTH = 96,
  MLA_BATCH_NEXT = 7,
  MLA_BATCH_RANKS = 4,
  MLA_BATCH_ID_MAX = 400
};

/* What a name says. */
typedef struct mla_batch_recipe {
  int64_t requests, page, threshold, next, draft, units, ranks, interleave;
  int64_t spare;
  int64_t reject, end, full, invariant, far; /* 0 or 1 */
  int64_t pad[2];
  int64_t context[MLA_BATCH_REQUESTS], rows[MLA_BATCH_REQUESTS];
} mla_batch_recipe;

/* Does the name begin with "batch:"? */
int mla_batch_case_is(const char *id);
/* INVALID_ARGUMENT with the key that is wrong. */
mla_status mla_batch_case_parse(const char *id, mla_batch_recipe *recipe,
                                mla_error *err);
/* "pageN", "entries of a cache block [16]": key i in words. 0: past the
   last. */
int mla_batch_case_key(int i, char *form, char *what, size_t size);
/* The canonical name; as snprintf. */
int mla_batch_case_print(const mla_batch_recipe *recipe, char *id, size_t size);

/* ------------------------------------------------------------ what is given */

/* A step after the first, by place. */
typedef struct mla_batch_turn {
  int32_t requests; /* the first so many places go on */
  int32_t kept[MLA_BATCH_REQUESTS], rows[MLA_BATCH_REQUESTS];
  int32_t tokens[MLA_BATCH_ROWS];
  int32_t more_starts[MLA_BATCH_REQUESTS + 1]; /* in more */
  int32_t more[MLA_BATCH_WIDTH]; /* blocks added before the step */
} mla_batch_turn;

typedef struct mla_batch_case {
  char id[MLA_BATCH_ID_MAX];
  char hunts[MLA_HUNTS_MAX];
  uint64_t seed;
  int32_t block_size, table_width, threshold;
  int32_t causal, invariant, units;
  int32_t ranks, interleave; /* ranks 0: no shards */
  int64_t num_blocks;
  int32_t requests, turns;
  int32_t context[MLA_BATCH_REQUESTS], rows[MLA_BATCH_REQUESTS];
  int32_t tokens[MLA_BATCH_ROWS];
  int32_t starts[MLA_BATCH_REQUESTS + 1]; /* in blocks */
  int32_t blocks[MLA_BATCH_REQUESTS * MLA_BATCH_WIDTH];
  int32_t pad_requests, pad_tokens;   /* of the launch; 0: no padding */
  int32_t room_requests, room_tokens; /* of the largest step */
  mla_batch_turn turn[MLA_BATCH_NEXT];
} mla_batch_case;

/* INVALID_ARGUMENT: the name, or what follows from it is too large. */
mla_status mla_batch_case_draw(const char *id, uint64_t seed, mla_batch_case *c,
                               mla_error *err);
/* place[p]: the request at place p of the first step. */
void mla_batch_case_order(const mla_batch_case *c, int32_t *place);
/* Fills room_requests and room_tokens. INVALID_ARGUMENT: counts beyond what a
   case may have, lists that do not fit. */
mla_status mla_batch_case_check(mla_batch_case *c, mla_error *err);

/* --------------------------------------------------------- what comes out */

/* The arrays of a step, by name ("slot_mapping"). */
typedef enum mla_batch_array {
  MLA_BATCH_POSITIONS,       /* [tokens] */
  MLA_BATCH_SLOT_MAPPING,    /* [tokens] */
  MLA_BATCH_QUERY_START_LOC, /* [requests + 1] */
  MLA_BATCH_SEQ_LENS,        /* [requests] */
  MLA_BATCH_BLOCK_TABLE,     /* [requests][table_width] */
  MLA_BATCH_ROW_LENS,        /* [tokens]: keys that each row sees */
  MLA_BATCH_ORDER,           /* [requests] */
  MLA_BATCH_ROW_SOURCES,     /* [tokens]: mla_batch.rows */
  MLA_BATCH_TOKEN_IDS,       /* [tokens] */
  MLA_BATCH_DECODES,         /* [2]: decodes, decode_tokens */
  MLA_BATCH_SPLITS,          /* [2]: of this step, and as reserved */
  MLA_BATCH_RANK_SLOTS,      /* [ranks][tokens] */
  MLA_BATCH_RANK_LENS,       /* [ranks][tokens] */
  MLA_BATCH_ARRAYS
} mla_batch_array;

/* NULL past the last. */
const char *mla_batch_array_name(int array);
/* -1: none is called so. */
int mla_batch_array_find(const char *name);

enum {
  MLA_BATCH_POOL = (5 + 2 * MLA_BATCH_RANKS) * MLA_BATCH_ROWS +
                   (MLA_BATCH_WIDTH + 4) * MLA_BATCH_REQUESTS
};

#define MLA_BATCH_ABSENT (-1) /* a count: the array is not there */

/* The arrays of a step. */
typedef struct mla_batch_step {
  int64_t count[MLA_BATCH_ARRAYS];
  int64_t pool[MLA_BATCH_POOL];
} mla_batch_step;

/* Those of all steps; on the heap: mla_batch_answer_new. */
typedef struct mla_batch_answer {
  int32_t steps;
  uint32_t left_out;       /* bits of arrays that an answer does without */
  int32_t no_padding;      /* padding is left out */
  char why[MLA_HUNTS_MAX]; /* the reasons given for that */
  mla_batch_step step[1 + MLA_BATCH_NEXT];
} mla_batch_answer;

mla_batch_answer *mla_batch_answer_new(void); /* NULL: no memory */
int64_t *mla_batch_values(mla_batch_step *step, int array);
const int64_t *mla_batch_values_of(const mla_batch_step *step, int array);
int64_t mla_batch_most(int array); /* values that there is room for */

/* What the library's own builder makes of it (mla/batch.h). */
mla_status mla_batch_case_build(const mla_batch_case *c, mla_batch_answer *to,
                                mla_error *err);

#endif
