#define _POSIX_C_SOURCE 200809L
#include "far_backend.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "registry.h"

/* Bits that no address of the host has; where pointers are 32 bits, memory is
   apart all the same. */
#define FAR_BITS (sizeof(void *) == 8 ? (uintptr_t)((uint64_t)1 << 54) : 0)

struct mla_handle {
  mla_handle *inner;
  struct todo *first, *last;
};
struct mla_backend_plan {
  mla_handle *handle;
  mla_backend_plan *inner;
};

/* Something the stream is to do. */
typedef struct todo {
  struct todo *next;
  const mla_backend_plan *plan; /* NULL: a copy */
  mla_tensor tensor[MLA_T_COUNT];
  void *to;
  const void *from;
  uint64_t bytes;
} todo;

static const mla_backend *inner;
static int64_t runs;

static void *far(void *near) {
  return (void *)((uintptr_t)near | FAR_BITS);
}
static void *near_of(const void *p) {
  ck_assert_msg(!FAR_BITS || ((uintptr_t)p & FAR_BITS), "no device memory");
  return (void *)((uintptr_t)p & ~FAR_BITS);
}
static void require_host(const void *p) {
  ck_assert_msg(!((uintptr_t)p & FAR_BITS), "no host memory");
}

/* --------------------------------------------------------------- device */

static int32_t device_count(mla_error *err) {
  return inner->device_count(err);
}
static mla_status device_info(int32_t device, mla_device_info *info,
                              mla_error *err) {
  mla_status status = inner->device_info(device, info, err);
  info->memory_space = MLA_MEMORY_CUDA;
  return status;
}
static mla_status open_far(int32_t device, const char *options,
                           mla_handle **handle, mla_error *err) {
  mla_handle *h = calloc(1, sizeof *h);
  ck_assert_ptr_nonnull(h);
  *handle = h;
  return inner->open(device, options, &h->inner, err);
}
static void close_far(mla_handle *h) {
  ck_assert_msg(!h->first, "closed with work to do");
  inner->close(h->inner);
  free(h);
}

/* --------------------------------------------------------------- stream */

static todo *add(mla_handle *h) {
  todo *t = calloc(1, sizeof *t);
  ck_assert_ptr_nonnull(t);
  if (h->last)
    h->last->next = t;
  else
    h->first = t;
  h->last = t;
  return t;
}

static mla_status operate(const todo *t, mla_error *err) {
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, t->tensor};
  runs++;
  return inner->run(t->plan->inner, &args, t->to, t->bytes, NULL, err);
}

static mla_status sync_stream(mla_handle *h, mla_stream stream,
                              mla_error *err) {
  mla_status status = MLA_OK;
  (void)stream;
  while (h->first) {
    todo *t = h->first;
    if (status == MLA_OK && t->plan)
      status = operate(t, err);
    else if (status == MLA_OK)
      memcpy(t->to, t->from, (size_t)t->bytes);
    h->first = t->next;
    free(t);
  }
  h->last = NULL;
  return status;
}

static mla_status create_stream(mla_handle *h, mla_stream *stream,
                                mla_error *err) {
  (void)h;
  (void)err;
  *stream = NULL;
  return MLA_OK;
}
static void destroy_stream(mla_handle *h, mla_stream stream) {
  (void)h;
  (void)stream;
}

/* --------------------------------------------------------------- memory */

static mla_status take(mla_handle *h, uint64_t bytes, void **memory,
                       mla_error *err) {
  (void)h;
  (void)err;
  void *p = NULL;
  size_t whole = ((size_t)bytes + 511) / 256 * 256;
  ck_assert_int_eq(posix_memalign(&p, 256, whole), 0);
  *memory = far(p);
  return MLA_OK;
}
static void give(mla_handle *h, void *memory) {
  sync_stream(h, NULL, NULL);
  if (memory) free(near_of(memory));
}
static mla_status to_device(mla_handle *h, void *to, const void *from,
                            uint64_t bytes, mla_stream stream, mla_error *err) {
  todo *t = add(h);
  (void)stream;
  (void)err;
  require_host(from);
  t->to = near_of(to);
  t->from = from;
  t->bytes = bytes;
  return MLA_OK;
}
static mla_status to_host(mla_handle *h, void *to, const void *from,
                          uint64_t bytes, mla_stream stream, mla_error *err) {
  todo *t = add(h);
  (void)stream;
  (void)err;
  require_host(to);
  t->to = to;
  t->from = near_of(from);
  t->bytes = bytes;
  return MLA_OK;
}

/* ----------------------------------------------------------- operations */

static mla_status query(mla_handle *h, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  return inner->query(h->inner, problem, limits, answer, err);
}
static mla_status plan(mla_handle *h, const mla_problem *problem,
                       const mla_limits *limits, mla_backend_plan **to,
                       mla_error *err) {
  mla_backend_plan *p = calloc(1, sizeof *p);
  ck_assert_ptr_nonnull(p);
  p->handle = h;
  *to = p;
  return inner->plan(h->inner, problem, limits, &p->inner, err);
}
static mla_status run(const mla_backend_plan *p, const mla_args *args,
                      void *workspace, uint64_t bytes, mla_stream stream,
                      mla_error *err) {
  todo *t = add(p->handle);
  (void)stream;
  (void)err;
  t->plan = p;
  t->to = workspace ? near_of(workspace) : NULL;
  t->bytes = bytes;
  for (uint32_t i = 0; i < args->count; i++) {
    t->tensor[i] = args->tensor[i];
    if (t->tensor[i].data) t->tensor[i].data = near_of(t->tensor[i].data);
  }
  return MLA_OK;
}
static void plan_free(mla_backend_plan *p) {
  sync_stream(p->handle, NULL, NULL);
  inner->plan_free(p->inner);
  free(p);
}

static const mla_backend far_table = {
    .size = (uint32_t)sizeof(mla_backend),
    .major = MLA_ABI_MAJOR,
    .minor = MLA_ABI_MINOR,
    .name = "far",
    .version = "1",
    .description = "a device of its own memory, simulated",
    .device_count = device_count,
    .device_info = device_info,
    .open = open_far,
    .close = close_far,
    .query = query,
    .plan = plan,
    .run = run,
    .plan_free = plan_free,
    .mem_alloc = take,
    .mem_free = give,
    .mem_to_device = to_device,
    .mem_to_host = to_host,
    .stream_create = create_stream,
    .stream_destroy = destroy_stream,
    .stream_sync = sync_stream,
};

const mla_backend *far_backend(void) {
  const mla_backend *entered = mla_backend_find("far");
  if (entered) return entered;
  inner = mla_backend_find("cpu");
  if (!inner) inner = mla_backend_find("ref");
  ck_assert_int_eq(mla_registry_add(&far_table, "this test", &entered, NULL),
                   MLA_OK);
  return entered;
}

int64_t far_runs(void) {
  return runs;
}
