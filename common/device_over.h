/*
 * device_over.h - a device of a table that is in no registry.
 */
#ifndef MLA_DEVICE_OVER_H
#define MLA_DEVICE_OVER_H

#include "mla/mla.h"

/* An opened handle as a device; mla_close() calls the table's close. The table
   and what it needs live at least as long. host_memory: tensors can be read
   here. OUT_OF_MEMORY: the handle stays the caller's. */
mla_status mla_device_over(const mla_backend *backend, mla_handle *handle,
                           int host_memory, mla_device **dev, mla_error *err);

#endif
