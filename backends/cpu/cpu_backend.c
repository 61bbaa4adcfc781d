/*
 * "cpu": the operations on this machine's cores, in f32. Plain C is the base;
 * kernels for instruction sets raise it (cpu_table.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_internal.h"
#include "cpu_onednn.h"
#include "cpu_options.h"
#include "cpu_parallel.h"
#include "error.h"
#include "mla/version.h"

const mla_backend *mla_cpu_backend(uint32_t major, uint32_t minor);

static mla_status check_device(int32_t device, mla_error *err) {
  if (device == 0) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "device",
                  "device is %d, there is only device 0", (int)device);
}

static int32_t device_count(mla_error *err) {
  (void)err;
  return 1;
}

static mla_status device_info(int32_t device, mla_device_info *info,
                              mla_error *err) {
  mla_device_info full;
  uint32_t size = info->size;
  mla_status status = check_device(device, err);
  if (status != MLA_OK) return status;
  memset(&full, 0, sizeof full);
  full.memory_space = MLA_MEMORY_HOST;
  full.compute_units = mla_cpu_default_threads();
  snprintf(full.name, sizeof full.name, "host processor");
  snprintf(full.arch, sizeof full.arch, "%s",
           mla_cpu_isa_name(mla_cpu_isa_best(mla_cpu_isa_detect())));
  memcpy(info, &full, size < sizeof full ? size : sizeof full);
  info->size = size;
  return MLA_OK;
}

static void nothing(void *state, int64_t index, int thread) {
  (void)state;
  (void)index;
  (void)thread;
}

static mla_status open_cpu(int32_t device, const char *options,
                           mla_handle **handle, mla_error *err) {
  mla_cpu_options chosen;
  mla_status status = check_device(device, err);
  if (status == MLA_OK) status = mla_cpu_options_parse(options, &chosen, err);
  if (status != MLA_OK) return status;
  mla_handle *made = malloc(sizeof *made);
  if (!made)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "handle",
                    "no memory for a handle of %d bytes", (int)sizeof *made);
  made->threads = chosen.threads;
  made->table = mla_cpu_table_for(chosen.mask);
  made->onednn = mla_cpu_onednn_open(chosen.mask);
  /* Threads start here, so that the first run need not wait for them. */
  mla_cpu_parallel(made->threads, made->threads, nothing, NULL);
  *handle = made;
  return MLA_OK;
}

static void close_cpu(mla_handle *handle) {
  if (handle) mla_cpu_onednn_close(handle->onednn);
  free(handle);
}

static const mla_backend cpu = {
    .size = (uint32_t)sizeof(mla_backend),
    .major = MLA_ABI_MAJOR,
    .minor = MLA_ABI_MINOR,
    .name = "cpu",
    .version = MLA_VERSION_STRING,
    .description = "this machine's processor, f32 arithmetic, OpenMP threads",
    .device_count = device_count,
    .device_info = device_info,
    .open = open_cpu,
    .close = close_cpu,
    .query = mla_cpu_query,
    .plan = mla_cpu_plan,
    .run = mla_cpu_run,
    .plan_free = mla_cpu_plan_free,
};

const mla_backend *mla_cpu_backend(uint32_t major, uint32_t minor) {
  (void)minor;
  return major == MLA_ABI_MAJOR ? &cpu : NULL;
}
