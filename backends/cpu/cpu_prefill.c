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
#include "cpu_prefill.h"

#include <string.h>

#include "cpu_parallel.h"
#include "tensor.h"

#define LANES MLA_CPU_LANES

enum {
  usual_chunk = 2048, /* tokens: buffers of some ten MiB */
  most_chunk = 16384, /* keep the chains of additions short */
  least_heads = 4,    /* of a group: more, and their keys leave the caches */
  side_by_side = 2    /* panels of weights that share a read of the latents */
};

/* ----------------------------------------------------------------- memory */

static int64_t chunk_tokens(const mla_cpu_context *c) {
  int64_t wanted =
      c->limits.context_chunk > 0 ? c->limits.context_chunk : usual_chunk;
  wanted = mla_cpu_min(mla_cpu_min(wanted, most_chunk), c->limits.max_seq_len);
  return mla_cpu_round_up(mla_cpu_max(wanted, 1), MLA_CPU_WIDE_BLOCK);
}

static mla_cpu_prefill_scratch scratch_take(mla_cpu_arena *arena,
                                            const mla_cpu_context *c) {
  const mla_problem *p = &c->problem;
  int64_t width = (int64_t)p->qk_nope_head_dim + p->qk_rope_head_dim;
  uint64_t latent = (uint64_t)p->kv_lora_rank;
  uint64_t parts =
      MLA_CPU_PREFILL_PANELS * (uint64_t)mla_cpu_part_floats(p->v_head_dim);
  uint64_t row = (uint64_t)mla_cpu_max(width, p->kv_lora_rank);
  mla_cpu_prefill_scratch s;
  memset(&s, 0, sizeof s);
  mla_cpu_tile_take(arena, &s.tile, MLA_CPU_PREFILL_PANELS, width,
                    p->v_head_dim);
  s.tile.soft_cap = (float)p->logits_soft_cap;
  s.parts = mla_cpu_take(arena, parts, sizeof(float));
  s.tile.parts = s.parts;
  s.line = mla_cpu_take(arena, (uint64_t)p->v_head_dim, sizeof(float));
  if (mla_cpu_prefill_by_tiles(c)) {
    mla_cpu_tiles_take(arena, &s.tiles, MLA_CPU_PREFILL_PANELS, width);
    s.tiles.scale = (float)p->scale;
    return s;
  }
  s.rows = mla_cpu_take(arena, LANES * row, sizeof(float));
  s.panel = mla_cpu_take(arena, side_by_side * LANES * latent, sizeof(float));
  s.product = mla_cpu_take(arena, MLA_CPU_BLOCK * LANES, sizeof(float));
  return s;
}

static void rows_take(mla_cpu_arena *arena, mla_cpu_prefill *f) {
  uint64_t rows = (uint64_t)f->capacity;
  f->latent = mla_cpu_take(arena, rows, (uint64_t)f->ld_latent * sizeof(float));
  f->rope = mla_cpu_take(arena, rows, (uint64_t)f->ld_rope * sizeof(float));
  f->kv = mla_cpu_take(arena, rows * (uint64_t)f->heads,
                       (uint64_t)f->ld_kv * sizeof(float));
}

static uint64_t prefill_take(mla_cpu_arena *arena, mla_cpu_prefill *f) {
  const mla_cpu_context *c = f->c;
  const mla_problem *p = &c->problem;
  int64_t query = mla_cpu_min(c->limits.max_query_len, c->limits.tokens);
  uint64_t part = (uint64_t)mla_cpu_part_floats(p->v_head_dim) * sizeof(float);
  mla_cpu_arena one = {NULL, 0};
  f->capacity = chunk_tokens(c);
  f->heads = mla_cpu_min(p->num_heads, mla_cpu_max(least_heads, c->threads));
  f->ld_latent = mla_cpu_stride(p->kv_lora_rank);
  f->ld_rope = mla_cpu_stride(p->qk_rope_head_dim);
  f->ld_kv = mla_cpu_stride((int64_t)p->qk_nope_head_dim + p->qk_rope_head_dim +
                            p->v_head_dim);
  f->state_panels =
      c->limits.max_seq_len > f->capacity ? mla_cpu_ceil(query, LANES) : 0;
  f->by_tiles = mla_cpu_prefill_by_tiles(c);
  if (f->by_tiles)
    mla_cpu_prefill_tiles_take(arena, f);
  else
    rows_take(arena, f);
  f->state =
      mla_cpu_take(arena, (uint64_t)f->heads * (uint64_t)f->state_panels, part);
  f->wave = mla_cpu_take(arena, (uint64_t)c->limits.requests, sizeof *f->wave);
  scratch_take(&one, c);
  f->scratch_bytes = one.used;
  f->scratch = mla_cpu_take(arena, (uint64_t)c->threads, one.used);
  return arena->used;
}

mla_cpu_prefill_scratch mla_cpu_prefill_scratch_of(const mla_cpu_prefill *f,
                                                   int thread) {
  mla_cpu_arena arena = {f->scratch + (uint64_t)thread * f->scratch_bytes, 0};
  return scratch_take(&arena, f->c);
}

/* ------------------------------------------------------------------ waves */

int64_t mla_cpu_prefill_tiles(int64_t query) {
  return mla_cpu_ceil(query, MLA_CPU_PREFILL_PANELS * LANES);
}

/*
 * Fills the wave from request *b, key *key on; both move to what comes next.
 * Requests without query tokens have no part in it.
 */
static void fill_wave(mla_cpu_prefill *f, int64_t *b, int64_t *key) {
  const int32_t *lens = f->seq_lens->data, *starts = f->starts->data;
  f->chunks = f->tokens = f->tasks = 0;
  for (; *b < f->seq_lens->shape[0]; ++*b, *key = 0) {
    mla_cpu_chunk k;
    k.query = (int64_t)starts[*b + 1] - starts[*b];
    if (k.query == 0) continue;
    k.length = lens[*b];
    k.context = mla_cpu_max(0, k.length - k.query);
    k.request = (int32_t)*b;
    k.first = *key;
    k.count = mla_cpu_min(f->capacity, k.length - k.first);
    k.at = f->tokens;
    if (f->by_tiles) k.at = mla_cpu_round_up(k.at, MLA_CPU_TILE_DEPTH);
    k.task = f->tasks;
    k.last = k.first + k.count == k.length;
    if (k.at + k.count > f->capacity) return;
    f->wave[f->chunks++] = k;
    f->tokens = k.at + k.count;
    f->tasks += mla_cpu_prefill_tiles(k.query);
    if (k.last) continue;
    *key += k.count;
    return;
  }
}

/* The chunk that holds row `at` of the buffers. */
static const mla_cpu_chunk *chunk_of_row(const mla_cpu_prefill *f, int64_t at) {
  const mla_cpu_chunk *k = f->wave;
  while (at >= k->at + k->count) k++;
  return k;
}

/* ----------------------------------------------------------------- gather */

void mla_cpu_prefill_load(const mla_cpu_prefill *f, const mla_tensor *t,
                          int64_t offset, int64_t width, float *to) {
  int type = mla_cpu_type_of(t->dtype);
  f->c->table.load[type](to, mla_cpu_at(t->data, type, offset), width);
}

/* Where the cache holds a key of a chunk's request. */
static void find_entry(const mla_cpu_prefill *f, const mla_cpu_chunk *k,
                       int64_t key, int64_t *block, int64_t *offset) {
  const int32_t *blocks =
      (const int32_t *)f->table->data + mla_at1(f->table, k->request);
  *block = blocks[key / f->c->problem.block_size];
  *offset = key % f->c->problem.block_size;
}

static void gather_row(const mla_cpu_prefill *f, const mla_cpu_chunk *k,
                       int64_t at) {
  const mla_problem *p = &f->c->problem;
  const int32_t *starts = f->starts->data;
  int64_t key = k->first + at - k->at, latent = p->kv_lora_rank, block, offset;
  float *to = f->latent + at * f->ld_latent, *pe = f->rope + at * f->ld_rope;
  if (key >= k->context) {
    int64_t token = starts[k->request] + key - k->context;
    mla_cpu_prefill_load(f, f->kv_c, mla_at1(f->kv_c, token), latent, to);
    if (f->k_pe) /* absent when R is 0 */
      mla_cpu_prefill_load(f, f->k_pe, mla_at1(f->k_pe, token),
                           p->qk_rope_head_dim, pe);
    return;
  }
  find_entry(f, k, key, &block, &offset);
  if (f->entries.layout.quantised) {
    mla_cpu_entry_load(&f->entries, block, offset, 0, 0, latent, to);
    mla_cpu_entry_load(&f->entries, block, offset, 0, latent,
                       p->qk_rope_head_dim, pe);
    return;
  }
  int64_t entry = mla_at2(f->cache, block, offset);
  mla_cpu_prefill_load(f, f->cache, entry, latent, to);
  mla_cpu_prefill_load(f, f->cache, entry + latent, p->qk_rope_head_dim, pe);
}

/* The same as it is; zeros before the chunk. */
static void gather_tile_row(const mla_cpu_prefill *f, const mla_cpu_chunk *k,
                            int64_t at) {
  const int32_t *starts = f->starts->data;
  int64_t key = k->first + at - k->at, block, offset;
  const uint16_t *latent = NULL, *rope = NULL;
  if (at >= k->at && key >= k->context) {
    int64_t token = starts[k->request] + key - k->context;
    latent = (const uint16_t *)f->kv_c->data + mla_at1(f->kv_c, token);
    if (f->k_pe) /* absent when R is 0 */
      rope = (const uint16_t *)f->k_pe->data + mla_at1(f->k_pe, token);
  } else if (at >= k->at) {
    find_entry(f, k, key, &block, &offset);
    latent = (const uint16_t *)f->cache->data;
    latent += mla_at2(f->cache, block, offset);
    rope = latent + f->c->problem.kv_lora_rank;
  }
  mla_cpu_prefill_tiles_gather(f, at, latent, rope);
}

static int64_t gather_tasks(const mla_cpu_prefill *f) {
  return mla_cpu_ceil(f->tokens, MLA_CPU_BLOCK);
}

static void gather_task(void *state, int64_t index, int thread) {
  const mla_cpu_prefill *f = state;
  int64_t at = index * MLA_CPU_BLOCK;
  int64_t end = mla_cpu_min(at + MLA_CPU_BLOCK, f->tokens);
  (void)thread;
  for (; at < end; at++)
    if (f->by_tiles)
      gather_tile_row(f, chunk_of_row(f, at), at);
    else
      gather_row(f, chunk_of_row(f, at), at);
  for (; f->by_tiles && at % MLA_CPU_TILE_DEPTH; at++) /* behind the last */
    mla_cpu_prefill_tiles_gather(f, at, NULL, NULL);
}

/* ------------------------------------------------------------- up-project */

static const float ones[LANES] = {1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1};

/* LANES rows of a head's kv_b_proj into a panel; the last may repeat. */
static void pack_weights(const mla_cpu_prefill *f, int64_t head, int64_t row,
                         int64_t rows, float *panel,
                         mla_cpu_prefill_scratch *s) {
  int64_t latent = f->c->problem.kv_lora_rank;
  for (int64_t x = 0; x < LANES; x++) {
    int64_t r = head * rows + mla_cpu_min(row + x, rows - 1);
    mla_cpu_prefill_load(f, f->weight, mla_at1(f->weight, r), latent,
                         s->rows + x * latent);
  }
  f->c->table.pack(panel, s->rows, latent, latent, 1.0f);
}

static void project_block(const mla_cpu_prefill *f, int64_t at, int64_t n,
                          const float *panel, mla_cpu_prefill_scratch *s) {
  int64_t latent = f->c->problem.kv_lora_rank;
  const float *from = f->latent + at * f->ld_latent;
  for (int64_t k = 0; k < latent; k += MLA_CPU_CHAIN)
    f->c->table.product(n, mla_cpu_min(MLA_CPU_CHAIN, latent - k), from + k,
                        f->ld_latent, 1, panel + k * LANES,
                        k == 0 ? NULL : ones, s->product);
}

/*
 * The product of a block of tokens to where rows row .. row + LANES - 1 of a
 * head's weights belong: between keys and values lies the rope part.
 */
static void place_columns(const mla_cpu_prefill *f, int64_t row, int64_t end,
                          int64_t n, const float *product, float *to) {
  const mla_problem *p = &f->c->problem;
  int64_t last = mla_cpu_min(end, row + LANES);
  int64_t keys =
      mla_cpu_min(mla_cpu_max(p->qk_nope_head_dim - row, 0), last - row);
  int64_t values = last - row - keys;
  to += row + (keys > 0 ? 0 : p->qk_rope_head_dim);
  if (keys == LANES || values == LANES) { /* a copy of known size is quick */
    for (int64_t i = 0; i < n; i++)
      memcpy(to + i * f->ld_kv, product + i * LANES, LANES * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < n; i++, to += f->ld_kv, product += LANES)
    for (int64_t x = 0; x < keys + values; x++)
      to[x < keys || keys == 0 ? x : x + p->qk_rope_head_dim] = product[x];
}

/* The part of keys that all heads share. */
static void place_rope(const mla_cpu_prefill *f, int64_t at, int64_t n,
                       float *to) {
  const mla_problem *p = &f->c->problem;
  size_t bytes = (size_t)p->qk_rope_head_dim * sizeof(float);
  for (int64_t i = 0; i < n && bytes; i++)
    memcpy(to + i * f->ld_kv + p->qk_nope_head_dim,
           f->rope + (at + i) * f->ld_rope, bytes);
}

static int64_t project_tasks(const mla_problem *p) {
  int64_t rows = (int64_t)p->qk_nope_head_dim + p->v_head_dim;
  return mla_cpu_ceil(rows, side_by_side * LANES);
}

/* A few panels of rows of one head's [P + V] for all tokens of the wave. */
static void project_task(void *state, int64_t index, int thread) {
  const mla_cpu_prefill *f = state;
  const mla_problem *p = &f->c->problem;
  int64_t rows = (int64_t)p->qk_nope_head_dim + p->v_head_dim;
  int64_t tasks = project_tasks(p), latent = p->kv_lora_rank;
  int64_t head = index / tasks, first = index % tasks * side_by_side * LANES;
  int64_t end = mla_cpu_min(rows, first + side_by_side * LANES);
  mla_cpu_prefill_scratch s = mla_cpu_prefill_scratch_of(f, thread);
  float *to = f->kv + head * f->capacity * f->ld_kv;
  for (int64_t row = first; row < end; row += LANES)
    pack_weights(f, f->first_head + head, row, rows,
                 s.panel + (row - first) * latent, &s);
  for (int64_t at = 0; at < f->tokens; at += MLA_CPU_BLOCK) {
    int64_t n = mla_cpu_min(MLA_CPU_BLOCK, f->tokens - at);
    if (first == 0) place_rope(f, at, n, to + at * f->ld_kv);
    for (int64_t row = first; row < end; row += LANES) {
      project_block(f, at, n, s.panel + (row - first) * latent, &s);
      place_columns(f, row, end, n, s.product, to + at * f->ld_kv);
    }
  }
}

static void run_waves(mla_cpu_prefill *f) {
  const mla_problem *p = &f->c->problem;
  int64_t b = 0, key = 0;
  for (;;) {
    fill_wave(f, &b, &key);
    if (f->chunks == 0) return;
    mla_cpu_parallel(f->c->threads, gather_tasks(f), gather_task, f);
    if (f->by_tiles) {
      mla_cpu_prefill_tiles_run(f);
      continue;
    }
    if (f->tokens > 0)
      mla_cpu_parallel(f->c->threads, f->group * project_tasks(p), project_task,
                       f);
    mla_cpu_parallel(f->c->threads, f->group * f->tasks, mla_cpu_prefill_attend,
                     f);
  }
}

static void prefill_run(const mla_cpu_context *c, const mla_args *args,
                        void *workspace) {
  mla_cpu_arena arena = {workspace, 0};
  mla_cpu_prefill f;
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
  if (c->problem.flags & MLA_CONTEXT)
    f.entries = mla_cpu_entries_of(c, args, MLA_T_CACHE,
                                   mla_cpu_type_of(c->problem.q_dtype));
  prefill_take(&arena, &f);
  for (; f.first_head < c->problem.num_heads; f.first_head += f.heads) {
    f.group = mla_cpu_min(f.heads, c->problem.num_heads - f.first_head);
    run_waves(&f);
  }
}

static uint64_t prefill_workspace(const mla_cpu_context *c) {
  mla_cpu_arena arena = {NULL, 0};
  mla_cpu_prefill f;
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
