/*
 * cpu_table.h - the kernels in use: portable first, then raised level by level
 * under a mask.
 *
 * A new kernel is one file, one line in init_portable.h, init_x86.h or
 * init_arm.h, and one line in CMakeLists.txt (docs/cpu.md).
 */
#ifndef MLA_CPU_TABLE_H
#define MLA_CPU_TABLE_H

#include "cpu_isa.h"
#include "cpu_kernels.h"

/* Codes that are numbers with a scale. */
typedef enum mla_cpu_code {
  MLA_CPU_E4M3 = 0,
  MLA_CPU_E4M3FNUZ = 1,
  MLA_CPU_E5M2 = 2,
  MLA_CPU_I8 = 3,
  MLA_CPU_I4 = 4,
  MLA_CPU_CODES = 5
} mla_cpu_code;

/* -1 for a dtype (or a cache format) that has no f32 conversion here. */
int mla_cpu_type_of(int32_t dtype);
int mla_cpu_code_of(int32_t dtype);
int mla_cpu_type_of_format(int32_t cache_format);
int64_t mla_cpu_type_bytes(int type);

typedef struct mla_cpu_table {
  int isa; /* the highest level that gave a kernel */
  mla_cpu_load_fn *load[MLA_CPU_TYPES];
  mla_cpu_store_fn *store[MLA_CPU_TYPES];
  mla_cpu_pack_fn *pack;
  mla_cpu_product_fn *product;
  mla_cpu_softmax_fn *softmax;
  mla_cpu_product_fn *product_half; /* lanes 0 .. LANES / 2 - 1 alone; */
  mla_cpu_softmax_fn *softmax_half; /* both NULL: all lanes in any case */
  mla_cpu_softcap_fn *softcap;
  mla_cpu_fold_fn *fold;
  mla_cpu_blend_fn *blend[MLA_CPU_TYPES];
  mla_cpu_fetch_fn *fetch;
  mla_cpu_stream_fn *stream;
  mla_cpu_settle_fn *settle;
  mla_cpu_scale_fn *scale;
  mla_cpu_softmax_row_fn *softmax_row;
  mla_cpu_spread_fn *spread[MLA_CPU_TYPES]; /* NULL: columns as they are */
  mla_cpu_dots_fn *dots[MLA_CPU_TYPES];     /* NULL: rows are lanes */
  mla_cpu_mix_fn *mix[MLA_CPU_TYPES];       /* as dots */
  mla_cpu_codes_fn *codes;                  /* NULL: scores are f32 products */
  mla_cpu_codes_fn *codes_half;             /* as product_half */
  mla_cpu_widen_codes_fn *widen_codes;
  mla_cpu_amax_fn *amax;
  mla_cpu_encode_fn *encode[MLA_CPU_CODES];
  mla_cpu_decode_fn *decode[MLA_CPU_CODES];
  mla_cpu_tile_queries_fn *tile_queries;
  mla_cpu_tile_values_fn *tile_values;
  mla_cpu_tile_softmax_fn *tile_softmax;
  mla_cpu_tile_join_fn *tile_join;
  mla_cpu_tile_blend_fn *tile_blend;
  mla_cpu_tile_scale_fn *tile_scale;
  mla_cpu_tile_line_fn *tile_line;
  mla_cpu_tile_narrow_fn *tile_narrow;
  mla_cpu_tile_pairs_fn *tile_pairs;
  mla_cpu_tile_finite_fn *tile_finite;
  mla_cpu_tile_begin_fn *tile_begin;     /* as tile_scores */
  mla_cpu_tile_end_fn *tile_end;         /* as tile_scores */
  mla_cpu_tile_scores_fn *tile_scores;   /* NULL: no matrix unit */
  mla_cpu_tile_product_fn *tile_product; /* as tile_scores */
} mla_cpu_table;

/* mask: the levels allowed; the caller has ANDed it with what runs here. */
mla_cpu_table mla_cpu_table_for(uint32_t mask);

#endif
