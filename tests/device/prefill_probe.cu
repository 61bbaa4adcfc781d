/*
 * prefill_probe: the CUDA prefill alone, against a naive kernel in binary64,
 * then timed.
 *
 *   prefill_probe check        a set of shapes, worst error of each
 *   prefill_probe bench [H B S [f16]]  microseconds by graph replay; the
 *                              attention is what is left without the
 *                              up-projection, which is timed in bf16
 */
#include "probe.cuh"

struct shape {
  int heads, batch, seq, causal, ragged;
};

struct problem_data {
  shape s;
  int tokens, longest;
  std::vector<int> lens, start;
  __nv_bfloat16 *q, *kv_c, *rope, *w, *out;
  float *lse;
  int *d_lens, *d_start;
};

enum { LATENT = 512, NOPE = 128, ROPE = 64, WIDTH = 192, VALUE = 128 };
static int type = MLA_BF16; /* of all tensors */
static const double scale = 0.07216878364870322;

static __nv_bfloat16 *numbers(size_t n, unsigned seed, float amplitude) {
  __nv_bfloat16 *p;
  CK(cudaMalloc(&p, n * 2));
  fill<<<1024, 256>>>(p, n, seed, amplitude);
  return p;
}

static int *integers(const std::vector<int> &v) {
  int *p;
  CK(cudaMalloc(&p, v.size() * 4));
  CK(cudaMemcpy(p, v.data(), v.size() * 4, cudaMemcpyDefault));
  return p;
}

static void make(problem_data &p, const shape &s, unsigned seed) {
  std::mt19937 rng(seed);
  p.s = s;
  p.longest = 1;
  p.start.assign(1, 0);
  for (int b = 0; b < s.batch; b++) {
    const int n = s.ragged ? (int)(rng() % (unsigned)(s.seq + 1)) : s.seq;
    p.lens.push_back(n);
    p.start.push_back(p.start.back() + n);
    p.longest = std::max(p.longest, n);
  }
  const size_t n = (size_t)std::max(1, p.start.back()), h = (size_t)s.heads;
  p.tokens = (int)n;
  p.q = numbers(n * h * WIDTH, seed, 1);
  p.kv_c = numbers(n * LATENT, seed + 1, 1);
  p.rope = numbers(n * ROPE, seed + 2, 1);
  p.w = numbers(h * (NOPE + VALUE) * LATENT, seed + 3, 0.04f);
  CK(cudaMalloc(&p.out, n * h * VALUE * 2));
  CK(cudaMalloc(&p.lse, n * h * 4));
  CK(cudaMemset(p.out, 0xff, n * h * VALUE * 2));
  CK(cudaMemset(p.lse, 0xff, n * h * 4));
  p.d_lens = integers(p.lens);
  p.d_start = integers(p.start);
}

static void drop(problem_data &p) {
  cudaFree(p.q), cudaFree(p.kv_c), cudaFree(p.rope), cudaFree(p.w);
  cudaFree(p.out), cudaFree(p.lse), cudaFree(p.d_lens), cudaFree(p.d_start);
}

static void prepare(session &x, const problem_data &p) {
  mla_problem pr = {};
  pr.size = sizeof pr;
  pr.op = MLA_OP_PREFILL;
  pr.flags = MLA_RETURN_LSE | (p.s.causal ? MLA_CAUSAL : 0);
  pr.q_dtype = pr.out_dtype = pr.weight_dtype = type;
  pr.num_heads = p.s.heads;
  pr.kv_lora_rank = LATENT;
  pr.qk_nope_head_dim = NOPE;
  pr.qk_rope_head_dim = ROPE;
  pr.v_head_dim = VALUE;
  pr.scale = scale;
  mla_limits l = {};
  l.size = sizeof l;
  l.requests = p.s.batch;
  l.tokens = p.tokens;
  l.max_query_len = l.max_seq_len = p.longest;
  begin(x, pr, l);
}

static void launch(session &x, problem_data &p, cudaStream_t s) {
  mla_error err = {};
  err.size = sizeof err;
  const int h = p.s.heads, n = p.tokens;
  mla_tensor t[MLA_T_COUNT] = {};
  t[MLA_T_Q] = dense(p.q, type, {n, h, WIDTH});
  t[MLA_T_KV_C] = dense(p.kv_c, type, {n, LATENT});
  t[MLA_T_K_PE] = dense(p.rope, type, {n, ROPE});
  t[MLA_T_KV_B_PROJ] = dense(p.w, type, {h * (NOPE + VALUE), LATENT});
  t[MLA_T_SEQ_LENS] = dense(p.d_lens, MLA_I32, {p.s.batch});
  t[MLA_T_QUERY_START_LOC] = dense(p.d_start, MLA_I32, {p.s.batch + 1});
  t[MLA_T_OUT] = dense(p.out, type, {n, h, VALUE});
  t[MLA_T_LSE] = dense(p.lse, MLA_F32, {n, h});
  mla_args a = {sizeof a, MLA_T_COUNT, t};
  if (x.b->run(x.plan, &a, x.ws, x.ws_bytes, (mla_stream)(void *)s, &err)) {
    printf("run: %s\n", err.message);
    exit(1);
  }
}

/* up[n][256] of one head, rounded as the backend declares. */
__global__ void up_project(const __nv_bfloat16 *kv_c, const __nv_bfloat16 *w,
                           int head, float *up) {
  const size_t t = blockIdx.x, row = (size_t)head * 256 + threadIdx.x;
  double sum = 0;
  for (int l = 0; l < LATENT; l++)
    sum += (double)__bfloat162float(kv_c[t * LATENT + l]) *
           (double)__bfloat162float(w[row * LATENT + l]);
  up[t * 256 + threadIdx.x] = __bfloat162float(__float2bfloat16((float)sum));
}

/* One row a block: its 128 outputs and lse. */
__global__ void naive(const __nv_bfloat16 *q, const __nv_bfloat16 *rope,
                      const float *up, const int *start, int batch, int heads,
                      int head, int causal, double *out, double *lse) {
  extern __shared__ double sc[];
  __shared__ double red[128];
  const int t = (int)blockIdx.x;
  int b = 0;
  while (b < batch && start[b + 1] <= t) b++;
  if (b == batch) return;
  const int first = start[b], n = causal ? t - first + 1 : start[b + 1] - first;
  const __nv_bfloat16 *row = q + ((size_t)t * heads + head) * WIDTH;
  double m = -INFINITY, l = 0;
  for (int j = threadIdx.x; j < n; j += 128) {
    double s = 0;
    for (int d = 0; d < NOPE; d++)
      s += (double)__bfloat162float(row[d]) *
           (double)up[(size_t)(first + j) * 256 + d];
    for (int d = 0; d < ROPE; d++)
      s += (double)__bfloat162float(row[NOPE + d]) *
           (double)__bfloat162float(rope[(size_t)(first + j) * ROPE + d]);
    sc[j] = s * scale;
    m = fmax(m, sc[j]);
  }
  red[threadIdx.x] = m;
  __syncthreads();
  for (int i = 0; i < 128; i++) m = fmax(m, red[i]);
  __syncthreads();
  for (int j = threadIdx.x; j < n; j += 128) l += sc[j] = exp(sc[j] - m);
  red[threadIdx.x] = l;
  __syncthreads();
  l = 0;
  for (int i = 0; i < 128; i++) l += red[i];
  double o = 0;
  for (int j = 0; j < n; j++)
    o += sc[j] * (double)up[(size_t)(first + j) * 256 + NOPE + threadIdx.x];
  out[(size_t)t * VALUE + threadIdx.x] = o / l;
  if (threadIdx.x == 0) lse[t] = m + log(l);
}

struct errors {
  double worst, worst_lse, square, norm;
  int bad;
};

static void compare_head(const problem_data &p, int head, errors &e) {
  const size_t n = (size_t)p.tokens, h = (size_t)p.s.heads;
  float *up;
  double *d_out, *d_lse;
  const int bytes = (p.longest + 1) * 8;
  CK(cudaMalloc(&up, n * 256 * 4));
  CK(cudaMalloc(&d_out, n * VALUE * 8));
  CK(cudaMalloc(&d_lse, n * 8));
  CK(cudaFuncSetAttribute(naive, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          bytes));
  up_project<<<p.tokens, 256>>>(p.kv_c, p.w, head, up);
  naive<<<p.tokens, 128, bytes>>>(p.q, p.rope, up, p.d_start, p.s.batch,
                                  p.s.heads, head, p.s.causal, d_out, d_lse);
  CK(cudaDeviceSynchronize());
  std::vector<double> out(n * VALUE), lse(n);
  std::vector<__nv_bfloat16> got(n * h * VALUE);
  std::vector<float> got_lse(n * h);
  CK(cudaMemcpy(out.data(), d_out, n * VALUE * 8, cudaMemcpyDefault));
  CK(cudaMemcpy(lse.data(), d_lse, n * 8, cudaMemcpyDefault));
  CK(cudaMemcpy(got.data(), p.out, got.size() * 2, cudaMemcpyDefault));
  CK(cudaMemcpy(got_lse.data(), p.lse, got_lse.size() * 4, cudaMemcpyDefault));
  for (size_t t = 0; t < (size_t)p.start.back(); t++) {
    double most = 0;
    for (int d = 0; d < VALUE; d++)
      most = std::max(most, fabs(out[t * VALUE + d]));
    for (int d = 0; d < VALUE; d++) {
      const double want = out[t * VALUE + d];
      const double x = fabs(
          (double)__bfloat162float(got[(t * h + head) * VALUE + d]) - want);
      e.square += x * x;
      e.norm += want * want;
      if (!(x <= 2e-2 * most)) e.bad++;
      e.worst = std::max(e.worst, x / most);
    }
    const double x = fabs((double)got_lse[t * h + head] - lse[t]);
    if (!(x < 2e-3)) e.bad++;
    e.worst_lse = std::max(e.worst_lse, x);
  }
  cudaFree(up), cudaFree(d_out), cudaFree(d_lse);
}

static int check(const shape &s) {
  problem_data p;
  session x;
  errors e = {};
  make(p, s, 7);
  prepare(x, p);
  launch(x, p, 0);
  CK(cudaDeviceSynchronize());
  const size_t bytes = (size_t)p.tokens * s.heads * VALUE * 2;
  std::vector<char> first(bytes), second(bytes);
  CK(cudaMemcpy(first.data(), p.out, bytes, cudaMemcpyDefault));
  CK(cudaMemset(x.ws, 0x5a, x.ws_bytes));
  launch(x, p, 0);
  CK(cudaDeviceSynchronize());
  CK(cudaMemcpy(second.data(), p.out, bytes, cudaMemcpyDefault));
  const int same = !memcmp(first.data(), second.data(), bytes);
  for (int head = 0; head<s.heads; head += s.heads> 4 ? 5 : 1)
    compare_head(p, head, e);
  printf(
      "%s %-18s h%d b%d s%d %s%s: rel %.2e worst %.2e lse %.1e bad %d "
      "second %s\n",
      e.bad || !same ? "FAIL" : "ok  ", x.answer.kernel, s.heads, s.batch,
      s.seq, s.causal ? "causal" : "full", s.ragged ? " ragged" : "",
      sqrt(e.square / (e.norm + 1e-300)), e.worst, e.worst_lse, e.bad,
      same ? "same" : "DIFFERS");
  fflush(stdout);
  finish(x);
  drop(p);
  return e.bad || !same;
}

/* The up-projection as an operation of its own, to be taken off. */
static double time_up(const problem_data &p) {
  const int rows = p.s.heads * (NOPE + VALUE), n = p.tokens;
  __nv_bfloat16 *out;
  CK(cudaMalloc(&out, (size_t)n * rows * 2));
  const double us = time_product(p.kv_c, p.w, out, n, rows, LATENT);
  cudaFree(out);
  return us;
}

static void bench(const shape &s) {
  problem_data p;
  session x;
  make(p, s, 3);
  prepare(x, p);
  const double all =
      time_graph(4, [&](int, cudaStream_t st) { launch(x, p, st); });
  const double up_us = time_up(p), us = all - up_us;
  double flop = 0;
  for (int n : p.lens) flop += (double)s.heads * n * n * (WIDTH + VALUE);
  const double up = 2.0 * s.heads * p.tokens * LATENT * (NOPE + VALUE);
  printf(
      "h%-3d b%-2d s%-6d %9.1f us, of which up-projection %7.1f "
      "(%5.1f TFLOP/s) and attention %9.1f (%5.1f TFLOP/s)\n",
      s.heads, s.batch, s.seq, all, up_us, up / up_us * 1e-6, us,
      flop / us * 1e-6);
  fflush(stdout);
  finish(x);
  drop(p);
}

int main(int argc, char **argv) {
  int bad = 0;
  if (argc > 1 && !strcmp(argv[1], "check")) {
    const shape shapes[] = {{1, 1, 128, 1, 0},   {1, 1, 1, 1, 0},
                            {2, 1, 256, 1, 0},   {3, 1, 77, 1, 0},
                            {2, 1, 300, 0, 0},   {16, 2, 1000, 1, 0},
                            {5, 7, 600, 1, 1},   {128, 3, 700, 1, 1},
                            {40, 40, 300, 0, 1}, {8, 1, 4096, 1, 0}};
    for (const shape &s : shapes) bad += check(s);
  } else if (argc >= 5) {
    if (argc > 5) type = MLA_F16; /* its bits are small numbers, too */
    bench({atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), 1, 0});
  } else {
    for (int n : {1024, 4096, 8192}) bench({128, 1, n, 1, 0});
    bench({16, 1, 8192, 1, 0});
    bench({16, 8, 1024, 1, 0});
    bench({16, 32, 512, 1, 1});
  }
  printf(bad ? "FAILED %d\n" : "all well\n", bad);
  return bad != 0;
}
