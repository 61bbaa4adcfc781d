/*
 * host_backends.h - the backends that are always built in.
 */
#ifndef MLA_HOST_BACKENDS_H
#define MLA_HOST_BACKENDS_H

#include "mla/backend.h"

/* "ref": the oracle behind the vtable. Allocates in run, unlike any other. */
const mla_backend *mla_ref_backend(uint32_t host_major, uint32_t host_minor);

#endif
