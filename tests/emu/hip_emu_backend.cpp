/*
 * hip_emu_backend.cpp - the kernels and the host side of common/gpu as the
 * backend "hip-emu", on lanes of a host. Options: wave=32|64;seed=N.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_vtable.h"

static struct {
  int wave;
  unsigned long long seed;
  int opened;
} chosen = {64, 1, 0};

/* "wave=64;seed=7", any of them, in any order. */
static mla_status read_options(const char *text, int *wave,
                               unsigned long long *seed, mla_error *err) {
  while (text && *text) {
    char *end = NULL;
    if (strncmp(text, "wave=", 5) == 0)
      *wave = (int)strtol(text + 5, &end, 10);
    else if (strncmp(text, "seed=", 5) == 0)
      *seed = strtoull(text + 5, &end, 10);
    if (!end || end == text + 5 || (*end && *end != ';') ||
        (*wave != 32 && *wave != 64))
      return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                      "options are wave=32|64;seed=N, not '%.60s'", text);
    text = *end ? end + 1 : end;
  }
  return MLA_OK;
}

static mla_status open_lanes(int32_t device, const char *options,
                             mla_handle **handle, mla_error *err) {
  int wave = 64;
  unsigned long long seed = 1;
  mla_status st = read_options(options, &wave, &seed, err);
  if (st != MLA_OK) return st;
  if (chosen.opened && wave != chosen.wave)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                    "a device with waves of %d is open", chosen.wave);
  chosen.wave = wave;
  chosen.seed = seed;
  emu_configure(wave, seed);
  st = mla_gpu_open(device, NULL, handle, err);
  chosen.opened += st == MLA_OK;
  return st;
}

static void close_lanes(mla_handle *handle) {
  chosen.opened--;
  mla_gpu_close(handle);
}

/* What to type to see the same orders again. */
static mla_status query_lanes(mla_handle *handle, const mla_problem *problem,
                              const mla_limits *limits, mla_answer *answer,
                              mla_error *err) {
  mla_status st = mla_gpu_query(handle, problem, limits, answer, err);
  const size_t n = strlen(answer->kernel);
  if (st == MLA_OK)
    snprintf(answer->kernel + n, sizeof answer->kernel - n,
             " (wave=%d;seed=%llu)", chosen.wave, chosen.seed);
  return st;
}

extern "C" MLA_BACKEND_EXPORT const mla_backend *mla_backend_get(
    uint32_t major, uint32_t minor) {
  static mla_backend backend;
  (void)minor;
  if (major != MLA_ABI_MAJOR) return NULL;
  if (!backend.size) {
    backend.name = "hip-emu";
    backend.version = MLA_VERSION_STRING;
    backend.description = "device kernels on emulated lanes";
    mla_gpu_fill_vtable(&backend);
    backend.open = open_lanes;
    backend.close = close_lanes;
    backend.query = query_lanes;
  }
  return &backend;
}
