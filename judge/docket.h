/*
 * docket.h - everything that one run of the judge is to look at.
 *
 * Items come from profiles, from names of cases, and from files: vectors of
 * our format, batches, and outputs of other people's layers (truth.h).
 */
#ifndef MLA_DOCKET_H
#define MLA_DOCKET_H

#include "batch_case.h"
#include "judge.h"
#include "suite.h"
#include "truth.h"

typedef enum mla_item_kind {
  MLA_ITEM_CASE,    /* made from id and seed */
  MLA_ITEM_STORED,  /* bytes in a file */
  MLA_ITEM_INVALID, /* id with a change */
  MLA_ITEM_TRUTH,   /* a layer's outputs, in a file */
  MLA_ITEM_BATCH    /* batch building: of the library, whatever the device */
} mla_item_kind;

typedef struct mla_item {
  int32_t kind;
  const char *id; /* of a truth: its path */
  uint64_t seed;
  char hunts[MLA_HUNTS_MAX];
  int optional;     /* may be unsupported */
  const char *path; /* the file it came from, or NULL */
  int32_t file, index;
  int has_digest;
  uint64_t digest;
} mla_item;

typedef struct mla_docket mla_docket;

typedef struct mla_record {
  mla_verdict verdict;    /* reason is set for truths too */
  mla_truth_result truth; /* of MLA_ITEM_TRUTH */
  char smallest[1024];    /* the smallest case that fails alike, or "" */
  char repro[1024];       /* the file that reproduces it, or "" */
} mla_record;

mla_docket *mla_docket_new(void); /* NULL: no memory */
void mla_docket_free(mla_docket *docket);
mla_status mla_docket_add_suite(mla_docket *docket, const mla_suite *suite,
                                mla_error *err);
mla_status mla_docket_add_case(mla_docket *docket, const char *id,
                               uint64_t seed, mla_error *err);
/* Items that the suite has, too, hunt what it says. */
void mla_docket_know(mla_docket *docket, const mla_suite *suite);
/* A file, or a folder with all its files of known forms (and below). */
mla_status mla_docket_add_path(mla_docket *docket, const char *path,
                               mla_error *err);
/* Keeps items whose id begins with one of the patterns (to a ":" or its
   end); without patterns all. INVALID_ARGUMENT: a pattern that no item begins
   with, which would otherwise narrow a claim unseen. */
mla_status mla_docket_keep_only(mla_docket *docket, const char *const *patterns,
                                int32_t count, mla_error *err);
/* Is that what this id does? */
int mla_docket_matches(const char *id, const char *pattern);
int32_t mla_docket_count(const mla_docket *docket);
const mla_item *mla_docket_at(const mla_docket *docket, int32_t i);

/* The vector of an item that is no truth and no batch. To be freed, whatever
 * happens. */
mla_status mla_docket_vector(const mla_docket *docket, int32_t i,
                             mla_poison poison, mla_vector *v, mla_error *err);
/* The case of an item MLA_ITEM_BATCH; expected is filled for one of a file. */
mla_status mla_docket_batch(const mla_docket *docket, int32_t i,
                            mla_batch_case *c, mla_batch_answer *expected,
                            mla_error *err);
void mla_docket_judge(const mla_docket *docket, int32_t i, mla_device *device,
                      const mla_judge_options *options, mla_record *record);

#endif
