#include "score_norm.h"

#include <math.h>
#include <stdlib.h>

void *zeros(int64_t count, size_t size) {
  void *memory = calloc((size_t)count + 1, size);
  if (!memory) exit(3);
  return memory;
}

static int by_bin(const void *left, const void *right) {
  const score_bin *a = left, *b = right;
  return a->bin < b->bin ? -1 : a->bin > b->bin;
}

score_bin *score_bins(const double *below, int64_t n) {
  score_bin *order = zeros(n, sizeof *order);
  for (int64_t j = 0; j < n; j++) {
    order[j].bin = floor(below[j] * 512);
    order[j].j = j;
  }
  qsort(order, (size_t)n, sizeof *order, by_bin);
  return order;
}

double score_norm(const score_bin *order, int64_t n, const double *weight,
                  const double *value, int64_t stride) {
  double square = 0, bin = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t j = order[i].j;
    double x = weight[j] * (value ? value[j * stride] : 1);
    if (i && order[i].bin != order[i - 1].bin) {
      square += bin * bin;
      bin = 0;
    }
    square += x * x;
    bin += x;
  }
  return sqrt(square + bin * bin);
}
