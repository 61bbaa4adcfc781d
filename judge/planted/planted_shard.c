/* Mistakes of context parallelism: decode as if the keys lay on `a` ranks, 16
   positions of each in turn. */
#include "planted_core.h"

enum { INTERLEAVE = 16 };

/* Keys of the first n that lie on a rank. */
static int64_t local_len(int64_t n, int64_t ranks, int64_t rank) {
  int64_t turn = ranks * INTERLEAVE;
  int64_t rest = n % turn - rank * INTERLEAVE;
  if (rest < 0) rest = 0;
  if (rest > INTERLEAVE) rest = INTERLEAVE;
  return n / turn * INTERLEAVE + rest;
}

int planted_shard_loses(const planted_call *c, const planted_row *row,
                        int64_t j) {
  int64_t ranks = c->a, n = row->visible, later = row->seq - n;
  if (c->p->op != MLA_OP_DECODE || (c->p->flags & MLA_SPARSE) ||
      c->fault < PLANTED_CP_LOCAL_MASK || c->fault > PLANTED_CP_LAST_RANK)
    return 0;
  int64_t rank = j / INTERLEAVE % ranks;
  int64_t local = j / (INTERLEAVE * ranks) * INTERLEAVE + j % INTERLEAVE;
  if (FAULT(c, CP_LOCAL_MASK))
    return local >= local_len(row->seq, ranks, rank) - later;
  if (FAULT(c, CP_INTERLEAVE)) return local >= n / ranks + (rank < n % ranks);
  return ranks > 1 && rank == ranks - 1;
}
