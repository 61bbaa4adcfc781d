/*
 * layer_probe: what a layer of a model asks of the device, operation by
 * operation and one after another, timed. A development tool: what is right,
 * mlacheck says.
 *
 *   layer_probe [decode HEADS KEYS TOKENS | prefill HEADS TOKENS |
 *                index HEADS KEYS TOKENS]...
 *
 * Hidden 7168, q_lora_rank 1536, kv_lora_rank 512, bf16. Microseconds by graph
 * replay; weights and pages are others in each call, over 400 MB. Norms and
 * rotations are the caller's. index: the selector of 2048 keys, 132 bytes each.
 */
#include "probe.cuh"

enum { HIDDEN = 7168, QA = 1536, L = 512, R = 64, P = 128, V = 128, PAGE = 64 };

/* All that a call has, in one piece of memory; weights go round in another. */
struct layer {
  int heads, tokens, keys; /* keys 0: prefill */
  char *data, *weights;
  size_t used, turn;
};
static const size_t WEIGHTS = (size_t)2 << 30;

static __nv_bfloat16 *take(layer &x, size_t numbers) {
  char *at = x.data + x.used;
  x.used += (numbers * 2 + 1023) / 1024 * 1024;
  return (__nv_bfloat16 *)at;
}
static __nv_bfloat16 *weight(layer &x, size_t numbers) {
  const size_t bytes = (numbers * 2 + 1023) / 1024 * 1024;
  if (x.turn + bytes > WEIGHTS) x.turn = 0;
  char *at = x.weights + x.turn;
  x.turn += bytes;
  return (__nv_bfloat16 *)at;
}

/* An operation, and how its tensors are made for a call. */
struct step {
  const char *name;
  mla_problem problem;
  double bytes, flops; /* of a call */
  std::vector<int> slots;
  std::vector<mla_tensor> fixed; /* slot by slot; data NULL: a weight's */
  session at;
};

static mla_problem problem_of(int op, int heads) {
  mla_problem p = {};
  p.size = sizeof p;
  p.op = op;
  p.q_dtype = p.out_dtype = p.weight_dtype = MLA_BF16;
  p.cache_format = MLA_CACHE_BF16;
  p.num_heads = heads;
  p.kv_lora_rank = L;
  p.qk_nope_head_dim = P;
  p.qk_rope_head_dim = R;
  p.v_head_dim = V;
  p.block_size = PAGE;
  p.scale = 0.1352337788608801;
  return p;
}

static double count(const mla_tensor &t) {
  double n = 1;
  for (int i = 0; i < t.rank; i++) n *= (double)t.shape[i];
  return n;
}

static step product(const char *name, const mla_tensor &a, int64_t n,
                    const mla_tensor &out) {
  step s = {};
  s.name = name;
  s.problem = problem_of(MLA_OP_MATMUL, 1);
  s.problem.q_lora_rank = (int)a.shape[1];
  s.problem.hidden_size = (int)n;
  s.slots = {MLA_T_A, MLA_T_B, MLA_T_OUT};
  s.fixed = {a, dense(NULL, MLA_BF16, {n, a.shape[1]}), out};
  s.flops = 2.0 * (double)a.shape[0] * (double)n * (double)a.shape[1];
  s.bytes = 2 * (count(s.fixed[1]) + count(a) + count(out));
  return s;
}

static step by_head(const char *name, int op, const mla_tensor &a,
                    const mla_tensor &out) {
  const int64_t h = a.shape[1];
  const int absorbs = op == MLA_OP_Q_ABSORB;
  step s = {};
  s.name = name;
  s.problem = problem_of(op, (int)h);
  if (absorbs)
    s.slots = {MLA_T_Q_NOPE, MLA_T_W_UK, MLA_T_Q_LATENT};
  else
    s.slots = {MLA_T_O_LATENT, MLA_T_W_UV, MLA_T_OUT};
  s.fixed = {a, dense(NULL, MLA_BF16, {h, P, L}), out};
  s.flops = 2.0 * (double)a.shape[0] * (double)h * P * L;
  s.bytes = 2 * (count(s.fixed[1]) + count(a) + count(out));
  return s;
}

/* [N, H, width], of rows `step` wide. */
static mla_tensor heads_of(__nv_bfloat16 *data, int64_t n, int64_t h,
                           int64_t width, int64_t step) {
  mla_tensor t = dense(data, MLA_BF16, {n, h, width});
  t.stride[1] = step;
  t.stride[0] = h * step;
  return t;
}

template <class T>
static T *upload(layer &x, const std::vector<T> &from) {
  T *to = (T *)take(x, from.size() * sizeof(T) / 2);
  CK(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyDefault));
  return to;
}

static std::vector<step> steps_of(layer &x) {
  const int64_t n = x.tokens, h = x.heads, per = (x.keys + PAGE - 1) / PAGE;
  const int64_t blocks = x.keys ? n * per : n / PAGE + 1;
  const int64_t requests = x.keys ? n : 1;
  __nv_bfloat16 *hidden = take(x, n * HIDDEN), *qa = take(x, n * QA),
                *kv = take(x, n * (L + R)), *q = take(x, n * h * (P + R)),
                *absorbed = take(x, n * h * (L + R)),
                *latent = take(x, n * h * L), *heads = take(x, n * h * V),
                *out = take(x, n * HIDDEN);
  std::vector<int> table(requests * per + 1), lens(requests, (int)n),
      start(requests + 1, (int)n);
  std::vector<int64_t> slots(n);
  for (size_t i = 0; i < table.size(); i++) table[i] = (int)i;
  start[0] = 0;
  for (int64_t i = 0; i < n; i++) slots[i] = i;
  for (int64_t i = 0; x.keys && i < n; i++) {
    lens[i] = x.keys, start[i] = (int)i;
    slots[i] = i * per * PAGE + x.keys - 1;
  }
  const mla_tensor t_lens = dense(upload(x, lens), MLA_I32, {requests});
  const mla_tensor t_start = dense(upload(x, start), MLA_I32, {requests + 1});
  const mla_tensor none = dense(NULL, MLA_BF16, {blocks, PAGE, L + R});
  mla_tensor kv_c = dense(kv, MLA_BF16, {n, L});
  mla_tensor k_pe = dense(kv + L, MLA_BF16, {n, R});
  kv_c.stride[0] = k_pe.stride[0] = L + R;
  std::vector<step> all;
  all.push_back(product("q_a", dense(hidden, MLA_BF16, {n, HIDDEN}), QA,
                        dense(qa, MLA_BF16, {n, QA})));
  all.push_back(product("kv_a", dense(hidden, MLA_BF16, {n, HIDDEN}), L + R,
                        dense(kv, MLA_BF16, {n, L + R})));
  all.push_back(product("q_b", dense(qa, MLA_BF16, {n, QA}), h * (P + R),
                        dense(q, MLA_BF16, {n, h * (P + R)})));
  step w = {};
  w.name = "kv_write";
  w.problem = problem_of(MLA_OP_KV_WRITE, x.heads);
  w.slots = {MLA_T_KV_C, MLA_T_K_PE, MLA_T_SLOT_MAPPING, MLA_T_CACHE};
  w.fixed = {kv_c, k_pe, dense(upload(x, slots), MLA_I64, {n}), none};
  w.bytes = 4.0 * (double)n * (L + R);
  all.push_back(w);
  if (x.keys) {
    all.push_back(by_head("q_absorb", MLA_OP_Q_ABSORB,
                          heads_of(q, n, h, P, P + R),
                          heads_of(absorbed, n, h, L, L + R)));
    step d = {};
    d.name = "decode";
    d.problem = problem_of(MLA_OP_DECODE, x.heads);
    d.problem.flags = MLA_CAUSAL;
    d.slots = {MLA_T_Q,        MLA_T_CACHE,           MLA_T_BLOCK_TABLE,
               MLA_T_SEQ_LENS, MLA_T_QUERY_START_LOC, MLA_T_OUT};
    d.fixed = {heads_of(absorbed, n, h, L + R, L + R),
               none,
               dense(upload(x, table), MLA_I32, {n, per}),
               t_lens,
               t_start,
               heads_of(latent, n, h, L, L)};
    d.flops = 2.0 * (double)(n * h) * x.keys * (2 * L + R);
    d.bytes = 2.0 * (double)n * x.keys * (L + R);
    all.push_back(d);
    all.push_back(by_head("v_expand", MLA_OP_V_EXPAND,
                          heads_of(latent, n, h, L, L),
                          heads_of(heads, n, h, V, V)));
  } else {
    step p = {};
    p.name = "prefill";
    p.problem = problem_of(MLA_OP_PREFILL, x.heads);
    p.problem.flags = MLA_CAUSAL;
    p.slots = {MLA_T_Q,         MLA_T_KV_C,     MLA_T_K_PE,
               MLA_T_KV_B_PROJ, MLA_T_SEQ_LENS, MLA_T_QUERY_START_LOC,
               MLA_T_OUT};
    p.fixed = {heads_of(q, n, h, P + R, P + R),
               kv_c,
               k_pe,
               dense(NULL, MLA_BF16, {h * (P + V), L}),
               t_lens,
               t_start,
               heads_of(heads, n, h, V, V)};
    p.flops = (double)(n * h) * (double)n * (P + R + V) +
              2.0 * (double)(n * h) * (P + V) * L;
    all.push_back(p);
  }
  all.push_back(product("o_proj", dense(heads, MLA_BF16, {n, h * V}), HIDDEN,
                        dense(out, MLA_BF16, {n, HIDDEN})));
  return all;
}

/* Index keys in place of weights: codes below 8, none of them NaN, scales near
   2^-7, so that logits are spread as a model's are. */
__global__ void fill_index(unsigned char *cache, size_t pages) {
  for (size_t p = blockIdx.x; p < pages; p += gridDim.x)
    for (int j = threadIdx.x; j < PAGE * 33; j += blockDim.x) {
      uint32_t *at = (uint32_t *)(cache + p * PAGE * 132) + j;
      const uint32_t z = ((uint32_t)p * 2112u + j + 1) * 0x9E3779B9u;
      const uint32_t mixed = (z ^ z >> 15) * 0x85EBCA6Bu;
      *at = j < PAGE * 32 ? (mixed ^ mixed >> 13) & 0xcfcfcfcfu
                          : 0x3c000000u | (mixed >> 9 & 0x7fffffu);
    }
}

/* The selector. */
static std::vector<step> index_steps(layer &x) {
  const int64_t n = x.tokens, h = x.heads, per = (x.keys + PAGE - 1) / PAGE;
  std::vector<int> table(n * per), lens(n, x.keys), start(n + 1);
  for (size_t i = 0; i < table.size(); i++) table[i] = (int)i;
  for (int64_t i = 0; i <= n; i++) start[i] = (int)i;
  step s = {};
  s.name = "index";
  s.problem = problem_of(MLA_OP_INDEX, x.heads);
  s.problem.flags = MLA_CAUSAL;
  s.problem.cache_format = MLA_CACHE_FP8_INDEX;
  s.problem.kv_lora_rank = s.problem.head_dim = 128;
  s.problem.qk_rope_head_dim = 0;
  s.problem.topk = 2048;
  s.slots = {MLA_T_Q,           MLA_T_CACHE,    MLA_T_INDEX_WEIGHTS,
             MLA_T_BLOCK_TABLE, MLA_T_SEQ_LENS, MLA_T_QUERY_START_LOC,
             MLA_T_POSITIONS};
  s.fixed = {dense(take(x, n * h * 128), MLA_BF16, {n, h, 128}),
             dense(NULL, MLA_U8, {n * per, PAGE, 132}),
             dense(take(x, 2 * n * h), MLA_F32, {n, h}),
             dense(upload(x, table), MLA_I32, {n, per}),
             dense(upload(x, lens), MLA_I32, {n}),
             dense(upload(x, start), MLA_I32, {n + 1}),
             dense(take(x, 2 * n * 2048), MLA_I32, {n, 2048})};
  s.bytes = 132.0 * (double)n * x.keys;
  s.flops = 256.0 * (double)(n * h) * x.keys;
  return {s};
}

static void begin_step(const layer &x, step &s) {
  mla_limits l = {};
  l.size = sizeof l;
  l.tokens = x.tokens;
  l.requests = x.keys ? x.tokens : 1;
  l.max_query_len = x.keys ? 1 : x.tokens;
  l.max_seq_len = x.keys ? x.keys : x.tokens;
  l.table_width = (l.max_seq_len + PAGE - 1) / PAGE;
  l.num_blocks = l.requests * l.table_width + 1;
  begin(s.at, s.problem, l);
}

static void run(layer &x, step &s, cudaStream_t st) {
  mla_error err = {};
  err.size = sizeof err;
  mla_tensor t[MLA_T_COUNT] = {};
  for (size_t i = 0; i < s.slots.size(); i++) {
    t[s.slots[i]] = s.fixed[i];
    if (!s.fixed[i].data)
      t[s.slots[i]].data = weight(x, (size_t)count(s.fixed[i]));
  }
  mla_args a = {sizeof a, MLA_T_COUNT, t};
  if (s.at.b->run(s.at.plan, &a, s.at.ws, s.at.ws_bytes, (mla_stream)(void *)st,
                  &err)) {
    printf("%s: %s\n", s.name, err.message);
    exit(1);
  }
}

static void measure(const char *what, int heads, int keys, int tokens) {
  layer x = {heads, tokens, keys, NULL, NULL, 0, 0};
  const size_t numbers = (size_t)3 << 29;
  CK(cudaMalloc(&x.data, numbers * 2));
  CK(cudaMalloc(&x.weights, WEIGHTS));
  fill<<<1024, 256>>>((__nv_bfloat16 *)x.data, numbers, 1, 0.5f);
  fill<<<1024, 256>>>((__nv_bfloat16 *)x.weights, WEIGHTS / 2, 2, 0.1f);
  CK(cudaDeviceSynchronize());
  if (!strcmp(what, "index"))
    fill_index<<<1024, 256>>>((unsigned char *)x.weights,
                              WEIGHTS / (PAGE * 132));
  CK(cudaDeviceSynchronize());
  std::vector<step> steps =
      strcmp(what, "index") ? steps_of(x) : index_steps(x);
  printf("%s, %d heads, %d tokens, %d keys\n", what, heads, tokens, keys);
  double sum = 0;
  for (step &s : steps) {
    begin_step(x, s);
    const int sets =
        std::min(64, (int)(8e8 / (s.bytes + 1e5) + 4e9 / (s.flops + 1e8)) + 2);
    const double us =
        time_graph(sets, [&](int, cudaStream_t st) { run(x, s, st); });
    printf("  %-9s %8.1f us %7.1f GB/s %7.1f TFLOP/s  %s\n", s.name, us,
           s.bytes / us * 1e-3, s.flops / us * 1e-6, s.at.answer.kernel);
    fflush(stdout);
    sum += us;
  }
  const double us = time_graph(8, [&](int, cudaStream_t st) {
    for (step &s : steps) run(x, s, st);
  });
  printf("  all       %8.1f us, one by one %.1f\n", us, sum);
  fflush(stdout);
  for (step &s : steps) finish(s.at);
  CK(cudaFree(x.data));
  CK(cudaFree(x.weights));
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc;) {
    const int keys = strcmp(argv[i], "prefill") != 0;
    if (i + 2 + keys >= argc) return 2;
    measure(argv[i], atoi(argv[i + 1]), keys ? atoi(argv[i + 2]) : 0,
            atoi(argv[i + 2 + keys]));
    i += 3 + keys;
  }
  return 0;
}
