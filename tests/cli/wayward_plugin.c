/*
 * wayward_plugin.c - wayward as a shared object, for mlacheck --plugin.
 */
#include "wayward.h"

MLA_BACKEND_EXPORT const mla_backend *mla_backend_get(uint32_t host_major,
                                                      uint32_t host_minor);
const mla_backend *mla_backend_get(uint32_t host_major, uint32_t host_minor) {
  (void)host_minor;
  return host_major == MLA_ABI_MAJOR ? wayward_backend() : NULL;
}
