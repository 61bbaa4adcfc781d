#include "cpu_pages.h"

#include "dtype.h"
#include "tensor.h"

void mla_cpu_pages_list(const mla_tensor *cache, const int32_t *blocks,
                        int64_t kv_head, int64_t first, int64_t n,
                        const void **at) {
  int64_t bytes = mla_dtype_bits(cache->dtype) / 8, size = cache->shape[1];
  int64_t step = cache->stride[1] * bytes;
  int64_t head = cache->rank == 4 ? kv_head * cache->stride[2] : 0;
  int64_t block = first / size, entry = first % size;
  for (int64_t i = 0; i < n; block++, entry = 0) {
    const unsigned char *row = cache->data;
    row += (blocks[block] * cache->stride[0] + head) * bytes + entry * step;
    for (; i < n && entry < size; i++, entry++, row += step) at[i] = row;
  }
}
