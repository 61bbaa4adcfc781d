/*
 * gpu_prefill.h - prefill in its up-projected form, what kernels on matrix
 * units share: 128 + 64 columns a key, 128 a value.
 *
 * A prefill is done in parts: chunks of each request's context, then the new
 * tokens. The tokens of a part lie in slots, each request's from a multiple of
 * a tile on (TILE keys): its latents are gathered there, zeros behind the last
 * of them, so that what follows never meets another request's data. Keys and
 * values are made of the latents, then attended; between parts a row's sums
 * are kept as they are, so that its bits do not depend on how the context was
 * cut.
 */
#ifndef MLA_GPU_PREFILL_H
#define MLA_GPU_PREFILL_H

#include "gpu_attend.h"

enum {
  MLA_PREFILL_THREADS = 256,
  MLA_PREFILL_DV = 128,
  MLA_PREFILL_ROPE = 64,
  MLA_PREFILL_DK = MLA_PREFILL_DV + MLA_PREFILL_ROPE,
  MLA_PREFILL_ROWS = 128 /* of a block that attends */
};

typedef struct mla_prefill_part {
  const int32_t *start, *seq_lens;
  int64_t start_step, seq_lens_step;
  int requests;
  int chunk; /* slots a request has: a part of the context; 0: new tokens */
  int first; /* the first position of the chunk */
} mla_prefill_part;

/* What a part has of a request. */
typedef struct mla_prefill_keys {
  int request, base, length; /* base: its first slot */
  int begin, queries;        /* its first token of the step */
  int context;
} mla_prefill_keys;

template <int TILE>
MLA_DEV mla_prefill_keys mla_prefill_keys_of(const mla_prefill_part &p, int b) {
  mla_prefill_keys k;
  k.request = b;
  k.begin = p.start[b * p.start_step];
  k.queries = p.start[(b + 1) * p.start_step] - k.begin;
  k.context = p.seq_lens[b * p.seq_lens_step] - k.queries;
  k.base = (k.begin / TILE + b) * TILE;
  k.length = k.queries;
  if (p.chunk) {
    const int rest = k.context - p.first;
    k.base = b * p.chunk;
    k.length = rest < 0 ? 0 : (rest < p.chunk ? rest : p.chunk);
  }
  return k;
}

/* Units of so many tokens, each request's counted up and one more: that
   unit's request. (What is beyond its last unit is for callers to see.) */
MLA_DEV int mla_prefill_request(const mla_prefill_part &p, int unit, int at) {
  int lo = 0, hi = p.requests;
  while (hi - lo > 1) {
    const int mid = (lo + hi) / 2;
    if (p.start[mid * p.start_step] / unit + mid <= at)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

template <int TILE>
MLA_DEV int mla_prefill_at_slot(const mla_prefill_part &p, int slot) {
  if (p.chunk) return slot / p.chunk;
  return mla_prefill_request(p, TILE, slot / TILE);
}

/* Slots up to which a request's are read: whole tiles. */
template <int TILE>
MLA_DEV int mla_prefill_end(const mla_prefill_keys &k) {
  return k.base + (k.length + TILE - 1) / TILE * TILE;
}

/* Whether any of these slots is read. */
template <int TILE>
MLA_DEV int mla_prefill_any(const mla_prefill_part &p, int slot, int count) {
  for (int b = mla_prefill_at_slot<TILE>(p, slot); b < p.requests; b++) {
    const mla_prefill_keys k = mla_prefill_keys_of<TILE>(p, b);
    if (k.base >= slot + count) return 0;
    if (mla_prefill_end<TILE>(k) > slot && k.length > 0) return 1;
  }
  return 0;
}

/* ---------------------------------------------------------------- gathering */

/* Position j of a request, of this step or in the cache: where its columns from
   d on are, up to the end of the latent part or of the row. */
template <int DT>
MLA_DEV const void *mla_prefill_row(const mla_attend_args &a,
                                    const mla_prefill_keys &k, int j, int d) {
  typedef typename mla_elem<DT>::bits bits;
  if (j < k.context) {
    const int64_t id = a.table[k.request * a.table_row + j / a.block_size];
    return (const bits *)a.cache + id * a.k_block + j % a.block_size * a.k_row +
           d;
  }
  const int64_t t = k.begin + (j - k.context);
  return d < a.latent ? (const bits *)a.new_c + t * a.new_c_row + d
                      : (const bits *)a.new_r + t * a.new_r_row + d - a.latent;
}
template <int DT>
MLA_DEV float mla_prefill_latent(const mla_attend_args &a,
                                 const mla_prefill_keys &k, int j, int d) {
  if (j >= k.context || !a.k_entry.scaled)
    return mla_elem<DT>::load(mla_prefill_row<DT>(a, k, j, d), 0);
  const int64_t id = a.table[k.request * a.table_row + j / a.block_size];
  return mla_entry_value(
      a.k_entry, mla_entry_at(a.k_entry, a.cache, id, j % a.block_size, 0), d,
      a.compute);
}

/* A row by whole chunks; zeros unless it is live. */
template <int DT>
MLA_DEV void mla_prefill_gather_whole(const mla_attend_args &a,
                                      const mla_prefill_keys &k, int j,
                                      int live, uint16_t *to) {
  const int chunk = 8;
  for (int d = MLA_LANE * chunk; d < a.dk; d += MLA_WAVE * chunk) {
    mla_words4 x = {};
    if (live) x = *(const mla_words4 *)mla_prefill_row<DT>(a, k, j, d);
    *(mla_words4 *)(to + d) = x;
  }
}

/* Rows of a.dk columns by slot, one a wave: latents, then the rope part. */
template <int DT, int TILE>
MLA_KERNEL mla_prefill_gather(mla_attend_args a, mla_prefill_part p,
                              uint16_t *to) {
  const int waves = MLA_PREFILL_THREADS / MLA_WAVE;
  const int slot = (int)blockIdx.x * waves + MLA_WAVE_ID;
  const int b = mla_prefill_at_slot<TILE>(p, slot);
  if (b >= p.requests) return;
  const mla_prefill_keys k = mla_prefill_keys_of<TILE>(p, b);
  if (slot >= mla_prefill_end<TILE>(k)) return;
  const int local = slot - k.base, live = local < k.length;
  const int j = local + (p.chunk ? p.first : k.context);
  to += (int64_t)slot * a.dk;
  if (a.rows_whole) {
    mla_prefill_gather_whole<DT>(a, k, j, live, to);
    return;
  }
  for (int d = MLA_LANE; d < a.dk; d += MLA_WAVE)
    mla_store_any(to, DT, d, live ? mla_prefill_latent<DT>(a, k, j, d) : 0.0f);
}

/* ---------------------------------------------- what the kernels are given
 */

typedef struct mla_upproject_args {
  const uint16_t *latents; /* [slots][width] */
  const void *w;           /* kv_b_proj: a head's 128 of key, 128 of value */
  int64_t width, w_row, slots;
  int latent;  /* columns */
  int w_whole; /* its rows are whole chunks of 16 bytes */
  int head0;   /* the first of this launch */
  uint16_t *k; /* [head][slot][128] */
  uint16_t *v; /* the same, or as the backend's kernels have it */
} mla_upproject_args;

typedef struct mla_prefill_args {
  const void *q;
  int64_t q_token, q_head;
  int q_whole, out_whole; /* rows are whole chunks, of eight and four */
  const uint16_t *k, *v, *latents; /* of a part, by slot */
  int64_t width, slots;
  int latent;
  float *kept;      /* [token][head of this launch][a row's]; or NULL */
  int tiles;        /* of query rows: the grid's x */
  int head0, heads; /* of this launch */
  int causal;
  float scale; /* of scores, in log2 */
  void *out;
  int64_t o_token, o_head;
  int out_dtype;
  float *lse; /* NULL: not wanted */
  int64_t lse_token, lse_head;
  int lse_base2;
  const float *sink;
  int64_t sink_step;
} mla_prefill_args;

/* Keys of a part that a row sees; rows count from the request's first. */
MLA_DEV int mla_prefill_limit(const mla_prefill_args &a,
                              const mla_prefill_part &p,
                              const mla_prefill_keys &k, int row) {
  return a.causal && !p.chunk && row + 1 < k.length ? row + 1 : k.length;
}

#endif
