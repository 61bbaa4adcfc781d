/*
 * probe.cuh - what the probes of single CUDA kernels share: development
 * tools; what counts is mlacheck's verdict.
 */
#ifndef MLA_PROBE_CUH
#define MLA_PROBE_CUH

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "mla/mla.h"

extern "C" const mla_backend *mla_cuda_backend(uint32_t, uint32_t);

#define CK(x)                                                           \
  do {                                                                  \
    cudaError_t e_ = (x);                                               \
    if (e_ != cudaSuccess) {                                            \
      printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

__global__ void fill(__nv_bfloat16 *p, size_t n, uint32_t seed, float amp) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x) {
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15ull + seed;
    z ^= z >> 30, z *= 0xBF58476D1CE4E5B9ull;
    z ^= z >> 27, z *= 0x94D049BB133111EBull;
    z ^= z >> 31;
    float s = 0;
    for (int k = 0; k < 4; k++) s += (float)((z >> (16 * k)) & 0xffff);
    p[i] = __float2bfloat16((s - 131070.f) / 32768.f * amp);
  }
}

static mla_tensor dense(void *data, int dtype, std::vector<int64_t> shape) {
  mla_tensor t = {};
  t.data = data;
  t.dtype = dtype;
  t.rank = (int)shape.size();
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; i--) {
    t.shape[i] = shape[i], t.stride[i] = step;
    step *= shape[i];
  }
  return t;
}

struct session {
  const mla_backend *b;
  mla_handle *h;
  mla_backend_plan *plan;
  void *ws;
  uint64_t ws_bytes;
  mla_answer answer;
};

/* Opens the device, plans, and takes the workspace, full of NaN. */
static void begin(session &x, const mla_problem &pr, const mla_limits &l) {
  mla_error err = {};
  err.size = sizeof err;
  x.b = mla_cuda_backend(MLA_ABI_MAJOR, MLA_ABI_MINOR);
  if (x.b->open(0, NULL, &x.h, &err)) {
    printf("open: %s\n", err.message);
    exit(3);
  }
  x.answer = {};
  x.answer.size = sizeof x.answer;
  x.b->query(x.h, &pr, &l, &x.answer, &err);
  if (!x.answer.supported) {
    printf("no: %s\n", x.answer.reason);
    exit(1);
  }
  x.b->plan(x.h, &pr, &l, &x.plan, &err);
  x.ws_bytes = x.answer.workspace_bytes;
  CK(cudaMalloc(&x.ws, x.ws_bytes + 1));
  CK(cudaMemset(x.ws, 0xff, x.ws_bytes));
}

static void finish(session &x) {
  CK(cudaFree(x.ws));
  x.b->plan_free(x.plan);
  x.b->close(x.h);
}

/* Microseconds of one call: a graph of `sets` of them, median of six. */
template <typename Launch>
static double time_graph(int sets, Launch launch) {
  cudaStream_t st;
  cudaGraph_t g;
  cudaGraphExec_t e;
  cudaEvent_t a, b;
  std::vector<float> times;
  CK(cudaStreamCreate(&st));
  launch(0, st);
  CK(cudaStreamSynchronize(st));
  CK(cudaStreamBeginCapture(st, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < sets; i++) launch(i, st);
  CK(cudaStreamEndCapture(st, &g));
  CK(cudaGraphInstantiate(&e, g, 0));
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  for (int i = 0; i < 7; i++) {
    float ms;
    CK(cudaEventRecord(a, st));
    CK(cudaGraphLaunch(e, st));
    CK(cudaEventRecord(b, st));
    CK(cudaEventSynchronize(b));
    CK(cudaEventElapsedTime(&ms, a, b));
    if (i) times.push_back(ms * 1000 / (float)sets);
  }
  CK(cudaEventDestroy(a));
  CK(cudaEventDestroy(b));
  CK(cudaGraphExecDestroy(e));
  CK(cudaGraphDestroy(g));
  CK(cudaStreamDestroy(st));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/* Microseconds of out (m x n) = a (m x k) by b (n x k), transposed, in bf16. */
static inline double time_product(__nv_bfloat16 *a, __nv_bfloat16 *b,
                                  __nv_bfloat16 *out, int m, int n, int k) {
  session x;
  mla_problem pr = {};
  pr.size = sizeof pr;
  pr.op = MLA_OP_MATMUL;
  pr.q_dtype = pr.out_dtype = pr.weight_dtype = MLA_BF16;
  pr.q_lora_rank = k;
  pr.hidden_size = n;
  mla_limits l = {};
  l.size = sizeof l;
  l.tokens = m;
  begin(x, pr, l);
  const double us = time_graph(4, [&](int, cudaStream_t s) {
    mla_error err = {};
    err.size = sizeof err;
    mla_tensor t[MLA_T_COUNT] = {};
    t[MLA_T_A] = dense(a, MLA_BF16, {m, k});
    t[MLA_T_B] = dense(b, MLA_BF16, {n, k});
    t[MLA_T_OUT] = dense(out, MLA_BF16, {m, n});
    mla_args args = {sizeof args, MLA_T_COUNT, t};
    x.b->run(x.plan, &args, x.ws, x.ws_bytes, (mla_stream)(void *)s, &err);
  });
  finish(x);
  return us;
}

#endif
