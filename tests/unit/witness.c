#include "witness.h"

#include <check.h>
#include <string.h>

#include "registry.h"

witness the_witness;

static mla_status verdict(mla_error *err) {
  if (the_witness.fail_with != MLA_OK && err) {
    uint32_t size = err->size;
    *err = the_witness.failure;
    err->size = size;
  }
  return the_witness.fail_with;
}

static int32_t device_count(mla_error *err) {
  if (the_witness.devices == 0) verdict(err);
  return the_witness.devices;
}

static mla_status device_info(int32_t device, mla_device_info *info,
                              mla_error *err) {
  (void)err;
  info->memory_space = the_witness.memory_space;
  info->compute_units = device + 1;
  memset(info->name, 'n', sizeof info->name); /* not terminated */
  return MLA_OK;
}

static mla_status open_device(int32_t device, const char *options,
                              mla_handle **handle, mla_error *err) {
  (void)device;
  (void)options;
  *handle = NULL;
  the_witness.opens++;
  return verdict(err);
}

static void close_device(mla_handle *handle) {
  (void)handle;
  the_witness.closes++;
}

static mla_status query(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  (void)handle;
  the_witness.problem = *problem;
  the_witness.limits = *limits;
  *answer = the_witness.answer;
  return verdict(err);
}

static mla_status plan(mla_handle *handle, const mla_problem *problem,
                       const mla_limits *limits, mla_backend_plan **made,
                       mla_error *err) {
  (void)handle;
  the_witness.problem = *problem;
  the_witness.limits = *limits;
  *made = NULL;
  the_witness.plans++;
  return verdict(err);
}

static mla_status run(const mla_backend_plan *made, const mla_args *args,
                      void *workspace, uint64_t workspace_bytes,
                      mla_stream stream, mla_error *err) {
  (void)made;
  (void)workspace_bytes;
  (void)stream;
  the_witness.args = *args;
  the_witness.workspace = workspace;
  the_witness.runs++;
  return verdict(err);
}

static void plan_free(mla_backend_plan *made) {
  (void)made;
  the_witness.frees++;
}

static mla_status mem_alloc(mla_handle *handle, uint64_t bytes, void **memory,
                            mla_error *err) {
  (void)handle;
  (void)bytes;
  *memory = NULL;
  return verdict(err);
}

static void mem_free(mla_handle *handle, void *memory) {
  (void)handle;
  (void)memory;
}

static mla_status mem_to_device(mla_handle *handle, void *to, const void *from,
                                uint64_t bytes, mla_stream stream,
                                mla_error *err) {
  (void)handle;
  (void)to;
  (void)from;
  (void)bytes;
  (void)stream;
  return verdict(err);
}

mla_backend witness_table(const char *name, int with_memory) {
  mla_backend table;
  memset(&table, 0, sizeof table);
  table.size = (uint32_t)sizeof table;
  table.major = MLA_ABI_MAJOR;
  table.minor = MLA_ABI_MINOR;
  table.name = name;
  table.device_count = device_count;
  table.device_info = device_info;
  table.open = open_device;
  table.close = close_device;
  table.query = query;
  table.plan = plan;
  table.run = run;
  table.plan_free = plan_free;
  if (!with_memory) return table;
  table.mem_alloc = mem_alloc;
  table.mem_free = mem_free;
  table.mem_to_device = mem_to_device;
  table.mem_to_host = mem_to_device;
  return table;
}

mla_device *witness_open(void) {
  static mla_backend table; /* the registry knows a table by its address */
  const mla_backend *found = NULL;
  mla_device *dev = NULL;
  mla_error err = mla_error_init();
  memset(&the_witness, 0, sizeof the_witness);
  the_witness.devices = 1;
  the_witness.memory_space = MLA_MEMORY_HOST;
  the_witness.answer = mla_answer_init();
  the_witness.answer.supported = 1;
  the_witness.failure = mla_error_init();
  table = witness_table("witness", 1);
  ck_assert_int_eq(mla_registry_add(&table, "witness", &found, &err), MLA_OK);
  ck_assert_int_eq(mla_open("witness", 0, NULL, &dev, &err), MLA_OK);
  return dev;
}
