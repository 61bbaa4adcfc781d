#include "cpu_topk.h"

#include <string.h>

#include "float_bits.h"

/* Whole numbers in the order of the floats; 0 is NaN's alone. */
static uint32_t ordered(float x) {
  uint32_t bits = mla_f32_bits(x + 0.0f); /* one zero */
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0;
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The k-th largest number, digit by digit from the top; *ties: how many of
   those equal to it are among the k largest. */
static uint32_t find_border(const float *value, int64_t n, int64_t k,
                            int64_t *ties) {
  uint32_t prefix = 0, known = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    int64_t count[256];
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++) {
      uint32_t x = ordered(value[i]);
      if ((x & known) == prefix) count[x >> shift & 255]++;
    }
    int digit = 255;
    for (; digit > 0 && count[digit] < k; digit--) k -= count[digit];
    prefix |= (uint32_t)digit << shift;
    known |= (uint32_t)255 << shift;
  }
  *ties = k;
  return prefix;
}

void mla_cpu_topk(const float *value, int64_t n, int64_t topk,
                  int32_t *position) {
  int64_t ties = n, at = 0;
  uint32_t border = 0;
  if (n > topk) border = find_border(value, n, topk, &ties);
  for (int64_t i = 0; i < n && at < topk; i++) {
    uint32_t x = n > topk ? ordered(value[i]) : 1;
    if (x < border || (x == border && ties-- <= 0)) continue;
    position[at++] = (int32_t)i;
  }
  while (at < topk) position[at++] = -1;
}
