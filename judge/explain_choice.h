/*
 * explain_choice.h - choices of positions that a backend made, wrong ones and
 * right ones, and whether a planted fault makes the same.
 *
 * The order of a choice is free: entries are matched by their bits, wherever
 * they stand in the row.
 */
#ifndef MLA_EXPLAIN_CHOICE_H
#define MLA_EXPLAIN_CHOICE_H

#include "compare_topk.h"
#include "judge.h"

/* Entries of a row: the position, and whether the judge counts it wrong. */
typedef struct choice_entry {
  int64_t position;
  int wrong;
} choice_entry;

/* The rows of one call that are looked at. */
typedef struct choice_bench {
  const mla_tensor *t; /* NULL: the call chooses nothing */
  mla_expected_view view;
  mla_topk_row row;          /* of row 0: what it chooses from */
  double *budget;            /* of all logits */
  unsigned char *mark;       /* of each row: 1 wrong, 2 right, 0 not taken */
  choice_entry *got, *probe; /* one row each; working memory */
  int64_t *chosen;
  mla_topk_fault *fault;
} choice_bench;

typedef struct choice_score {
  int64_t bad, bad_of;   /* wrong entries reproduced */
  int64_t near, near_of; /* right entries beside wrong ones: chosen as well */
  int64_t good, good_of; /* entries of right rows that stay right */
} choice_score;

/* At most so many rows of each kind. 0: no memory. Free it, whatever is
   returned. */
int choice_new(choice_bench *b, const mla_vector *v, const mla_evidence *e,
               int64_t bad_rows, int64_t good_rows);
void choice_free(choice_bench *b);

/* got, probe: the memory of the positions. */
void choice_compare(choice_bench *b, const unsigned char *got,
                    const unsigned char *probe, choice_score *score);

#endif
