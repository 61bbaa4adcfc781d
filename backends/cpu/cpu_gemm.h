/*
 * cpu_gemm.h - batches of matrix products, out[n][m] = sum_k x[n][k] y[m][k],
 * any strides, any of the types: q_absorb, v_expand, matmul, the fused forms
 * of absorb. Sums are f32, in chains far below MLA_CPU_CHAIN.
 */
#ifndef MLA_CPU_GEMM_H
#define MLA_CPU_GEMM_H

#include "cpu_internal.h"

/* Strides in elements; one of row and col is 1. */
typedef struct mla_cpu_matrix {
  const void *data;
  int type; /* mla_cpu_type */
  int64_t row, col, batch;
} mla_cpu_matrix;

typedef struct mla_cpu_gemm {
  int64_t batch, n, m, k;
  mla_cpu_matrix x, y;
  void *out; /* column stride 1 */
  int out_type;
  int64_t out_row, out_batch;
} mla_cpu_gemm;

/* Does oneDNN multiply for this problem, and does it flush subnormals? */
int mla_cpu_by_onednn(const mla_cpu_context *context);
int mla_cpu_products_flush(const mla_cpu_context *context);

/* Workspace of any product; it depends on the threads only. */
uint64_t mla_cpu_gemm_workspace(const mla_cpu_context *context);
void mla_cpu_gemm_run(const mla_cpu_context *context, const mla_cpu_gemm *gemm,
                      void *workspace);

#endif
