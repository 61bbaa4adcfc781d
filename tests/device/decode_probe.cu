/*
 * decode_probe: the CUDA decode alone, against a naive kernel in binary64,
 * then timed. A development tool: what counts is mlacheck's verdict.
 *
 *   decode_probe check      a set of shapes, worst error of each
 *   decode_probe bench [H Q B S]...   microseconds by graph replay, pages
 *                                     rotated beyond the second-level cache
 */
#include <unistd.h>

#include "probe.cuh"

struct shape {
  int heads, q, batch, seq, page, causal, ragged;
};

struct problem_data {
  shape s;
  int tokens, blocks, width, sets;
  std::vector<int> lens, start, table;
  __nv_bfloat16 *d_q, *d_cache, *d_out;
  float *d_lse;
  int *d_lens, *d_start, *d_table;
};

__global__ void poison_tails(__nv_bfloat16 *cache, const int *table,
                             const int *lens, int width, int page) {
  int b = blockIdx.x, n = lens[b];
  if (n % page == 0) return;
  size_t id = table[b * width + n / page];
  for (int r = n % page; r < page; r++)
    for (int d = threadIdx.x; d < 576; d += blockDim.x)
      cache[(id * page + r) * 576 + d] = __float2bfloat16(nanf(""));
}

/* One row a block, everything in binary64. */
__global__ void naive(const __nv_bfloat16 *q, const __nv_bfloat16 *cache,
                      const int *table, const int *lens, const int *start,
                      int batch, int width, int heads, int page, int causal,
                      double scale, double *out, double *lse) {
  extern __shared__ double sc[];
  __shared__ double red[128];
  int t = blockIdx.x, h = blockIdx.y, b = 0;
  while (b + 1 < batch && start[b + 1] <= t) b++;
  int ql = start[b + 1] - start[b], n = lens[b];
  if (causal) n = n - ql + (t - start[b]) + 1;
  if (n < 0) n = 0;
  const __nv_bfloat16 *qr = q + ((size_t)t * heads + h) * 576;
  double m = -INFINITY;
  for (int j = threadIdx.x; j < n; j += 128) {
    size_t id = table[b * width + j / page];
    const __nv_bfloat16 *k = cache + (id * page + j % page) * 576;
    double s = 0;
    for (int d = 0; d < 576; d++)
      s += (double)__bfloat162float(qr[d]) * (double)__bfloat162float(k[d]);
    sc[j] = s * scale;
    m = fmax(m, sc[j]);
  }
  red[threadIdx.x] = m;
  __syncthreads();
  for (int i = 0; i < 128; i++) m = fmax(m, red[i]);
  __syncthreads();
  double l = 0;
  for (int j = threadIdx.x; j < n; j += 128) l += sc[j] = exp(sc[j] - m);
  red[threadIdx.x] = l;
  __syncthreads();
  l = 0;
  for (int i = 0; i < 128; i++) l += red[i];
  for (int d = threadIdx.x; d < 512; d += 128) {
    double o = 0;
    for (int j = 0; j < n; j++) {
      size_t id = table[b * width + j / page];
      o += sc[j] *
           (double)__bfloat162float(cache[(id * page + j % page) * 576 + d]);
    }
    out[((size_t)t * heads + h) * 512 + d] = n ? o / l : 0;
  }
  if (threadIdx.x == 0) lse[t * heads + h] = n ? m + log(l) : -INFINITY;
}

static void make(problem_data &p, const shape &s, int sets, unsigned seed) {
  std::mt19937 rng(seed);
  p.s = s;
  p.sets = sets;
  p.lens.resize(s.batch);
  p.start.assign(s.batch + 1, 0);
  for (int b = 0; b < s.batch; b++) {
    p.lens[b] = s.ragged ? (int)(rng() % (unsigned)(s.seq + 1)) : s.seq;
    int q = s.ragged ? (int)(rng() % (unsigned)(s.q + 1)) : s.q;
    p.start[b + 1] = p.start[b] + q;
  }
  p.tokens = std::max(1, p.start[s.batch]);
  p.width = (s.seq + s.page - 1) / s.page;
  p.blocks = p.width * s.batch * sets;
  std::vector<int> ids(p.blocks);
  for (int i = 0; i < p.blocks; i++) ids[i] = i;
  std::shuffle(ids.begin(), ids.end(), rng);
  p.table = ids;
  size_t cache = (size_t)p.blocks * s.page * 576;
  size_t nq = (size_t)p.tokens * s.heads * 576;
  CK(cudaMalloc(&p.d_q, nq * 2));
  CK(cudaMalloc(&p.d_cache, cache * 2));
  CK(cudaMalloc(&p.d_out, (size_t)p.tokens * s.heads * 512 * 2));
  CK(cudaMalloc(&p.d_lse, (size_t)p.tokens * s.heads * 4));
  CK(cudaMalloc(&p.d_lens, s.batch * 4));
  CK(cudaMalloc(&p.d_start, (s.batch + 1) * 4));
  CK(cudaMalloc(&p.d_table, p.blocks * 4));
  fill<<<1024, 256>>>(p.d_q, nq, seed, 1.f);
  fill<<<1024, 256>>>(p.d_cache, cache, seed + 99, 1.f);
  CK(cudaMemcpy(p.d_lens, p.lens.data(), s.batch * 4, cudaMemcpyDefault));
  CK(cudaMemcpy(p.d_start, p.start.data(), (s.batch + 1) * 4,
                cudaMemcpyDefault));
  CK(cudaMemcpy(p.d_table, p.table.data(), p.blocks * 4, cudaMemcpyDefault));
  CK(cudaMemset(p.d_out, 0xff, (size_t)p.tokens * s.heads * 512 * 2));
  CK(cudaMemset(p.d_lse, 0xff, (size_t)p.tokens * s.heads * 4));
  CK(cudaDeviceSynchronize());
}

static void drop(problem_data &p) {
  cudaFree(p.d_q), cudaFree(p.d_cache), cudaFree(p.d_out), cudaFree(p.d_lse);
  cudaFree(p.d_lens), cudaFree(p.d_start), cudaFree(p.d_table);
}

static void prepare(session &x, const problem_data &p, uint64_t flags) {
  mla_problem pr = {};
  pr.size = sizeof pr;
  pr.op = MLA_OP_DECODE;
  pr.flags = MLA_RETURN_LSE | (p.s.causal ? MLA_CAUSAL : 0) | flags;
  pr.q_dtype = pr.out_dtype = pr.weight_dtype = MLA_BF16;
  pr.cache_format = MLA_CACHE_BF16;
  pr.num_heads = p.s.heads;
  pr.kv_lora_rank = 512;
  pr.qk_rope_head_dim = 64;
  pr.block_size = p.s.page;
  pr.scale = 0.1352337788608801;
  mla_limits l = {};
  l.size = sizeof l;
  l.requests = p.s.batch;
  l.tokens = p.tokens;
  l.max_query_len = p.s.q;
  l.max_seq_len = p.s.seq;
  l.num_blocks = p.blocks;
  l.table_width = p.width;
  begin(x, pr, l);
}

static void launch(session &x, problem_data &p, int set, cudaStream_t s) {
  mla_error err = {};
  err.size = sizeof err;
  mla_tensor t[MLA_T_COUNT] = {};
  t[MLA_T_Q] = dense(p.d_q, MLA_BF16, {p.tokens, p.s.heads, 576});
  t[MLA_T_CACHE] = dense(p.d_cache, MLA_BF16, {p.blocks, p.s.page, 576});
  t[MLA_T_BLOCK_TABLE] = dense(p.d_table + (size_t)set * p.s.batch * p.width,
                               MLA_I32, {p.s.batch, p.width});
  t[MLA_T_SEQ_LENS] = dense(p.d_lens, MLA_I32, {p.s.batch});
  t[MLA_T_QUERY_START_LOC] = dense(p.d_start, MLA_I32, {p.s.batch + 1});
  t[MLA_T_OUT] = dense(p.d_out, MLA_BF16, {p.tokens, p.s.heads, 512});
  t[MLA_T_LSE] = dense(p.d_lse, MLA_F32, {p.tokens, p.s.heads});
  mla_args a = {sizeof a, MLA_T_COUNT, t};
  if (x.b->run(x.plan, &a, x.ws, x.ws_bytes, (mla_stream)(void *)s, &err)) {
    printf("run: %s\n", err.message);
    exit(1);
  }
}

static int check(const shape &s, uint64_t flags) {
  problem_data p;
  session x;
  make(p, s, 1, 7);
  poison_tails<<<s.batch, 128>>>(p.d_cache, p.d_table, p.d_lens, p.width,
                                 s.page);
  double *d_out, *d_lse;
  size_t rows = (size_t)p.tokens * s.heads;
  CK(cudaMalloc(&d_out, rows * 512 * 8));
  CK(cudaMalloc(&d_lse, rows * 8));
  int bytes = (s.seq + 1) * 8;
  CK(cudaFuncSetAttribute(naive, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          bytes));
  naive<<<dim3(p.tokens, s.heads), 128, bytes>>>(
      p.d_q, p.d_cache, p.d_table, p.d_lens, p.d_start, s.batch, p.width,
      s.heads, s.page, s.causal, 0.1352337788608801, d_out, d_lse);
  CK(cudaDeviceSynchronize());
  prepare(x, p, flags);
  launch(x, p, 0, 0);
  CK(cudaDeviceSynchronize());
  std::vector<__nv_bfloat16> out(rows * 512), out2(rows * 512);
  std::vector<float> lse(rows);
  std::vector<double> want(rows * 512), want_lse(rows);
  CK(cudaMemcpy(out.data(), p.d_out, rows * 1024, cudaMemcpyDefault));
  CK(cudaMemcpy(lse.data(), p.d_lse, rows * 4, cudaMemcpyDefault));
  CK(cudaMemcpy(want.data(), d_out, rows * 4096, cudaMemcpyDefault));
  CK(cudaMemcpy(want_lse.data(), d_lse, rows * 8, cudaMemcpyDefault));
  CK(cudaMemset(x.ws, 0x5a, x.ws_bytes));
  launch(x, p, 0, 0);
  CK(cudaDeviceSynchronize());
  CK(cudaMemcpy(out2.data(), p.d_out, rows * 1024, cudaMemcpyDefault));
  int same = !memcmp(out.data(), out2.data(), rows * 1024);
  double worst = 0, worst_lse = 0, norm = 0, diff = 0;
  int bad = 0, used = p.start[s.batch] * s.heads;
  for (int r = 0; r < used; r++) {
    double m = 0;
    for (int d = 0; d < 512; d++) m = std::max(m, fabs(want[r * 512ull + d]));
    for (int d = 0; d < 512; d++) {
      double got = (double)__bfloat162float(out[r * 512ull + d]);
      double e = fabs(got - want[r * 512ull + d]);
      norm += want[r * 512ull + d] * want[r * 512ull + d];
      diff += e * e;
      if (!(e <= 1e-2 * m)) bad++;
      if (m > 0) worst = std::max(worst, e / m);
    }
    if (std::isinf(want_lse[r])) {
      if (!(lse[r] == -INFINITY)) bad++;
    } else if (!(fabs(lse[r] - want_lse[r]) < 1e-3)) {
      bad++;
    } else {
      worst_lse = std::max(worst_lse, fabs(lse[r] - want_lse[r]));
    }
  }
  printf(
      "%s %-18s h%d q%d b%d s%d page%d %s%s: rel %.2e worst %.2e lse %.1e "
      "bad %d second %s\n",
      bad || !same ? "FAIL" : "ok  ", x.answer.kernel, s.heads, s.q, s.batch,
      s.seq, s.page, s.causal ? "causal" : "full", s.ragged ? " ragged" : "",
      sqrt(diff / (norm + 1e-300)), worst, worst_lse, bad,
      same ? "same" : "DIFFERS");
  fflush(stdout);
  finish(x);
  cudaFree(d_out), cudaFree(d_lse);
  drop(p);
  return bad || !same;
}

static double bench(const shape &s, uint64_t flags) {
  problem_data p;
  session x;
  size_t bytes = (size_t)s.batch * s.seq * 1152;
  int sets = (int)(((size_t)400 << 20) / bytes) + 1;
  if (sets > 16) sets = bytes * 64 > ((size_t)400 << 20) ? sets : 64;
  if (sets > 128) sets = 128;
  make(p, s, sets, 3);
  prepare(x, p, flags);
  usleep(30000); /* memory given back before is still being cleared */
  const double us = time_graph(
      sets, [&](int set, cudaStream_t st) { launch(x, p, set, st); });
  double flop = 2.0 * s.heads * s.q * (double)s.batch * s.seq * 1088;
  double moved = (double)bytes;
  printf("h%-3d q%d b%-3d s%-5d page%-3d %9.1f us  %6.1f TFLOP/s  %5.2f TB/s\n",
         s.heads, s.q, s.batch, s.seq, s.page, us, flop / us * 1e-6,
         moved / us * 1e-6);
  fflush(stdout);
  finish(x);
  drop(p);
  return us;
}

int main(int argc, char **argv) {
  int bad = 0;
  if (argc > 1 && !strcmp(argv[1], "check")) {
    const shape shapes[] = {
        {16, 1, 1, 64, 64, 1, 0},    {16, 1, 1, 1, 64, 1, 0},
        {16, 1, 1, 65, 64, 1, 0},    {16, 1, 2, 128, 64, 1, 0},
        {64, 1, 3, 200, 64, 1, 0},   {128, 1, 2, 777, 64, 1, 0},
        {128, 2, 2, 1000, 64, 1, 0}, {128, 2, 2, 1000, 64, 0, 0},
        {16, 1, 4, 2500, 64, 1, 1},  {5, 3, 7, 600, 64, 1, 1},
        {128, 2, 9, 1500, 64, 1, 1}, {16, 1, 1, 4096, 64, 1, 0},
        {64, 1, 1, 2048, 128, 1, 0}, {16, 2, 3, 500, 16, 1, 1},
        {16, 2, 3, 500, 8, 1, 1},    {40, 4, 300, 300, 64, 1, 1},
        {8, 1, 2, 300, 1, 1, 0},     {8, 2, 2, 300, 53, 1, 1},
    };
    for (const shape &s : shapes) bad += check(s, 0);
    bad += check({16, 2, 3, 1300, 64, 1, 1}, MLA_BATCH_INVARIANT);
    bad += check({5, 3, 7, 600, 16, 1, 1}, MLA_BATCH_INVARIANT);
  } else if (argc >= 6) {
    for (char **v = argv + 2; v + 4 <= argv + argc; v += 4)
      bench({atoi(v[0]), atoi(v[1]), atoi(v[2]), atoi(v[3]), 64, 1, 0}, 0);
  } else {
    const int heads[] = {16, 64, 128}, batches[] = {1, 8, 32, 128};
    const int seqs[] = {1024, 4096, 8192, 32768};
    for (int h : heads)
      for (int q = 1; q <= 2; q++)
        for (int b : batches)
          for (int n : seqs) bench({h, q, b, n, 64, 1, 0}, 0);
  }
  printf(bad ? "FAILED %d\n" : "all well\n", bad);
  return bad != 0;
}
