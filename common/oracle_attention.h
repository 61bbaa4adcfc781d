/*
 * oracle_attention.h - what decode and prefill share: rows of a group of
 * heads over one set of keys, in parts or whole, written or kept.
 */
#ifndef MLA_ORACLE_ATTENTION_H
#define MLA_ORACLE_ATTENTION_H

#include "oracle.h"
#include "oracle_load.h"
#include "oracle_row.h"
#include "oracle_terms.h"

/* One call. */
typedef struct mla_attention {
  const mla_problem *problem;
  const mla_args *args;
  int64_t rows;          /* to compute */
  const int64_t *row_id; /* ascending, token * H + head; NULL: r */
  int64_t splits;        /* decode: parts of the sequence; 0 reads as 1 */
  int64_t chunk;         /* prefill: context tokens a part; 0: no parts */
  int32_t q_round;       /* mla_q_round to emulate */
  int32_t dequant;       /* mla_dequant to emulate */
  mla_row_sink *keep;    /* where answers go; NULL: the outputs, rounded */
} mla_attention;

/* Rows of some heads of one request; their keys follow. */
typedef struct mla_group {
  int64_t request;
  int64_t first_token, queries; /* rows of the packed step */
  int64_t seq;                  /* keys of the request */
  int64_t first_head, heads;
} mla_group;

/* Tokens with rows: query_start_loc[B]; with a list of slots, all. */
int64_t mla_attention_tokens(const mla_args *args);
int64_t mla_attention_requests(const mla_args *args);
mla_group mla_attention_request(const mla_args *args, int64_t request);
/* Some row of the group is to be computed. */
int mla_attention_wanted(const mla_attention *call, const mla_group *group);

/*
 * Computes the group's rows. cut[parts + 1] ascends from 0 to group->seq:
 * part i holds the keys cut[i] <= j < cut[i + 1].
 */
mla_status mla_attention_group(const mla_attention *call,
                               const mla_group *group, const mla_keys *keys,
                               int64_t parts, const int64_t *cut,
                               mla_error *err);

/* Memory for the keys of a request, and where they are cut into parts. */
typedef struct mla_keyroom {
  double *k, *v; /* v: NULL when values are the front of the keys */
  int64_t *cut;
  int64_t parts;
} mla_keyroom;

/* Room for `most` keys of decode, and the keys' description around it. Free
   it, whatever is returned. */
mla_status mla_keyroom_take(mla_keyroom *room, const mla_problem *problem,
                            int64_t most, mla_keys *keys, mla_error *err);
void mla_keyroom_free(mla_keyroom *room);
/* Parts of equal length, the last ones shorter or empty; of at most `most`
   keys. */
void mla_keyroom_cut(mla_keyroom *room, int64_t splits, int64_t keys);

mla_status mla_oracle_decode(const mla_attention *call, mla_error *err);
mla_status mla_oracle_prefill(const mla_attention *call, mla_error *err);

#endif
