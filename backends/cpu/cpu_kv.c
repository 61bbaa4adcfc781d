/*
 * kv_write, kv_read, kv_copy: moving cache entries. Threads share the cache
 * out by place, not by token, so that a slot or block named twice ends as if
 * done in order.
 */
#include <string.h>

#include "cpu_arena.h"
#include "cpu_convert.h"
#include "cpu_entry.h"
#include "cpu_parallel.h"
#include "tensor.h"

#define NEIGHBOURS 16 /* slots of one thread in a row */
#define AHEAD 2       /* rows: about what memory takes to answer */
#define STEP 256      /* values on their way through f32 */
#define MARKS 2048    /* tokens whose parts one task finds */
#define NO_PART 255   /* of a token without a slot */

/* ---------------------------------------------------------------- kv_write */

typedef struct kv_write {
  const mla_cpu_context *c;
  const mla_tensor *kv_c, *k_pe, *slots, *cache;
  int parts;
  unsigned char *part; /* of each token; absent with one part */
  int far;             /* cpu_convert.h */
  mla_cpu_entries entries;
} kv_write;

/* Rows of a token, and of one to come, if it is another. */
static mla_cpu_values values_of(const kv_write *w, int64_t token,
                                int64_t next) {
  const mla_tensor *rows[2] = {w->kv_c, w->k_pe};
  mla_cpu_values v = {0};
  v.type = mla_cpu_type_of(w->kv_c->dtype);
  for (int i = 0; i < 2; i++) {
    const mla_tensor *t = rows[i];
    if (!t) continue;
    v.width[i] = t->shape[1];
    v.at[i] = mla_cpu_at(t->data, v.type, mla_at1(t, token));
    if (next != token)
      v.next[i] = mla_cpu_at(t->data, v.type, mla_at1(t, next));
  }
  return v;
}

static void write_scaled(const kv_write *w, int64_t token, int64_t slot,
                         int64_t next) {
  const mla_problem *p = &w->c->problem;
  int pow2 =
      p->cache_format == MLA_CACHE_FP8_584 || (p->flags & MLA_SCALE_POW2);
  mla_cpu_values v = values_of(w, token, next);
  mla_cpu_entry_store(&w->entries, slot / p->block_size, slot % p->block_size,
                      pow2, w->far, &v);
}

/* next: a token whose rows come soon, or this one. */
static void write_token(const kv_write *w, int64_t token, int64_t slot,
                        int64_t next) {
  int64_t size = w->cache->shape[1], latent = w->kv_c->shape[1];
  if (w->entries.layout.quantised) {
    write_scaled(w, token, slot, next);
    return;
  }
  int64_t at = mla_at2(w->cache, slot / size, slot % size);
  mla_cpu_convert(&w->c->table, w->kv_c, mla_at1(w->kv_c, token), w->cache, at,
                  latent, w->far);
  if (w->k_pe)
    mla_cpu_convert(&w->c->table, w->k_pe, mla_at1(w->k_pe, token), w->cache,
                    at + latent, w->k_pe->shape[1], w->far);
}

static void fetch_row(const mla_cpu_context *c, const mla_tensor *t,
                      int64_t row) {
  int type = mla_cpu_type_of(t->dtype);
  c->table.fetch(mla_cpu_at(t->data, type, mla_at1(t, row)),
                 t->shape[1] * mla_cpu_type_bytes(type));
}

/* Where a token's entry goes, unless that is written past the caches. */
static void fetch_entry(const kv_write *w, int64_t slot) {
  int64_t size = w->c->problem.block_size;
  if (w->far || !w->entries.layout.quantised) return;
  mla_cache_place place =
      mla_cache_find(w->cache, &w->entries.layout, slot / size, slot % size, 0);
  w->c->table.fetch(place.row, w->entries.layout.row_bytes);
}

/* More than there are threads, which are not equally fast; few where there is
   little to write. */
static int parts_of(const mla_cpu_context *c, int64_t tokens) {
  int64_t most = mla_cpu_min(8 * (int64_t)c->threads, NO_PART);
  return c->threads == 1 ? 1 : (int)mla_cpu_min(most, 1 + tokens / NEIGHBOURS);
}

/* A slot's part, NEIGHBOURS at a time, by any rule that spreads them: found
   once for all, since every part looks for its own. */
static void mark_tokens(void *state, int64_t index, int thread) {
  const kv_write *w = state;
  const int64_t *slot = w->slots->data;
  int64_t end = mla_cpu_min((index + 1) * MARKS, w->slots->shape[0]);
  (void)thread;
  for (int64_t t = index * MARKS; t < end; t++) {
    uint32_t mixed = (uint32_t)(slot[t] / NEIGHBOURS) * 0x9E3779B1u;
    uint64_t part = (uint64_t)mixed * (uint32_t)w->parts >> 32;
    w->part[t] = (unsigned char)(slot[t] < 0 ? NO_PART : part);
  }
}

/* The first token from `from` on that is of this part. */
static int64_t find_token(const kv_write *w, int64_t part, int64_t from) {
  const int64_t *slot = w->slots->data;
  int64_t t = from, end = w->slots->shape[0];
  if (w->part) {
    const unsigned char *at =
        from < end ? memchr(w->part + from, (int)part, (size_t)(end - from))
                   : NULL;
    return at ? at - w->part : end;
  }
  while (t < end && slot[t] < 0) t++;
  return t;
}

static void fetch_token(const kv_write *w, int64_t t) {
  fetch_row(w->c, w->kv_c, t);
  if (w->k_pe) fetch_row(w->c, w->k_pe, t);
  fetch_entry(w, ((const int64_t *)w->slots->data)[t]);
}

/* Kernels that write codes ask for the rows of the token after next. */
static void write_part(void *state, int64_t part, int thread) {
  const kv_write *w = state;
  const int64_t *slot = w->slots->data;
  int64_t end = w->slots->shape[0], coming[AHEAD];
  int codes = w->entries.layout.quantised;
  (void)thread;
  for (int i = 0; i < AHEAD; i++) {
    coming[i] = find_token(w, part, i == 0 ? 0 : coming[i - 1] + 1);
    if (coming[i] < end) fetch_token(w, coming[i]);
  }
  for (int64_t i = 0; coming[i % AHEAD] < end; i++) {
    int64_t t = coming[i % AHEAD];
    int64_t last = coming[(i + AHEAD - 1) % AHEAD];
    int64_t next = find_token(w, part, last + 1);
    coming[i % AHEAD] = next;
    if (next < end && codes)
      fetch_entry(w, slot[next]);
    else if (next < end)
      fetch_token(w, next);
    write_token(w, t, slot[t], next < end ? next : t);
  }
  w->c->table.settle();
}

static int64_t row_bytes(const mla_tensor *t) {
  return t->shape[t->rank - 1] * mla_dtype_bits(t->dtype) / 8;
}

static unsigned char *parts_take(mla_cpu_arena *arena,
                                 const mla_cpu_context *c) {
  return mla_cpu_take(arena, c->threads == 1 ? 0 : (uint64_t)c->limits.tokens,
                      1);
}

static uint64_t kv_write_workspace(const mla_cpu_context *c) {
  mla_cpu_arena arena = {NULL, 0};
  parts_take(&arena, c);
  return arena.used;
}

static void kv_write_run(const mla_cpu_context *c, const mla_args *args,
                         void *workspace) {
  kv_write w = {c,
                mla_arg(args, MLA_T_KV_C),
                mla_arg(args, MLA_T_K_PE), /* absent when R is 0 */
                mla_arg(args, MLA_T_SLOT_MAPPING),
                mla_arg(args, MLA_T_CACHE),
                0,
                NULL,
                0,
                mla_cpu_entries_of(c, args, MLA_T_CACHE, MLA_CPU_F32)};
  mla_cpu_arena arena = {workspace, 0};
  int64_t tokens = w.slots->shape[0];
  w.parts = parts_of(c, tokens);
  w.far = tokens * row_bytes(w.cache) > MLA_CPU_FAR;
  if (w.parts > 1) {
    w.part = parts_take(&arena, c);
    mla_cpu_parallel(c->threads, mla_cpu_ceil(tokens, MARKS), mark_tokens, &w);
  }
  mla_cpu_parallel(c->threads, w.parts, write_part, &w);
}

/* ----------------------------------------------------------------- kv_read */

typedef struct kv_read {
  const mla_cpu_context *c;
  const mla_tensor *cache, *table, *ends, *starts, *dst;
  int64_t parts; /* a request's tokens are shared out in so many runs */
  int far;
  mla_cpu_entries entries;
} kv_read;

/* Rounded once, from the product of code and scale. */
static void read_scaled(const kv_read *r, int64_t block, int64_t offset,
                        int64_t row) {
  _Alignas(64) float line[STEP];
  _Alignas(64) float codes[STEP];
  int out = mla_cpu_type_of(r->dst->dtype);
  int64_t width = r->dst->shape[1], to = mla_at1(r->dst, row);
  for (int64_t i = 0; i < width; i += STEP) {
    int64_t here = mla_cpu_min(STEP, width - i);
    void *at = mla_cpu_at_mut(r->dst->data, out, to + i);
    mla_cpu_entry_load(&r->entries, block, offset, 0, i, here, line);
    r->c->table.store[out](r->far ? codes : at, line, here);
    if (r->far) r->c->table.stream(at, codes, here * mla_cpu_type_bytes(out));
  }
}

/* A plain entry, and the hint that one further on comes soon. */
static void read_plain(const kv_read *r, int64_t at, int64_t next,
                       int64_t row) {
  int type = mla_cpu_type_of(r->cache->dtype);
  int64_t width = r->dst->shape[1];
  r->c->table.fetch(mla_cpu_at(r->cache->data, type, next),
                    width * mla_cpu_type_bytes(type));
  mla_cpu_convert(&r->c->table, r->cache, at, r->dst, mla_at1(r->dst, row),
                  width, r->far);
}

static void read_part(void *state, int64_t index, int thread) {
  const kv_read *r = state;
  int64_t b = index / r->parts, part = index % r->parts;
  const int32_t *cu = r->ends->data;
  const int32_t *block = (const int32_t *)r->table->data + mla_at1(r->table, b);
  int64_t start = r->starts ? ((const int32_t *)r->starts->data)[b] : 0;
  int64_t tokens = (int64_t)cu[b + 1] - cu[b], size = r->cache->shape[1];
  int64_t end = tokens * (part + 1) / r->parts;
  (void)thread;
  for (int64_t i = tokens * part / r->parts; i < end; i++) {
    int64_t key = start + i, next = start + mla_cpu_min(i + AHEAD, end - 1);
    if (r->entries.layout.quantised)
      read_scaled(r, block[key / size], key % size, cu[b] + i);
    else
      read_plain(r, mla_at2(r->cache, block[key / size], key % size),
                 mla_at2(r->cache, block[next / size], next % size), cu[b] + i);
  }
  r->c->table.settle();
}

static void kv_read_run(const mla_cpu_context *c, const mla_args *args,
                        void *workspace) {
  kv_read r = {c,
               mla_arg(args, MLA_T_CACHE),
               mla_arg(args, MLA_T_BLOCK_TABLE),
               mla_arg(args, MLA_T_CU_SEQ_LENS),
               mla_arg(args, MLA_T_SEQ_STARTS),
               mla_arg(args, MLA_T_DST),
               4 * (int64_t)c->threads,
               0,
               mla_cpu_entries_of(c, args, MLA_T_CACHE, MLA_CPU_F32)};
  (void)workspace;
  r.far = r.dst->shape[0] * row_bytes(r.dst) > MLA_CPU_FAR;
  mla_cpu_parallel(c->threads, (r.ends->shape[0] - 1) * r.parts, read_part, &r);
}

/* ----------------------------------------------------------------- kv_copy */

typedef struct kv_copy {
  const mla_tensor *from, *to, *pairs;
  int64_t entry_bytes, element_bytes;
  int parts;
} kv_copy;

/* One share of the entries of every block, pair after pair. */
static void copy_part(void *state, int64_t part, int thread) {
  const kv_copy *k = state;
  const int64_t *pair = k->pairs->data;
  int64_t size = k->to->shape[1];
  (void)thread;
  for (int64_t i = 0; i < k->pairs->shape[0]; i++) {
    int64_t at = mla_at1(k->pairs, i);
    for (int64_t e = size * part / k->parts; e < size * (part + 1) / k->parts;
         e++)
      memmove((unsigned char *)k->to->data +
                  mla_at2(k->to, pair[at + 1], e) * k->element_bytes,
              (const unsigned char *)k->from->data +
                  mla_at2(k->from, pair[at], e) * k->element_bytes,
              (size_t)k->entry_bytes);
  }
}

static void kv_copy_run(const mla_cpu_context *c, const mla_args *args,
                        void *workspace) {
  kv_copy k = {mla_arg(args, MLA_T_SRC_CACHE),
               mla_arg(args, MLA_T_CACHE),
               mla_arg(args, MLA_T_BLOCK_MAPPING),
               0,
               0,
               c->threads};
  (void)workspace;
  k.element_bytes = mla_dtype_bits(k.to->dtype) / 8;
  k.entry_bytes = k.to->shape[2] * k.element_bytes;
  mla_cpu_parallel(c->threads, k.parts, copy_part, &k);
}

/* --------------------------------------------------------------------- ops */

static uint64_t no_workspace(const mla_cpu_context *c) {
  (void)c;
  return 0;
}

static const char *cache_format_only(const mla_problem *p) {
  if (p->cache_format == MLA_CACHE_F64)
    return "cache_format: f64 is not served";
  return NULL;
}

static const char *kv_write_refuse(const mla_problem *p) {
  if (mla_cpu_type_of(p->q_dtype) < 0)
    return "q_dtype: only f32, f16 and bf16 are served";
  return cache_format_only(p);
}

static const char *kv_read_refuse(const mla_problem *p) {
  if (mla_cpu_type_of(p->out_dtype) < 0)
    return "out_dtype: only f32, f16 and bf16 are served";
  return cache_format_only(p);
}

const mla_cpu_op mla_cpu_op_kv_write = {MLA_OP_KV_WRITE, "kv_write",
                                        kv_write_refuse, kv_write_workspace,
                                        kv_write_run};
const mla_cpu_op mla_cpu_op_kv_read = {
    MLA_OP_KV_READ, "kv_read", kv_read_refuse, no_workspace, kv_read_run};
const mla_cpu_op mla_cpu_op_kv_copy = {
    MLA_OP_KV_COPY, "kv_copy", cache_format_only, no_workspace, kv_copy_run};
