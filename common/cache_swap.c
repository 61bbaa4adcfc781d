#include "cache_swap.h"

#include "cache_rows.h"
#include "dtype.h"

static void reverse(unsigned char *at, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < size / 2; k++) {
      unsigned char low = at[i * size + k];
      at[i * size + k] = at[i * size + size - 1 - k];
      at[i * size + size - 1 - k] = low;
    }
}

static void swap_entry(const mla_cache_layout *x, mla_cache_place place) {
  unsigned char *scales = place.side ? place.side : place.row + x->scale_at;
  reverse(place.row + x->rest_at, x->width - x->codes, 2);
  reverse(scales, x->codes / x->tile, mla_dtype_bits(x->scale) / 8);
}

void mla_cache_swap(const mla_problem *problem, int32_t slot,
                    const mla_tensor *tensor, void *bytes) {
  mla_tensor t = *tensor;
  mla_cache_layout x = slot == MLA_T_V_CACHE ? mla_cache_layout_of_v(problem)
                                             : mla_cache_layout_of(problem);
  if (t.dtype != MLA_U8 || t.rank < 3 || !x.scale) return;
  t.data = bytes;
  int64_t heads = t.rank == 4 ? t.shape[2] : 1;
  for (int64_t b = 0; b < t.shape[0]; b++)
    for (int64_t i = 0; i < t.shape[1]; i++)
      for (int64_t h = 0; h < heads; h++)
        swap_entry(&x, mla_cache_find(&t, &x, b, i, h));
}
