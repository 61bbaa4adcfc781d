/*
 * fake_amdhip64.c - a libamdhip64 that has one device and computes nothing:
 * memory is the host's, streams and graphs are empty. What is registered and
 * launched goes to the file $FAKE_LOG, a line each.
 *
 * FAKE_ARCH  what the device is ("gfx90a:sramecc+:xnack-"); none: no device
 * FAKE_OLD   a library that lacks hipGraphLaunch
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hip/hip_runtime_api.h>

enum { MAX_KERNELS = 256 };
static struct {
  const void *host_function;
  const char *name;
} kernels[MAX_KERNELS];
static int kernel_count;

void **__hipRegisterFatBinary(const void *wrapper);
void __hipUnregisterFatBinary(void **module);
void __hipRegisterFunction(void **module, const void *host_function,
                           char *host_name, const char *name, unsigned limit,
                           void *tid, void *bid, void *block, void *grid,
                           int *wave);

static void put(const char *what, const char *name, dim3 grid, dim3 block) {
  const char *path = getenv("FAKE_LOG");
  FILE *log = path ? fopen(path, "a") : NULL;
  if (!log) return;
  fprintf(log, "%s %s grid %u,%u,%u block %u\n", what, name, grid.x, grid.y,
          grid.z, block.x);
  fclose(log);
}

void **__hipRegisterFatBinary(const void *wrapper) {
  static const void *kept;
  kept = wrapper;
  return (void **)(void *)&kept;
}

void __hipUnregisterFatBinary(void **module) {
  (void)module;
}

void __hipRegisterFunction(void **module, const void *host_function,
                           char *host_name, const char *name, unsigned limit,
                           void *tid, void *bid, void *block, void *grid,
                           int *wave) {
  (void)module, (void)host_name, (void)limit, (void)tid, (void)bid;
  (void)block, (void)grid, (void)wave;
  if (kernel_count == MAX_KERNELS) abort();
  kernels[kernel_count].host_function = host_function;
  kernels[kernel_count++].name = name;
}

hipError_t hipLaunchKernel(const void *host_function, dim3 grid, dim3 block,
                           void **args, size_t shared, hipStream_t stream) {
  (void)args, (void)stream;
  for (int i = 0; i < kernel_count; i++) {
    if (kernels[i].host_function != host_function) continue;
    if (block.x > 256 || shared > 65536) return hipErrorInvalidConfiguration;
    put("launch", kernels[i].name, grid, block);
    return hipSuccess;
  }
  return hipErrorInvalidDeviceFunction;
}

hipError_t hipGetDeviceCount(int *count) {
#ifdef FAKE_ARCH
  *count = 1;
  return hipSuccess;
#else
  *count = 0;
  return hipErrorNoDevice;
#endif
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t *p, int device) {
  (void)device;
  memset(p, 0, sizeof *p);
#ifdef FAKE_ARCH
  snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s", FAKE_ARCH);
#endif
  snprintf(p->name, sizeof p->name, "a device that computes nothing");
  p->multiProcessorCount = 104;
  p->warpSize = 64;
  p->totalGlobalMem = (size_t)1 << 30;
  return hipSuccess;
}

const char *hipGetErrorName(hipError_t code) {
  return code == hipSuccess ? "hipSuccess" : "hipErrorOfTheFake";
}
const char *hipGetErrorString(hipError_t code) {
  return hipGetErrorName(code);
}
hipError_t hipGetDevice(int *device) {
  *device = 0;
  return hipSuccess;
}
hipError_t hipSetDevice(int device) {
  return device == 0 ? hipSuccess : hipErrorInvalidDevice;
}
hipError_t hipGetLastError(void) {
  return hipSuccess;
}
hipError_t hipMalloc(void **to, size_t bytes) {
  *to = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
  return *to ? hipSuccess : hipErrorOutOfMemory;
}
hipError_t hipFree(void *memory) {
  free(memory);
  return hipSuccess;
}
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes,
                          hipMemcpyKind kind, hipStream_t stream) {
  (void)kind, (void)stream;
  memcpy(to, from, bytes);
  return hipSuccess;
}
hipError_t hipFuncSetAttribute(const void *function, hipFuncAttribute attribute,
                               int value) {
  (void)function, (void)attribute, (void)value;
  return hipSuccess;
}

/* Handles are addresses of something. */
static int something;
#define HANDLE(to) (*(void **)(void *)(to) = &something, hipSuccess)

hipError_t hipStreamCreate(hipStream_t *stream) {
  return HANDLE(stream);
}
hipError_t hipStreamDestroy(hipStream_t stream) {
  return stream ? hipSuccess : hipErrorInvalidHandle;
}
hipError_t hipStreamSynchronize(hipStream_t stream) {
  (void)stream;
  return hipSuccess;
}
hipError_t hipStreamBeginCapture(hipStream_t stream,
                                 hipStreamCaptureMode mode) {
  (void)stream, (void)mode;
  return hipSuccess;
}
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph) {
  (void)stream;
  return HANDLE(graph);
}
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *exec, hipGraph_t graph,
                                        unsigned long long flags) {
  (void)graph, (void)flags;
  return HANDLE(exec);
}
hipError_t hipGraphDestroy(hipGraph_t graph) {
  return graph ? hipSuccess : hipErrorInvalidHandle;
}
#ifndef FAKE_OLD
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  (void)stream;
  return exec ? hipSuccess : hipErrorInvalidHandle;
}
#endif
hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  return exec ? hipSuccess : hipErrorInvalidHandle;
}
hipError_t hipEventCreate(hipEvent_t *event) {
  return HANDLE(event);
}
hipError_t hipEventDestroy(hipEvent_t event) {
  return event ? hipSuccess : hipErrorInvalidHandle;
}
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  (void)event, (void)stream;
  return hipSuccess;
}
hipError_t hipEventSynchronize(hipEvent_t event) {
  (void)event;
  return hipSuccess;
}
hipError_t hipEventElapsedTime(float *ms, hipEvent_t from, hipEvent_t to) {
  (void)from, (void)to;
  *ms = 1;
  return hipSuccess;
}
