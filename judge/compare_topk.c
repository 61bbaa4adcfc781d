#include "compare_topk.h"

#include <string.h>

#include "dmath.h"

static int is_seen(const mla_topk_row *row, int64_t j) {
  return j >= 0 && j < row->width && !(mla_isinf(row->logit[j]) < 0);
}

/* How many positions the row sees, at most topk. */
static int64_t wanted(const mla_topk_row *row) {
  int64_t n = 0;
  for (int64_t j = 0; j < row->width && n < row->topk; j++)
    n += is_seen(row, j);
  return n;
}

/* The position left out that is most certainly larger than position i. */
static void find_larger(const mla_topk_row *row, int64_t i,
                        mla_topk_fault *fault) {
  for (int64_t j = 0; j < row->width; j++) {
    if (row->taken[j] || !is_seen(row, j)) continue;
    double above = row->logit[j] - row->logit[i];
    double budget = row->budget[j] + row->budget[i];
    if (!(above > 0)) continue;
    double ratio = budget > 0 ? above / budget : mla_inf();
    if (ratio <= fault->ratio) continue;
    fault->ratio = ratio;
    fault->instead = j;
    fault->budget = budget;
  }
}

/* The largest logit that was left out; -infinity: nothing was. */
static double largest_left(const mla_topk_row *row, int64_t *at) {
  double largest = -mla_inf();
  *at = -1;
  for (int64_t j = 0; j < row->width; j++) {
    if (row->taken[j] || !is_seen(row, j)) continue;
    if (*at >= 0 && row->logit[j] <= largest) continue;
    largest = row->logit[j];
    *at = j;
  }
  return largest;
}

void mla_topk_judge(const mla_topk_row *row, const int64_t *chosen,
                    mla_topk_fault *fault) {
  int64_t n = wanted(row), best;
  memset(row->taken, 0, (size_t)row->width);
  for (int64_t i = 0; i < row->topk; i++) {
    int64_t j = chosen[i];
    int lawful = i < n ? is_seen(row, j) && !row->taken[j] : j == -1;
    fault[i].ratio = lawful ? 0 : mla_inf();
    fault[i].instead = -1;
    fault[i].budget = 0;
    if (lawful && i < n) row->taken[j] = 1;
  }
  double left = largest_left(row, &best);
  for (int64_t i = 0; i < n; i++) {
    if (fault[i].ratio != 0)
      fault[i].instead = best;
    else if (row->logit[chosen[i]] < left)
      find_larger(row, chosen[i], &fault[i]);
  }
}
