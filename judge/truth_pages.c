/*
 * truth_pages.c - pages, table and slots of one sequence.
 */
#include "truth_pages.h"

#include <stdlib.h>
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "tensor.h"

#define SPARE 2 /* pages, and table entries, beyond those in use */

mla_status mla_truth_allocate(mla_tensor *t, int32_t dtype, int32_t rank,
                              const int64_t *shape, mla_error *err) {
  *t = mla_tensor_dense(NULL, dtype, rank, shape);
  int64_t bytes = mla_tensor_extent(t);
  if (bytes > 0 && (uint64_t)bytes <= SIZE_MAX) t->data = malloc((size_t)bytes);
  if (t->data) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "sequence",
                  "no memory for an array of %lld bytes", (long long)bytes);
}

mla_tensor mla_truth_slice(const mla_tensor *t, int64_t first, int64_t count) {
  mla_tensor part = *t;
  int64_t bytes = mla_dtype_bits(t->dtype) / 8;
  part.data = (unsigned char *)t->data + first * t->stride[0] * bytes;
  part.shape[0] = count;
  return part;
}

void mla_truth_forget(const mla_tensor *t) {
  int64_t count = mla_tensor_count(t);
  for (int64_t i = 0; i < count; i++) {
    mla_put(t->data, t->dtype, i, mla_nan());
  }
}

/* ------------------------------------------------------------------- pages */

static int32_t format_of(int32_t dtype) {
  switch (dtype) {
    case MLA_F64: return MLA_CACHE_F64;
    case MLA_F32: return MLA_CACHE_F32;
    case MLA_F16: return MLA_CACHE_F16;
    default: return MLA_CACHE_BF16;
  }
}

/* A permutation of the pages: last first, the odd ones before the even. */
static int32_t page_of(int64_t block, int64_t pages) {
  int64_t odd = pages / 2;
  int64_t back = pages - 1 - block;
  return (int32_t)(back < odd ? 2 * back + 1 : 2 * (back - odd));
}

static mla_status open_keys(mla_truth_pages *p, const mla_sequence *s,
                            int64_t pages, mla_error *err) {
  const int64_t shape[3] = {pages, p->block_size, s->k_index.shape[1]};
  p->batch.index_format = format_of(s->k_index.dtype);
  mla_status status = mla_truth_allocate(&p->batch.index_cache,
                                         s->k_index.dtype, 3, shape, err);
  if (status == MLA_OK) mla_truth_forget(&p->batch.index_cache);
  return status;
}

mla_status mla_truth_pages_open(mla_truth_pages *p, const mla_sequence *s,
                                int32_t block_size, mla_error *err) {
  int64_t used = (s->kv_c.shape[0] + block_size - 1) / block_size;
  int64_t pages = used + SPARE;
  const int64_t cache[3] = {pages, block_size,
                            s->kv_c.shape[1] + s->k_pe.shape[1]};
  const int64_t table[2] = {1, pages}, one[1] = {1}, two[1] = {2};
  memset(p, 0, sizeof *p);
  p->block_size = block_size;
  p->batch.cache_format = format_of(s->kv_c.dtype);
  mla_status status =
      mla_truth_allocate(&p->batch.cache, s->kv_c.dtype, 3, cache, err);
  if (status == MLA_OK)
    status = mla_truth_allocate(&p->batch.block_table, MLA_I32, 2, table, err);
  if (status != MLA_OK) return status;
  mla_truth_forget(&p->batch.cache);
  if (s->k_index.data) status = open_keys(p, s, pages, err);
  if (status != MLA_OK) return status;
  for (int64_t block = 0; block < pages; block++) {
    int32_t page = block < used ? page_of(block, pages) : INT32_MAX;
    mla_put_int(p->batch.block_table.data, MLA_I32, block, page);
  }
  p->batch.seq_lens = mla_tensor_dense(p->lengths, MLA_I32, 1, one);
  p->batch.query_start_loc = mla_tensor_dense(p->starts, MLA_I32, 1, two);
  return MLA_OK;
}

void mla_truth_pages_close(mla_truth_pages *p) {
  free(p->batch.cache.data);
  free(p->batch.index_cache.data);
  free(p->batch.block_table.data);
}

mla_status mla_truth_pages_write(mla_truth_pages *p, const mla_sequence *s,
                                 int64_t first, int64_t count, mla_error *err) {
  const int64_t shape[1] = {count};
  mla_tensor kv_c = mla_truth_slice(&s->kv_c, first, count), slots;
  mla_tensor k_pe = mla_truth_slice(&s->k_pe, first, count);
  mla_status status = mla_truth_allocate(&slots, MLA_I64, 1, shape, err);
  if (status != MLA_OK) return status;
  for (int64_t t = 0; t < count; t++) {
    int64_t block = (first + t) / p->block_size;
    int64_t page = mla_get_int(p->batch.block_table.data, MLA_I32, block);
    mla_put_int(slots.data, MLA_I64, t,
                page * p->block_size + (first + t) % p->block_size);
  }
  status = mla_layer_write(s->layer, p->batch.cache_format, &kv_c, &k_pe,
                           &slots, &p->batch.cache, err);
  if (status == MLA_OK && s->k_index.data) {
    mla_tensor keys = mla_truth_slice(&s->k_index, first, count);
    status = mla_layer_write_keys(s->layer, p->batch.index_format, &keys,
                                  &slots, &p->batch.index_cache, err);
  }
  free(slots.data);
  return status;
}
