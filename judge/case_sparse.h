/*
 * case_sparse.h - the lists of sparse attention that a case describes.
 *
 * What stands in a list follows from the case, the request and the row alone,
 * never from where a page lies, so that a row keeps its list in any batch.
 */
#ifndef MLA_CASE_SPARSE_H
#define MLA_CASE_SPARSE_H

#include "case.h"

/* Which of a row's lists. */
typedef enum mla_list {
  MLA_LIST_MAIN, /* of slots of the cache, or of positions */
  MLA_LIST_EXTRA /* of slots of the second cache */
} mla_list;

/* Entries that name no key: any other is the rank of a key that is drawn. */
#define MLA_ENTRY_HOLE (-1)     /* -1 */
#define MLA_ENTRY_STRANGER (-2) /* out of range, on either side */
#define MLA_ENTRY_UNREAD (-3)   /* past topk_len: a lawful slot, poisoned */

int mla_case_is_sparse(const mla_case *c);

/* Entries of a list: topk, or extra. */
int64_t mla_case_list_width(const mla_case *c, mla_list list);
/* Keys that row t of request b may list: the positions that it sees, or the
   entries of the second cache. */
int64_t mla_case_list_keys(const mla_case *c, mla_list list, int64_t b,
                           int64_t t);
/* topk_len of the row; the width without one. */
int64_t mla_case_list_length(const mla_case *c, mla_list list, int64_t b,
                             int64_t t);
/* The rank of each entry, or what it is instead. Returns how many are keys. */
int64_t mla_case_list_row(const mla_case *c, mla_list list, int64_t b,
                          int64_t t, int64_t *rank);
/* How many keys the row attends to, over both caches; a key listed twice
   counts twice. */
int64_t mla_case_row_keys(const mla_case *c, int64_t b, int64_t t);
/* The rank-th of n keys in an order that jumps about: a permutation. */
int64_t mla_case_list_key(int64_t n, int64_t rank, int64_t t);

/* Do the attributes of sparse attention and index keys agree? */
mla_status mla_case_check_sparse(const mla_case *c, mla_error *err);

#endif
