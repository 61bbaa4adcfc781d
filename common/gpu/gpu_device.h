/*
 * gpu_device.h - devices, memory, streams, graphs and events behind the
 * vtable, for CUDA and HIP alike.
 */
#ifndef MLA_GPU_DEVICE_H
#define MLA_GPU_DEVICE_H

#include <stdio.h>
#include <stdlib.h>

#include "gpu_host.h"

struct mla_graph {
  int device;
  mla_rt_exec exec;
};
struct mla_event {
  int device;
  mla_rt_event event;
};

static inline mla_rt_stream mla_gpu_stream_of(mla_stream s) {
  return (mla_rt_stream)(void *)s;
}

static int32_t mla_gpu_device_count(mla_error *err) {
  int n = 0;
  mla_rt_error code = MLA_RT(GetDeviceCount)(&n);
  if (code == MLA_RT(Success) && n > 0) return n;
  if (code != MLA_RT(Success)) {
    mla_gpu_fail(err, code, "GetDeviceCount");
    (void)MLA_RT(GetLastError)();
  } else {
    mla_fail(err, MLA_NOT_AVAILABLE, "device", "no device is visible");
  }
  if (err) err->status = MLA_NOT_AVAILABLE;
  return 0;
}

static mla_status mla_gpu_device_info(int32_t device, mla_device_info *info,
                                      mla_error *err) {
  mla_rt_prop prop;
  mla_status st = mla_gpu_check(err, MLA_RT(GetDeviceProperties)(&prop, device),
                                "GetDeviceProperties");
  if (st != MLA_OK) return st;
  info->memory_space = MLA_GPU_SPACE;
  info->compute_units = prop.multiProcessorCount;
  info->memory_bytes = prop.totalGlobalMem;
  snprintf(info->name, sizeof info->name, "%.63s", prop.name);
#if defined(MLA_GPU_NAMED_ARCH)
  snprintf(info->arch, sizeof info->arch, "%.31s", prop.gcnArchName);
#else
  snprintf(info->arch, sizeof info->arch, "sm_%d%d", prop.major, prop.minor);
#endif
  return MLA_OK;
}

static mla_status mla_gpu_open(int32_t device, const char *options,
                               mla_handle **handle, mla_error *err) {
  if (options && *options)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                    "options is '%s', but there are none", options);
  mla_rt_prop prop;
  mla_status st = mla_gpu_on(device, err, "GetDeviceProperties", [&] {
    return MLA_RT(GetDeviceProperties)(&prop, device);
  });
  if (st != MLA_OK) return st;
  mla_handle *h = (mla_handle *)calloc(1, sizeof *h);
  if (!h)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "handle", "no memory for a handle");
  h->device = device;
  h->units = prop.multiProcessorCount;
  h->wave = prop.warpSize;
  h->major = prop.major;
  h->minor = prop.minor;
#if defined(MLA_GPU_HIP)
  h->shared_bytes = (int32_t)prop.sharedMemPerBlock;
#else
  h->shared_bytes = (int32_t)prop.sharedMemPerBlockOptin;
#endif
  *handle = h;
  return MLA_OK;
}

static void mla_gpu_close(mla_handle *handle) {
  free(handle);
}

static mla_status mla_gpu_mem_alloc(mla_handle *handle, uint64_t bytes,
                                    void **memory, mla_error *err) {
  return mla_gpu_on(handle->device, err, "Malloc",
                    [=] { return MLA_RT(Malloc)(memory, bytes ? bytes : 1); });
}

static void mla_gpu_mem_free(mla_handle *handle, void *memory) {
  const mla_gpu_bound on(handle->device);
  (void)MLA_RT(Free)(memory);
}

static mla_status mla_gpu_to_device(mla_handle *handle, void *to,
                                    const void *from, uint64_t bytes,
                                    mla_stream stream, mla_error *err) {
  return mla_gpu_on(handle->device, err, "Memcpy to the device", [=] {
    return MLA_RT(MemcpyAsync)(to, from, bytes, MLA_RT(MemcpyHostToDevice),
                               mla_gpu_stream_of(stream));
  });
}

static mla_status mla_gpu_to_host(mla_handle *handle, void *to,
                                  const void *from, uint64_t bytes,
                                  mla_stream stream, mla_error *err) {
  return mla_gpu_on(handle->device, err, "Memcpy to the host", [=] {
    return MLA_RT(MemcpyAsync)(to, from, bytes, MLA_RT(MemcpyDeviceToHost),
                               mla_gpu_stream_of(stream));
  });
}

static mla_status mla_gpu_stream_create(mla_handle *handle, mla_stream *stream,
                                        mla_error *err) {
  mla_rt_stream s;
  mla_status st = mla_gpu_on(handle->device, err, "StreamCreate",
                             [&] { return MLA_RT(StreamCreate)(&s); });
  if (st == MLA_OK) *stream = (mla_stream)(void *)s;
  return st;
}

static void mla_gpu_stream_destroy(mla_handle *handle, mla_stream stream) {
  const mla_gpu_bound on(handle->device);
  (void)MLA_RT(StreamDestroy)(mla_gpu_stream_of(stream));
}

static mla_status mla_gpu_stream_sync(mla_handle *handle, mla_stream stream,
                                      mla_error *err) {
  return mla_gpu_on(handle->device, err, "StreamSynchronize", [=] {
    return MLA_RT(StreamSynchronize)(mla_gpu_stream_of(stream));
  });
}

static mla_status mla_gpu_capture_begin(mla_handle *handle, mla_stream stream,
                                        mla_error *err) {
  return mla_gpu_on(handle->device, err, "StreamBeginCapture", [=] {
    return MLA_RT(StreamBeginCapture)(mla_gpu_stream_of(stream),
                                      MLA_RT(StreamCaptureModeThreadLocal));
  });
}

static mla_status mla_gpu_capture_end(mla_handle *handle, mla_stream stream,
                                      mla_graph **graph, mla_error *err) {
  mla_rt_graph g;
  mla_status st = mla_gpu_on(handle->device, err, "StreamEndCapture", [&] {
    return MLA_RT(StreamEndCapture)(mla_gpu_stream_of(stream), &g);
  });
  if (st != MLA_OK) return st;
  mla_graph *own = (mla_graph *)calloc(1, sizeof *own);
  if (own) {
    own->device = handle->device;
    st = mla_gpu_on(own->device, err, "GraphInstantiate", [=] {
      return MLA_RT(GraphInstantiateWithFlags)(&own->exec, g, 0);
    });
  } else {
    st = mla_fail(err, MLA_OUT_OF_MEMORY, "graph", "no memory for a graph");
  }
  (void)MLA_RT(GraphDestroy)(g);
  if (st == MLA_OK)
    *graph = own;
  else
    free(own);
  return st;
}

static mla_status mla_gpu_graph_launch(mla_graph *graph, mla_stream stream,
                                       mla_error *err) {
  return mla_gpu_on(graph->device, err, "GraphLaunch", [=] {
    return MLA_RT(GraphLaunch)(graph->exec, mla_gpu_stream_of(stream));
  });
}

static void mla_gpu_graph_free(mla_graph *graph) {
  if (!graph) return;
  const mla_gpu_bound on(graph->device);
  (void)MLA_RT(GraphExecDestroy)(graph->exec);
  free(graph);
}

static mla_status mla_gpu_event_create(mla_handle *handle, mla_event **event,
                                       mla_error *err) {
  mla_event *e = (mla_event *)calloc(1, sizeof *e);
  if (!e)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "event", "no memory for an event");
  e->device = handle->device;
  mla_status st = mla_gpu_on(e->device, err, "EventCreate",
                             [=] { return MLA_RT(EventCreate)(&e->event); });
  if (st == MLA_OK)
    *event = e;
  else
    free(e);
  return st;
}

static mla_status mla_gpu_event_record(mla_event *event, mla_stream stream,
                                       mla_error *err) {
  return mla_gpu_on(event->device, err, "EventRecord", [=] {
    return MLA_RT(EventRecord)(event->event, mla_gpu_stream_of(stream));
  });
}

static mla_status mla_gpu_event_elapsed(mla_event *a, mla_event *b, double *ms,
                                        mla_error *err) {
  float elapsed = 0;
  mla_status st = mla_gpu_on(b->device, err, "EventSynchronize", [=] {
    return MLA_RT(EventSynchronize)(b->event);
  });
  if (st == MLA_OK)
    st = mla_gpu_on(b->device, err, "EventElapsedTime", [&] {
      return MLA_RT(EventElapsedTime)(&elapsed, a->event, b->event);
    });
  *ms = (double)elapsed;
  return st;
}

static void mla_gpu_event_free(mla_event *event) {
  if (!event) return;
  const mla_gpu_bound on(event->device);
  (void)MLA_RT(EventDestroy)(event->event);
  free(event);
}

#endif
