/*
 * safetensors_types.c - names, widths and byte order of element types.
 */
#include "safetensors_types.h"

#include <string.h>

static const mla_st_type types[] = {
    {"F64", MLA_F64, 8, 8},
    {"F32", MLA_F32, 4, 4},
    {"F16", MLA_F16, 2, 2},
    {"BF16", MLA_BF16, 2, 2},
    {"F8_E4M3", MLA_FP8_E4M3, 1, 1},
    {"F8_E4M3FNUZ", MLA_FP8_E4M3FNUZ, 1, 1},
    {"F8_E5M2", MLA_FP8_E5M2, 1, 1},
    {"F8_E8M0", MLA_E8M0, 1, 1},
    {"I8", MLA_I8, 1, 1},
    {"U8", MLA_U8, 1, 1},
    {"I32", MLA_I32, 4, 4},
    {"I64", MLA_I64, 8, 8},
    {"F8_E5M2FNUZ", MLA_DTYPE_NONE, 1, 1},
    {"BOOL", MLA_DTYPE_NONE, 1, 1},
    {"I16", MLA_DTYPE_NONE, 2, 2},
    {"U16", MLA_DTYPE_NONE, 2, 2},
    {"U32", MLA_DTYPE_NONE, 4, 4},
    {"U64", MLA_DTYPE_NONE, 8, 8},
    {"C64", MLA_DTYPE_NONE, 8, 4},
};
#define TYPES ((int)(sizeof types / sizeof types[0]))

const mla_st_type *mla_st_type_named(const char *name) {
  for (int i = 0; i < TYPES; i++) {
    if (strcmp(types[i].name, name) == 0) return &types[i];
  }
  return NULL;
}

const mla_st_type *mla_st_type_of(int32_t dtype) {
  for (int i = 0; i < TYPES; i++) {
    if (dtype != MLA_DTYPE_NONE && types[i].dtype == dtype) return &types[i];
  }
  return NULL;
}

int mla_st_swaps(void) {
  const uint16_t one = 1;
  unsigned char first;
  memcpy(&first, &one, 1);
  return first != 1;
}

void mla_st_swap(void *data, uint64_t bytes, int32_t unit) {
  unsigned char *byte = data;
  if (unit < 2) return;
  for (uint64_t at = 0; at + (uint64_t)unit <= bytes; at += (uint64_t)unit) {
    for (int32_t i = 0; i < unit / 2; i++) {
      unsigned char kept = byte[at + (uint64_t)i];
      byte[at + (uint64_t)i] = byte[at + (uint64_t)(unit - 1 - i)];
      byte[at + (uint64_t)(unit - 1 - i)] = kept;
    }
  }
}

int mla_st_size(const int64_t *shape, int32_t rank, int32_t width,
                uint64_t *bytes) {
  uint64_t product = (uint64_t)width;
  int empty = 0;
  *bytes = 0;
  for (int32_t i = 0; i < rank; i++) {
    if (shape[i] < 0) return 0;
    if (shape[i] == 0) empty = 1;
  }
  for (int32_t i = 0; i < rank && !empty; i++) {
    if (product > INT64_MAX / (uint64_t)shape[i]) return 0;
    product *= (uint64_t)shape[i];
  }
  *bytes = empty ? 0 : product;
  return 1;
}
