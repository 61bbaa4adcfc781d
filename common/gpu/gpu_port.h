/*
 * gpu_port.h - what device code may assume, on CUDA and on HIP.
 *
 * Kernels in common/gpu use only these words, so that one source runs on both
 * and under an emulator. A wave is what the hardware runs in step: 32 lanes
 * on NVIDIA, 64 on CDNA; nothing may assume either. MLA_GPU_PLATFORM names a
 * header that brings the words itself (the emulator's).
 */
#ifndef MLA_GPU_PORT_H
#define MLA_GPU_PORT_H

#include <stdint.h>

#if defined(MLA_GPU_PLATFORM)
#include MLA_GPU_PLATFORM
#else

#if defined(__HIPCC__) || defined(__HIP__)
#define MLA_GPU_HIP 1 /* and with the shim on NVIDIA, which includes this */
#elif defined(__HIP_PLATFORM_NVIDIA__)
#define MLA_GPU_HIP 1
#endif

#if defined(MLA_GPU_HIP)
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#endif

#if defined(MLA_GPU_HIP) && !defined(__HIP_PLATFORM_NVIDIA__)
#define MLA_LEAST_WAVE 64
/* Later compilers take the macro away: what is built here is all CDNA. */
#if defined(__AMDGCN_WAVEFRONT_SIZE)
#define MLA_WAVE ((int)__AMDGCN_WAVEFRONT_SIZE)
#else
#define MLA_WAVE 64
#endif
#define MLA_BOUNDS 256
#define MLA_SHFL_XOR(v, m) __shfl_xor(v, m)
#define MLA_SHFL(v, lane) __shfl(v, lane)
/* Lanes of a wave see what the others wrote: they run in step, so this holds
   the compiler to the order. */
#define MLA_WAVE_SYNC()                                    \
  do {                                                     \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront"); \
    __builtin_amdgcn_wave_barrier();                       \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront"); \
  } while (0)
#else
#define MLA_LEAST_WAVE 32 /* of the devices that this is compiled for */
#define MLA_WAVE 32
#define MLA_BOUNDS 256, 2 /* left alone, nvcc spills for the sake of four */
#define MLA_SHFL_XOR(v, m) __shfl_xor_sync(0xffffffffu, v, m)
#define MLA_SHFL(v, lane) __shfl_sync(0xffffffffu, v, lane)
#define MLA_WAVE_SYNC() __syncwarp()
#endif

/* Of at most 256 threads a block: registers are shared out by that. */
#define MLA_KERNEL static __global__ __launch_bounds__(MLA_BOUNDS) void
/* Of so many. */
#define MLA_KERNEL_OF(threads) static __global__ __launch_bounds__(threads) void
#define MLA_DEV static __device__ __forceinline__
/* A matrix in shared memory; one without bounds, sized by the launch. */
#define MLA_SHARED_TILE(type, name, rows, columns) \
  __shared__ type name[rows][columns]
#define MLA_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#define MLA_BARRIER() __syncthreads()
#define MLA_UNROLL _Pragma("unroll")
#define MLA_LAUNCH(kernel, grid, block, shared, stream, ...) \
  kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)

#endif

/* Block and thread ids, 64-bit where they multiply strides. */
#define MLA_TID ((int)threadIdx.x)
#define MLA_LANE ((int)threadIdx.x % MLA_WAVE)
#define MLA_WAVE_ID ((int)threadIdx.x / MLA_WAVE)

/* Over as many neighbouring lanes, a power of two: each gets it. */
MLA_DEV float mla_lanes_sum(float v, int lanes) {
  MLA_UNROLL
  for (int m = lanes / 2; m > 0; m /= 2) v += MLA_SHFL_XOR(v, m);
  return v;
}

MLA_DEV float mla_lanes_max(float v, int lanes) {
  MLA_UNROLL
  for (int m = lanes / 2; m > 0; m /= 2) v = fmaxf(v, MLA_SHFL_XOR(v, m));
  return v;
}

MLA_DEV float mla_wave_sum(float v) {
  return mla_lanes_sum(v, MLA_WAVE);
}
MLA_DEV float mla_wave_max(float v) {
  return mla_lanes_max(v, MLA_WAVE);
}

/* 64 bits of another lane, by two registers. */
MLA_DEV int64_t mla_shuffle_wide(int64_t v, int lane) {
  const uint32_t low = MLA_SHFL((uint32_t)v, lane);
  const uint32_t high = MLA_SHFL((uint32_t)(v >> 32), lane);
  return (int64_t)((uint64_t)high << 32 | low);
}

#define MLA_NEG_INF (-__int_as_float(0x7f800000))

#endif
