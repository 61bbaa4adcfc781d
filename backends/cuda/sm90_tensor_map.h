/*
 * sm90_tensor_map.h - descriptions of bf16 or f16 tensors for the copy engine.
 *
 * The driver's encoder is looked up at run time: nothing links to libcuda.
 */
#ifndef MLA_SM90_TENSOR_MAP_H
#define MLA_SM90_TENSOR_MAP_H

#include <cuda.h>

#include "gpu_host.h"
#include "sm90_type.h"

typedef CUresult (*mla_encode_fn)(CUtensorMap *, CUtensorMapDataType,
                                  cuuint32_t, void *, const cuuint64_t *,
                                  const cuuint64_t *, const cuuint32_t *,
                                  const cuuint32_t *, CUtensorMapInterleave,
                                  CUtensorMapSwizzle, CUtensorMapL2promotion,
                                  CUtensorMapFloatOOBfill);

static mla_encode_fn mla_tensor_map_encoder(void) {
  static mla_encode_fn found; /* two threads may find it at once */
  void *fn = (void *)__atomic_load_n(&found, __ATOMIC_ACQUIRE);
  if (fn) return (mla_encode_fn)fn;
  cudaDriverEntryPointQueryResult result;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &fn, 12000,
                                       cudaEnableDefault,
                                       &result) == cudaSuccess &&
      result == cudaDriverEntryPointSuccess)
    __atomic_store_n(&found, (mla_encode_fn)fn, __ATOMIC_RELEASE);
  return __atomic_load_n(&found, __ATOMIC_ACQUIRE);
}

/* What a miss brings into the second-level cache: lines of 128 bytes, or two.
 */
enum {
  MLA_TENSOR_LINES = CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
  MLA_TENSOR_PAIRS = CU_TENSOR_MAP_L2_PROMOTION_L2_256B
};

/* rank 2 to 4; sizes and box innermost first; strides in bytes from axis 1. */
static mla_status mla_tensor_map(CUtensorMap *map, const void *data, int rank,
                                 const uint64_t *size, const uint64_t *stride,
                                 const uint32_t *box, int miss,
                                 mla_error *err) {
  const cuuint32_t ones[4] = {1, 1, 1, 1};
  const CUtensorMapDataType type = (int)SM90_TYPE == MLA_F16
                                       ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                       : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  mla_encode_fn encode = mla_tensor_map_encoder();
  if (!encode)
    return mla_fail(err, MLA_DEVICE_ERROR, "driver",
                    "the driver has no cuTensorMapEncodeTiled");
  CUresult r =
      encode(map, type, (cuuint32_t)rank, (void *)data,
             (const cuuint64_t *)size, (const cuuint64_t *)stride, box, ones,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             (CUtensorMapL2promotion)miss, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r != CUDA_SUCCESS)
    return mla_fail(err, MLA_DEVICE_ERROR, "tensor_map",
                    "cuTensorMapEncodeTiled failed with %d", (int)r);
  return MLA_OK;
}

#endif
