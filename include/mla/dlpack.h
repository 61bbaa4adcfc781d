/*
 * mla/dlpack.h - tensors from and to DLPack, without DLPack's header.
 *
 * DLPack (github.com/dmlc/dlpack, 1.1) describes a tensor by numbers that are
 * pinned: the device's type; the element's code, bits and lanes; shape and
 * strides in elements; a byte offset. The functions here take and give those
 * numbers, so a caller passes the fields of its DLTensor:
 *
 *   mla_dlpack_import(t->data, t->device.device_type, t->dtype.code,
 *                     t->dtype.bits, t->dtype.lanes, t->ndim, t->shape,
 *                     t->strides, t->byte_offset, &tensor, &space);
 *
 * No memory is owned, copied or freed: whoever holds the DLPack capsule keeps
 * it until the run that uses the tensor is done. Compiles as C99, C11, C++17.
 */
#ifndef MLA_DLPACK_H
#define MLA_DLPACK_H

#include "mla/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack's codes of what MLA has (DLDataTypeCode). */
enum {
  MLA_DLPACK_INT = 0,
  MLA_DLPACK_UINT = 1,
  MLA_DLPACK_FLOAT = 2,
  MLA_DLPACK_BFLOAT = 4,
  MLA_DLPACK_FLOAT8_E4M3FN = 10,
  MLA_DLPACK_FLOAT8_E4M3FNUZ = 11,
  MLA_DLPACK_FLOAT8_E5M2 = 12,
  MLA_DLPACK_FLOAT8_E8M0FNU = 14
};

/* DLPack's devices whose memory is not named by its own space. */
enum {
  MLA_DLPACK_CUDA_HOST = 3, /* pinned memory of the host */
  MLA_DLPACK_ROCM_HOST = 11,
  MLA_DLPACK_CUDA_MANAGED = 13
};

typedef struct mla_dlpack_type {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes; /* always 1 */
} mla_dlpack_type;

/*
 * The DLPack type of each mla_dtype, by its value. mla_dtype's 0 has lanes 0:
 * no type.
 */
static inline mla_dlpack_type mla_dlpack_type_of(int32_t dtype) {
  static const mla_dlpack_type types[] = {
      {0, 0, 0},
      {MLA_DLPACK_FLOAT, 64, 1},
      {MLA_DLPACK_FLOAT, 32, 1},
      {MLA_DLPACK_FLOAT, 16, 1},
      {MLA_DLPACK_BFLOAT, 16, 1},
      {MLA_DLPACK_FLOAT8_E4M3FN, 8, 1},
      {MLA_DLPACK_FLOAT8_E4M3FNUZ, 8, 1},
      {MLA_DLPACK_FLOAT8_E5M2, 8, 1},
      {MLA_DLPACK_FLOAT8_E8M0FNU, 8, 1},
      {MLA_DLPACK_INT, 8, 1},
      {MLA_DLPACK_INT, 4, 1},
      {MLA_DLPACK_UINT, 8, 1},
      {MLA_DLPACK_INT, 32, 1},
      {MLA_DLPACK_INT, 64, 1},
  };
  if (dtype < 0 || dtype >= (int32_t)(sizeof types / sizeof types[0]))
    dtype = MLA_DTYPE_NONE;
  return types[dtype];
}

/* MLA_DTYPE_NONE: MLA has no such type (vectors of lanes among them). */
static inline int32_t mla_dlpack_dtype(uint8_t code, uint8_t bits,
                                       uint16_t lanes) {
  int32_t dtype;
  for (dtype = MLA_F64; dtype <= MLA_I64; dtype++) {
    mla_dlpack_type type = mla_dlpack_type_of(dtype);
    if (type.code == code && type.bits == bits && type.lanes == lanes)
      return dtype;
  }
  return MLA_DTYPE_NONE;
}

/* The memory space that serves a DLPack device; 0: none does. The other way
   needs no function: a mla_memory_space is a DLPack device type. */
static inline int32_t mla_dlpack_space(int32_t device_type) {
  switch (device_type) {
    case MLA_MEMORY_HOST:
    case MLA_DLPACK_CUDA_HOST:
    case MLA_DLPACK_ROCM_HOST: return MLA_MEMORY_HOST;
    case MLA_MEMORY_CUDA:
    case MLA_DLPACK_CUDA_MANAGED: return MLA_MEMORY_CUDA;
    case MLA_MEMORY_ROCM: return MLA_MEMORY_ROCM;
    default: return 0;
  }
}

/* Row-major strides. An empty axis counts as one, as frameworks do; a product
   that overflows becomes INT64_MAX, which the checks of a run refuse. */
static inline void mla_dlpack_dense(int32_t ndim, const int64_t *shape,
                                    int64_t *stride) {
  int64_t step = 1;
  int32_t axis;
  for (axis = ndim - 1; axis >= 0; axis--) {
    stride[axis] = step;
    if (shape[axis] < 1) continue;
    step = step > INT64_MAX / shape[axis] ? INT64_MAX : step * shape[axis];
  }
}

/*
 * A view of what a DLTensor describes. strides may be NULL: row-major.
 * memory_space (may be NULL) is where it lies; it must be that of the device
 * it is used on. Errors: INVALID_ARGUMENT (ndim < 0 or > MLA_MAX_RANK, a
 * negative length, no shape), UNSUPPORTED (type or device). *tensor is
 * written only on MLA_OK.
 */
static inline mla_status mla_dlpack_import(
    void *data, int32_t device_type, uint8_t code, uint8_t bits, uint16_t lanes,
    int32_t ndim, const int64_t *shape, const int64_t *strides,
    uint64_t byte_offset, mla_tensor *tensor, int32_t *memory_space) {
  int32_t dtype = mla_dlpack_dtype(code, bits, lanes);
  int32_t space = mla_dlpack_space(device_type);
  int32_t axis;
  if (ndim < 0 || ndim > MLA_MAX_RANK || (ndim > 0 && !shape))
    return MLA_INVALID_ARGUMENT;
  for (axis = 0; axis < ndim; axis++)
    if (shape[axis] < 0) return MLA_INVALID_ARGUMENT;
  if (dtype == MLA_DTYPE_NONE || space == 0) return MLA_UNSUPPORTED;
  tensor->data = data ? (void *)((char *)data + byte_offset) : NULL;
  tensor->dtype = dtype;
  tensor->rank = ndim;
  for (axis = 0; axis < MLA_MAX_RANK; axis++) {
    tensor->shape[axis] = axis < ndim ? shape[axis] : 0;
    tensor->stride[axis] = axis < ndim && strides ? strides[axis] : 0;
  }
  if (!strides) mla_dlpack_dense(ndim, shape, tensor->stride);
  if (memory_space) *memory_space = space;
  return MLA_OK;
}

#ifdef __cplusplus
}
#endif
#endif
