/*
 * map_indices: positions of requests to slots of the cache.
 */
#include "cpu_internal.h"
#include "cpu_parallel.h"
#include "tensor.h"

typedef struct map_call {
  const mla_tensor *positions, *table, *starts, *indices;
  int64_t size; /* entries a block */
} map_call;

/* -1 where the table has no slot for the position. */
static int32_t slot_of(const int32_t *blocks, int64_t width, int64_t size,
                       int64_t position) {
  if (position < 0 || position / size >= width) return -1;
  int64_t block = blocks[position / size];
  int64_t slot = block * size + position % size;
  return block < 0 || slot > INT32_MAX ? -1 : (int32_t)slot;
}

static void map_request(void *state, int64_t request, int thread) {
  const map_call *x = state;
  const int32_t *starts = x->starts->data;
  const int32_t *blocks =
      (const int32_t *)x->table->data + mla_at1(x->table, request);
  (void)thread;
  for (int64_t t = starts[request]; t < starts[request + 1]; t++) {
    const int32_t *from =
        (const int32_t *)x->positions->data + mla_at1(x->positions, t);
    int32_t *to = (int32_t *)x->indices->data + mla_at1(x->indices, t);
    for (int64_t i = 0; i < x->positions->shape[1]; i++)
      to[i] = slot_of(blocks, x->table->shape[1], x->size, from[i]);
  }
}

static void map_run(const mla_cpu_context *c, const mla_args *args,
                    void *workspace) {
  map_call x = {mla_arg(args, MLA_T_POSITIONS),
                mla_arg(args, MLA_T_BLOCK_TABLE),
                mla_arg(args, MLA_T_QUERY_START_LOC),
                mla_arg(args, MLA_T_INDICES), c->problem.block_size};
  (void)workspace;
  mla_cpu_parallel(c->threads, x.table->shape[0], map_request, &x);
}

static uint64_t no_workspace(const mla_cpu_context *c) {
  (void)c;
  return 0;
}

static const char *map_refuse(const mla_problem *p) {
  (void)p;
  return NULL;
}

const mla_cpu_op mla_cpu_op_map_indices = {MLA_OP_MAP_INDICES, "map_indices",
                                           map_refuse, no_workspace, map_run};
