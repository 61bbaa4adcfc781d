/*
 * few_rows.h - hints of kernels of few rows for keys that come next. They come
 * key after key and at an even pace: many at once would wait for each other, as
 * a core waits for a dozen lines at a time. Scores ask for the first half of
 * the keys, values for the second.
 *
 * A hint every 256 bytes for one row, from which the processor goes on by
 * itself; more rows take longer with a key and have the room for more.
 */
#ifndef MLA_CPU_FEW_ROWS_H
#define MLA_CPU_FEW_ROWS_H

#include <immintrin.h>
#include <stdint.h>

/* gcc drops calls of a function that has nothing but hints. */
#define HINT static inline __attribute__((always_inline))

/* Hints for a key. */
HINT int hints_of(int rows) {
  return rows >= 4 ? 16 : 4 * rows;
}

/* At bytes at .. at + 63 of the keys in hand, of which half as many come. */
HINT void hint_keys(const void *const *next, int keys, int rows, int64_t at) {
  if (!next || at % (1024 / hints_of(rows)) != 0) return;
  for (int i = 0; i < (keys + 1) / 2; i++)
    _mm_prefetch((const char *)next[i] + at, _MM_HINT_T1);
}

/* At value j of n in one of the passes over them, of which 512 columns take so
   many; `bytes` of these. A key is an eighth longer. */
HINT void hint_values(const void *const *next, int64_t n, int64_t j,
                      int64_t pass, unsigned passes, int rows, unsigned bytes) {
  unsigned hints = (unsigned)hints_of(rows), every = 2 * passes / hints;
  if (!next || (uint64_t)j % every != 0) return;
  uint64_t hint = (uint64_t)(pass * n + j) / every;
  uint64_t key = (uint64_t)n / 2 + hint / hints;
  if (key < (uint64_t)n)
    _mm_prefetch(
        (const char *)next[key] + hint % hints * (bytes * 9 / 8 / hints),
        _MM_HINT_T1);
}

#endif
