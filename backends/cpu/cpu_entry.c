#include "cpu_entry.h"

#include <string.h>

#include "dtype.h"
#include "float_bits.h"
#include "half.h"

#define STEP 256  /* values on their way */
#define LINE 1024 /* bytes of an entry that is put together aside */
#define TILES 16  /* scales found beside each other */

mla_cpu_entries mla_cpu_entries_of(const mla_cpu_context *c,
                                   const mla_args *args, int slot,
                                   int compute) {
  const mla_problem *p = &c->problem;
  mla_cpu_entries x;
  memset(&x, 0, sizeof x);
  int v = slot == MLA_T_V_CACHE;
  x.table = &c->table;
  x.cache = mla_arg(args, slot);
  x.layout = v ? mla_cache_layout_of_v(p) : mla_cache_layout_of(p);
  x.scale = (float)(v ? p->v_scale : p->k_scale);
  x.compute = compute;
  x.code = x.layout.quantised ? mla_cpu_code_of(x.layout.code) : -1;
  return x;
}

const char *mla_cpu_refuse_entries(const mla_problem *p) {
  int q = mla_cpu_type_of(p->q_dtype);
  if (mla_cache_mixed(p->cache_format) && q == MLA_CPU_F16)
    return "cache_format: its bf16 values are not attended with f16";
  return NULL;
}

/* ---------------------------------------------------------------- reading */

static float scale_at(const mla_cpu_entries *x, mla_cache_place place,
                      int64_t tile) {
  const unsigned char *scales =
      place.side ? place.side : place.row + x->layout.scale_at;
  float scale;
  if (x->layout.scale == MLA_DTYPE_NONE) return x->scale;
  if (x->layout.scale == MLA_E8M0)
    return (float)mla_decode(MLA_E8M0, scales[tile]);
  memcpy(&scale, scales + 4 * tile, sizeof scale);
  return scale;
}

/* Codes of four bits begin with a byte: before an odd one stands another. */
static void multiply(const mla_cpu_entries *x, const unsigned char *row,
                     int64_t first, int64_t count, float scale, float *to) {
  mla_cpu_decode_fn *decode = x->table->decode[x->code];
  if (x->code != MLA_CPU_I4) {
    decode(to, row + first, count, scale);
    return;
  }
  if (first % 2 && count) {
    float pair[2];
    decode(pair, row + first / 2, 2, scale);
    *to++ = pair[1];
    first++;
    count--;
  }
  decode(to, row + first / 2, count, scale);
}

static void round_line(const mla_cpu_entries *x, float *line, int64_t count) {
  uint16_t codes[STEP];
  if (x->compute == MLA_CPU_F32) return;
  for (int64_t i = 0; i < count; i += STEP) {
    int64_t here = mla_cpu_min(STEP, count - i);
    x->table->store[x->compute](codes, line + i, here);
    x->table->load[x->compute](line + i, codes, here);
  }
}

static void load_codes(const mla_cpu_entries *x, mla_cache_place place,
                       int64_t first, int64_t count, float *to) {
  for (int64_t done = 0; done < count;) {
    int64_t at = first + done, tile = at / x->layout.tile;
    int64_t here = mla_cpu_min(count - done, (tile + 1) * x->layout.tile - at);
    multiply(x, place.row, at, here, scale_at(x, place, tile), to + done);
    done += here;
  }
  round_line(x, to, count);
}

void mla_cpu_entry_load(const mla_cpu_entries *x, int64_t block, int64_t offset,
                        int64_t kv_head, int64_t first, int64_t count,
                        float *to) {
  mla_cache_place place =
      mla_cache_find(x->cache, &x->layout, block, offset, kv_head);
  int64_t codes = mla_cpu_min(count, mla_cpu_max(0, x->layout.codes - first));
  load_codes(x, place, first, codes, to);
  if (codes == count) return;
  int64_t rest = first + codes - x->layout.codes;
  x->table->load[MLA_CPU_BF16](
      to + codes, place.row + x->layout.rest_at + 2 * rest, count - codes);
}

/* ---------------------------------------------------------------- writing */

/* Values that lie one behind the other. */
typedef struct run {
  const void *at, *next;
  int64_t count;
} run;

static const void *value_at(const void *row, int type, int64_t i) {
  return row ? (const char *)row + i * (type == MLA_CPU_F32 ? 4 : 2) : NULL;
}

/* From value `first` on, `count` at most. */
static run run_at(const mla_cpu_values *v, int64_t first, int64_t count) {
  int part = first >= v->width[0];
  int64_t i = part ? first - v->width[0] : first;
  run r = {value_at(v->at[part], v->type, i),
           value_at(v->next[part], v->type, i),
           mla_cpu_min(count, v->width[part] - i)};
  return r;
}

static float amax_of(const mla_cpu_entries *x, const mla_cpu_values *v,
                     int64_t first, int64_t count) {
  float amax = 0;
  for (int64_t i = 0; i < count;) {
    float top;
    run r = run_at(v, first + i, count - i);
    x->table->amax(&top, r.at, v->type, r.count, r.count);
    amax = top > amax ? top : amax;
    i += r.count;
  }
  return amax;
}

/* Of so many tiles from a value on. */
static void find_tops(const mla_cpu_entries *x, const mla_cpu_values *v,
                      int64_t first, int64_t tiles, float *top) {
  int64_t tile = x->layout.tile;
  run r = run_at(v, first, tiles * tile);
  if (r.count == tiles * tile)
    x->table->amax(top, r.at, v->type, r.count, tile);
  else
    for (int64_t i = 0; i < tiles; i++)
      top[i] = amax_of(x, v, first + i * tile, tile);
}

/* mla_cache_scale in f32, where dividing rounds to the same number. */
static float scale_of(const mla_cache_layout *x, float amax, int pow2) {
  const uint32_t fraction = 0x7FFFFF;
  float most = x->code == MLA_I8 ? 127.0f : x->code == MLA_I4 ? 7.0f : 448.0f;
  float scale = amax / most, least = pow2 ? 1e-4f : 0x1p-126f;
  scale = scale >= least ? scale : least;
  return pow2 ? mla_f32_of_bits((mla_f32_bits(scale) + fraction) & ~fraction)
              : scale;
}

/* A power of two is its exponent; infinity has none. */
static void put_scale(const mla_cache_layout *x, mla_cache_place place,
                      int64_t tile, float scale) {
  unsigned char *scales = place.side ? place.side : place.row + x->scale_at;
  uint32_t exponent = mla_f32_bits(scale) >> 23;
  if (x->scale != MLA_E8M0)
    memcpy(scales + 4 * tile, &scale, sizeof scale);
  else if (exponent < 255)
    scales[tile] = (unsigned char)exponent;
  else
    scales[tile] = (unsigned char)mla_encode(MLA_E8M0, (double)scale);
}

/* Bytes of so many codes. */
static int64_t bytes_of(const mla_cpu_entries *x, int64_t codes) {
  return x->code == MLA_CPU_I4 ? (codes + 1) / 2 : codes;
}

static void find_scales(const mla_cpu_entries *x, mla_cache_place place,
                        int64_t tile, int64_t tiles, int pow2,
                        const mla_cpu_values *v, float *scale) {
  if (!x->layout.scale) {
    for (int64_t i = 0; i < tiles; i++) scale[i] = x->scale;
    return;
  }
  find_tops(x, v, tile * x->layout.tile, tiles, scale);
  for (int64_t i = 0; i < tiles; i++)
    scale[i] = scale_of(&x->layout, scale[i], pow2);
  for (int64_t i = 0; i < tiles; i++)
    put_scale(&x->layout, place, tile + i, scale[i]);
}

/* Two codes of four bits, one of the latents' and one of the rotary part's. */
static void store_pair(const mla_cpu_entries *x, unsigned char *byte,
                       int64_t first, float scale, const mla_cpu_values *v) {
  float pair[2];
  for (int k = 0; k < 2; k++)
    x->table->load[v->type](pair + k, run_at(v, first + k, 1).at, 1);
  x->table->encode[x->code](byte, pair, MLA_CPU_F32, 2, 2, &scale, NULL);
}

static void store_tile(const mla_cpu_entries *x, mla_cache_place place,
                       int64_t tile, float scale, const mla_cpu_values *v) {
  int64_t i = tile * x->layout.tile, end = i + x->layout.tile;
  while (i < end) {
    run r = run_at(v, i, end - i);
    unsigned char *byte = place.row + bytes_of(x, i);
    int cut = x->code == MLA_CPU_I4 && r.count % 2 && i + r.count < end;
    if (cut) r.count--; /* where a byte ends */
    x->table->encode[x->code](byte, r.at, v->type, r.count, r.count, &scale,
                              r.next);
    i += r.count;
    if (!cut) continue;
    store_pair(x, byte + bytes_of(x, r.count), i, scale, v);
    i += 2;
  }
}

/* Some tiles at a time, scales first: each is a chain of steps from the largest
   magnitude to the reciprocal, and chains run beside each other. */
static void store_tiles(const mla_cpu_entries *x, mla_cache_place place,
                        int pow2, const mla_cpu_values *v) {
  int64_t tile = x->layout.tile, tiles = x->layout.codes / tile;
  for (int64_t t = 0; t < tiles; t += TILES) {
    float scale[TILES];
    int64_t here = mla_cpu_min(TILES, tiles - t);
    run r = run_at(v, t * tile, here * tile);
    find_scales(x, place, t, here, pow2, v, scale);
    if (r.count == here * tile)
      x->table->encode[x->code](place.row + bytes_of(x, t * tile), r.at,
                                v->type, r.count, tile, scale, r.next);
    else
      for (int64_t i = 0; i < here; i++)
        store_tile(x, place, t + i, scale[i], v);
  }
}

/* Values that are no codes, in bf16. */
static void store_rest(const mla_cpu_entries *x, mla_cache_place place,
                       const mla_cpu_values *v) {
  const mla_cache_layout *layout = &x->layout;
  float line[STEP];
  for (int64_t i = layout->codes; i < layout->width;) {
    run r = run_at(v, i, mla_cpu_min(STEP, layout->width - i));
    unsigned char *to = place.row + layout->rest_at + 2 * (i - layout->codes);
    i += r.count;
    if (r.next) x->table->fetch(r.next, r.count * mla_cpu_type_bytes(v->type));
    x->table->load[v->type](line, r.at, r.count);
    x->table->store[MLA_CPU_BF16](to, line, r.count);
  }
}

/* What fills up a row and its scales, before what is to stand there: a row ends
   with fewer than 16 bytes of it, an entry's scales have some words. */
static void clear_padding(const mla_cache_layout *x, mla_cache_place place) {
  enum { least = 16, word = 4 };
  if (x->row_bytes >= least)
    memset(place.row + x->row_bytes - least, 0, least);
  else
    memset(place.row, 0, (size_t)x->row_bytes);
  for (int64_t i = 0; place.side && i < x->side_bytes; i += word)
    memset(place.side + i, 0, word);
}

static void store_entry(const mla_cpu_entries *x, mla_cache_place place,
                        int pow2, const mla_cpu_values *v) {
  clear_padding(&x->layout, place);
  store_tiles(x, place, pow2, v);
  store_rest(x, place, v);
}

void mla_cpu_entry_store(const mla_cpu_entries *x, int64_t block,
                         int64_t offset, int pow2, int far,
                         const mla_cpu_values *values) {
  mla_cache_place place =
      mla_cache_find(x->cache, &x->layout, block, offset, 0);
  _Alignas(64) unsigned char room[LINE];
  unsigned char *row = place.row;
  int aside = far && x->layout.row_bytes <= LINE;
  if (aside) place.row = room;
  store_entry(x, place, pow2, values);
  if (aside) x->table->stream(row, room, x->layout.row_bytes);
}
