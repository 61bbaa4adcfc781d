/*
 * emu_rt.cpp - memory, streams, graphs and events of devices that are not
 * there. One lock for all: the lanes share one host thread anyway.
 */
#include "emu_rt.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

struct emu_work {
  std::vector<std::function<emuError_t()>> steps;
};
struct emu_stream {
  int device;
  emu_work waiting;
  emu_work *captured; /* NULL: steps are to be done */
};
struct emu_recorded_event {
  int device;
  emuStream_t stream;
  double ms;
};

namespace {

std::recursive_mutex all;
typedef std::lock_guard<std::recursive_mutex> lock;

struct {
  const char *arch;
  int major, minor;
} device_name = {"gfx942", 9, 4};
enum { devices = 2 };
thread_local int current = -1; /* the thread's device */
emu_stream default_stream[devices] = {{0, {}, NULL}, {1, {}, NULL}};
std::set<emu_stream *> streams = {&default_stream[0], &default_stream[1]};
emuError_t last_error = emuSuccess;
std::string last_failure;

/* ----------------------------------------------------------------- memory */

struct allocation {
  size_t bytes;
  void *pages;
  size_t mapped;
};
std::map<uintptr_t, allocation> memory; /* by first byte */
uintptr_t recent_begin, recent_end;     /* the one that was asked for last */

emu_stream *stream_of(emuStream_t s) {
  return s ? s : &default_stream[current];
}

emuError_t keep(emuError_t code) {
  if (code != emuSuccess) last_error = code;
  return code;
}

/* The thread has a device; it is that one. */
emuError_t any_device() {
  return keep(current < 0 ? emuErrorInvalidContext : emuSuccess);
}
emuError_t device_is(int device) {
  return keep(current == device ? emuSuccess : emuErrorInvalidContext);
}
emuError_t stream_is_here(emuStream_t s) {
  return s ? device_is(s->device) : any_device();
}

emuError_t drain(emu_work *w) {
  emuError_t first = emuSuccess;
  std::vector<std::function<emuError_t()>> steps;
  steps.swap(w->steps);
  for (auto &step : steps) {
    const emuError_t code = step();
    if (first == emuSuccess) first = code;
    if (code != emuSuccess) break; /* what follows builds on it */
  }
  return first;
}

void enqueue(emuStream_t s, std::function<emuError_t()> step) {
  emu_stream *to = stream_of(s);
  (to->captured ? to->captured : &to->waiting)->steps.push_back(step);
}

double now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

emuError_t run_kernel(const emu_kernel &k) {
  if (emu_run(k)) return emuSuccess;
  last_failure = emu_failure();
  return emuErrorLaunchFailure;
}

}  // namespace

void emu_name_device(const char *arch, int major, int minor) {
  device_name = {arch, major, minor};
}

emuError_t emuGetDeviceCount(int *count) {
  *count = devices;
  return emuSuccess;
}

emuError_t emuGetDeviceProperties(emuDeviceProp *p, int device) {
  if (device < 0 || device >= devices) return keep(emuErrorInvalidDevice);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "lane emulator, waves of %d",
           emu_wave_width());
  snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s", device_name.arch);
  p->major = device_name.major;
  p->minor = device_name.minor;
  p->multiProcessorCount = 4;
  p->warpSize = emu_wave_width();
  p->sharedMemPerBlockOptin = emu_shared_limit;
  p->totalGlobalMem =
      (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  return emuSuccess;
}

/* As real ones do, of a thread that has none: the first. */
emuError_t emuGetDevice(int *device) {
  *device = current < 0 ? 0 : current;
  return emuSuccess;
}

emuError_t emuSetDevice(int device) {
  if (device < 0 || device >= devices) return keep(emuErrorInvalidDevice);
  current = device;
  return emuSuccess;
}

emuError_t emuGetLastError() {
  lock l(all);
  const emuError_t code = last_error;
  last_error = emuSuccess;
  return code;
}

const char *emuGetErrorName(emuError_t code) {
  switch (code) {
    case emuSuccess: return "emuSuccess";
    case emuErrorInvalidValue: return "emuErrorInvalidValue";
    case emuErrorMemoryAllocation: return "emuErrorMemoryAllocation";
    case emuErrorInvalidDevice: return "emuErrorInvalidDevice";
    case emuErrorInvalidContext: return "emuErrorInvalidContext";
    case emuErrorLaunchFailure: return "emuErrorLaunchFailure";
  }
  return "emuErrorUnknown";
}

/* Of a failed launch: what went wrong in it. */
const char *emuGetErrorString(emuError_t code) {
  return code == emuErrorLaunchFailure ? last_failure.c_str()
                                       : emuGetErrorName(code);
}

/* NaN in every type; of gigabytes the ends, so that gaps take no room. */
static void poison(char *first, size_t body) {
  const size_t end = body > (size_t)1 << 28 ? (size_t)1 << 20 : body;
  memset(first, 0xff, end);
  memset(first + body - end, 0xff, end);
}

emuError_t emuMalloc(void **to, size_t bytes) {
  lock l(all);
  if (emuError_t code = any_device()) return code;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t body = (bytes + page - 1) / page * page;
  if (body < bytes || body + 2 * page < body)
    return keep(emuErrorMemoryAllocation);
  void *p = mmap(NULL, body + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
  if (p == MAP_FAILED) return keep(emuErrorMemoryAllocation);
  char *first = static_cast<char *>(p) + page;
  if (mprotect(first, body, PROT_READ | PROT_WRITE) != 0) {
    munmap(p, body + 2 * page);
    return keep(emuErrorMemoryAllocation);
  }
  poison(first, body);
  /* As real ones do, at a multiple of 256; its end is near the last page's. */
  char *at = first + (body - bytes) / 256 * 256;
  memory[reinterpret_cast<uintptr_t>(at)] = {bytes, p, body + 2 * page};
  *to = at;
  return emuSuccess;
}

emuError_t emuFree(void *at) {
  lock l(all);
  if (!at) return emuSuccess;
  for (emu_stream *s : streams) drain(&s->waiting); /* as real ones do */
  auto found = memory.find(reinterpret_cast<uintptr_t>(at));
  if (found == memory.end()) return keep(emuErrorInvalidValue);
  munmap(found->second.pages, found->second.mapped);
  memory.erase(found);
  recent_begin = recent_end = 0;
  return emuSuccess;
}

bool emu_is_device_memory(const void *at, size_t bytes) {
  const uintptr_t a = reinterpret_cast<uintptr_t>(at);
  if (a >= recent_begin && a + bytes <= recent_end) return true;
  auto after = memory.upper_bound(a);
  if (after == memory.begin()) return false;
  --after;
  if (a + bytes > after->first + after->second.bytes) return false;
  recent_begin = after->first;
  recent_end = after->first + after->second.bytes;
  return true;
}

emuError_t emuMemcpyAsync(void *to, const void *from, size_t bytes,
                          emuMemcpyKind kind, emuStream_t stream) {
  lock l(all);
  if (emuError_t code = stream_is_here(stream)) return code;
  const void *device = kind == emuMemcpyHostToDevice ? to : from;
  if (bytes && !emu_is_device_memory(device, bytes))
    return keep(emuErrorInvalidValue);
  enqueue(stream, [=] {
    memcpy(to, from, bytes);
    return emuSuccess;
  });
  return emuSuccess;
}

emuError_t emuFuncSetAttribute(const void *kernel, emuFuncAttribute attribute,
                               int value) {
  (void)attribute;
  if (emuError_t code = any_device()) return code;
  return kernel && value >= 0 && (size_t)value <= emu_shared_limit
             ? emuSuccess
             : keep(emuErrorInvalidValue);
}

void emu_enqueue_kernel(const emu_kernel &kernel, emuStream_t stream) {
  lock l(all);
  if (stream_is_here(stream) != emuSuccess) return; /* the last error says it */
  void *copy = malloc(kernel.args_bytes);
  if (!copy) abort();
  memcpy(copy, kernel.args, kernel.args_bytes);
  const std::shared_ptr<void> args(copy, free);
  enqueue(stream, [kernel, args] {
    emu_kernel k = kernel;
    k.args = args.get();
    return run_kernel(k);
  });
}

emuError_t emuStreamCreate(emuStream_t *stream) {
  lock l(all);
  if (emuError_t code = any_device()) return code;
  *stream = new emu_stream();
  (*stream)->device = current;
  streams.insert(*stream);
  return emuSuccess;
}

emuError_t emuStreamDestroy(emuStream_t stream) {
  lock l(all);
  emuError_t code = emuStreamSynchronize(stream);
  streams.erase(stream);
  delete stream;
  return code;
}

emuError_t emuStreamSynchronize(emuStream_t stream) {
  lock l(all);
  if (!stream && any_device() != emuSuccess) return emuErrorInvalidContext;
  if (stream_of(stream)->captured) return keep(emuErrorInvalidValue);
  return drain(&stream_of(stream)->waiting);
}

emuError_t emuStreamBeginCapture(emuStream_t stream,
                                 emuStreamCaptureMode mode) {
  lock l(all);
  if (emuError_t code = stream_is_here(stream)) return code;
  (void)mode;
  if (stream_of(stream)->captured) return keep(emuErrorInvalidValue);
  stream_of(stream)->captured = new emu_work();
  return emuSuccess;
}

emuError_t emuStreamEndCapture(emuStream_t stream, emuGraph_t *graph) {
  lock l(all);
  if (emuError_t code = stream_is_here(stream)) return code;
  emu_stream *s = stream_of(stream);
  if (!s->captured) return keep(emuErrorInvalidValue);
  *graph = s->captured;
  s->captured = NULL;
  return emuSuccess;
}

emuError_t emuGraphInstantiateWithFlags(emuGraphExec_t *exec, emuGraph_t graph,
                                        unsigned long long flags) {
  (void)flags;
  *exec = new emu_work(*graph);
  return emuSuccess;
}

emuError_t emuGraphDestroy(emuGraph_t graph) {
  delete graph;
  return emuSuccess;
}

emuError_t emuGraphLaunch(emuGraphExec_t exec, emuStream_t stream) {
  lock l(all);
  if (emuError_t code = stream_is_here(stream)) return code;
  const emu_work copy(*exec);
  for (const auto &step : copy.steps) enqueue(stream, step);
  return emuSuccess;
}

emuError_t emuGraphExecDestroy(emuGraphExec_t exec) {
  delete exec;
  return emuSuccess;
}

emuError_t emuEventCreate(emuEvent_t *event) {
  if (emuError_t code = any_device()) return code;
  *event = new emu_recorded_event();
  (*event)->device = current;
  return emuSuccess;
}

emuError_t emuEventDestroy(emuEvent_t event) {
  delete event;
  return emuSuccess;
}

emuError_t emuEventRecord(emuEvent_t event, emuStream_t stream) {
  lock l(all);
  if (emuError_t code = stream_is_here(stream)) return code;
  if (emuError_t code = device_is(event->device)) return code;
  event->stream = stream;
  enqueue(stream, [event] {
    event->ms = now_ms();
    return emuSuccess;
  });
  return emuSuccess;
}

emuError_t emuEventSynchronize(emuEvent_t event) {
  return emuStreamSynchronize(event->stream);
}

emuError_t emuEventElapsedTime(float *ms, emuEvent_t from, emuEvent_t to) {
  *ms = (float)(to->ms - from->ms);
  return emuSuccess;
}
