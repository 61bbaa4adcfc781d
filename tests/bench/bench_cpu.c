/*
 * bench_cpu - GFLOP/s of decode and prefill on the CPU backend, against a
 * multiply-add loop measured in the same run.
 *
 *   bench_cpu [--threads N] [--isa LEVEL] [--seconds S] [--only TEXT]
 *
 * A time is printed only after sampled rows passed the reference's budget.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_peak.h"
#include "dtype.h"
#include "mla/mla.h"
#include "oracle.h"
#include "rng.h"
#include "tensor.h"

typedef struct bench {
  const char *op; /* "decode" or "prefill" */
  int heads, query, dtype;
  int64_t length;
  int requests;
} bench;

typedef struct settings {
  int threads;
  const char *isa, *only;
  double seconds, peak;
} settings;

enum { latent = 512, rope = 64, nope = 128, value = 128, page = 64 };

static const bench benches[] = {
    {"decode", 1, 1, MLA_BF16, 4096, 1},
    {"decode", 4, 1, MLA_BF16, 4096, 1},
    {"decode", 8, 1, MLA_BF16, 4096, 1},
    {"decode", 16, 1, MLA_BF16, 1024, 1},
    {"decode", 16, 1, MLA_BF16, 4096, 1},
    {"decode", 16, 1, MLA_BF16, 16384, 1},
    {"decode", 16, 1, MLA_F16, 4096, 1},
    {"decode", 16, 1, MLA_F32, 4096, 1},
    {"decode", 20, 1, MLA_BF16, 4096, 1},
    {"decode", 128, 1, MLA_BF16, 1024, 1},
    {"decode", 128, 1, MLA_BF16, 4096, 1},
    {"decode", 128, 1, MLA_BF16, 16384, 1},
    {"decode", 128, 1, MLA_F16, 4096, 1},
    {"decode", 128, 1, MLA_F32, 4096, 1},
    {"decode", 128, 2, MLA_BF16, 1024, 4},
    {"prefill", 16, 1024, MLA_BF16, 1024, 1},
    {"prefill", 16, 4096, MLA_BF16, 4096, 1},
};

/* ------------------------------------------------------------------- case */

static void *filled(int32_t dtype, int64_t count, const char *name,
                    double amplitude) {
  int64_t bytes = count * mla_dtype_bits(dtype) / 8;
  void *data = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
  mla_rng rng = mla_rng_named(1, name);
  if (!data) exit(3);
  for (int64_t i = 0; i < count; i++)
    mla_put(data, dtype, i, amplitude * mla_rng_bell(rng, (uint64_t)i % 65521));
  return data;
}

static void real(mla_tensor *t, int slot, int32_t dtype, int rank,
                 const int64_t *shape, double amplitude) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  t[slot] = mla_tensor_dense(
      filled(dtype, count, mla_slot_name(slot), amplitude), dtype, rank, shape);
}

static int32_t *ints(mla_tensor *t, int slot, int rank, const int64_t *shape) {
  int64_t count = rank == 2 ? shape[0] * shape[1] : shape[0];
  int32_t *data = calloc((size_t)count, sizeof *data);
  if (!data) exit(3);
  t[slot] = mla_tensor_dense(data, MLA_I32, rank, shape);
  return data;
}

static void set_steps(const bench *b, mla_tensor *t) {
  int32_t *lens = ints(t, MLA_T_SEQ_LENS, 1, (int64_t[]){b->requests});
  int32_t *starts =
      ints(t, MLA_T_QUERY_START_LOC, 1, (int64_t[]){b->requests + 1});
  for (int i = 0; i < b->requests; i++) {
    lens[i] = (int32_t)b->length;
    starts[i + 1] = starts[i] + b->query;
  }
}

static void set_problem(const bench *b, mla_problem *p, mla_limits *l) {
  int prefill = b->op[0] == 'p';
  *p = mla_problem_init(prefill ? MLA_OP_PREFILL : MLA_OP_DECODE);
  *l = mla_limits_init();
  p->flags = MLA_CAUSAL | MLA_RETURN_LSE;
  p->q_dtype = p->out_dtype = p->weight_dtype = b->dtype;
  p->cache_format = b->dtype == MLA_F32   ? MLA_CACHE_F32
                    : b->dtype == MLA_F16 ? MLA_CACHE_F16
                                          : MLA_CACHE_BF16;
  p->num_heads = b->heads;
  p->kv_lora_rank = latent;
  p->qk_rope_head_dim = rope;
  p->qk_nope_head_dim = nope;
  p->v_head_dim = value;
  p->block_size = page;
  p->scale = 0.0722;
  l->requests = b->requests;
  l->tokens = (int64_t)b->requests * b->query;
  l->max_query_len = b->query;
  l->max_seq_len = b->length;
  l->table_width = (b->length + page - 1) / page;
  l->num_blocks = l->table_width * b->requests;
}

static void set_tensors(const bench *b, const mla_limits *l, mla_tensor *t) {
  int64_t n = l->tokens, h = b->heads;
  set_steps(b, t);
  real(t, MLA_T_LSE, MLA_F32, 2, (int64_t[]){n, h}, 0);
  if (b->op[0] == 'p') {
    real(t, MLA_T_Q, b->dtype, 3, (int64_t[]){n, h, nope + rope}, 1);
    real(t, MLA_T_KV_C, b->dtype, 2, (int64_t[]){n, latent}, 1);
    real(t, MLA_T_K_PE, b->dtype, 2, (int64_t[]){n, rope}, 1);
    real(t, MLA_T_KV_B_PROJ, b->dtype, 2,
         (int64_t[]){h * (nope + value), latent}, 0.05);
    real(t, MLA_T_OUT, b->dtype, 3, (int64_t[]){n, h, value}, 0);
    return;
  }
  real(t, MLA_T_Q, b->dtype, 3, (int64_t[]){n, h, latent + rope}, 1);
  real(t, MLA_T_CACHE, b->dtype, 3,
       (int64_t[]){l->num_blocks, page, latent + rope}, 1);
  real(t, MLA_T_OUT, b->dtype, 3, (int64_t[]){n, h, latent}, 0);
  int32_t *table =
      ints(t, MLA_T_BLOCK_TABLE, 2, (int64_t[]){b->requests, l->table_width});
  for (int64_t i = 0; i < l->num_blocks; i++)
    table[i] = (int32_t)(i * 7919 % l->num_blocks);
  if (l->num_blocks % 7919 == 0) exit(3);
}

/* Multiply-adds that the operation asks for, two FLOP each. */
static double flops_of(const bench *b) {
  double h = b->heads, s = (double)b->length, q = b->query;
  double pairs = q * s - q * (q - 1) / 2; /* query x key, causal */
  if (b->op[0] != 'p')
    return 2.0 * b->requests * h * pairs * (2 * latent + rope);
  return 2.0 * b->requests * h *
         (pairs * (nope + rope + value) + s * latent * (nope + value));
}

/* ------------------------------------------------------------------ judge */

static double worst_of(const mla_expected *e, const mla_tensor *tensor,
                       const mla_numerics *numerics) {
  double worst = 0.0;
  for (int32_t i = 0; i < mla_expected_count(e); i++) {
    mla_expected_view v = mla_expected_at(e, i);
    const mla_tensor *t = &tensor[v.slot];
    double *budget = malloc((size_t)(v.rows * v.width) * sizeof *budget);
    mla_expected_budget(e, i, numerics, budget);
    for (int64_t k = 0; k < v.rows * v.width; k++) {
      int64_t at = v.row_index[k / v.width] * v.width + k % v.width;
      double x = fabs(mla_get(t->data, t->dtype, at) - v.value[k]) / budget[k];
      if (!(x <= worst)) worst = x;
    }
    free(budget);
  }
  return worst;
}

static double judge(const mla_problem *p, const mla_args *args,
                    const mla_answer *answer) {
  int64_t rows = args->tensor[MLA_T_OUT].shape[0] * p->num_heads;
  int64_t row[2] = {rows / 3 / p->num_heads * p->num_heads, rows - 1};
  mla_selection some = {row[0] == row[1] ? 1 : 2, row};
  mla_expected *e;
  if (mla_expect(p, args, &some, &answer->numerics, &e, NULL) != MLA_OK)
    exit(3);
  double worst = worst_of(e, args->tensor, &answer->numerics);
  mla_expected_free(e);
  return worst;
}

/* ---------------------------------------------------------------- measure */

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(const bench *b, const settings *s, const char *kernel,
                   double *time, int runs, double ratio) {
  qsort(time, (size_t)runs, sizeof *time, by_size);
  double flops = flops_of(b), best = flops / time[0] * 1e-9;
  printf("%-8s h%-4d q%-5d b%-3d s%-6d %-5s %-26s %8.1f %8.1f %6.1f %% %5.2f\n",
         b->op, b->heads, b->query, b->requests, (int)b->length,
         mla_dtype_name(b->dtype), kernel, best, flops / time[runs / 2] * 1e-9,
         best * 1e11 / s->peak, ratio);
  fflush(stdout);
}

static void measure(const bench *b, const settings *s, mla_device *device) {
  enum { most = 400 };
  mla_problem p;
  mla_limits l;
  mla_tensor tensor[MLA_T_COUNT];
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, tensor};
  mla_plan *plan;
  mla_error err = mla_error_init();
  double time[most], total = 0.0;
  int runs = 0;
  memset(tensor, 0, sizeof tensor);
  set_problem(b, &p, &l);
  set_tensors(b, &l, tensor);
  if (mla_plan_create(device, &p, &l, &plan, &err) != MLA_OK) {
    fprintf(stderr, "%s\n", err.message);
    exit(1);
  }
  uint64_t bytes = mla_plan_answer(plan)->workspace_bytes;
  void *w = aligned_alloc(64, (size_t)bytes);
  if (!w || mla_run(plan, &args, w, bytes, NULL, &err) != MLA_OK) exit(1);
  double ratio = judge(&p, &args, mla_plan_answer(plan));
  if (!(ratio < 1.0)) {
    printf("%s h%d: error / budget %g, not timed\n", b->op, b->heads, ratio);
    exit(1);
  }
  while (runs < 3 || (runs < most && total < s->seconds)) {
    double start = bench_seconds(s->threads);
    mla_run(plan, &args, w, bytes, NULL, &err);
    total += time[runs++] = bench_seconds(s->threads) - start;
  }
  report(b, s, mla_plan_answer(plan)->kernel, time, runs, ratio);
  free(w);
  mla_plan_free(plan);
  for (int i = 0; i < MLA_T_COUNT; i++) free(tensor[i].data);
}

static settings parse(int argc, char **argv) {
  settings s = {1, NULL, "", 1.0, 0.0};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--threads"))
      s.threads = atoi(argv[i + 1]);
    else if (!strcmp(argv[i], "--isa"))
      s.isa = argv[i + 1];
    else if (!strcmp(argv[i], "--seconds"))
      s.seconds = atof(argv[i + 1]);
    else if (!strcmp(argv[i], "--only"))
      s.only = argv[i + 1];
    else
      exit(2);
  }
  return s;
}

int main(int argc, char **argv) {
  settings s = parse(argc, argv);
  char options[64];
  mla_device *device;
  mla_error err = mla_error_init();
  snprintf(options, sizeof options, "threads=%d%s%s", s.threads,
           s.isa ? ";isa=" : "", s.isa ? s.isa : "");
  if (mla_open("cpu", 0, options, &device, &err) != MLA_OK) {
    fprintf(stderr, "%s\n", err.message);
    return 3;
  }
  s.peak = bench_peak_flops(s.threads);
  printf("%d threads, multiply-add peak %.1f GFLOP/s\n", s.threads,
         s.peak * 1e-9);
  printf("%-66s %8s %8s %8s %5s\n", "case", "best", "median", "of peak", "err");
  for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s,h%d,%s", benches[i].op, benches[i].heads,
             mla_dtype_name(benches[i].dtype));
    if (strstr(name, s.only)) measure(&benches[i], &s, device);
  }
  mla_close(device);
  return 0;
}
