/*
 * compare_topk.h - a choice of the k largest, judged by what it chose from.
 *
 * Which of two positions is the larger is only as certain as their logits: any
 * choice among logits that differ by less than their budgets is right. So a
 * row's choice is judged by the logits behind it, not by the reference's own.
 */
#ifndef MLA_COMPARE_TOPK_H
#define MLA_COMPARE_TOPK_H

#include <stdint.h>

/* One row: what it chose from. */
typedef struct mla_topk_row {
  const double *logit;  /* [width], -infinity: not to be chosen */
  const double *budget; /* [width] */
  int64_t width;
  int64_t topk;
  unsigned char *taken; /* [width], working memory */
} mla_topk_row;

/* What is wrong with one entry of the row. */
typedef struct mla_topk_fault {
  double ratio;    /* how far the best left out is above it, over the budgets
                      of both; infinite for what is no choice at all */
  int64_t instead; /* the position left out; -1: none belongs here */
  double budget;   /* of both logits together */
} mla_topk_fault;

/*
 * fault[topk] of the entries chosen[topk]: positions that the row sees, each
 * once, in any order; -1 only behind them all.
 */
void mla_topk_judge(const mla_topk_row *row, const int64_t *chosen,
                    mla_topk_fault *fault);

#endif
