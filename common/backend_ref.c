/*
 * backend_ref.c - "ref": the oracle behind the vtable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "error.h"
#include "host_backends.h"
#include "mla/version.h"
#include "op_table.h"
#include "oracle.h"
#include "sized.h"

struct mla_handle {
  int threads; /* 0: as many as OpenMP likes */
};

struct mla_backend_plan {
  mla_problem problem;
  mla_limits limits;
  int threads;
};

static int32_t device_count(mla_error *err) {
  (void)err;
  return 1;
}

static int compute_units(void) {
#ifdef _OPENMP
  return omp_get_num_procs();
#else
  return 1;
#endif
}

static mla_status no_device(int32_t device, mla_error *err) {
  return mla_fail(err, MLA_NOT_AVAILABLE, "device",
                  "device is %d, ref has only device 0", device);
}

static mla_status device_info(int32_t device, mla_device_info *info,
                              mla_error *err) {
  mla_device_info x = {0};
  if (device != 0) return no_device(device, err);
  x.memory_space = MLA_MEMORY_HOST;
  x.compute_units = compute_units();
  snprintf(x.name, sizeof x.name, "host, binary64 reference");
  snprintf(x.arch, sizeof x.arch, "c11");
  mla_sized_write(info, &x, (uint32_t)sizeof x);
  return MLA_OK;
}

/* One "key=value" of the options. */
static mla_status read_option(const char *option, size_t length, int *threads,
                              mla_error *err) {
  static const char key[] = "threads=";
  char value[16] = {0}, *end = value;
  size_t skip = sizeof key - 1;
  if (length < skip || strncmp(option, key, skip) != 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                    "options has \"%.*s\", ref knows only threads=N",
                    (int)length, option);
  if (length - skip < sizeof value) memcpy(value, option + skip, length - skip);
  long count = strtol(value, &end, 10);
  if (end == value || *end || count < 1 || count > 4096)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                    "options has \"%.*s\", threads is 1 to 4096", (int)length,
                    option);
  *threads = (int)count;
  return MLA_OK;
}

static mla_status read_options(const char *options, int *threads,
                               mla_error *err) {
  while (options && *options) {
    size_t length = strcspn(options, ";");
    mla_status status =
        length ? read_option(options, length, threads, err) : MLA_OK;
    if (status) return status;
    options += length;
    if (*options == ';') options++;
  }
  return MLA_OK;
}

static mla_status open_device(int32_t device, const char *options,
                              mla_handle **handle, mla_error *err) {
  int threads = 0;
  if (device != 0) return no_device(device, err);
  mla_status status = read_options(options, &threads, err);
  if (status) return status;
  mla_handle *x = malloc(sizeof *x);
  if (!x)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "handle", "no memory for a handle");
  x->threads = threads;
  *handle = x;
  return MLA_OK;
}

static void close_device(mla_handle *handle) {
  free(handle);
}

static mla_status read_problem(mla_problem *to, const mla_problem *from,
                               mla_error *err) {
  mla_status status =
      mla_sized_read(to, (uint32_t)sizeof *to, from,
                     MLA_SIZE_WITH(mla_problem, out_dtype), "problem", err);
  if (status) return status;
  uint64_t unknown = to->flags & ~MLA_ALL_FLAGS;
  if (!unknown) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "flags",
                  "flags has the unknown bits 0x%llx",
                  (unsigned long long)unknown);
}

/* Rounds once, from binary64: declared as what it is. */
static void describe(mla_answer *x) {
  x->supported = 1;
  x->determinism = MLA_DETERMINISM_BATCH_INVARIANT;
  x->numerics.u_acc = x->numerics.u_p = x->numerics.u_mid = 0x1p-53;
  snprintf(x->kernel, sizeof x->kernel, "ref");
}

static mla_status query(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  mla_problem p;
  mla_answer x = {0};
  (void)handle;
  (void)limits;
  mla_status status = read_problem(&p, problem, err);
  if (status) return status;
  const char *reason = mla_oracle_refusal(&p, NULL);
  x.workspace_alignment = 1;
  if (reason)
    snprintf(x.reason, sizeof x.reason, "%s", reason);
  else
    describe(&x);
  mla_sized_write(answer, &x, (uint32_t)sizeof x);
  return MLA_OK;
}

static mla_status plan(mla_handle *handle, const mla_problem *problem,
                       const mla_limits *limits, mla_backend_plan **to,
                       mla_error *err) {
  mla_problem p;
  mla_limits own;
  mla_status status = read_problem(&p, problem, err);
  if (!status)
    status =
        mla_sized_read(&own, (uint32_t)sizeof own, limits,
                       MLA_SIZE_WITH(mla_limits, num_splits), "limits", err);
  if (status) return status;
  const char *field, *reason = mla_oracle_refusal(&p, &field);
  if (reason) return mla_fail(err, MLA_UNSUPPORTED, field, "%s", reason);
  mla_backend_plan *x = malloc(sizeof *x);
  if (!x)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "plan", "no memory for a plan");
  x->problem = p;
  x->limits = own;
  x->limits.seq_lens = x->limits.query_start_loc = NULL; /* not ours to keep */
  x->threads = handle->threads;
  *to = x;
  return MLA_OK;
}

static mla_status run(const mla_backend_plan *x, const mla_args *args,
                      void *workspace, uint64_t workspace_bytes,
                      mla_stream stream, mla_error *err) {
  (void)workspace;
  (void)workspace_bytes;
  (void)stream;
#ifdef _OPENMP
  int before = omp_get_max_threads();
  if (x->threads) omp_set_num_threads(x->threads);
#endif
  mla_status status = mla_oracle_run(&x->problem, &x->limits, args, err);
#ifdef _OPENMP
  omp_set_num_threads(before);
#endif
  return status;
}

static void plan_free(mla_backend_plan *x) {
  free(x);
}

static const mla_backend ref = {
    .size = (uint32_t)sizeof(mla_backend),
    .major = MLA_ABI_MAJOR,
    .minor = MLA_ABI_MINOR,
    .name = "ref",
    .version = MLA_VERSION_STRING,
    .description = "the plain-C reference in binary64",
    .device_count = device_count,
    .device_info = device_info,
    .open = open_device,
    .close = close_device,
    .query = query,
    .plan = plan,
    .run = run,
    .plan_free = plan_free,
};

const mla_backend *mla_ref_backend(uint32_t host_major, uint32_t host_minor) {
  (void)host_minor;
  return host_major == MLA_ABI_MAJOR ? &ref : NULL;
}
