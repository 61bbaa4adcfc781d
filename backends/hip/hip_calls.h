/*
 * hip_calls.h - what is called of libamdhip64: X(result, name, parameters,
 * arguments). A name that HIP's header maps to another keeps both: the list
 * of changed names is hip_calls.txt.
 */
#ifndef MLA_HIP_CALLS_H
#define MLA_HIP_CALLS_H

#define MLA_HIP_CALLS(X)                                                       \
  X(hipError_t, hipGetDeviceCount, (int *count), (count))                      \
  X(hipError_t, hipGetDeviceProperties, (hipDeviceProp_t * p, int device),     \
    (p, device))                                                               \
  X(hipError_t, hipGetDevice, (int *device), (device))                         \
  X(hipError_t, hipSetDevice, (int device), (device))                          \
  X(hipError_t, hipGetLastError, (void), ())                                   \
  X(hipError_t, hipMalloc, (void **to, size_t bytes), (to, bytes))             \
  X(hipError_t, hipFree, (void *memory), (memory))                             \
  X(hipError_t, hipMemcpyAsync,                                                \
    (void *to, const void *from, size_t bytes, hipMemcpyKind kind,             \
     hipStream_t stream),                                                      \
    (to, from, bytes, kind, stream))                                           \
  X(hipError_t, hipStreamCreate, (hipStream_t * stream), (stream))             \
  X(hipError_t, hipStreamDestroy, (hipStream_t stream), (stream))              \
  X(hipError_t, hipStreamSynchronize, (hipStream_t stream), (stream))          \
  X(hipError_t, hipStreamBeginCapture,                                         \
    (hipStream_t stream, hipStreamCaptureMode mode), (stream, mode))           \
  X(hipError_t, hipStreamEndCapture, (hipStream_t stream, hipGraph_t * graph), \
    (stream, graph))                                                           \
  X(hipError_t, hipGraphInstantiateWithFlags,                                  \
    (hipGraphExec_t * exec, hipGraph_t graph, unsigned long long flags),       \
    (exec, graph, flags))                                                      \
  X(hipError_t, hipGraphDestroy, (hipGraph_t graph), (graph))                  \
  X(hipError_t, hipGraphLaunch, (hipGraphExec_t exec, hipStream_t stream),     \
    (exec, stream))                                                            \
  X(hipError_t, hipGraphExecDestroy, (hipGraphExec_t exec), (exec))            \
  X(hipError_t, hipEventCreate, (hipEvent_t * event), (event))                 \
  X(hipError_t, hipEventDestroy, (hipEvent_t event), (event))                  \
  X(hipError_t, hipEventRecord, (hipEvent_t event, hipStream_t stream),        \
    (event, stream))                                                           \
  X(hipError_t, hipEventSynchronize, (hipEvent_t event), (event))              \
  X(hipError_t, hipEventElapsedTime,                                           \
    (float *ms, hipEvent_t from, hipEvent_t to), (ms, from, to))               \
  X(hipError_t, hipFuncSetAttribute,                                           \
    (const void *function, hipFuncAttribute attribute, int value),             \
    (function, attribute, value))                                              \
  X(hipError_t, hipLaunchKernel,                                               \
    (const void *function, dim3 grid, dim3 block, void **args, size_t shared,  \
     hipStream_t stream),                                                      \
    (function, grid, block, args, shared, stream))

#endif
