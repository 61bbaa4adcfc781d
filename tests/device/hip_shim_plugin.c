/*
 * hip_shim_plugin.c - the HIP backend as a plugin, for a machine whose
 * mlacheck has none inside.
 */
#include "mla/backend.h"

const mla_backend *mla_hip_backend(uint32_t major, uint32_t minor);

const mla_backend *mla_backend_get(uint32_t host_major, uint32_t host_minor) {
  return mla_hip_backend(host_major, host_minor);
}
