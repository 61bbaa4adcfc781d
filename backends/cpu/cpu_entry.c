#include "cpu_entry.h"

#include <string.h>

#include "dtype.h"
#include "float_bits.h"
#include "half.h"

#define STEP 256  /* values on their way */
#define LINE 1024 /* values of an entry, bytes of its row */
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

/* Values of an entry on their way, a line at a time: most have one. */
typedef struct source {
  mla_cpu_values_fn *values;
  const void *state;
  int64_t width, first, count;
  _Alignas(64) float line[LINE]; /* whole vectors in one line of the cache */
} source;

/* Values first .. first + count - 1, LINE of them at most. */
static const float *values_of(source *s, int64_t first, int64_t count) {
  if (first < s->first || first + count > s->first + s->count) {
    s->first = first;
    s->count = mla_cpu_min(LINE, s->width - first);
    s->values(s->state, first, s->count, s->line);
  }
  return s->line + first - s->first;
}

static float amax_of(const mla_cpu_entries *x, source *s, int64_t first) {
  float amax = 0;
  for (int64_t i = 0; i < x->layout.tile; i += LINE) {
    int64_t here = mla_cpu_min(LINE, x->layout.tile - i);
    float size = x->table->amax(values_of(s, first + i, here), here);
    amax = size > amax ? size : amax;
  }
  return amax;
}

/* mla_cache_scale in f32, where dividing rounds to the same number. */
static float scale_of(const mla_cache_layout *x, float amax, int pow2) {
  float most = x->code == MLA_I8 ? 127.0f : x->code == MLA_I4 ? 7.0f : 448.0f;
  float scale = amax / most, least = pow2 ? 1e-4f : 0x1p-126f;
  if (!(scale >= least)) scale = least;
  uint32_t bits = mla_f32_bits(scale), fraction = bits & 0x7FFFFFu;
  if (pow2 && fraction) scale = mla_f32_of_bits(bits - fraction + (1u << 23));
  return scale;
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

static float find_scale(const mla_cpu_entries *x, mla_cache_place place,
                        int64_t tile, int pow2, source *s) {
  if (!x->layout.scale) return x->scale;
  float amax = amax_of(x, s, tile * x->layout.tile);
  float scale = scale_of(&x->layout, amax, pow2);
  put_scale(&x->layout, place, tile, scale);
  return scale;
}

static void store_codes(const mla_cpu_entries *x, mla_cache_place place,
                        int64_t tile, float scale, source *s) {
  int64_t first = tile * x->layout.tile;
  for (int64_t i = 0; i < x->layout.tile; i += LINE) {
    int64_t here = mla_cpu_min(LINE, x->layout.tile - i);
    x->table->encode[x->code](place.row + bytes_of(x, first + i),
                              values_of(s, first + i, here), here, scale);
  }
}

/* Scales of all tiles in a line first: each is a chain of steps from the
   largest magnitude to the reciprocal, and chains run beside each other. */
static void store_tiles(const mla_cpu_entries *x, mla_cache_place place,
                        int pow2, source *s) {
  int64_t tiles = x->layout.codes / x->layout.tile;
  int64_t beside = mla_cpu_max(1, mla_cpu_min(LINE / x->layout.tile, TILES));
  for (int64_t t = 0; t < tiles; t += beside) {
    float scale[TILES];
    int64_t here = mla_cpu_min(beside, tiles - t);
    for (int64_t i = 0; i < here; i++)
      scale[i] = find_scale(x, place, t + i, pow2, s);
    for (int64_t i = 0; i < here; i++)
      store_codes(x, place, t + i, scale[i], s);
  }
}

static void store_entry(const mla_cpu_entries *x, mla_cache_place place,
                        int pow2, source *s) {
  const mla_cache_layout *layout = &x->layout;
  int64_t codes = bytes_of(x, layout->codes);
  memset(place.row + codes, 0, (size_t)(layout->row_bytes - codes));
  if (place.side) memset(place.side, 0, (size_t)layout->side_bytes);
  store_tiles(x, place, pow2, s);
  for (int64_t i = layout->codes; i < layout->width; i += LINE) {
    int64_t here = mla_cpu_min(LINE, layout->width - i);
    x->table->store[MLA_CPU_BF16](
        place.row + layout->rest_at + 2 * (i - layout->codes),
        values_of(s, i, here), here);
  }
}

void mla_cpu_entry_store(const mla_cpu_entries *x, int64_t block,
                         int64_t offset, int pow2, int far,
                         mla_cpu_values_fn *values, const void *state) {
  mla_cache_place place =
      mla_cache_find(x->cache, &x->layout, block, offset, 0);
  _Alignas(64) unsigned char room[LINE];
  unsigned char *row = place.row;
  int aside = far && x->layout.row_bytes <= LINE;
  source s; /* its line is filled when it is asked for */
  s.values = values;
  s.state = state;
  s.width = x->layout.width;
  s.first = s.count = 0;
  if (aside) place.row = room;
  store_entry(x, place, pow2, &s);
  if (aside) x->table->stream(row, room, x->layout.row_bytes);
}
