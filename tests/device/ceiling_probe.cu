/*
 * ceiling_probe: what the card does at most, for shares of it: a sweep that
 * only reads memory, and a bf16 product of 8192 x 8192 x 8192.
 */
#include "probe.cuh"

__global__ void __launch_bounds__(512)
    sweep(const uint4 *p, size_t n, uint32_t *never) {
  uint32_t sum = 0;
  const size_t step = (size_t)gridDim.x * blockDim.x;
#pragma unroll 8
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += step)
    sum += p[i].x;
  if (sum == 1) *never = sum; /* so that it is read */
}

static void read_memory() {
  const size_t bytes = (size_t)4 << 30;
  uint4 *p;
  CK(cudaMalloc(&p, bytes));
  fill<<<1024, 256>>>((__nv_bfloat16 *)p, bytes / 2, 1, 1.f);
  const double us = time_graph(2, [&](int, cudaStream_t s) {
    sweep<<<132 * 4, 512, 0, s>>>(p, bytes / 16, (uint32_t *)p);
  });
  printf("read %.2f TB/s\n", (double)bytes / us * 1e-6);
  cudaFree(p);
}

static void product() {
  const int n = 8192;
  __nv_bfloat16 *m[3];
  for (int i = 0; i < 3; i++) {
    CK(cudaMalloc(&m[i], (size_t)n * n * 2));
    fill<<<1024, 256>>>(m[i], (size_t)n * n, (unsigned)i, 1.f);
  }
  const double us = time_product(m[0], m[1], m[2], n, n, n);
  printf("product %.0f TFLOP/s\n", 2.0 * n * n * n / us * 1e-6);
  for (int i = 0; i < 3; i++) cudaFree(m[i]);
}

int main() {
  read_memory();
  product();
  return 0;
}
