/*
 * oracle_index.h - sparse attention's selector: logits of positions, the k
 * largest; and positions turned into slots.
 */
#ifndef MLA_ORACLE_INDEX_H
#define MLA_ORACLE_INDEX_H

#include "oracle.h"

/*
 * Where a call's answers are kept. Rows are tokens; the positions that a row
 * does not see have a logit of -infinity and nothing else.
 */
typedef struct mla_index_sink {
  int64_t width;     /* positions of a row of logits */
  double *logit;     /* [rows][width] */
  double *scores;    /* [rows][width]: of the scores' rounding */
  double *sums;      /* [rows][width]: of the sum over heads */
  double *flushed;   /* [rows][width]: what flushing may change */
  double *weight;    /* [rows]: sum of the heads' |w| */
  double *positions; /* [rows][topk] */
} mla_index_sink;

typedef struct mla_index_call {
  const mla_problem *problem;
  const mla_args *args;
  int64_t rows;          /* to compute */
  const int64_t *row_id; /* ascending, tokens; NULL: r */
  int32_t dequant;       /* mla_dequant to emulate */
  mla_index_sink *keep;  /* NULL: the outputs, rounded */
} mla_index_call;

/* Positions of a row of logits: their tensor's, else the longest request's. */
int64_t mla_index_width(const mla_args *args);

mla_status mla_oracle_index(const mla_index_call *call, mla_error *err);

/* Tokens with rows in map_indices: query_start_loc[B]. */
int64_t mla_map_tokens(const mla_args *args);
/* The slot of a position of a request; -1 where the table has none. */
int64_t mla_map_position(const mla_tensor *table, int64_t block_size,
                         int64_t request, int64_t position);
/* slots[rows][topk] of the tokens row_id[rows] (NULL: the first `rows`); slots
   NULL: into the output. */
void mla_oracle_map_indices(const mla_problem *problem, const mla_args *args,
                            int64_t rows, const int64_t *row_id, double *slots);

#endif
