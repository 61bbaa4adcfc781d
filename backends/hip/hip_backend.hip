/*
 * The HIP backend's table: the kernels of common/gpu, compiled for AMD's
 * wave of 64 lanes, and before them those of hip_fast.h on matrix cores. With
 * the header of hip_shim/ the portable part runs on NVIDIA (there as backend
 * "hip" too).
 */
#include <string.h>

#include "gpu_vtable.h"
#if !defined(__HIP_PLATFORM_NVIDIA__)
#include "hip_fast.h"
#endif

#if defined(__HIP_PLATFORM_NVIDIA__)
static const char *mla_hip_load(void) {
  return NULL; /* linked */
}
#else
#include "hip_lazy.h"
#endif

static int32_t device_count(mla_error *err) {
  const char *why = mla_hip_load();
  int n = 0;
  if (!why) {
    hipError_t code = hipGetDeviceCount(&n);
    if (code == hipSuccess && n > 0) return n;
    (void)hipGetLastError();
    why = code == hipSuccess ? "none is visible" : hipGetErrorString(code);
  }
  mla_fail(err, MLA_NOT_AVAILABLE, "device",
           "not available: no ROCm device (%s)", why);
  return 0;
}

#if defined(MLA_GPU_NAMED_ARCH)
/* Whether device code for a device is inside: "gfx90a,gfx942" are. */
static int is_built_for(const char *arch) {
  const size_t n = strcspn(arch, ":");
  for (const char *at = MLA_HIP_ARCHS; *at;) {
    const size_t length = strcspn(at, ",:");
    if (length == n && strncmp(at, arch, n) == 0) return 1;
    at += strcspn(at, ",");
    at += *at == ',';
  }
  return 0;
}

static mla_status open(int32_t device, const char *options, mla_handle **handle,
                       mla_error *err) {
  hipDeviceProp_t prop;
  mla_status st = mla_gpu_check(err, hipGetDeviceProperties(&prop, device),
                                "GetDeviceProperties");
  if (st != MLA_OK) return st;
  if (!is_built_for(prop.gcnArchName))
    return mla_fail(err, MLA_NOT_AVAILABLE, "device",
                    "device %d is %.40s; built for " MLA_HIP_ARCHS, device,
                    prop.gcnArchName);
  return mla_gpu_open(device, options, handle, err);
}
#endif

extern "C" const mla_backend *mla_hip_backend(uint32_t major, uint32_t minor) {
  static mla_backend backend;
  (void)minor;
  if (major != MLA_ABI_MAJOR) return NULL;
  if (!backend.size) {
    backend.name = "hip";
    backend.version = MLA_VERSION_STRING;
    backend.description = "AMD GPUs, CDNA 2 and 3";
    mla_gpu_fill_vtable(&backend);
    backend.device_count = device_count;
#if defined(MLA_GPU_NAMED_ARCH)
    backend.open = open;
    backend.query = mla_hip_query;
    backend.run = mla_hip_run;
#endif
  }
  return &backend;
}
