/*
 * cuda_emu_backend.cpp - the kernels and the host side of common/gpu and, of
 * backends/cuda, what needs no more than sm_80, as the backend "cuda-emu", on
 * lanes of a host. Options: seed=N;arch=sm_80|sm_86 (163 or 99 KiB of shared
 * memory a block), and a planted fault: plant=layout, a matrix product gone
 * wrong; plant=nowait, copies used before they have come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sm80_fast.h"

enum { PLANT_NOTHING, PLANT_LAYOUT, PLANT_NO_WAIT };

typedef struct settings {
  int is_sm_86, plant;
  unsigned long long seed;
} settings;

static settings chosen = {0, PLANT_NOTHING, 1};

/* What follows "name=" where text begins with that, else NULL. */
static const char *value_of(const char *text, const char *name) {
  const size_t n = strlen(name);
  return strncmp(text, name, n) == 0 && text[n] == '=' ? text + n + 1 : NULL;
}

/* Which of two words, of one length, text begins with; -1: none. */
static int word_of(const char *text, const char *a, const char *b) {
  const size_t n = strlen(a);
  return !text                      ? -1
         : strncmp(text, a, n) == 0 ? 0
         : strncmp(text, b, n) == 0 ? 1
                                    : -1;
}

/* One "name=value"; where it ends, NULL if it is none. */
static const char *read_option(const char *text, settings *s) {
  char *end = NULL;
  const char *v;
  if ((v = value_of(text, "seed"))) {
    s->seed = strtoull(v, &end, 10);
    return end == v ? NULL : end;
  }
  if ((v = value_of(text, "arch"))) {
    s->is_sm_86 = word_of(v, "sm_80", "sm_86");
    return s->is_sm_86 < 0 ? NULL : v + 5;
  }
  v = value_of(text, "plant");
  s->plant = 1 + word_of(v, "layout", "nowait");
  return s->plant ? v + 6 : NULL;
}

static mla_status read_options(const char *text, settings *s, mla_error *err) {
  for (const char *at = text; at && *at;) {
    const char *end = read_option(at, s);
    if (!end || (*end && *end != ';'))
      return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                      "options are seed=N;arch=sm_80|sm_86;"
                      "plant=layout|nowait, not '%.60s'",
                      at);
    at = *end ? end + 1 : end;
  }
  return MLA_OK;
}

static void configure(const settings *s) {
  emu_configure(SM80_WARP, s->seed);
  emu_name_device(s->is_sm_86 ? "sm_86" : "sm_80", 8, s->is_sm_86 ? 6 : 0);
  emu_limit_shared((size_t)(s->is_sm_86 ? 99 : 163) << 10);
  emu_mma_plant(s->plant == PLANT_LAYOUT);
  emu_copy_plant(s->plant == PLANT_NO_WAIT);
}

static mla_status open_lanes(int32_t device, const char *options,
                             mla_handle **handle, mla_error *err) {
  settings wanted = {0, PLANT_NOTHING, 1};
  mla_status st = read_options(options, &wanted, err);
  if (st != MLA_OK) return st;
  chosen = wanted;
  configure(&chosen);
  return mla_gpu_open(device, NULL, handle, err);
}

/* What to type to see the same orders again. */
static mla_status query_lanes(mla_handle *handle, const mla_problem *problem,
                              const mla_limits *limits, mla_answer *answer,
                              mla_error *err) {
  mla_status st =
      mla_gpu_query_with(mla_sm80_fast, handle, problem, limits, answer, err);
  const size_t n = strlen(answer->kernel);
  if (st == MLA_OK)
    snprintf(answer->kernel + n, sizeof answer->kernel - n,
             " (seed=%llu;arch=%s)", chosen.seed,
             chosen.is_sm_86 ? "sm_86" : "sm_80");
  return st;
}

static mla_status run_lanes(const mla_backend_plan *plan, const mla_args *args,
                            void *workspace, uint64_t bytes, mla_stream stream,
                            mla_error *err) {
  (void)bytes;
  return mla_gpu_run_with(mla_sm80_fast, plan, args, workspace, stream, err);
}

extern "C" MLA_BACKEND_EXPORT const mla_backend *mla_backend_get(
    uint32_t major, uint32_t minor) {
  static mla_backend backend;
  (void)minor;
  if (major != MLA_ABI_MAJOR) return NULL;
  if (!backend.size) {
    configure(&chosen); /* before anybody asks what device it is */
    backend.name = "cuda-emu";
    backend.version = MLA_VERSION_STRING;
    backend.description = "kernels for sm_80 on emulated lanes";
    mla_gpu_fill_vtable(&backend);
    backend.open = open_lanes;
    backend.query = query_lanes;
    backend.run = run_lanes;
  }
  return &backend;
}
