#include "test_cpu_fixture.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dmath.h"
#include "dtype.h"
#include "oracle.h"
#include "rng.h"
#include "tensor.h"

#define CANARY 4096
#define SEED 20261129

/* ------------------------------------------------------------ allocations */

/* The linker sends calls of libmla here (--wrap). */
static _Atomic long allocations; /* from every thread */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);

void *__wrap_malloc(size_t size) {
  allocations++;
  return __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size) {
  allocations++;
  return __real_calloc(count, size);
}
void *__wrap_realloc(void *memory, size_t size) {
  allocations++;
  return __real_realloc(memory, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  allocations++;
  return __real_aligned_alloc(alignment, size);
}
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size) {
  allocations++;
  return __real_posix_memalign(memory, alignment, size);
}

long cpu_allocations(void) {
  return allocations;
}

/* ------------------------------------------------------------------- build */

cpu_case cpu_case_init(mla_op op) {
  cpu_case c;
  memset(&c, 0, sizeof c);
  c.problem = mla_problem_init(op);
  c.problem.q_dtype = c.problem.out_dtype = c.problem.weight_dtype = MLA_F32;
  c.problem.cache_format = MLA_CACHE_F32;
  c.problem.scale = 0.1352;
  c.limits = mla_limits_init();
  c.amplitude = 1.0;
  return c;
}

static void shape_of(const cpu_case *c, const mla_slot_spec *spec,
                     mla_tensor *t) {
  t->dtype = mla_slot_dtype(spec, &c->problem);
  t->rank = spec->rank;
  int64_t stride = 1;
  for (int axis = spec->rank - 1; axis >= 0; axis--) {
    int sym = spec->dim[axis];
    int64_t bound = mla_sym_value(sym, &c->problem);
    t->shape[axis] = bound >= 0 ? bound : c->free_dim[sym];
    t->stride[axis] = stride;
    stride *= t->shape[axis];
    /* Index tensors of one axis have nothing to pad. */
    if (axis == spec->rank - 1 && axis > 0) stride += c->pad;
    if (axis == 1 && spec->rank > 2) stride += 3 * c->pad;
  }
}

int64_t cpu_tensor_bytes(const mla_tensor *t) {
  return mla_tensor_extent(t);
}

static int is_index(const mla_tensor *t) {
  return t->dtype == MLA_I32 || t->dtype == MLA_I64;
}

/* Every element of the span, gaps too. */
static void fill_bell(const mla_tensor *t, const char *name, double amplitude) {
  mla_rng rng = mla_rng_named(SEED, name);
  int64_t count = cpu_tensor_bytes(t) / (mla_dtype_bits(t->dtype) / 8);
  for (int64_t i = 0; i < count; i++)
    mla_put(t->data, t->dtype, i, amplitude * mla_rng_bell(rng, (uint64_t)i));
}

static void fill_value(const mla_tensor *t, double value) {
  int64_t count = cpu_tensor_bytes(t) / (mla_dtype_bits(t->dtype) / 8);
  for (int64_t i = 0; i < count; i++) mla_put(t->data, t->dtype, i, value);
}

void cpu_case_build(cpu_case *c) {
  const mla_op_spec *op = mla_op_spec_of(c->problem.op);
  for (int32_t i = 0; i < op->slot_count; i++) {
    const mla_slot_spec *spec = &op->slots[i];
    mla_tensor *t = &c->tensor[spec->slot];
    if (!mla_slot_applies(spec, &c->problem) || spec->optional) continue;
    shape_of(c, spec, t);
    t->data = calloc(1, (size_t)cpu_tensor_bytes(t) + 64);
    ck_assert_ptr_nonnull(t->data);
    if (is_index(t)) continue;
    if (spec->type_rule == MLA_TYPE_CACHE)
      fill_value(t, mla_nan());
    else if (spec->role == MLA_ROLE_IN)
      fill_bell(t, mla_slot_name(spec->slot), c->amplitude);
    else
      memset(t->data, 0x5A, (size_t)cpu_tensor_bytes(t));
  }
}

void cpu_case_free(cpu_case *c) {
  for (int i = 0; i < MLA_T_COUNT; i++) free(c->tensor[i].data);
  memset(c->tensor, 0, sizeof c->tensor);
}

mla_args cpu_case_args(const cpu_case *c) {
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, c->tensor};
  return args;
}

/* ---------------------------------------------------------------- requests */

static int64_t pages_of(const cpu_case *c, int64_t length) {
  return (length + c->problem.block_size - 1) / c->problem.block_size;
}

void cpu_case_size_requests(cpu_case *c, int64_t requests,
                            const int32_t *seq_lens,
                            const int32_t *query_lens) {
  int64_t tokens = 0, pages = 0, width = 1;
  mla_limits *l = &c->limits;
  l->max_seq_len = l->max_query_len = 1;
  for (int64_t b = 0; b < requests; b++) {
    tokens += query_lens[b];
    pages += pages_of(c, seq_lens[b]);
    if (pages_of(c, seq_lens[b]) > width) width = pages_of(c, seq_lens[b]);
    if (seq_lens[b] > l->max_seq_len) l->max_seq_len = seq_lens[b];
    if (query_lens[b] > l->max_query_len) l->max_query_len = query_lens[b];
  }
  c->free_dim[MLA_S_B] = l->requests = requests;
  c->free_dim[MLA_S_B1] = requests + 1;
  c->free_dim[MLA_S_N] = l->tokens = tokens;
  c->free_dim[MLA_S_W] = l->table_width = width + 1;
  c->free_dim[MLA_S_NB] = l->num_blocks = pages + 2;
}

/* The entry's own bell values, so that each position differs. */
static void fill_entry(const cpu_case *c, const mla_tensor *t, int64_t block,
                       int64_t entry, const char *name) {
  mla_rng rng = mla_rng_named(SEED, name);
  int64_t heads = t->rank == 4 ? t->shape[2] : 1;
  int64_t width = t->shape[t->rank - 1];
  for (int64_t g = 0; g < heads; g++)
    for (int64_t i = 0; i < width; i++) {
      int64_t at = mla_at2(t, block, entry) + i;
      if (t->rank == 4) at += g * t->stride[2];
      mla_put(t->data, t->dtype, at,
              c->amplitude * mla_rng_bell(rng, (uint64_t)at));
    }
}

static void fill_pages(cpu_case *c, int64_t b, int64_t length, int64_t *used) {
  const mla_tensor *table = &c->tensor[MLA_T_BLOCK_TABLE];
  int64_t blocks = c->free_dim[MLA_S_NB];
  for (int64_t w = 0; w < table->shape[1]; w++) {
    int64_t page = -1;
    /* 0, blocks - 1, 1, blocks - 2, ...: neither in order nor adjacent */
    if (w < pages_of(c, length))
      page = *used % 2 ? blocks - 1 - *used / 2 : *used / 2;
    if (page >= 0) ++*used;
    mla_put_int(table->data, MLA_I32, mla_at2(table, b, w), page);
    for (int64_t e = 0; page >= 0 && e < c->problem.block_size; e++) {
      if (w * c->problem.block_size + e >= length) break;
      fill_entry(c, &c->tensor[MLA_T_CACHE], page, e, "cache");
      if (c->tensor[MLA_T_V_CACHE].data)
        fill_entry(c, &c->tensor[MLA_T_V_CACHE], page, e, "v_cache");
    }
  }
}

void cpu_case_requests(cpu_case *c, const int32_t *seq_lens,
                       const int32_t *query_lens) {
  int32_t *lens = c->tensor[MLA_T_SEQ_LENS].data;
  int32_t *starts = c->tensor[MLA_T_QUERY_START_LOC].data;
  int64_t used = 0;
  for (int64_t b = 0; b < c->free_dim[MLA_S_B]; b++) {
    lens[b] = seq_lens[b];
    starts[b + 1] = starts[b] + query_lens[b];
    /* In prefill only the context is cached. */
    int64_t cached = seq_lens[b];
    if (c->problem.op == MLA_OP_PREFILL) cached -= query_lens[b];
    if (c->tensor[MLA_T_BLOCK_TABLE].data) fill_pages(c, b, cached, &used);
  }
}

/* --------------------------------------------------------------------- run */

typedef struct cpu_outputs {
  int count;
  int slot[MLA_T_COUNT];
  unsigned char *bytes[MLA_T_COUNT];
} cpu_outputs;

static void save_outputs(const cpu_case *c, cpu_outputs *o) {
  const mla_op_spec *op = mla_op_spec_of(c->problem.op);
  o->count = 0;
  for (int32_t i = 0; i < op->slot_count; i++) {
    const mla_tensor *t = &c->tensor[op->slots[i].slot];
    if (op->slots[i].role == MLA_ROLE_IN || !t->data) continue;
    if (!mla_slot_applies(&op->slots[i], &c->problem)) continue;
    o->slot[o->count] = op->slots[i].slot;
    o->bytes[o->count] = malloc((size_t)cpu_tensor_bytes(t));
    memcpy(o->bytes[o->count++], t->data, (size_t)cpu_tensor_bytes(t));
  }
}

static void restore_outputs(const cpu_case *c, const cpu_outputs *o) {
  for (int i = 0; i < o->count; i++) {
    const mla_tensor *t = &c->tensor[o->slot[i]];
    memcpy(t->data, o->bytes[i], (size_t)cpu_tensor_bytes(t));
  }
}

static void free_outputs(cpu_outputs *o) {
  for (int i = 0; i < o->count; i++) free(o->bytes[i]);
}

static unsigned char *workspace_of(uint64_t bytes, int poison) {
  unsigned char *w = aligned_alloc(64, (size_t)(bytes / 64 * 64 + CANARY + 64));
  ck_assert_ptr_nonnull(w);
  memset(w, poison, (size_t)bytes);
  memset(w + bytes, 0xC5, CANARY);
  return w;
}

static void check_canary(const unsigned char *w, uint64_t bytes) {
  for (int i = 0; i < CANARY; i++)
    REQUIRE(w[bytes + (uint64_t)i] == 0xC5,
            "byte %d past the workspace was written", i);
}

static void run_once(cpu_case *c, const char *options, int poison,
                     mla_answer *answer) {
  mla_device *device;
  mla_plan *plan;
  mla_error err = mla_error_init();
  mla_args args = cpu_case_args(c);
  REQUIRE(mla_open("cpu", 0, options, &device, &err) == MLA_OK, "%s",
          err.message);
  REQUIRE(
      mla_plan_create(device, &c->problem, &c->limits, &plan, &err) == MLA_OK,
      "%s", err.message);
  *answer = *mla_plan_answer(plan);
  unsigned char *w = workspace_of(answer->workspace_bytes, poison);
  long before = allocations;
  mla_status st = mla_run(plan, &args, w, answer->workspace_bytes, NULL, &err);
  long after = allocations;
  REQUIRE(st == MLA_OK, "%s", err.message);
  REQUIRE(before == after, "run() allocated %ld times", after - before);
  check_canary(w, answer->workspace_bytes);
  free(w);
  mla_plan_free(plan);
  mla_close(device);
}

void cpu_case_run(cpu_case *c, const char *options) {
  mla_answer answer;
  run_once(c, options, 0xFF, &answer);
}

/* ----------------------------------------------------------------- compare */

/* Offset of row r of an output: all axes but the last, flattened. */
static int64_t row_offset(const mla_tensor *t, int axes, int64_t r) {
  int64_t at = 0;
  for (int axis = axes - 1; axis >= 0; axis--) {
    at += r % t->shape[axis] * t->stride[axis];
    r /= t->shape[axis];
  }
  return at;
}

/* error / budget; NaN only fits NaN, infinities only themselves. */
static double ratio_of(double got, double want, double budget) {
  if (mla_isnan(want)) return mla_isnan(got) ? 0.0 : INFINITY;
  if (mla_isnan(got)) return INFINITY;
  if (got == want) return 0.0;
  if (mla_isinf(got) || mla_isinf(want) || budget == 0.0) return INFINITY;
  return fabs(got - want) / budget;
}

static double compare_view(const cpu_case *c, const mla_expected *e, int32_t i,
                           const mla_numerics *numerics) {
  mla_expected_view v = mla_expected_at(e, i);
  const mla_tensor *t = &c->tensor[v.slot];
  double worst = 0.0;
  if (!v.value) {
    REQUIRE(v.byte_count == cpu_tensor_bytes(t) &&
                memcmp(v.bytes, t->data, (size_t)v.byte_count) == 0,
            "%s differs from the reference's bytes", mla_slot_name(v.slot));
    return 0.0;
  }
  double *budget = malloc((size_t)(v.rows * v.width) * sizeof *budget);
  mla_expected_budget(e, i, numerics, budget);
  int axes = v.slot == MLA_T_LSE ? t->rank : t->rank - 1;
  for (int64_t r = 0; r < v.rows; r++) {
    int64_t at = row_offset(t, axes, v.row_index ? v.row_index[r] : r);
    for (int64_t d = 0; d < v.width; d++) {
      double x = ratio_of(mla_get(t->data, t->dtype, at + d),
                          v.value[r * v.width + d], budget[r * v.width + d]);
      if (x > worst) worst = x;
    }
  }
  free(budget);
  return worst;
}

static void run_variants(cpu_case *c, const char *isa, const cpu_outputs *start,
                         cpu_outputs *first, mla_answer *answer) {
  static const int threads[] = {1, 2, 3, 2};
  static const int poison[] = {0xFF, 0x00, 0x71, 0x3C};
  for (int i = 0; i < 4; i++) {
    char options[64];
    snprintf(options, sizeof options, "threads=%d;isa=%s", threads[i], isa);
    restore_outputs(c, start);
    run_once(c, options, poison[i], answer);
    if (i == 0) save_outputs(c, first);
    for (int k = 0; k < first->count; k++) {
      const mla_tensor *t = &c->tensor[first->slot[k]];
      REQUIRE(
          memcmp(first->bytes[k], t->data, (size_t)cpu_tensor_bytes(t)) == 0,
          "%s: %s differs from 1 thread's", options,
          mla_slot_name(first->slot[k]));
    }
  }
}

static const char *const levels[] = {
    "portable", "avx2", "avx512", "avx512_bf16", "amx", "neon", "neon_bf16"};

/* Those that run here; CPU_TEST_LEVEL asks for one of them only. */
static int has_level(const char *isa) {
  char options[64];
  mla_device *device;
  const char *only = getenv("CPU_TEST_LEVEL");
  if (only && strcmp(only, isa) != 0) return 0;
  snprintf(options, sizeof options, "isa=%s", isa);
  if (mla_open("cpu", 0, options, &device, NULL) != MLA_OK) return 0;
  mla_close(device);
  return 1;
}

static double judge_level(cpu_case *c, const char *what, const char *isa,
                          const mla_expected *e, const cpu_outputs *start) {
  mla_answer answer;
  cpu_outputs first;
  double worst = 0.0;
  run_variants(c, isa, start, &first, &answer);
  for (int32_t i = 0; i < mla_expected_count(e); i++) {
    double x = compare_view(c, e, i, &answer.numerics);
    printf("  %-44s %-8s %-28s error/budget %.3f\n", what,
           mla_slot_name(mla_expected_at(e, i).slot), answer.kernel, x);
    if (x > worst) worst = x;
  }
  free_outputs(&first);
  return worst;
}

double cpu_case_judge(cpu_case *c, const char *what) {
  mla_error err = mla_error_init();
  mla_args args = cpu_case_args(c);
  mla_expected *e;
  cpu_outputs start;
  double worst = 0.0;
  REQUIRE(mla_expect(&c->problem, &args, NULL, NULL, &e, &err) == MLA_OK, "%s",
          err.message);
  REQUIRE(mla_expected_count(e) > 0, "%s: nothing is expected", what);
  save_outputs(c, &start);
  for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
    if (!has_level(levels[i])) continue;
    double x = judge_level(c, what, levels[i], e, &start);
    if (x > worst) worst = x;
  }
  free_outputs(&start);
  mla_expected_free(e);
  return worst;
}
