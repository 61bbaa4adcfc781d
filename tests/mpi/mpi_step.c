#define _POSIX_C_SOURCE 200809L
#include "mpi_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "rng.h"
#include "tensor.h"

#define SEED 20261129
#define POISON 0x5c

static void must(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "test_mpi: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static mla_tensor make(int32_t dtype, int32_t rank, int64_t a, int64_t b,
                       int64_t c) {
  const int64_t shape[3] = {a, b, c};
  mla_tensor t = mla_tensor_dense(NULL, dtype, rank, shape);
  t.data = calloc(1, (size_t)mla_tensor_extent(&t) + 1);
  must(t.data != NULL, "no memory");
  return t;
}

/* Element i of a named stream, from `first` on. */
static void fill(const mla_tensor *t, const char *name, int64_t first) {
  mla_rng rng = mla_rng_named(SEED, name);
  for (int64_t i = 0; i < mla_tensor_count(t); i++)
    mla_put(t->data, t->dtype, i, mla_rng_bell(rng, (uint64_t)(first + i)));
}

/* ------------------------------------------------------------------ sizes */

static int64_t blocks_for(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

static int64_t longest(const step_case *c) {
  int64_t most = 1;
  for (int b = 0; b < c->requests; b++)
    if (c->context[b] + c->rows[b] > most) most = c->context[b] + c->rows[b];
  return most;
}

static void describe(mpi_step *s) {
  const step_case *c = s->c;
  mla_problem *p = &s->problem;
  *p = mla_problem_init(MLA_OP_DECODE);
  p->flags = c->flags | MLA_RETURN_LSE;
  p->q_dtype = p->out_dtype = c->dtype;
  p->cache_format = c->dtype == MLA_BF16 ? MLA_CACHE_BF16 : MLA_CACHE_F32;
  p->num_heads = (int32_t)s->heads;
  p->kv_lora_rank = c->latent;
  p->qk_rope_head_dim = c->rope;
  p->block_size = c->page;
  p->scale = 0.2;
  s->whole_problem = *p;
  if (c->causal) s->whole_problem.flags |= MLA_CAUSAL;
  int64_t width = blocks_for(longest(c), c->page);
  s->limits = mla_limits_init();
  s->limits.tokens = s->n + 2;
  s->limits.requests = s->n + 2;
  s->limits.max_query_len = 1;
  s->limits.max_seq_len = longest(c);
  s->limits.num_blocks = width * c->requests;
  s->limits.table_width = width;
}

/* ------------------------------------------------------------- the whole */

static void put_int(const mla_tensor *t, int64_t i, int64_t value) {
  mla_put_int(t->data, t->dtype, i, value);
}

/* Key j of request b, wherever it lies. */
static void put_key(const mla_tensor *cache, int64_t block, int64_t offset,
                    int64_t b, int64_t j) {
  char name[32];
  int64_t width = cache->shape[2];
  snprintf(name, sizeof name, "k/%d", (int)b);
  mla_rng rng = mla_rng_named(SEED, name);
  for (int64_t d = 0; d < width; d++)
    mla_put(cache->data, cache->dtype, mla_at3(cache, block, offset, d),
            mla_rng_bell(rng, (uint64_t)(j * width + d)));
}

static void fill_whole(mpi_step *s) {
  const step_case *c = s->c;
  int64_t width = s->limits.table_width, d = (int64_t)c->latent + c->rope;
  mla_tensor *t = s->whole;
  t[MLA_T_Q] = make(c->dtype, 3, s->n, s->heads, d);
  t[MLA_T_CACHE] = make(c->dtype, 3, c->requests * width, c->page, d);
  t[MLA_T_BLOCK_TABLE] = make(MLA_I32, 2, c->requests, width, 0);
  t[MLA_T_SEQ_LENS] = make(MLA_I32, 1, c->requests, 0, 0);
  t[MLA_T_QUERY_START_LOC] = make(MLA_I32, 1, c->requests + 1, 0, 0);
  t[MLA_T_OUT] = make(c->dtype, 3, s->n, s->heads, c->latent);
  t[MLA_T_LSE] = make(MLA_F32, 2, s->n, s->heads, 0);
  if (c->flags & MLA_HAS_SINK) {
    t[MLA_T_SINK] = make(MLA_F32, 1, s->heads, 0, 0);
    fill(&t[MLA_T_SINK], "sink", 0);
  }
  fill(&t[MLA_T_Q], "q", 0);
  for (int64_t b = 0, at = 0; b < c->requests; b++) {
    int64_t n = (int64_t)c->context[b] + c->rows[b];
    at += c->rows[b];
    put_int(&t[MLA_T_SEQ_LENS], b, n);
    put_int(&t[MLA_T_QUERY_START_LOC], b + 1, at);
    for (int64_t w = 0; w < width; w++)
      put_int(&t[MLA_T_BLOCK_TABLE], b * width + w, b * width + w);
    for (int64_t j = 0; j < n; j++)
      put_key(&t[MLA_T_CACHE], b * width + j / c->page, j % c->page, b, j);
  }
}

/* -------------------------------------------------------------- the rank */

/* All tokens of all requests as one step, so that kv_write sees each. */
static void build(mpi_step *s, mla_batch *batch, int all, void **memory) {
  const step_case *c = s->c;
  const mla_batch_room room = {sizeof room, c->page * s->ranks, c->requests,
                               4096, s->limits.table_width};
  int32_t zeros[STEP_REQUESTS] = {0}, lens[STEP_REQUESTS];
  int32_t *ids = malloc((size_t)(c->requests * room.table_width) * 4);
  int64_t starts[STEP_REQUESTS + 1];
  for (int b = 0; b < c->requests; b++) lens[b] = c->context[b] + c->rows[b];
  for (int b = 0; b <= c->requests; b++) starts[b] = b * room.table_width;
  for (int64_t i = 0; i < starts[c->requests]; i++)
    ids[i] = (int32_t)(starts[c->requests] - 1 - i);
  mla_batch_input in = {sizeof in,
                        0,
                        c->requests,
                        s->limits.num_blocks,
                        all ? zeros : c->context,
                        all ? lens : c->rows,
                        ids,
                        starts,
                        NULL};
  mla_error err = mla_error_init();
  uint64_t bytes = mla_batch_bytes(&room);
  *memory = malloc((size_t)bytes);
  must(mla_batch_place(batch, &room, *memory, bytes, &err) == MLA_OK &&
           mla_batch_build(batch, &in, &err) == MLA_OK,
       err.message);
  free(ids);
}

/* By kv_write, with the slots of this rank. */
static void write_keys(mpi_step *s, mla_device *dev, const mla_cp_map *map) {
  const step_case *c = s->c;
  mla_batch batch;
  void *memory;
  mla_error err = mla_error_init();
  mla_tensor t[MLA_T_COUNT];
  build(s, &batch, 1, &memory);
  mla_cp_table table = {batch.block_table, batch.room.table_width,
                        batch.room.table_width};
  mla_problem p = s->problem;
  mla_limits l = s->limits;
  mla_plan *plan;
  memset(t, 0, sizeof t);
  p.op = MLA_OP_KV_WRITE;
  p.flags = 0;
  l.tokens = batch.tokens;
  t[MLA_T_KV_C] = make(c->dtype, 2, batch.tokens, c->latent, 0);
  t[MLA_T_K_PE] = make(c->dtype, 2, batch.tokens, c->rope, 0);
  t[MLA_T_SLOT_MAPPING] = make(MLA_I64, 1, batch.tokens, 0, 0);
  t[MLA_T_CACHE] = s->step.cache;
  must(mla_cp_slots(map, &batch, &table, t[MLA_T_SLOT_MAPPING].data, &err) ==
           MLA_OK,
       err.message);
  for (int64_t b = 0; b < c->requests; b++)
    for (int64_t i = batch.query_start_loc[b]; i < batch.query_start_loc[b + 1];
         i++) {
      mla_tensor row = make(c->dtype, 3, 1, 1, c->latent + c->rope);
      size_t size = (size_t)mla_dtype_bits(c->dtype) / 8;
      unsigned char *data = row.data;
      put_key(&row, 0, 0, b, batch.positions[i]);
      memcpy(
          (unsigned char *)t[MLA_T_KV_C].data + (size_t)(i * c->latent) * size,
          data, (size_t)c->latent * size);
      memcpy((unsigned char *)t[MLA_T_K_PE].data + (size_t)(i * c->rope) * size,
             data + (size_t)c->latent * size, (size_t)c->rope * size);
      free(row.data);
    }
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, t};
  must(mla_plan_create(dev, &p, &l, &plan, &err) == MLA_OK, err.message);
  uint64_t bytes = mla_plan_answer(plan)->workspace_bytes;
  void *workspace = NULL;
  must(posix_memalign(&workspace, 256, (size_t)bytes + 256) == 0, "no memory");
  must(mla_run(plan, &args, workspace, bytes, NULL, &err) == MLA_OK,
       err.message);
  mla_plan_free(plan);
  free(workspace);
  free(t[MLA_T_KV_C].data);
  free(t[MLA_T_K_PE].data);
  free(t[MLA_T_SLOT_MAPPING].data);
  free(memory);
}

static void make_rows(mpi_step *s, const mla_cp_map *map) {
  mla_batch batch;
  void *memory;
  mla_error err = mla_error_init();
  build(s, &batch, 0, &memory);
  int64_t width = batch.room.table_width;
  mla_cp_table table = {batch.block_table, width, width};
  int32_t *lens = malloc((size_t)(s->n + 1) * 4);
  int32_t *starts = malloc((size_t)(s->n + 2) * 4);
  int32_t *ids = malloc((size_t)(s->n * width + 1) * 4);
  must(mla_cp_rows(map, &batch, &table, s->c->causal, lens, starts, ids,
                   &err) == MLA_OK,
       err.message);
  s->step.seq_lens = lens;
  s->step.block_table = ids;
  s->step.table_width = width;
  free(starts);
  free(memory);
}

/* Heads of a tensor of all heads: [N,H,*] from head `first`. */
static mla_tensor heads_of(const mla_tensor *t, int64_t first, int64_t count) {
  mla_tensor part = *t;
  part.data = (unsigned char *)t->data +
              first * t->stride[1] * (mla_dtype_bits(t->dtype) / 8);
  part.shape[1] = count;
  return part;
}

void mpi_step_new(mpi_step *s, mla_device *dev, const step_case *c, int rank,
                  int ranks) {
  memset(s, 0, sizeof *s);
  s->c = c;
  s->rank = rank;
  s->ranks = ranks;
  s->heads = (int64_t)c->heads_a_rank * ranks;
  for (int b = 0; b < c->requests; b++) s->n += c->rows[b];
  describe(s);
  fill_whole(s);
  mla_cp_map map = {ranks, c->interleave, rank, c->page};
  s->step.size = (uint32_t)sizeof s->step;
  s->step.rows = s->n;
  s->step.cache = make(c->dtype, 3, s->limits.num_blocks, c->page,
                       (int64_t)c->latent + c->rope);
  write_keys(s, dev, &map);
  make_rows(s, &map);
  int64_t first = (int64_t)rank * c->heads_a_rank;
  s->step.q = heads_of(&s->whole[MLA_T_Q], first, c->heads_a_rank);
  s->step.out = make(c->dtype, 3, s->n, c->heads_a_rank, c->latent);
  s->step.lse = make(MLA_F32, 2, s->n, c->heads_a_rank, 0);
  if (c->flags & MLA_HAS_SINK) {
    s->step.sink = s->whole[MLA_T_SINK];
    s->step.sink.data = (float *)s->step.sink.data + first;
    s->step.sink.shape[0] = c->heads_a_rank;
  }
}

void mpi_step_all_heads(mpi_step *s) {
  free(s->step.out.data);
  free(s->step.lse.data);
  s->step.all_heads = 1;
  s->step.out = make(s->c->dtype, 3, s->n, s->heads, s->c->latent);
  s->step.lse = make(MLA_F32, 2, s->n, s->heads, 0);
  s->step.sink = s->whole[MLA_T_SINK];
}

void mpi_step_poison(mpi_step *s) {
  memset(s->step.out.data, POISON, (size_t)mla_tensor_extent(&s->step.out));
  memset(s->step.lse.data, POISON, (size_t)mla_tensor_extent(&s->step.lse));
}

int mpi_step_untouched(const mpi_step *s) {
  const mla_tensor *outs[2] = {&s->step.out, &s->step.lse};
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; i < mla_tensor_extent(outs[k]); i++)
      if (((const unsigned char *)outs[k]->data)[i] != POISON) return 0;
  return 1;
}

void mpi_step_free(mpi_step *s) {
  for (int i = 0; i < MLA_T_COUNT; i++) free(s->whole[i].data);
  free(s->step.cache.data);
  free(s->step.out.data);
  free(s->step.lse.data);
  free((int32_t *)(uintptr_t)s->step.seq_lens);
  free((int32_t *)(uintptr_t)s->step.block_table);
}
