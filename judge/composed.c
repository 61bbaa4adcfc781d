/*
 * composed.c - the table of a backend that composes.
 */
#include "composed.h"

#include <stdlib.h>
#include <string.h>

#include "device_over.h"
#include "error.h"
#include "mla/compose.h"

/* The handle holds its own table: memory members are those that the device
   beneath has. */
struct mla_handle {
  mla_backend table;
  mla_device *inner;
  mla_composition what;
  int64_t prefix;
  int causal;
  int host;
};

struct mla_backend_plan {
  mla_handle *handle;
  mla_composed *composed;
  int32_t *starts, *lens, *table; /* what lies on the device, on the host */
};

/* ------------------------------------------------------------- memory */

static const mla_backend *table_of(const mla_handle *h) {
  return mla_device_backend(h->inner);
}

static mla_status take(mla_handle *h, uint64_t bytes, void **memory,
                       mla_error *err) {
  return table_of(h)->mem_alloc(mla_device_handle(h->inner), bytes, memory,
                                err);
}
static void give(mla_handle *h, void *memory) {
  table_of(h)->mem_free(mla_device_handle(h->inner), memory);
}
static mla_status to_device(mla_handle *h, void *to, const void *from,
                            uint64_t bytes, mla_stream stream, mla_error *err) {
  return table_of(h)->mem_to_device(mla_device_handle(h->inner), to, from,
                                    bytes, stream, err);
}
static mla_status to_host(mla_handle *h, void *to, const void *from,
                          uint64_t bytes, mla_stream stream, mla_error *err) {
  return table_of(h)->mem_to_host(mla_device_handle(h->inner), to, from, bytes,
                                  stream, err);
}
static mla_status create_stream(mla_handle *h, mla_stream *stream,
                                mla_error *err) {
  return table_of(h)->stream_create(mla_device_handle(h->inner), stream, err);
}
static void destroy_stream(mla_handle *h, mla_stream stream) {
  table_of(h)->stream_destroy(mla_device_handle(h->inner), stream);
}
static mla_status sync_stream(mla_handle *h, mla_stream stream,
                              mla_error *err) {
  return table_of(h)->stream_sync(mla_device_handle(h->inner), stream, err);
}

/* ----------------------------------------------------------- operations */

static mla_status query(mla_handle *h, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  return mla_compose_query(h->inner, &h->what, problem, limits, answer, err);
}

static void plan_free(mla_backend_plan *plan) {
  if (!plan) return;
  mla_composed_free(plan->composed);
  free(plan->starts);
  free(plan->lens);
  free(plan->table);
  free(plan);
}

static mla_status plan(mla_handle *h, const mla_problem *problem,
                       const mla_limits *limits, mla_backend_plan **to,
                       mla_error *err) {
  mla_backend_plan *p = calloc(1, sizeof *p);
  size_t requests = (size_t)limits->requests;
  size_t width = (size_t)limits->table_width;
  if (!p) return mla_fail(err, MLA_OUT_OF_MEMORY, "plan", "no memory");
  p->handle = h;
  p->starts = malloc((requests + 1) * sizeof *p->starts);
  p->lens = malloc((requests + 1) * sizeof *p->lens);
  p->table = malloc((requests * width + 1) * sizeof *p->table);
  mla_status status =
      p->starts && p->lens && p->table
          ? mla_compose(h->inner, &h->what, problem, limits, &p->composed, err)
          : mla_fail(err, MLA_OUT_OF_MEMORY, "plan", "no memory for a step");
  if (status == MLA_OK)
    *to = p;
  else
    plan_free(p);
  return status;
}

/* Dense rows of int32 from the device. */
static mla_status fetch(const mla_backend_plan *p, const mla_tensor *t,
                        int32_t *to, mla_stream stream, mla_error *err) {
  mla_handle *h = p->handle;
  int64_t rows = t->rank > 1 ? t->shape[0] : 1;
  int64_t width = t->shape[t->rank - 1];
  mla_status status = MLA_OK;
  for (int64_t r = 0; status == MLA_OK && r < rows; r++) {
    const int32_t *from =
        (const int32_t *)t->data + (t->rank > 1 ? r * t->stride[0] : 0);
    int32_t *row = to + r * width;
    if (h->host)
      memcpy(row, from, (size_t)width * sizeof *row);
    else
      status =
          to_host(h, row, from, (uint64_t)width * sizeof *row, stream, err);
  }
  return status;
}

/* At most what the rows of this step see; a plan also serves shorter ones. */
static int64_t usable_prefix(const mla_handle *h, const mla_step *s) {
  int64_t prefix = h->prefix;
  for (int64_t b = 0; b < s->requests; b++) {
    int64_t rows = s->query_start_loc[b + 1] - s->query_start_loc[b];
    int64_t most = (int64_t)s->seq_lens[b] - (h->causal ? rows - 1 : 0);
    if (rows && most < prefix) prefix = most > 0 ? most : 0;
  }
  return prefix;
}

static mla_status run(const mla_backend_plan *p, const mla_args *args,
                      void *workspace, uint64_t bytes, mla_stream stream,
                      mla_error *err) {
  const mla_tensor *table = mla_arg(args, MLA_T_BLOCK_TABLE);
  const mla_tensor *lens = mla_arg(args, MLA_T_SEQ_LENS);
  const mla_tensor *starts = mla_arg(args, MLA_T_QUERY_START_LOC);
  mla_status status = fetch(p, table, p->table, stream, err);
  if (status == MLA_OK) status = fetch(p, lens, p->lens, stream, err);
  if (status == MLA_OK) status = fetch(p, starts, p->starts, stream, err);
  if (status == MLA_OK && !p->handle->host && p->handle->table.stream_sync)
    status = sync_stream(p->handle, stream, err);
  if (status != MLA_OK) return status;
  mla_step step = {
      (uint32_t)sizeof step, 0, lens->shape[0], p->starts, p->lens, p->table,
      table->shape[1],       0};
  step.prefix_len = usable_prefix(p->handle, &step);
  return mla_composed_run(p->composed, args, &step, workspace, bytes, stream,
                          err);
}

static void close_device(mla_handle *handle) {
  free(handle);
}

/* --------------------------------------------------------------- device */

static void make_table(mla_handle *h) {
  const mla_backend *b = table_of(h);
  mla_backend *t = &h->table;
  t->size = (uint32_t)sizeof *t;
  t->major = b->major;
  t->minor = b->minor;
  t->name = b->name;
  t->version = b->version;
  t->description = b->description;
  t->device_count = b->device_count;
  t->device_info = b->device_info;
  t->open = b->open;
  t->close = close_device;
  t->query = query;
  t->plan = plan;
  t->run = run;
  t->plan_free = plan_free;
  if (!b->mem_alloc) return;
  t->mem_alloc = take;
  t->mem_free = give;
  t->mem_to_device = to_device;
  t->mem_to_host = to_host;
  if (!b->stream_sync) return;
  t->stream_create = create_stream;
  t->stream_destroy = destroy_stream;
  t->stream_sync = sync_stream;
}

/* 0: the vector asks for none. */
static int32_t kind_of(const mla_vector *v) {
  if (!v->has_recipe) return 0;
  if (v->recipe.num[MLA_K_CASCADE]) return MLA_CASCADE;
  if (v->recipe.num[MLA_K_RANKS]) return MLA_SHARDED;
  if (v->recipe.num[MLA_K_CHUNKED]) return MLA_CHUNKED_PREFILL;
  return 0;
}

mla_status mla_composed_device(mla_device *device, const mla_vector *v,
                               mla_device **over, mla_error *err) {
  mla_device_info info = {(uint32_t)sizeof info, 0, 0, 0, 0, "", ""};
  int32_t kind = kind_of(v);
  *over = device;
  if (!kind) return MLA_OK;
  mla_status status = mla_device_describe(device, &info, err);
  if (status != MLA_OK) return status;
  mla_handle *h = calloc(1, sizeof *h);
  if (!h)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "dev", "no memory to compose");
  h->inner = device;
  h->what.size = (uint32_t)sizeof h->what;
  h->what.kind = kind;
  /* A backend's own cascade is judged by nothing else. */
  h->what.parts_only = kind != MLA_CASCADE;
  h->what.ranks = (int32_t)v->recipe.num[MLA_K_RANKS];
  h->what.interleave = (int32_t)v->recipe.num[MLA_K_INTERLEAVE];
  h->prefix = v->recipe.num[MLA_K_PREFIX];
  h->causal = (v->problem.flags & MLA_CAUSAL) != 0;
  h->host = info.memory_space == MLA_MEMORY_HOST;
  make_table(h);
  status = mla_device_over(&h->table, h, h->host, over, err);
  if (status != MLA_OK) free(h);
  return status;
}

void mla_composed_close(mla_device *over, mla_device *device) {
  if (over && over != device) mla_close(over);
}
