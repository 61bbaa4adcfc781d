/*
 * emu_rt.h - the run-time calls of gpu_rt.h. A device's memory ends at a page
 * that must not be touched, begins as NaN, and work waits on its stream until
 * somebody waits for it: who reads a result too early reads NaN. There are two
 * devices, and a thread has none until it sets one: whoever forgets that fails.
 */
#ifndef EMU_RT_H
#define EMU_RT_H

#include <stddef.h>

#include "emu_lanes.h"

enum emuError_t {
  emuSuccess = 0,
  emuErrorInvalidValue = 1,
  emuErrorMemoryAllocation = 2,
  emuErrorInvalidDevice = 101,
  emuErrorInvalidContext = 201,
  emuErrorLaunchFailure = 719
};
enum emuMemcpyKind { emuMemcpyHostToDevice = 1, emuMemcpyDeviceToHost = 2 };
enum emuStreamCaptureMode { emuStreamCaptureModeThreadLocal = 1 };
enum emuFuncAttribute { emuFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct emuDeviceProp {
  char name[64];
  char gcnArchName[32];
  int multiProcessorCount, warpSize, major, minor;
  size_t totalGlobalMem, sharedMemPerBlockOptin;
};

struct emu_work;
typedef struct emu_stream *emuStream_t;
typedef struct emu_recorded_event *emuEvent_t;
typedef emu_work *emuGraph_t, *emuGraphExec_t;

emuError_t emuGetDeviceCount(int *count);
emuError_t emuGetDeviceProperties(emuDeviceProp *prop, int device);
emuError_t emuGetDevice(int *device);
emuError_t emuSetDevice(int device);
emuError_t emuGetLastError();
const char *emuGetErrorName(emuError_t code);
const char *emuGetErrorString(emuError_t code);
emuError_t emuMalloc(void **to, size_t bytes);
emuError_t emuFree(void *memory);
emuError_t emuMemcpyAsync(void *to, const void *from, size_t bytes,
                          emuMemcpyKind kind, emuStream_t stream);
emuError_t emuFuncSetAttribute(const void *kernel, emuFuncAttribute attribute,
                               int value);
emuError_t emuStreamCreate(emuStream_t *stream);
emuError_t emuStreamDestroy(emuStream_t stream);
emuError_t emuStreamSynchronize(emuStream_t stream);
emuError_t emuStreamBeginCapture(emuStream_t stream, emuStreamCaptureMode mode);
emuError_t emuStreamEndCapture(emuStream_t stream, emuGraph_t *graph);
emuError_t emuGraphInstantiateWithFlags(emuGraphExec_t *exec, emuGraph_t graph,
                                        unsigned long long flags);
emuError_t emuGraphDestroy(emuGraph_t graph);
emuError_t emuGraphLaunch(emuGraphExec_t exec, emuStream_t stream);
emuError_t emuGraphExecDestroy(emuGraphExec_t exec);
emuError_t emuEventCreate(emuEvent_t *event);
emuError_t emuEventDestroy(emuEvent_t event);
emuError_t emuEventRecord(emuEvent_t event, emuStream_t stream);
emuError_t emuEventSynchronize(emuEvent_t event);
emuError_t emuEventElapsedTime(float *ms, emuEvent_t from, emuEvent_t to);

/* What emuGetDeviceProperties() says it is: "gfx942", 9, 4. */
void emu_name_device(const char *arch, int major, int minor);
/* Keeps a copy of the arguments. */
void emu_enqueue_kernel(const emu_kernel &kernel, emuStream_t stream);
/* Whether all of it is memory that was allocated and not freed. */
bool emu_is_device_memory(const void *at, size_t bytes);

#endif
