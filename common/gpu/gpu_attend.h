/*
 * gpu_attend.h - one query row a wave over a range of keys, portable.
 *
 * Serves decode (keys in a paged cache, values their first columns or a cache
 * of their own) and prefill in its absorbed form (context in the cache, new
 * tokens dense). A block takes the rows of up to waves-per-block heads of one
 * token that share a kv head; keys pass through shared memory in tiles.
 * Every (token, head, split) gives a partial result; gpu_merge.h joins them.
 * Split bounds follow from the row's own length alone, so a row's bits do not
 * depend on its batch mates.
 */
#ifndef MLA_GPU_ATTEND_H
#define MLA_GPU_ATTEND_H

#include "gpu_entry.h"
#include "gpu_request.h"
#include "gpu_tile.h"

enum { MLA_ATTEND_THREADS = 256, MLA_ATTEND_MAX_SPLITS = 16 };

typedef struct mla_attend_args {
  const void *q; /* element (t, h, d) at t * q_token + h * q_head + d */
  int64_t q_token, q_head;
  int q_dtype;
  const void *cache, *v_cache; /* v_cache NULL: values are keys' start */
  int64_t k_block, k_row, k_head, v_block, v_row, v_head;
  mla_entry k_entry, v_entry; /* where entries have scales */
  int compute;                /* type that their values are rounded to */
  const int32_t *table;
  int64_t table_row;
  const void *new_c, *new_r; /* prefill: this step's latents; NULL: none */
  int64_t new_c_row, new_r_row;
  const int32_t *seq_lens;
  int64_t seq_lens_step;
  const int32_t *start;
  int64_t start_step;
  int requests, heads, kv_heads, block_size;
  int dk, dv, latent; /* latent: columns of a new row that are in new_c */
  int rows_whole;     /* cached and new rows are whole chunks of eight */
  int token0;         /* first token of this launch */
  int tokens;         /* rows of q there are */
  int causal, tile;
  float scale, cap;
  float *part_out; /* [token - token0][head][split][dv] */
  float *part_lse; /* [token - token0][head][split] */
  int splits;      /* width of part_*: at most MLA_ATTEND_MAX_SPLITS */
} mla_attend_args;

/* Keys a split takes of a row that sees n: a multiple of 512. */
MLA_DEV int mla_split_keys(int n, int splits) {
  int per = 512;
  while ((int64_t)per * splits < n) per *= 2;
  return per;
}

typedef struct mla_attend_row {
  int request, first; /* first: the request's first token */
  int context;        /* keys in the cache; later ones are new rows */
  int visible;
} mla_attend_row;

MLA_DEV mla_attend_row mla_row_of(const mla_attend_args &a, int token) {
  mla_attend_row r = {mla_request_at(a.start, a.start_step, a.requests, token),
                      0, 0, 0};
  if (r.request < 0) return r;
  r.first = a.start[r.request * a.start_step];
  int queries = a.start[(r.request + 1) * a.start_step] - r.first;
  int seq = a.seq_lens[r.request * a.seq_lens_step];
  r.context = a.new_c ? seq - queries : seq;
  r.visible = a.causal ? seq - queries + (token - r.first) + 1 : seq;
  if (r.visible < 0) r.visible = 0;
  return r;
}

/* Keys or values: where they lie, plain or in entries with scales. */
typedef struct mla_attend_rows {
  const void *base;
  int64_t block, row;
  int head; /* kv head */
  int64_t head_step;
  int width;
} mla_attend_rows;

/* A row of key (or value) j, wherever it lies, by one wave. */
template <int DT>
MLA_DEV void mla_load_key(const mla_attend_args &a, const mla_attend_row &r,
                          const mla_attend_rows &x, const mla_entry &e, int j,
                          float *to) {
  if (j >= r.context) {
    const int64_t t = r.first + (j - r.context);
    for (int d = MLA_LANE; d < x.width; d += MLA_WAVE)
      to[d] = d < a.latent
                  ? mla_elem<DT>::load(a.new_c, t * a.new_c_row + d)
                  : mla_elem<DT>::load(a.new_r, t * a.new_r_row + d - a.latent);
    return;
  }
  const int64_t id = a.table[r.request * a.table_row + j / a.block_size];
  const int64_t offset = j % a.block_size;
  if (e.scaled) {
    const mla_entry_place p = mla_entry_at(e, x.base, id, offset, x.head);
    for (int d = MLA_LANE; d < x.width; d += MLA_WAVE)
      to[d] = mla_entry_value(e, p, d, a.compute);
    return;
  }
  const int64_t at = id * x.block + offset * x.row + x.head * x.head_step;
  for (int d = MLA_LANE; d < x.width; d += MLA_WAVE)
    to[d] = mla_elem<DT>::load(x.base, at + d);
}

/* A tile by all waves of a block, a key each at a time. */
template <int DT>
MLA_DEV void mla_load_tile(const mla_attend_args &a, const mla_attend_row &r,
                           const mla_attend_rows &x, const mla_entry &e, int j0,
                           int n, float *to, int step) {
  const int waves = MLA_ATTEND_THREADS / MLA_WAVE;
  for (int j = MLA_WAVE_ID; j < n; j += waves)
    mla_load_key<DT>(a, r, x, e, j0 + j, to + j * step);
}

/*
 * Grid: x token, y kv head x head group, z split. Shared: q of the block's
 * waves, their p, a tile of keys and, with v_cache, a tile of values. C:
 * columns of dv a lane holds.
 */
template <int DT, int C>
MLA_KERNEL mla_attend_partial(mla_attend_args a) {
  MLA_DYNAMIC_SHARED(float, shared);
  const int waves = MLA_ATTEND_THREADS / MLA_WAVE;
  const int group = a.heads / a.kv_heads;
  const int groups = (group + waves - 1) / waves;
  const int kv_head = (int)blockIdx.y / groups;
  const int in_group = (int)blockIdx.y % groups * waves + MLA_WAVE_ID;
  const int head = kv_head * group + in_group;
  const int local = (int)blockIdx.x, token = a.token0 + local;
  const int split = (int)blockIdx.z;
  const int step = MLA_TILE_STEP(a.dk);
  float *q = shared + MLA_WAVE_ID * a.dk;
  float *p = shared + waves * a.dk + MLA_WAVE_ID * MLA_TILE_KEYS;
  float *k_tile = shared + waves * (a.dk + MLA_TILE_KEYS);
  float *v_tile = a.v_cache ? k_tile + a.tile * step : k_tile;
  const mla_attend_rows k_rows = {a.cache, a.k_block, a.k_row,
                                  kv_head, a.k_head,  a.dk};
  const mla_attend_rows v_rows = {a.v_cache, a.v_block, a.v_row,
                                  kv_head,   a.v_head,  a.dv};
  const mla_attend_row r = mla_row_of(a, token);
  if (r.request < 0) return;
  const int per = mla_split_keys(r.visible, a.splits);
  const int lo = split * per;
  const int hi = r.visible - lo < per ? r.visible : lo + per;
  const int has_row = in_group < group; /* else it only loads keys */
  for (int d = MLA_LANE; has_row && d < a.dk; d += MLA_WAVE)
    q[d] =
        mla_load_any(a.q, a.q_dtype, token * a.q_token + head * a.q_head + d);
  mla_tile x = {q,    k_tile, v_tile, p,       step, a.v_cache ? a.dv : step,
                a.dk, a.dv,   0,      a.scale, a.cap};
  mla_row_sums<C> sums;
  mla_row_begin(&sums);
  for (int j0 = lo; j0 < hi; j0 += a.tile) {
    x.n = hi - j0 < a.tile ? hi - j0 : a.tile;
    MLA_BARRIER();
    mla_load_tile<DT>(a, r, k_rows, a.k_entry, j0, x.n, k_tile, step);
    if (a.v_cache)
      mla_load_tile<DT>(a, r, v_rows, a.v_entry, j0, x.n, v_tile, a.dv);
    MLA_BARRIER();
    if (has_row) mla_row_add(x, MLA_LANE % MLA_TILE_KEYS < x.n, &sums);
  }
  if (!has_row) return;
  const int64_t row = ((int64_t)local * a.heads + head) * a.splits + split;
  mla_row_store(sums, lo >= hi, a.dv, a.part_out + row * a.dv,
                a.part_lse + row);
}

#endif
