/*
 * oracle_load.h - elements in bulk: exact widening to binary64 and one
 * rounding back, and rows of a paged cache by block table.
 */
#ifndef MLA_ORACLE_LOAD_H
#define MLA_ORACLE_LOAD_H

#include "cache_rows.h"

/* Work (multiply-adds or elements) below which threads cost more than they
   bring. */
#define MLA_WORTH_THREADS ((int64_t)1 << 16)

/* Elements of memory in a row: data[offset + i * stride]. */
typedef struct mla_line {
  const void *data;
  int32_t dtype;
  int64_t offset;
  int64_t stride;
} mla_line;

/* to[i * to_stride] = line[i], i < count. */
void mla_load(double *to, int64_t to_stride, mla_line line, int64_t count);
/* The same from axis `rank - 1` of a tensor at an offset in elements. */
void mla_load_row(double *to, const mla_tensor *t, int64_t offset,
                  int64_t count);
/* Rounds from[i] to data[offset + i]. */
void mla_store(void *data, int32_t dtype, int64_t offset, const double *from,
               int64_t count);

/* Index tensors (i32 or i64), one element. */
int64_t mla_index1(const mla_tensor *t, int64_t i);
int64_t mla_index2(const mla_tensor *t, int64_t i, int64_t j);

/* The sink of a head, -infinity where the problem has none. */
double mla_sink_of(const mla_problem *problem, const mla_args *args,
                   int64_t head);

/* The paged keys or values of one request and kv head. */
typedef struct mla_pages {
  const mla_cache_rows *rows;
  const mla_tensor *table;
  int64_t request;
  int64_t kv_head;
} mla_pages;

typedef struct mla_block_place {
  int64_t block, offset;
} mla_block_place;

/* Where logical position j lies. Reads one entry of the table. */
mla_block_place mla_page_at(const mla_pages *pages, int64_t j);
/* to[i][..] = position first + i, a whole entry; rows of `to` are to_stride
   apart. */
void mla_gather(double *to, int64_t to_stride, const mla_pages *pages,
                int64_t first, int64_t count);

#endif
