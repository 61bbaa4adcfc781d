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

/*
 * mla_run; of a decode planned with MLA_COMMON_PREFIX it is the backend's
 * run_prefix, which believes what it is told.
 */
mla_status mla_run_prefix(const mla_plan *plan, const mla_args *args,
                          int64_t prefix_len, void *workspace,
                          uint64_t workspace_bytes, mla_stream stream,
                          mla_error *err);

#endif
