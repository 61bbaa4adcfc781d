/* The k largest of a row's logits, and every way to choose others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

typedef struct ranked {
  float logit;
  int64_t position;
  uint32_t turn; /* among equals; 0 unless a fault draws it */
} ranked;

/* ------------------------------------------------------------ candidates */

/* The larger first; of equals the earlier. */
static int by_rank(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  if (a->logit > b->logit) return -1;
  if (a->logit < b->logit) return 1;
  if (a->turn != b->turn) return a->turn < b->turn ? -1 : 1;
  return a->position < b->position ? -1 : a->position > b->position;
}

/* As integers: of numbers below 0 the smaller is the larger. */
static float as_bits(float logit) {
  return logit < 0 ? 1 / logit : logit;
}

static float taken_for(const planted_call *c, float logit) {
  if (FAULT(c, TOPK_COARSE)) return planted_rounded(logit, c->a);
  if (FAULT(c, TOPK_BITS)) return as_bits(logit);
  if (FAULT(c, TOPK_RANGE) && fabsf(logit) > (float)c->x)
    return logit > 0 ? INFINITY : -INFINITY;
  return logit;
}

static uint32_t draw(const planted_call *c) {
  static uint32_t runs; /* no two runs agree: a race as a test can have it */
  if (!FAULT(c, TOPK_RACE) && !FAULT(c, TOPK_ORDER)) return 0;
  return ++runs * 2654435761u;
}

/* What is chosen from, the best first. Returns how many. */
static int64_t rank_all(const planted_call *c, const float *logit, int64_t n,
                        ranked *to) {
  int64_t count = 0;
  for (int64_t j = 0; j < n; j++) {
    float value = taken_for(c, logit[j]);
    if (FAULT(c, TOPK_RANGE) && value == -INFINITY) continue;
    to[count++] = (ranked){value, j, FAULT(c, TOPK_RACE) ? draw(c) : 0};
  }
  for (int64_t j = n; FAULT(c, TOPK_FILLER) && j % c->a; j++)
    to[count++] = (ranked){0, j, 0};
  qsort(to, (size_t)count, sizeof *to, by_rank);
  return count;
}

/* -------------------------------------------------------------- the row */

/* Each of `a` parts of the positions gives its share of the row, the rest
   comes from the best that are left. */
static void share_out(const planted_call *c, const ranked *best, int64_t n,
                      int64_t topk, int64_t *to) {
  int64_t parts = c->a, share = (topk + parts - 1) / parts, count = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < n && count < topk; i++) {
      int64_t part = best[i].position * parts / n, before = 0;
      for (int64_t k = 0; k < i; k++)
        before += best[k].position * parts / n == part;
      if ((before < share) == (pass == 0)) to[count++] = best[i].position;
    }
}

/* Of logits equal to the last one there are more than room for. */
static void leave_ties(const ranked *best, int64_t n, int64_t topk,
                       int64_t *to) {
  if (n <= topk || best[topk].logit < best[topk - 1].logit) return;
  for (int64_t i = 0; i < topk; i++)
    if (!(best[i].logit > best[topk].logit)) to[i] = -1;
}

static void move_to_end(int64_t *to, int64_t count, int64_t topk) {
  memmove(to + topk - count, to, (size_t)count * sizeof *to);
  for (int64_t i = 0; i < topk - count; i++) to[i] = -1;
}

/* Another order in every run. */
static void turn_round(const planted_call *c, int64_t *to, int64_t count) {
  int64_t by = count > 0 ? draw(c) % count : 0;
  for (int64_t k = 0; k < by; k++) {
    int64_t first = to[0];
    memmove(to, to + 1, (size_t)(count - 1) * sizeof *to);
    to[count - 1] = first;
  }
}

static void fill_row(const planted_call *c, const ranked *best, int64_t n,
                     int64_t topk, int64_t *to) {
  int64_t count = n < topk ? n : topk;
  for (int64_t i = 0; i < topk; i++)
    to[i] = i < count ? best[i].position : FAULT(c, TOPK_FILL) ? 0 : -1;
  if (FAULT(c, TOPK_SHARES) && n > topk) share_out(c, best, n, topk, to);
  if (FAULT(c, TOPK_TIES)) leave_ties(best, n, topk, to);
  if (FAULT(c, TOPK_TWICE) && count > 1) to[count - 1] = to[0];
  for (int64_t i = 0; FAULT(c, TOPK_HOLES) && i < count; i++)
    if (i % c->a == c->a - 1) to[i] = -1;
  if (FAULT(c, TOPK_FRONT)) move_to_end(to, count, topk);
  if (FAULT(c, TOPK_ORDER)) turn_round(c, to, count);
}

mla_status planted_choose(const planted_call *c, const float *logit, int64_t n,
                          int64_t token) {
  const mla_tensor *t = planted_arg(c, MLA_T_POSITIONS);
  int64_t topk = t->shape[1];
  size_t room = (size_t)n + (size_t)(c->a > 0 ? c->a : 0) + 1;
  ranked *best = malloc(room * sizeof *best);
  int64_t *to = malloc((size_t)topk * sizeof *to);
  if (best && to) {
    fill_row(c, best, rank_all(c, logit, n, best), topk, to);
    for (int64_t i = 0; i < topk; i++)
      mla_put_int(t->data, t->dtype, mla_at2(t, token, i), to[i]);
  }
  mla_status st = best && to ? MLA_OK : MLA_OUT_OF_MEMORY;
  free(best);
  free(to);
  return st;
}
