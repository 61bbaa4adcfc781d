/*
 * The CUDA backend's table. Kernels of common/gpu serve every operation on
 * any device; faster ones for newer devices go before them.
 */
extern "C" {
#include "dtype.h"
#include "error.h"
}
#include "gpu_vtable.h"

extern "C" const mla_backend *mla_cuda_backend(uint32_t major, uint32_t minor) {
  static mla_backend backend;
  (void)minor;
  if (major != MLA_ABI_MAJOR) return NULL;
  if (!backend.size) {
    backend.name = "cuda";
    backend.version = MLA_VERSION_STRING;
    backend.description = "NVIDIA GPUs, sm_80 and later";
    mla_gpu_fill_vtable(&backend);
  }
  return &backend;
}
