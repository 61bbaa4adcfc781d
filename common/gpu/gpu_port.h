/*
 * gpu_port.h - what device code may assume, on CUDA and on HIP.
 *
 * Kernels in common/gpu use only these words, so that one source runs on both
 * (and under an emulator). A wave is what the hardware runs in step: 32 lanes
 * on NVIDIA, 64 on CDNA; nothing may assume either.
 */
#ifndef MLA_GPU_PORT_H
#define MLA_GPU_PORT_H

#include <stdint.h>

#if defined(__HIPCC__) || defined(__HIP__)
#include <hip/hip_runtime.h>
#define MLA_WAVE ((int)__AMDGCN_WAVEFRONT_SIZE)
#define MLA_SHFL_XOR(v, m) __shfl_xor(v, m)
#define MLA_SHFL(v, lane) __shfl(v, lane)
#else
#include <cuda_runtime.h>
#define MLA_WAVE 32
#define MLA_SHFL_XOR(v, m) __shfl_xor_sync(0xffffffffu, v, m)
#define MLA_SHFL(v, lane) __shfl_sync(0xffffffffu, v, lane)
#endif

#define MLA_KERNEL static __global__ void
#define MLA_DEV static __device__ __forceinline__
#define MLA_SHARED __shared__
#define MLA_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#define MLA_BARRIER() __syncthreads()
#define MLA_LAUNCH(kernel, grid, block, shared, stream, ...) \
  kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)

/* Block and thread ids, 64-bit where they multiply strides. */
#define MLA_TID ((int)threadIdx.x)
#define MLA_LANE ((int)threadIdx.x % MLA_WAVE)
#define MLA_WAVE_ID ((int)threadIdx.x / MLA_WAVE)

MLA_DEV float mla_wave_sum(float v) {
  for (int m = MLA_WAVE / 2; m > 0; m /= 2) v += MLA_SHFL_XOR(v, m);
  return v;
}

MLA_DEV float mla_wave_max(float v) {
  for (int m = MLA_WAVE / 2; m > 0; m /= 2) v = fmaxf(v, MLA_SHFL_XOR(v, m));
  return v;
}

#define MLA_NEG_INF (-__int_as_float(0x7f800000))

#endif
