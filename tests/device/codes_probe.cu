/*
 * codes_probe: decode over lists and over caches of codes, timed. A
 * development tool: what is right, mlacheck says.
 *
 *   codes_probe [FORMAT KEYS H B]...   KEYS: of a request, all of them; or
 * L2048: as many listed of 32768; or P8192: 2048 listed of one request's 8192,
 * B of its tokens; or 131072+100: 100, but of the first request 131072; or
 * 4096@16: on pages of 16
 *   codes_probe pages FORMAT KEYS B    a table: sizes of pages by heads
 *
 * Microseconds by graph replay; pages and lists change from call to call.
 */
#include "probe.cuh"

struct shape {
  int format, heads, batch, keys, listed, page, shared;
  int others; /* keys of all requests but the first; 0: as many */
};

static int entry_bytes(int format) {
  switch (format) {
    case MLA_CACHE_BF16:
    case MLA_CACHE_F16: return 1152;
    case MLA_CACHE_FP8_DS_MLA: return 656;
    case MLA_CACHE_FP8_E4M3: return 576;
    default: return 592;
  }
}

/* Codes that are no NaN, scales in [2^-7, 2^-6), rope numbers below 2. */
__global__ void fill_entries(unsigned char *cache, size_t entries, int format,
                             int bytes) {
  for (size_t i = blockIdx.x; i < entries; i += gridDim.x)
    for (int j = threadIdx.x; j < bytes / 4; j += blockDim.x) {
      uint64_t z = (i * 1000 + j + 1) * 0x9E3779B97F4A7C15ull;
      z ^= z >> 30, z *= 0xBF58476D1CE4E5B9ull, z ^= z >> 27;
      uint32_t v = (uint32_t)z;
      const int scales =
          format == MLA_CACHE_FP8_DS_MLA ? j >= 128 && j < 132 : j >= 144;
      const int plain = format == MLA_CACHE_BF16 || format == MLA_CACHE_F16 ||
                        (format == MLA_CACHE_FP8_DS_MLA && j >= 132);
      if (plain)
        v = (v & 0x807f807fu) | 0x3f003f00u;
      else if (scales)
        v = 0x3c000000u | (v & 0x7fffffu);
      else
        v &= 0xbfbfbfbfu;
      ((uint32_t *)(cache + i * bytes))[j] = v;
    }
}

/* Of q and the output. */
static int type_of(const shape &s) {
  return s.format == MLA_CACHE_F16 ? MLA_F16 : MLA_BF16;
}

static mla_problem problem_of(const shape &s) {
  mla_problem pr = {};
  pr.size = sizeof pr;
  pr.op = MLA_OP_DECODE;
  pr.flags = MLA_RETURN_LSE | (s.listed ? MLA_SPARSE : MLA_CAUSAL);
  pr.q_dtype = pr.out_dtype = pr.weight_dtype = type_of(s);
  pr.cache_format = s.format;
  pr.num_heads = s.heads;
  pr.kv_lora_rank = 512;
  pr.qk_rope_head_dim = 64;
  pr.block_size = s.page;
  pr.scale = 0.1352337788608801;
  pr.k_scale = 0.01;
  pr.topk = s.listed;
  return pr;
}

/* Microseconds of a call; *lse: the mean, *kernel: who did it. */
static double bench(const shape &s, double *lse_mean, char (&kernel)[64]) {
  const int bytes = entry_bytes(s.format);
  const int width = (s.keys + s.page - 1) / s.page;
  const size_t span = (size_t)width * s.page;
  const int at_once = s.listed ? s.listed : s.keys;
  const double others = s.others ? s.others : at_once;
  const double moved = (at_once + (s.batch - 1) * others) * bytes;
  const int sets = std::min(32, (int)(4e8 / moved) + 2);
  /* Lists of every set are drawn anew of one cache; pages are of their own. */
  size_t entries = s.shared ? span : s.batch * span * (s.listed ? 1 : sets);
  if (!s.shared)
    entries = std::max(entries, (size_t)(4e8 / bytes)) / s.page * s.page;
  const int blocks = (int)(entries / s.page);
  std::mt19937 rng(5);
  std::vector<int> ids(blocks), lens(s.batch, s.keys), start(s.batch + 1);
  const int requests = s.shared ? 1 : s.batch; /* of all tokens */
  for (int b = 1; b < s.batch && s.others; b++) lens[b] = s.others;
  for (int i = 0; i < blocks; i++) ids[i] = i;
  std::shuffle(ids.begin(), ids.end(), rng);
  for (int b = 0; b <= s.batch; b++) start[b] = b * s.batch / requests;
  std::vector<int> lists((size_t)sets * s.batch * s.listed);
  for (size_t i = 0; i < lists.size(); i++) lists[i] = rng() % entries;
  unsigned char *cache;
  __nv_bfloat16 *q, *out;
  float *lse;
  int *d_ids, *d_lens, *d_start, *d_lists;
  const size_t nq = (size_t)s.batch * s.heads * 576;
  CK(cudaMalloc(&cache, entries * bytes));
  CK(cudaMalloc(&q, nq * 2));
  CK(cudaMalloc(&out, nq * 2));
  CK(cudaMalloc(&lse, nq * 4));
  CK(cudaMalloc(&d_ids, ids.size() * 4));
  CK(cudaMalloc(&d_lens, lens.size() * 4));
  CK(cudaMalloc(&d_start, start.size() * 4));
  CK(cudaMalloc(&d_lists, lists.size() * 4 + 4));
  CK(cudaMemcpy(d_ids, ids.data(), ids.size() * 4, cudaMemcpyDefault));
  CK(cudaMemcpy(d_lens, lens.data(), lens.size() * 4, cudaMemcpyDefault));
  CK(cudaMemcpy(d_start, start.data(), start.size() * 4, cudaMemcpyDefault));
  CK(cudaMemcpy(d_lists, lists.data(), lists.size() * 4, cudaMemcpyDefault));
  fill<<<1024, 256>>>(q, nq, 1, 1.f);
  fill_entries<<<4096, 192>>>(cache, entries, s.format, bytes);
  CK(cudaDeviceSynchronize());
  mla_limits l = {};
  l.size = sizeof l;
  l.requests = requests;
  l.tokens = s.batch;
  l.max_query_len = s.batch / requests;
  l.max_seq_len = (int64_t)span;
  l.num_blocks = blocks;
  l.table_width = width;
  session x;
  begin(x, problem_of(s), l);
  const int dtype = s.format == MLA_CACHE_BF16       ? MLA_BF16
                    : s.format == MLA_CACHE_F16      ? MLA_F16
                    : s.format == MLA_CACHE_FP8_E4M3 ? MLA_FP8_E4M3
                                                     : MLA_U8;
  const int width_of = bytes == 1152 ? 576 : bytes;
  const double us = time_graph(sets, [&](int set, cudaStream_t st) {
    mla_error err = {};
    err.size = sizeof err;
    mla_tensor t[MLA_T_COUNT] = {};
    t[MLA_T_Q] = dense(q, type_of(s), {s.batch, s.heads, 576});
    t[MLA_T_CACHE] = dense(cache, dtype, {blocks, s.page, width_of});
    t[MLA_T_QUERY_START_LOC] = dense(d_start, MLA_I32, {requests + 1});
    t[MLA_T_OUT] = dense(out, type_of(s), {s.batch, s.heads, 512});
    t[MLA_T_LSE] = dense(lse, MLA_F32, {s.batch, s.heads});
    if (s.listed) {
      t[MLA_T_INDICES] = dense(d_lists + (size_t)set * s.batch * s.listed,
                               MLA_I32, {s.batch, s.listed});
    } else {
      t[MLA_T_BLOCK_TABLE] = dense(d_ids + (size_t)set * s.batch * width,
                                   MLA_I32, {s.batch, width});
      t[MLA_T_SEQ_LENS] = dense(d_lens, MLA_I32, {s.batch});
    }
    mla_args a = {sizeof a, MLA_T_COUNT, t};
    if (x.b->run(x.plan, &a, x.ws, x.ws_bytes, (mla_stream)(void *)st, &err)) {
      printf("run: %s\n", err.message);
      exit(1);
    }
  });
  std::vector<float> got((size_t)s.batch * s.heads);
  CK(cudaMemcpy(got.data(), lse, got.size() * 4, cudaMemcpyDefault));
  double sum = 0;
  for (float v : got) sum += v;
  *lse_mean = sum / (double)got.size();
  snprintf(kernel, sizeof kernel, "%s", x.answer.kernel);
  finish(x);
  for (void *p :
       {(void *)cache, (void *)q, (void *)out, (void *)lse, (void *)d_ids,
        (void *)d_lens, (void *)d_start, (void *)d_lists})
    CK(cudaFree(p));
  return us;
}

static void say(const char *name, const shape &s) {
  double lse;
  char kernel[64];
  const double us = bench(s, &lse, kernel);
  const int at_once = s.listed ? s.listed : s.keys;
  const double others = s.others ? s.others : at_once;
  printf("%-11s %s%-5d h%-3d b%-3d %8.1f us %6.1f TFLOP/s  %s  lse %.4f\n",
         name, s.listed ? "L" : "s", at_once, s.heads, s.batch, us,
         2.0 * s.heads * (at_once + (s.batch - 1) * others) * 1088 / us * 1e-6,
         kernel, lse);
  fflush(stdout);
}

/* us, sizes of pages by heads, and each page's kernel. */
static void say_pages(const char *name, int format, int keys, int batch) {
  const int heads[] = {1, 2, 5, 8, 12, 16, 20, 40, 64, 96, 100, 128};
  const int pages[] = {64, 128, 576, 100, 53, 48, 32, 17, 16, 1};
  double lse;
  char kernel[64];
  printf("%s, B %d, %d keys, us\npage", name, batch, keys);
  for (int h : heads) printf("  h %-4d", h);
  printf("\n");
  for (int page : pages) {
    printf("%-4d", page);
    for (int h : heads)
      printf("%8.1f",
             bench({format, h, batch, keys, 0, page, 0, 0}, &lse, kernel));
    printf("  %s\n", kernel);
    fflush(stdout);
  }
}

static int format_of(const char *name) {
  const char *names[] = {"bf16",      "fp8_ds_mla", "fp8_e4m3",
                         "fp8_token", "int8_token", "f16"};
  const int formats[] = {MLA_CACHE_BF16,       MLA_CACHE_FP8_DS_MLA,
                         MLA_CACHE_FP8_E4M3,   MLA_CACHE_FP8_TOKEN,
                         MLA_CACHE_INT8_TOKEN, MLA_CACHE_F16};
  for (int i = 0; i < 6; i++)
    if (!strcmp(name, names[i])) return formats[i];
  printf("no such format: %s\n", name);
  exit(2);
}

int main(int argc, char **argv) {
  if (argc == 5 && !strcmp(argv[1], "pages")) {
    say_pages(argv[2], format_of(argv[2]), atoi(argv[3]), atoi(argv[4]));
    return 0;
  }
  for (int i = 1; i + 3 < argc; i += 4) {
    const char *of = argv[i + 1];
    const int shared = *of == 'P', keys = atoi(of + (*of > '9'));
    const int listed = shared ? 2048 : *of == 'L' ? keys : 0;
    const int others = strchr(of, '+') ? atoi(strchr(of, '+') + 1) : 0;
    const int page = strchr(of, '@') ? atoi(strchr(of, '@') + 1) : 64;
    say(argv[i], {format_of(argv[i]), atoi(argv[i + 2]), atoi(argv[i + 3]),
                  *of == 'L' ? 32768 : keys, listed, page, shared, others});
  }
  return 0;
}
