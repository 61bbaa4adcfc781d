#define _POSIX_C_SOURCE 200809L
/*
 * mla_mpi_memory.c - buffers on the host, with a twin on the device where
 * that has memory of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "mla_mpi_internal.h"

#define ALIGNMENT 256

static mla_status take_host(mla_mpi_buffer *b, mla_error *err) {
  void *memory = NULL;
  if (b->bytes > SIZE_MAX - ALIGNMENT ||
      posix_memalign(&memory, ALIGNMENT, (size_t)b->bytes) != 0)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "limits",
                    "no memory for %llu bytes", (unsigned long long)b->bytes);
  memset(memory, 0, (size_t)b->bytes);
  b->host = memory;
  return MLA_OK;
}

mla_status mla_mpi_buffer_new(const mla_mpi *m, mla_mpi_buffer *b,
                              uint64_t count, uint64_t each, mla_error *err) {
  if (each && count > (UINT64_MAX / 4) / each)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "limits",
                    "limits need %llu times %llu bytes",
                    (unsigned long long)count, (unsigned long long)each);
  b->bytes = (count * each + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
  mla_status status = take_host(b, err);
  b->device = b->host;
  if (status != MLA_OK || m->on_host) return status;
  void *memory = NULL;
  status = mla_device_backend(m->dev)->mem_alloc(mla_device_handle(m->dev),
                                                 b->bytes, &memory, err);
  b->device = memory;
  return status;
}

void mla_mpi_buffer_free(const mla_mpi *m, mla_mpi_buffer *b) {
  if (!m->on_host && b->device)
    mla_device_backend(m->dev)->mem_free(mla_device_handle(m->dev), b->device);
  free(b->host);
  memset(b, 0, sizeof *b);
}

static mla_status settle(const mla_mpi *m, mla_error *err) {
  const mla_backend *b = mla_device_backend(m->dev);
  if (!b->stream_sync) return MLA_OK;
  return b->stream_sync(mla_device_handle(m->dev), NULL, err);
}

mla_status mla_mpi_push(const mla_mpi *m, const mla_mpi_buffer *b,
                        uint64_t bytes, mla_error *err) {
  if (m->on_host) return MLA_OK;
  mla_status status = mla_device_backend(m->dev)->mem_to_device(
      mla_device_handle(m->dev), b->device, b->host, bytes, NULL, err);
  return status == MLA_OK ? settle(m, err) : status;
}

mla_status mla_mpi_pull(const mla_mpi *m, const mla_mpi_buffer *b,
                        uint64_t bytes, mla_error *err) {
  if (m->on_host) return MLA_OK;
  mla_status status = mla_device_backend(m->dev)->mem_to_host(
      mla_device_handle(m->dev), b->host, b->device, bytes, NULL, err);
  return status == MLA_OK ? settle(m, err) : status;
}
