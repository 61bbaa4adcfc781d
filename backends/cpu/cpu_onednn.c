/*
 * Products by oneDNN 2.6 or 3: primitives for whole tiles are made when a
 * device is opened, their scratch comes from the workspace, and each runs on
 * the one thread that calls it.
 */
#include "cpu_onednn.h"

#include <dnnl.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_parallel.h"

#define ROWS_N 128          /* of x, in a tile */
#define ROWS_M 128          /* of y */
#define CHAIN MLA_CPU_CHAIN /* of k; the last ones of a sum in parts of */
#define PART 128

/* A product of one type, k and order of each matrix. */
typedef struct kernel {
  dnnl_primitive_t primitive; /* NULL: not made */
  dnnl_primitive_desc_t made; /* owns what `scratch` points to */
  uint64_t scratch_bytes;
} kernel;

struct mla_cpu_onednn {
  dnnl_engine_t engine;
  uint64_t scratch_bytes;
  int bf16; /* products of bf16 are there, and faster than of f32 */
  kernel kernels[2][2][2][2]; /* [bf16][part][x by columns][y by columns] */
};

/* ------------------------------------------------- what 2.6 and 3 differ in */

#if DNNL_VERSION_MAJOR < 3
typedef dnnl_memory_desc_t shape;
static int shape_make(shape *s, const dnnl_dim_t *dims, dnnl_data_type_t type,
                      const dnnl_dim_t *strides) {
  return dnnl_memory_desc_init_by_strides(s, 3, dims, type, strides);
}
static void shape_free(shape s) {
  (void)s;
}
static int made_of(dnnl_primitive_desc_t *made, dnnl_engine_t engine, shape *x,
                   shape *y, shape *c, const_dnnl_primitive_attr_t attr) {
  dnnl_matmul_desc_t d;
  if (dnnl_matmul_desc_init(&d, x, y, NULL, c)) return 1;
  return dnnl_primitive_desc_create(made, &d, attr, engine, NULL);
}
static int add_to_sum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f);
}
#else
typedef dnnl_memory_desc_t shape;
static int shape_make(shape *s, const dnnl_dim_t *dims, dnnl_data_type_t type,
                      const dnnl_dim_t *strides) {
  *s = NULL;
  return dnnl_memory_desc_create_with_strides(s, 3, dims, type, strides);
}
static void shape_free(shape s) {
  if (s) dnnl_memory_desc_destroy(s);
}
static int made_of(dnnl_primitive_desc_t *made, dnnl_engine_t engine, shape *x,
                   shape *y, shape *c, const_dnnl_primitive_attr_t attr) {
  return dnnl_matmul_primitive_desc_create(made, engine, *x, *y, NULL, *c,
                                           attr);
}
static int add_to_sum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_f32);
}
#endif

/* ------------------------------------------------------------------ making */

/* The three matrices of a tile, with a batch of one and nothing between rows:
   all else would go to kernels that allocate. */
static int shapes_make(shape s[3], int bf16, int64_t k, int x_cols,
                       int y_cols) {
  dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
  dnnl_dims_t x = {1, ROWS_N, k}, y = {1, k, ROWS_M}, c = {1, ROWS_N, ROWS_M};
  dnnl_dims_t x_strides = {ROWS_N * k, x_cols ? 1 : k, x_cols ? ROWS_N : 1};
  dnnl_dims_t y_strides = {ROWS_M * k, y_cols ? ROWS_M : 1, y_cols ? 1 : k};
  dnnl_dims_t c_strides = {ROWS_N * ROWS_M, ROWS_M, 1};
  int bad = shape_make(&s[0], x, type, x_strides);
  bad |= shape_make(&s[1], y, type, y_strides);
  return bad | shape_make(&s[2], c, dnnl_f32, c_strides);
}

/* Added to what is there, scratch from us. */
static int attributes_make(dnnl_primitive_attr_t *attr) {
  dnnl_post_ops_t ops;
  if (dnnl_primitive_attr_create(attr)) return 1;
  int bad =
      dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
  if (bad || dnnl_post_ops_create(&ops)) return 1;
  bad = add_to_sum(ops) || dnnl_primitive_attr_set_post_ops(*attr, ops);
  dnnl_post_ops_destroy(ops);
  return bad;
}

/* Only kernels of this family take all their memory from the scratchpad. */
static int takes_scratch(const_dnnl_primitive_desc_t made) {
  const char *name = "";
  dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, &name);
  return strncmp(name, "brg", 3) == 0;
}

static int kernel_make(mla_cpu_onednn *o, kernel *to, int bf16, int64_t k,
                       int x_cols, int y_cols) {
  shape s[3];
  dnnl_primitive_attr_t attr = NULL;
  memset(s, 0, sizeof s);
  int bad = attributes_make(&attr) || shapes_make(s, bf16, k, x_cols, y_cols) ||
            made_of(&to->made, o->engine, &s[0], &s[1], &s[2], attr) ||
            !takes_scratch(to->made) ||
            dnnl_primitive_create(&to->primitive, to->made);
  for (int i = 0; i < 3; i++) shape_free(s[i]);
  if (attr) dnnl_primitive_attr_destroy(attr);
  if (bad) return bad;
  to->scratch_bytes = dnnl_memory_desc_get_size(
      dnnl_primitive_desc_query_md(to->made, dnnl_query_scratchpad_md, 0));
  if (to->scratch_bytes > o->scratch_bytes)
    o->scratch_bytes = to->scratch_bytes;
  return 0;
}

static int kernels_make(mla_cpu_onednn *o, int bf16) {
  for (int i = 0; i < 8; i++)
    if (kernel_make(o, &o->kernels[bf16][i >> 2][i >> 1 & 1][i & 1], bf16,
                    i >> 2 ? PART : CHAIN, i >> 1 & 1, i & 1))
      return 1;
  return 0;
}

mla_cpu_onednn *mla_cpu_onednn_open(uint32_t mask) {
  if (mask != mla_cpu_isa_detect() || !(mask & MLA_CPU_BIT(MLA_CPU_AVX512)))
    return NULL;
  mla_cpu_onednn *o = calloc(1, sizeof *o);
  if (!o) return NULL;
  /* Kernels are made for as many threads as one could have now. */
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  int bad = dnnl_engine_create(&o->engine, dnnl_cpu, 0) || kernels_make(o, 0);
  if (!bad && mask & MLA_CPU_BIT(MLA_CPU_AMX)) o->bf16 = !kernels_make(o, 1);
  omp_set_num_threads(threads);
  if (!bad) return o;
  mla_cpu_onednn_close(o);
  return NULL;
}

void mla_cpu_onednn_close(mla_cpu_onednn *o) {
  if (!o) return;
  kernel *all = &o->kernels[0][0][0][0];
  for (int i = 0; i < 16; i++) {
    if (all[i].primitive) dnnl_primitive_destroy(all[i].primitive);
    if (all[i].made) dnnl_primitive_desc_destroy(all[i].made);
  }
  if (o->engine) dnnl_engine_destroy(o->engine);
  free(o);
}

int mla_cpu_onednn_flushes(const mla_cpu_onednn *o, int x, int y) {
  return o && o->bf16 && x == MLA_CPU_BF16 && y == MLA_CPU_BF16;
}

/* ----------------------------------------------------------------- running */

/* What one thread works in. */
typedef struct scratch {
  void *x;     /* [ROWS_N][k] or [k][ROWS_N] */
  void *y;     /* [ROWS_M][k] or [k][ROWS_M] */
  float *c;    /* [ROWS_N][ROWS_M] */
  void *inner; /* oneDNN's */
} scratch;

typedef struct run {
  const mla_cpu_context *context;
  const mla_cpu_gemm *g;
  unsigned char *scratch;
  uint64_t scratch_bytes;
  int64_t tiles_n, tiles_m;
  int bf16; /* matrices stay as they are; else they are widened to f32 */
  atomic_int failed;
} run;

static scratch scratch_take(mla_cpu_arena *arena, const mla_cpu_onednn *o) {
  scratch s;
  s.x = mla_cpu_take(arena, ROWS_N * CHAIN, sizeof(float));
  s.y = mla_cpu_take(arena, ROWS_M * CHAIN, sizeof(float));
  s.c = mla_cpu_take(arena, ROWS_N * ROWS_M, sizeof(float));
  s.inner = mla_cpu_take(arena, o->scratch_bytes, 1);
  return s;
}

static void take_line(const run *r, const mla_cpu_matrix *m, int64_t at,
                      int64_t n, int64_t room, void *to) {
  const void *from = mla_cpu_at(m->data, m->type, at);
  int64_t bytes = r->bf16 ? 2 : 4;
  if (r->bf16)
    memcpy(to, from, (size_t)(n * bytes));
  else
    r->context->table.load[m->type](to, from, n);
  memset((unsigned char *)to + n * bytes, 0, (size_t)((room - n) * bytes));
}

/* Rows first .. first + n of a matrix, columns k0 .. k0 + k, zeros up to the
   kernel's sizes. */
static void take_tile(const run *r, const mla_cpu_matrix *m, int64_t base,
                      int64_t n, int64_t n_room, int64_t k, int64_t k_room,
                      void *to) {
  int by_rows = m->col == 1;
  int64_t lines = by_rows ? n : k, all = by_rows ? n_room : k_room;
  int64_t length = by_rows ? k : n, room = by_rows ? k_room : n_room;
  int64_t stride = by_rows ? m->row : m->col;
  int64_t ld = room * (r->bf16 ? 2 : 4);
  unsigned char *line = to;
  for (int64_t i = 0; i < all; i++, line += ld)
    take_line(r, m, base + (i < lines ? i * stride : 0), i < lines ? length : 0,
              room, line);
}

static int bound(dnnl_exec_arg_t *arg, int which, const kernel *k,
                 dnnl_query_t what, int index, dnnl_engine_t engine,
                 void *data) {
  arg->arg = which;
  arg->memory = NULL;
  return dnnl_memory_create(&arg->memory,
                            dnnl_primitive_desc_query_md(k->made, what, index),
                            engine, data);
}

static int multiply(const run *r, dnnl_stream_t stream, const kernel *k,
                    const scratch *s) {
  dnnl_engine_t e = r->context->onednn->engine;
  dnnl_exec_arg_t arg[4] = {{0}};
  int bad =
      bound(&arg[0], DNNL_ARG_SRC, k, dnnl_query_src_md, 0, e, s->x) ||
      bound(&arg[1], DNNL_ARG_WEIGHTS, k, dnnl_query_weights_md, 0, e, s->y) ||
      bound(&arg[2], DNNL_ARG_DST, k, dnnl_query_dst_md, 0, e, s->c) ||
      bound(&arg[3], DNNL_ARG_SCRATCHPAD, k, dnnl_query_scratchpad_md, 0, e,
            s->inner) ||
      dnnl_primitive_execute(k->primitive, stream, 4, arg);
  for (int i = 0; i < 4; i++)
    if (arg[i].memory) dnnl_memory_destroy(arg[i].memory);
  return bad;
}

static int tile_sums(const run *r, int64_t batch, int64_t n0, int64_t n,
                     int64_t m0, int64_t m, const scratch *s) {
  const mla_cpu_onednn *o = r->context->onednn;
  const mla_cpu_matrix *x = &r->g->x, *y = &r->g->y;
  dnnl_stream_t stream;
  int bad = dnnl_stream_create(&stream, o->engine, dnnl_stream_default_flags);
  if (bad) return bad;
  memset(s->c, 0, ROWS_N * ROWS_M * sizeof(float));
  for (int64_t k0 = 0, k; !bad && k0 < r->g->k; k0 += k) {
    int part = r->g->k - k0 < CHAIN;
    k = mla_cpu_min(part ? PART : CHAIN, r->g->k - k0);
    take_tile(r, x, batch * x->batch + n0 * x->row + k0 * x->col, n, ROWS_N, k,
              part ? PART : CHAIN, s->x);
    take_tile(r, y, batch * y->batch + m0 * y->row + k0 * y->col, m, ROWS_M, k,
              part ? PART : CHAIN, s->y);
    bad = multiply(r, stream,
                   &o->kernels[r->bf16][part][x->col != 1][y->col != 1], s);
  }
  dnnl_stream_destroy(stream);
  return bad;
}

static void tile_task(void *state, int64_t index, int thread) {
  run *r = state;
  const mla_cpu_gemm *g = r->g;
  mla_cpu_arena arena = {r->scratch + (uint64_t)thread * r->scratch_bytes, 0};
  scratch s = scratch_take(&arena, r->context->onednn);
  int64_t batch = index / (r->tiles_n * r->tiles_m);
  int64_t m0 = index / r->tiles_n % r->tiles_m * ROWS_M;
  int64_t n0 = index % r->tiles_n * ROWS_N;
  int64_t m = mla_cpu_min(ROWS_M, g->m - m0),
          n = mla_cpu_min(ROWS_N, g->n - n0);
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  int bad = tile_sums(r, batch, n0, n, m0, m, &s);
  omp_set_num_threads(threads);
  if (bad) atomic_store(&r->failed, 1);
  for (int64_t i = 0; !bad && i < n; i++)
    r->context->table.store[g->out_type](
        mla_cpu_at_mut(g->out, g->out_type,
                       batch * g->out_batch + (n0 + i) * g->out_row + m0),
        s.c + i * ROWS_M, m);
}

uint64_t mla_cpu_onednn_workspace(const mla_cpu_context *c) {
  mla_cpu_arena one = {NULL, 0}, all = {NULL, 0};
  if (!c->onednn) return 0;
  scratch_take(&one, c->onednn);
  mla_cpu_take(&all, (uint64_t)c->threads, one.used);
  return all.used;
}

int mla_cpu_onednn_run(const mla_cpu_context *c, const mla_cpu_gemm *g,
                       void *workspace) {
  mla_cpu_arena one = {NULL, 0}, all = {workspace, 0};
  run r = {0};
  r.context = c;
  r.g = g;
  r.bf16 = mla_cpu_onednn_flushes(c->onednn, g->x.type, g->y.type);
  scratch_take(&one, c->onednn);
  r.scratch_bytes = one.used;
  r.scratch = mla_cpu_take(&all, (uint64_t)c->threads, one.used);
  r.tiles_n = mla_cpu_ceil(g->n, ROWS_N);
  r.tiles_m = mla_cpu_ceil(g->m, ROWS_M);
  mla_cpu_parallel(c->threads, g->batch * r.tiles_n * r.tiles_m, tile_task, &r);
  return atomic_load(&r.failed);
}
