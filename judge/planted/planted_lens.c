/* Lengths and masks of the planted backend. */
#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

const mla_tensor *planted_arg(const planted_call *c, int slot) {
  return mla_arg(c->args, slot);
}

int64_t planted_int(const mla_tensor *t, int64_t i) {
  return mla_get_int(t->data, t->dtype, mla_at1(t, i));
}

int64_t planted_seq_len(const planted_call *c, int64_t request) {
  const mla_tensor *lens = planted_arg(c, MLA_T_SEQ_LENS);
  int64_t n = planted_int(lens, request);
  if (FAULT(c, STALE_LENS) && request < c->plan->first_count)
    return c->plan->first_lens[request];
  if (FAULT(c, PLAN_SHARED)) {
    int64_t most = planted_newest_length();
    return n > most ? most : n;
  }
  if (FAULT(c, STALE_MAX)) {
    int64_t most = c->plan->limits.max_seq_len >> c->a;
    return n > most ? most : n;
  }
  return n;
}

int64_t planted_query_start(const planted_call *c, int64_t request) {
  return planted_int(planted_arg(c, MLA_T_QUERY_START_LOC), request);
}

/* Is it a token of a request, or of a place in one, that a fault leaves out? */
static int is_beyond(const planted_call *c, int64_t token) {
  const mla_tensor *start = planted_arg(c, MLA_T_QUERY_START_LOC);
  if (!start || (!FAULT(c, REQUESTS_MANY) && !FAULT(c, QUERY_MANY))) return 0;
  if (FAULT(c, REQUESTS_MANY))
    return (double)start->shape[0] - 1 > c->x &&
           token >= planted_int(start, (int64_t)c->x);
  int64_t b = 0;
  while (b + 2 < start->shape[0] && planted_int(start, b + 1) <= token) b++;
  return (double)(token - planted_int(start, b)) >= c->x;
}

/* A row is left out when a probe does not ask for it, or when the fault is
   planted in others. */
int planted_wants(const planted_call *c, int64_t token, int64_t head) {
  if (FAULT(c, ROWS_MANY) && (double)token >= c->x) return 0;
  if (FAULT(c, HEADS_MANY) && (double)head >= c->x) return 0;
  if (is_beyond(c, token)) return 0;
  if (c->wanted && !c->wanted[token * c->p->num_heads + head]) return 0;
  if (c->only_head >= 0 && head != c->only_head) return 0;
  if (c->only_request < 0) return 1;
  const mla_tensor *start = planted_arg(c, MLA_T_QUERY_START_LOC);
  if (!start) return 1;
  if (c->only_request + 1 >= start->shape[0]) return 0;
  return token >= planted_int(start, c->only_request) &&
         token < planted_int(start, c->only_request + 1);
}

int64_t planted_visible(const planted_call *c, int64_t seq, int64_t queries,
                        int64_t t) {
  int causal = (c->p->flags & MLA_CAUSAL) || c->p->op == MLA_OP_INDEX;
  if (FAULT(c, NONCAUSAL)) causal = 1;
  if (FAULT(c, MTP_NO_MASK) && queries > 1) causal = 0;
  int64_t n = causal ? seq - queries + t + 1 : seq;
  if (FAULT(c, FULL_EARLY) && seq - queries + t + 1 <= 0) n = 0;
  if (causal && FAULT(c, MTP_TOP_LEFT)) n = t + 1 < seq ? t + 1 : seq;
  if (causal && FAULT(c, MTP_FIRST)) n = seq - queries + 1;
  if (causal && FAULT(c, MTP_OFF_BY)) n = n + c->a < seq ? n + c->a : seq;
  if (causal && FAULT(c, MASK_TILE) && n < (seq - 1) / c->a * c->a)
    n = (seq - 1) / c->a * c->a;
  if (FAULT(c, ISA_TAIL) && n > c->a) n -= n % c->a;
  return n < 0 ? 0 : n;
}

/* Rows past the last request belong to nobody. */
static void put_rows(const planted_call *c, const mla_tensor *t, double v) {
  int64_t requests = planted_arg(c, MLA_T_QUERY_START_LOC)->shape[0] - 1;
  int64_t width = t->rank > 2 ? t->shape[2] : 1;
  for (int64_t n = planted_query_start(c, requests); n < t->shape[0]; n++)
    for (int64_t h = 0; h < t->shape[1]; h++)
      for (int64_t d = 0; d < width; d++)
        mla_put(t->data, t->dtype, mla_at2(t, n, h) + d, v);
}

void planted_spoil_padding(const planted_call *c) {
  const mla_tensor *lse = planted_arg(c, MLA_T_LSE);
  int far = FAULT(c, PAD_FAR) && c->plan->limits.max_seq_len >= c->a;
  double nan = mla_decode(MLA_F32, 0x7fc00000u);
  if (FAULT(c, PAD_NAN) || far) put_rows(c, planted_arg(c, MLA_T_OUT), nan);
  if (FAULT(c, PAD_ZERO)) put_rows(c, planted_arg(c, MLA_T_OUT), 0);
  if (FAULT(c, LSE_PADDING) && lse) put_rows(c, lse, 0);
}
