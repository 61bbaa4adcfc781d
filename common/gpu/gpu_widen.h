/*
 * gpu_widen.h - weights in e4m3, a scale for each 128 x 128 of them, to f32.
 */
#ifndef MLA_GPU_WIDEN_H
#define MLA_GPU_WIDEN_H

#include "gpu_entry.h"

enum { MLA_WIDEN_THREADS = 256, MLA_WIDEN_BLOCK = 128 };

typedef struct mla_widen_args {
  const uint8_t *codes;
  const float *scales;
  int64_t codes_row, scales_row, columns;
  float *to; /* dense */
} mla_widen_args;

/* Grid: x row of the weights. */
MLA_KERNEL mla_widen_rows(mla_widen_args a) {
  const int64_t row = blockIdx.x;
  const uint8_t *code = a.codes + row * a.codes_row;
  const float *scale = a.scales + row / MLA_WIDEN_BLOCK * a.scales_row;
  for (int64_t c = MLA_TID; c < a.columns; c += MLA_WIDEN_THREADS)
    a.to[row * a.columns + c] =
        mla_code_to_float(MLA_FP8_E4M3, code[c]) * scale[c / MLA_WIDEN_BLOCK];
}

#endif
