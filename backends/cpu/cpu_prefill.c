/*
 * prefill: attention over keys and values up-projected from latents.
 *
 * Keys come in chunks; a wave is as many whole chunks of consecutive requests
 * as the buffer holds. For a group of heads, wave after wave: gather the
 * latents, up-project them for every head, attend. A request of several chunks
 * keeps its parts in `state` from one wave to the next; since its first chunk
 * fills a wave, there is never more than one such request. Chunks begin at
 * fixed positions of the request, so its bits do not depend on its mates.
 */
#include <string.h>

#include "cpu_attend.h"
#include "cpu_internal.h"
#include "cpu_parallel.h"
#include "tensor.h"

#define LANES MLA_CPU_LANES
#define PANELS 4 /* of a tile: 64 query tokens of one head */

enum {
  usual_chunk = 2048, /* tokens: buffers of some ten MiB */
  most_chunk = 16384, /* keep the chains of additions short */
  least_heads = 16    /* of a group: enough tasks a wave */
};

/* A chunk of a request in the current wave. */
typedef struct chunk {
  int64_t first, count; /* keys of the request */
  int64_t at;           /* row in the buffers */
  int64_t task;         /* its first attention task of a head */
  int64_t query, length, context;
  int32_t request;
  int32_t last; /* nonzero: the request's last chunk */
} chunk;

typedef struct prefill {
  const mla_cpu_context *c;
  const mla_tensor *q, *kv_c, *k_pe, *weight, *cache, *table, *seq_lens,
      *starts, *sink, *out, *lse;
  int64_t capacity; /* tokens of a wave */
  int64_t heads;    /* of a group, at most */
  int64_t ld_latent, ld_rope, ld_kv;
  float *latent, *rope; /* [capacity][ld] */
  float *kv;            /* [heads][capacity][ld_kv]: P of key, V of value */
  float *state;         /* [heads][panels of a request] parts */
  int64_t state_panels;
  chunk *wave;
  int64_t chunks, tokens, tasks; /* of the wave; tasks of one head */
  int64_t first_head, group;     /* the current heads */
  unsigned char *scratch;
  uint64_t scratch_bytes;
} prefill;

/* What one thread works in. */
typedef struct scratch {
  mla_cpu_tile tile;
  float *parts;   /* of the tile */
  float *rows;    /* [LANES][max(L, P + R)] on the way to a panel */
  float *panel;   /* [L][LANES] of weights */
  float *product; /* [BLOCK][LANES] */
  float *line;    /* [V] */
} scratch;

/* ----------------------------------------------------------------- memory */

static int64_t chunk_tokens(const mla_cpu_context *c) {
  int64_t wanted =
      c->limits.context_chunk > 0 ? c->limits.context_chunk : usual_chunk;
  wanted = mla_cpu_min(mla_cpu_min(wanted, most_chunk), c->limits.max_seq_len);
  return mla_cpu_round_up(mla_cpu_max(wanted, 1), MLA_CPU_BLOCK);
}

static scratch scratch_take(mla_cpu_arena *arena, const mla_cpu_context *c) {
  const mla_problem *p = &c->problem;
  int64_t width = (int64_t)p->qk_nope_head_dim + p->qk_rope_head_dim;
  uint64_t latent = (uint64_t)p->kv_lora_rank;
  uint64_t parts = PANELS * (uint64_t)mla_cpu_part_floats(p->v_head_dim);
  uint64_t row = (uint64_t)mla_cpu_max(width, p->kv_lora_rank);
  scratch s;
  memset(&s, 0, sizeof s);
  mla_cpu_tile_take(arena, &s.tile, PANELS, width, p->v_head_dim);
  s.tile.soft_cap = (float)p->logits_soft_cap;
  s.parts = mla_cpu_take(arena, parts, sizeof(float));
  s.tile.parts = s.parts;
  s.rows = mla_cpu_take(arena, LANES * row, sizeof(float));
  s.panel = mla_cpu_take(arena, LANES * latent, sizeof(float));
  s.product = mla_cpu_take(arena, MLA_CPU_BLOCK * LANES, sizeof(float));
  s.line = mla_cpu_take(arena, (uint64_t)p->v_head_dim, sizeof(float));
  return s;
}

static uint64_t prefill_take(mla_cpu_arena *arena, prefill *f) {
  const mla_cpu_context *c = f->c;
  const mla_problem *p = &c->problem;
  int64_t query = mla_cpu_min(c->limits.max_query_len, c->limits.tokens);
  uint64_t part = (uint64_t)mla_cpu_part_floats(p->v_head_dim) * sizeof(float);
  mla_cpu_arena one = {NULL, 0};
  f->capacity = chunk_tokens(c);
  f->heads = mla_cpu_min(p->num_heads, mla_cpu_max(least_heads, c->threads));
  f->ld_latent = mla_cpu_stride(p->kv_lora_rank);
  f->ld_rope = mla_cpu_stride(p->qk_rope_head_dim);
  f->ld_kv = mla_cpu_stride((int64_t)p->qk_nope_head_dim + p->v_head_dim);
  f->state_panels =
      c->limits.max_seq_len > f->capacity ? mla_cpu_ceil(query, LANES) : 0;
  uint64_t rows = (uint64_t)f->capacity;
  f->latent = mla_cpu_take(arena, rows, (uint64_t)f->ld_latent * sizeof(float));
  f->rope = mla_cpu_take(arena, rows, (uint64_t)f->ld_rope * sizeof(float));
  f->kv = mla_cpu_take(arena, rows * (uint64_t)f->heads,
                       (uint64_t)f->ld_kv * sizeof(float));
  f->state =
      mla_cpu_take(arena, (uint64_t)f->heads * (uint64_t)f->state_panels, part);
  f->wave = mla_cpu_take(arena, (uint64_t)c->limits.requests, sizeof *f->wave);
  scratch_take(&one, c);
  f->scratch_bytes = one.used;
  f->scratch = mla_cpu_take(arena, (uint64_t)c->threads, one.used);
  return arena->used;
}

static scratch scratch_of(const prefill *f, int thread) {
  mla_cpu_arena arena = {f->scratch + (uint64_t)thread * f->scratch_bytes, 0};
  return scratch_take(&arena, f->c);
}

/* ------------------------------------------------------------------ waves */

static int64_t tiles_of(int64_t query) {
  return mla_cpu_ceil(query, PANELS * LANES);
}

/*
 * Fills the wave from request *b, key *key on; both move to what comes next.
 * Requests without query tokens have no part in it.
 */
static void fill_wave(prefill *f, int64_t *b, int64_t *key) {
  const int32_t *lens = f->seq_lens->data, *starts = f->starts->data;
  f->chunks = f->tokens = f->tasks = 0;
  for (; *b < f->seq_lens->shape[0]; ++*b, *key = 0) {
    chunk k;
    k.query = (int64_t)starts[*b + 1] - starts[*b];
    if (k.query == 0) continue;
    k.length = lens[*b];
    k.context = mla_cpu_max(0, k.length - k.query);
    k.request = (int32_t)*b;
    k.first = *key;
    k.count = mla_cpu_min(f->capacity, k.length - k.first);
    k.at = f->tokens;
    k.task = f->tasks;
    k.last = k.first + k.count == k.length;
    if (f->tokens + k.count > f->capacity) return;
    f->wave[f->chunks++] = k;
    f->tokens += k.count;
    f->tasks += tiles_of(k.query);
    if (k.last) continue;
    *key += k.count;
    return;
  }
}

/* The chunk that holds row `at` of the buffers. */
static const chunk *chunk_of_row(const prefill *f, int64_t at) {
  const chunk *k = f->wave;
  while (at >= k->at + k->count) k++;
  return k;
}

static const chunk *chunk_of_task(const prefill *f, int64_t task) {
  const chunk *k = f->wave;
  while (task >= k->task + tiles_of(k->query)) k++;
  return k;
}

/* ----------------------------------------------------------------- gather */

static void load_row(const prefill *f, const mla_tensor *t, int64_t offset,
                     int64_t width, float *to) {
  int type = mla_cpu_type_of(t->dtype);
  f->c->table.load[type](to, mla_cpu_at(t->data, type, offset), width);
}

static void gather_row(const prefill *f, const chunk *k, int64_t at) {
  const mla_problem *p = &f->c->problem;
  const int32_t *starts = f->starts->data;
  int64_t key = k->first + at - k->at, latent = p->kv_lora_rank;
  float *to = f->latent + at * f->ld_latent, *pe = f->rope + at * f->ld_rope;
  if (key >= k->context) {
    int64_t token = starts[k->request] + key - k->context;
    load_row(f, f->kv_c, mla_at1(f->kv_c, token), latent, to);
    if (f->k_pe) /* absent when R is 0 */
      load_row(f, f->k_pe, mla_at1(f->k_pe, token), p->qk_rope_head_dim, pe);
    return;
  }
  const int32_t *blocks =
      (const int32_t *)f->table->data + mla_at1(f->table, k->request);
  int64_t entry =
      mla_at2(f->cache, blocks[key / p->block_size], key % p->block_size);
  load_row(f, f->cache, entry, latent, to);
  load_row(f, f->cache, entry + latent, p->qk_rope_head_dim, pe);
}

static void gather_task(void *state, int64_t index, int thread) {
  const prefill *f = state;
  int64_t at = index * MLA_CPU_BLOCK;
  int64_t end = mla_cpu_min(at + MLA_CPU_BLOCK, f->tokens);
  (void)thread;
  for (; at < end; at++) gather_row(f, chunk_of_row(f, at), at);
}

/* ------------------------------------------------------------- up-project */

static const float ones[LANES] = {1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1};

/* LANES rows of a head's kv_b_proj into s->panel; the last may repeat. */
static void pack_weights(const prefill *f, int64_t head, int64_t row,
                         int64_t rows, scratch *s) {
  int64_t latent = f->c->problem.kv_lora_rank;
  for (int64_t x = 0; x < LANES; x++) {
    int64_t r = head * rows + mla_cpu_min(row + x, rows - 1);
    load_row(f, f->weight, mla_at1(f->weight, r), latent, s->rows + x * latent);
  }
  f->c->table.pack(s->panel, s->rows, latent, latent, 1.0f);
}

static void project_block(const prefill *f, int64_t at, int64_t n, scratch *s) {
  int64_t latent = f->c->problem.kv_lora_rank;
  const float *from = f->latent + at * f->ld_latent;
  for (int64_t k = 0; k < latent; k += MLA_CPU_CHAIN)
    f->c->table.product(n, mla_cpu_min(MLA_CPU_CHAIN, latent - k), from + k,
                        f->ld_latent, 1, s->panel + k * LANES,
                        k == 0 ? NULL : ones, s->product);
}

/* LANES rows of one head's [P + V] for all tokens of the wave. */
static void project_task(void *state, int64_t index, int thread) {
  const prefill *f = state;
  const mla_problem *p = &f->c->problem;
  int64_t rows = (int64_t)p->qk_nope_head_dim + p->v_head_dim;
  int64_t panels = mla_cpu_ceil(rows, LANES);
  int64_t head = index / panels, row = index % panels * LANES;
  int64_t width = mla_cpu_min(LANES, rows - row);
  scratch s = scratch_of(f, thread);
  float *to = f->kv + head * f->capacity * f->ld_kv + row;
  pack_weights(f, f->first_head + head, row, rows, &s);
  for (int64_t at = 0; at < f->tokens; at += MLA_CPU_BLOCK) {
    int64_t n = mla_cpu_min(MLA_CPU_BLOCK, f->tokens - at);
    project_block(f, at, n, &s);
    for (int64_t i = 0; i < n; i++)
      memcpy(to + (at + i) * f->ld_kv, s.product + i * LANES,
             (size_t)width * sizeof(float));
  }
}

/* ----------------------------------------------------------------- attend */

/* Tile `t` of a chunk's queries, of one head; lanes without a query repeat the
   last one. */
static void load_queries(const prefill *f, const chunk *k, int64_t t,
                         int64_t head, scratch *s) {
  const int32_t *starts = f->starts->data;
  int64_t width = s->tile.width, first = t * PANELS * LANES;
  int causal = (f->c->problem.flags & MLA_CAUSAL) != 0;
  s->tile.panels =
      (int)mla_cpu_min(PANELS, mla_cpu_ceil(k->query - first, LANES));
  for (int panel = 0; panel < s->tile.panels; panel++) {
    for (int64_t x = 0; x < LANES; x++) {
      int64_t row = mla_cpu_min(first + panel * LANES + x, k->query - 1);
      int64_t sees = causal ? k->length - k->query + row + 1 : k->length;
      s->tile.limit[panel * LANES + x] = mla_cpu_max(0, sees);
      load_row(f, f->q, mla_at3(f->q, starts[k->request] + row, head, 0), width,
               s->rows + x * width);
    }
    f->c->table.pack(s->tile.q + panel * width * LANES, s->rows, width, width,
                     (float)f->c->problem.scale);
  }
}

static void attend_chunk(const prefill *f, const chunk *k, int64_t head,
                         scratch *s) {
  const mla_problem *p = &f->c->problem;
  int64_t end = mla_cpu_min(k->first + k->count,
                            s->tile.limit[s->tile.panels * LANES - 1]);
  mla_cpu_block b;
  memset(&b, 0, sizeof b);
  b.k_ld = b.v_ld = f->ld_kv;
  b.k2_ld = f->ld_rope;
  b.k_width = p->qk_nope_head_dim;
  b.k2_width = p->qk_rope_head_dim;
  for (int64_t key = k->first; key < end; key += MLA_CPU_BLOCK) {
    int64_t at = k->at + key - k->first;
    b.first = key;
    b.n = (int)mla_cpu_min(MLA_CPU_BLOCK, end - key);
    b.k = f->kv + (head * f->capacity + at) * f->ld_kv;
    b.v = b.k + p->qk_nope_head_dim;
    b.k2 = f->rope + at * f->ld_rope;
    mla_cpu_attend_block(&f->c->table, &s->tile, &b);
  }
}

static void write_rows(const prefill *f, const chunk *k, int64_t row,
                       int64_t head, mla_cpu_part part, float *line) {
  const int32_t *starts = f->starts->data;
  mla_cpu_rows_out r;
  memset(&r, 0, sizeof r);
  r.out_type = mla_cpu_type_of(f->out->dtype);
  r.base2 = (f->c->problem.flags & MLA_LSE_BASE2) != 0;
  r.rows = (int)mla_cpu_min(LANES, k->query - row);
  for (int x = 0; x < r.rows; x++) {
    int64_t token = starts[k->request] + row + x;
    r.out[x] = mla_cpu_at_mut(f->out->data, r.out_type,
                              mla_at3(f->out, token, head, 0));
    if (f->lse) r.lse[x] = (float *)f->lse->data + mla_at2(f->lse, token, head);
    if (f->sink)
      r.sink[x] = (const float *)f->sink->data + mla_at1(f->sink, head);
  }
  mla_cpu_part_finish(&f->c->table, f->c->problem.v_head_dim, part, &r, line);
}

/* What a panel's part is after this chunk: kept for the next, or written. */
static void settle_panel(const prefill *f, const chunk *k, int64_t row,
                         int64_t head, float *fresh, float *line) {
  int64_t v_dim = f->c->problem.v_head_dim;
  int64_t floats = mla_cpu_part_floats(v_dim);
  mla_cpu_part part = mla_cpu_part_at(fresh, v_dim);
  float *kept = f->state + (head * f->state_panels + row / LANES) * floats;
  if (k->first == 0 && !k->last) {
    memcpy(kept, fresh, (size_t)floats * sizeof(float));
    return;
  }
  if (k->first > 0) {
    mla_cpu_part so_far = mla_cpu_part_at(kept, v_dim);
    mla_cpu_part_fold(&f->c->table, v_dim, so_far, part);
    part = so_far;
  }
  if (k->last) write_rows(f, k, row, f->first_head + head, part, line);
}

/* One tile of queries of one head against one chunk. */
static void attend_task(void *state, int64_t index, int thread) {
  const prefill *f = state;
  /* The last tiles see the most keys: they go first. */
  int64_t head = index % f->group, task = f->tasks - 1 - index / f->group;
  const chunk *k = chunk_of_task(f, task);
  int64_t tile = task - k->task, v_dim = f->c->problem.v_head_dim;
  int64_t floats = mla_cpu_part_floats(v_dim);
  scratch s = scratch_of(f, thread);
  load_queries(f, k, tile, f->first_head + head, &s);
  for (int p = 0; p < s.tile.panels; p++)
    mla_cpu_part_clear(mla_cpu_part_at(s.parts + p * floats, v_dim), v_dim);
  attend_chunk(f, k, head, &s);
  for (int p = 0; p < s.tile.panels; p++)
    settle_panel(f, k, (tile * PANELS + p) * LANES, head, s.parts + p * floats,
                 s.line);
}

static void run_waves(prefill *f) {
  const mla_problem *p = &f->c->problem;
  int64_t panels =
      mla_cpu_ceil((int64_t)p->qk_nope_head_dim + p->v_head_dim, LANES);
  int64_t b = 0, key = 0;
  for (;;) {
    fill_wave(f, &b, &key);
    if (f->chunks == 0) return;
    mla_cpu_parallel(f->c->threads, mla_cpu_ceil(f->tokens, MLA_CPU_BLOCK),
                     gather_task, f);
    if (f->tokens > 0)
      mla_cpu_parallel(f->c->threads, f->group * panels, project_task, f);
    mla_cpu_parallel(f->c->threads, f->group * f->tasks, attend_task, f);
  }
}

static void prefill_run(const mla_cpu_context *c, const mla_args *args,
                        void *workspace) {
  mla_cpu_arena arena = {workspace, 0};
  prefill f;
  memset(&f, 0, sizeof f);
  f.c = c;
  f.q = mla_arg(args, MLA_T_Q);
  f.kv_c = mla_arg(args, MLA_T_KV_C);
  f.k_pe = mla_arg(args, MLA_T_K_PE);
  f.weight = mla_arg(args, MLA_T_KV_B_PROJ);
  f.cache = mla_arg(args, MLA_T_CACHE);
  f.table = mla_arg(args, MLA_T_BLOCK_TABLE);
  f.seq_lens = mla_arg(args, MLA_T_SEQ_LENS);
  f.starts = mla_arg(args, MLA_T_QUERY_START_LOC);
  if (c->problem.flags & MLA_HAS_SINK) f.sink = mla_arg(args, MLA_T_SINK);
  f.out = mla_arg(args, MLA_T_OUT);
  if (c->problem.flags & MLA_RETURN_LSE) f.lse = mla_arg(args, MLA_T_LSE);
  prefill_take(&arena, &f);
  for (; f.first_head < c->problem.num_heads; f.first_head += f.heads) {
    f.group = mla_cpu_min(f.heads, c->problem.num_heads - f.first_head);
    run_waves(&f);
  }
}

static uint64_t prefill_workspace(const mla_cpu_context *c) {
  mla_cpu_arena arena = {NULL, 0};
  prefill f;
  memset(&f, 0, sizeof f);
  f.c = c;
  return prefill_take(&arena, &f);
}

static const char *prefill_refuse(const mla_problem *p) {
  const char *why = mla_cpu_refuse_types(p, 1);
  if (!why && (p->flags & MLA_CONTEXT)) why = mla_cpu_refuse_cache(p);
  if (!why) why = mla_cpu_refuse_attention(p);
  return why;
}

const mla_cpu_op mla_cpu_op_prefill = {
    MLA_OP_PREFILL, "prefill", prefill_refuse, prefill_workspace, prefill_run};
