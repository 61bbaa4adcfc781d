/*
 * hip_emu_backend.cpp - the kernels and the host side of common/gpu and
 * backends/hip as the backend "hip-emu", on lanes of a host. Options:
 * wave=32|64;seed=N;arch=gfx90a|gfx942, and a planted fault: plant=layout, a
 * matrix instruction gone wrong; plant=frozen, lengths read when a call is
 * made, which a graph then keeps; plant=stayed, tensors thought to lie where a
 * plan's first run found them; plant=opener, only the thread that opened the
 * device has it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_vtable.h"
#include "hip_fast.h"

enum { PLANT_NOTHING, PLANT_LAYOUT, PLANT_FROZEN, PLANT_STAYED, PLANT_OPENER };

typedef struct settings {
  int wave, is_gfx90a, plant;
  unsigned long long seed;
} settings;

static settings chosen = {64, 0, 0, 1};
static int opened;
static thread_local int opened_here;

/* What follows "name=" where text begins with that, else NULL. */
static const char *value_of(const char *text, const char *name) {
  const size_t n = strlen(name);
  return strncmp(text, name, n) == 0 && text[n] == '=' ? text + n + 1 : NULL;
}

/* One "name=value"; where it ends, NULL if it is none. */
static const char *read_option(const char *text, settings *s) {
  char *end = NULL;
  const char *v;
  if ((v = value_of(text, "wave"))) {
    s->wave = (int)strtol(v, &end, 10);
    return s->wave == 32 || s->wave == 64 ? end : NULL;
  }
  if ((v = value_of(text, "seed"))) {
    s->seed = strtoull(v, &end, 10);
    return end == v ? NULL : end;
  }
  if ((v = value_of(text, "arch"))) {
    s->is_gfx90a = strncmp(v, "gfx90a", 6) == 0;
    return s->is_gfx90a || strncmp(v, "gfx942", 6) == 0 ? v + 6 : NULL;
  }
  v = value_of(text, "plant");
  s->plant = !v                             ? PLANT_NOTHING
             : strncmp(v, "layout", 6) == 0 ? PLANT_LAYOUT
             : strncmp(v, "frozen", 6) == 0 ? PLANT_FROZEN
             : strncmp(v, "stayed", 6) == 0 ? PLANT_STAYED
             : strncmp(v, "opener", 6) == 0 ? PLANT_OPENER
                                            : PLANT_NOTHING;
  return s->plant ? v + 6 : NULL; /* all words have six letters */
}

static mla_status read_options(const char *text, settings *s, mla_error *err) {
  for (const char *at = text; at && *at;) {
    const char *end = read_option(at, s);
    if (!end || (*end && *end != ';'))
      return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                      "options are wave=32|64;seed=N;arch=gfx90a|gfx942;"
                      "plant=layout|frozen|stayed|opener, not '%.60s'",
                      at);
    at = *end ? end + 1 : end;
  }
  return MLA_OK;
}

static mla_status open_lanes(int32_t device, const char *options,
                             mla_handle **handle, mla_error *err) {
  settings wanted = {64, 0, 0, 1};
  mla_status st = read_options(options, &wanted, err);
  if (st != MLA_OK) return st;
  if (opened && wanted.wave != chosen.wave)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                    "a device with waves of %d is open", chosen.wave);
  chosen = wanted;
  emu_configure(chosen.wave, chosen.seed);
  emu_name_device(chosen.is_gfx90a ? "gfx90a" : "gfx942", 9,
                  chosen.is_gfx90a ? 0 : 4);
  emu_mfma_flushes(chosen.is_gfx90a);
  emu_mfma_plant(chosen.plant == PLANT_LAYOUT);
  st = mla_gpu_open(device, NULL, handle, err);
  opened += st == MLA_OK;
  opened_here = 1;
  return st;
}

static void close_lanes(mla_handle *handle) {
  opened--;
  mla_gpu_close(handle);
}

/* What to type to see the same orders again. */
static mla_status query_lanes(mla_handle *handle, const mla_problem *problem,
                              const mla_limits *limits, mla_answer *answer,
                              mla_error *err) {
  mla_status st = mla_hip_query(handle, problem, limits, answer, err);
  const size_t n = strlen(answer->kernel);
  if (st == MLA_OK)
    snprintf(answer->kernel + n, sizeof answer->kernel - n,
             " (wave=%d;seed=%llu;arch=%s)", chosen.wave, chosen.seed,
             chosen.is_gfx90a ? "gfx90a" : "gfx942");
  return st;
}

/* Lengths as they are now, for whenever the kernels run. */
static mla_status run_frozen(const mla_backend_plan *plan, const mla_args *args,
                             void *workspace, uint64_t bytes, mla_stream stream,
                             mla_error *err) {
  static int32_t kept[1024];
  const mla_tensor *lens = mla_arg(args, MLA_T_SEQ_LENS);
  mla_tensor tensor[MLA_T_COUNT] = {};
  mla_args frozen = {sizeof frozen, MLA_T_COUNT, tensor};
  if (!lens || lens->shape[0] > 1024)
    return mla_hip_run(plan, args, workspace, bytes, stream, err);
  for (int64_t b = 0; b < lens->shape[0]; b++)
    kept[b] = ((const int32_t *)lens->data)[b * lens->stride[0]];
  memcpy(tensor, args->tensor, args->count * sizeof *tensor);
  tensor[MLA_T_SEQ_LENS].data = kept;
  tensor[MLA_T_SEQ_LENS].stride[0] = 1;
  return mla_hip_run(plan, &frozen, workspace, bytes, stream, err);
}

static mla_status run_stayed(const mla_backend_plan *plan, const mla_args *args,
                             void *workspace, uint64_t bytes, mla_stream stream,
                             mla_error *err) {
  static const mla_backend_plan *last;
  static mla_tensor tensor[MLA_T_COUNT];
  if (plan != last) memcpy(tensor, args->tensor, args->count * sizeof *tensor);
  last = plan;
  const mla_args stayed = {sizeof stayed, MLA_T_COUNT, tensor};
  return mla_hip_run(plan, &stayed, workspace, bytes, stream, err);
}

static mla_status run_lanes(const mla_backend_plan *plan, const mla_args *args,
                            void *workspace, uint64_t bytes, mla_stream stream,
                            mla_error *err) {
  if (chosen.plant == PLANT_OPENER && !opened_here)
    return mla_fail(err, MLA_DEVICE_ERROR, "run", "no context");
  if (chosen.plant == PLANT_STAYED)
    return run_stayed(plan, args, workspace, bytes, stream, err);
  return chosen.plant == PLANT_FROZEN
             ? run_frozen(plan, args, workspace, bytes, stream, err)
             : mla_hip_run(plan, args, workspace, bytes, stream, err);
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
    backend.run = run_lanes;
  }
  return &backend;
}
