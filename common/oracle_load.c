#include "oracle_load.h"

#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "half.h"
#include "tensor.h"

static void load_f64(double *to, int64_t step, const unsigned char *from,
                     int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    memcpy(&to[i * step], from + i * stride * 8, 8);
}

static void load_f32(double *to, int64_t step, const unsigned char *from,
                     int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    float x;
    memcpy(&x, from + i * stride * 4, 4);
    to[i * step] = (double)x;
  }
}

static void load_f16(double *to, int64_t step, const unsigned char *from,
                     int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    uint16_t code;
    memcpy(&code, from + i * stride * 2, 2);
    to[i * step] = (double)mla_f16_to_f32(code);
  }
}

static void load_bf16(double *to, int64_t step, const unsigned char *from,
                      int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    uint16_t code;
    memcpy(&code, from + i * stride * 2, 2);
    to[i * step] = (double)mla_bf16_to_f32(code);
  }
}

void mla_load(double *to, int64_t to_stride, mla_line line, int64_t count) {
  const unsigned char *bytes = line.data;
  int64_t at = line.offset, stride = line.stride;
  switch (line.dtype) {
    case MLA_F64: load_f64(to, to_stride, bytes + at * 8, stride, count); break;
    case MLA_F32: load_f32(to, to_stride, bytes + at * 4, stride, count); break;
    case MLA_F16: load_f16(to, to_stride, bytes + at * 2, stride, count); break;
    case MLA_BF16:
      load_bf16(to, to_stride, bytes + at * 2, stride, count);
      break;
    default:
      for (int64_t i = 0; i < count; i++)
        to[i * to_stride] = mla_get(line.data, line.dtype, at + i * stride);
  }
}

void mla_load_row(double *to, const mla_tensor *t, int64_t offset,
                  int64_t count) {
  mla_line line = {t->data, t->dtype, offset, 1};
  mla_load(to, 1, line, count);
}

void mla_store(void *data, int32_t dtype, int64_t offset, const double *from,
               int64_t count) {
  for (int64_t i = 0; i < count; i++) mla_put(data, dtype, offset + i, from[i]);
}

int64_t mla_index1(const mla_tensor *t, int64_t i) {
  return mla_get_int(t->data, t->dtype, mla_at1(t, i));
}

int64_t mla_index2(const mla_tensor *t, int64_t i, int64_t j) {
  return mla_get_int(t->data, t->dtype, mla_at2(t, i, j));
}

double mla_sink_of(const mla_problem *problem, const mla_args *args,
                   int64_t head) {
  const mla_tensor *sink = mla_arg(args, MLA_T_SINK);
  if (!sink || !(problem->flags & MLA_HAS_SINK)) return -mla_inf();
  return mla_get(sink->data, sink->dtype, mla_at1(sink, head));
}

mla_block_place mla_page_at(const mla_pages *pages, int64_t j) {
  int64_t size = pages->rows->cache->shape[1];
  mla_block_place place;
  place.block = mla_index2(pages->table, pages->request, j / size);
  place.offset = j % size;
  return place;
}

void mla_gather(double *to, int64_t to_stride, const mla_pages *pages,
                int64_t first, int64_t count) {
  int64_t i;
#ifdef _OPENMP
#pragma omp parallel for if (count * to_stride > MLA_WORTH_THREADS)
#endif
  for (i = 0; i < count; i++) {
    mla_block_place at = mla_page_at(pages, first + i);
    mla_cache_load(pages->rows, at.block, at.offset, pages->kv_head,
                   to + i * to_stride);
  }
}
