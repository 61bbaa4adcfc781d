#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "fixed_steps.h"
#include "host_backends.h"
#include "registry.h"
#include "tensor.h"

/* These programs have the reference alone. */
const mla_backend_get_fn mla_builtin_backends[] = {mla_ref_backend, NULL};

static void must(mla_status status, const mla_error *err) {
  if (status == MLA_OK) return;
  fprintf(stderr, "fixed_composed: %s\n", err->message);
  exit(1);
}

static const struct {
  const char *name;
  mla_composition what;
  int32_t dtype;
  uint64_t flags;
  int64_t prefix, chunk;
  fixed_requests requests;
} cases[FIXED_COMPOSED] = {
    {"cascade.f64",
     {sizeof(mla_composition), MLA_CASCADE, 1, 1, 1, 0},
     MLA_F64,
     MLA_CAUSAL,
     22,
     0,
     {4, {1, 3, 0, 2}, {40, 25, 9, 31}}},
    {"cascade.sink",
     {sizeof(mla_composition), MLA_CASCADE, 1, 1, 1, 0},
     MLA_F32,
     MLA_HAS_SINK | MLA_LSE_BASE2,
     15,
     0,
     {3, {1, 2, 1}, {15, 16, 60}}},
    {"sharded.f64",
     {sizeof(mla_composition), MLA_SHARDED, 1, 3, 2, 0},
     MLA_F64,
     MLA_CAUSAL | MLA_HAS_SINK,
     0,
     0,
     {4, {1, 4, 1, 2}, {40, 3, 0, 31}}},
    {"sharded.bf16",
     {sizeof(mla_composition), MLA_SHARDED, 1, 4, 5, 0},
     MLA_BF16,
     MLA_LSE_BASE2,
     0,
     0,
     {3, {1, 2, 1}, {17, 1, 60}}},
    {"chunked.f64",
     {sizeof(mla_composition), MLA_CHUNKED_PREFILL, 1, 1, 1, 0},
     MLA_F64,
     MLA_CAUSAL | MLA_CONTEXT,
     0,
     8,
     {4, {3, 1, 0, 5}, {30, 1, 0, 5}}},
    {"chunked.bf16",
     {sizeof(mla_composition), MLA_CHUNKED_PREFILL, 1, 1, 1, 0},
     MLA_BF16,
     MLA_CAUSAL | MLA_CONTEXT | MLA_HAS_SINK | MLA_LSE_BASE2,
     0,
     9,
     {3, {2, 4, 1}, {19, 22, 41}}}};

static mla_problem problem_of(int number) {
  int chunked = cases[number].what.kind == MLA_CHUNKED_PREFILL;
  mla_problem p = mla_problem_init(chunked ? MLA_OP_PREFILL : MLA_OP_DECODE);
  p.flags = cases[number].flags | MLA_RETURN_LSE;
  p.q_dtype = p.out_dtype = cases[number].dtype;
  if (chunked) p.weight_dtype = cases[number].dtype;
  for (int32_t f = MLA_CACHE_F64; f <= MLA_CACHE_BF16; f++)
    if (mla_format_dtype(f) == cases[number].dtype) p.cache_format = f;
  p.num_heads = 3;
  p.kv_lora_rank = 24;
  p.qk_rope_head_dim = 8;
  if (chunked) p.qk_nope_head_dim = 12;
  if (chunked) p.v_head_dim = 10;
  p.block_size = 5;
  p.scale = 0.25;
  return p;
}

/* The first blocks of all become those of the first request. */
static void share_prefix(fixed_case *c, int64_t prefix) {
  const mla_tensor *table = &c->tensor[MLA_T_BLOCK_TABLE];
  for (int64_t b = 1; b < table->shape[0]; b++)
    for (int64_t w = 0; w < prefix / c->problem.block_size; w++)
      fixed_case_put_int(
          c, MLA_T_BLOCK_TABLE, b * table->shape[1] + w,
          mla_get_int(table->data, MLA_I32, mla_at2(table, 0, w)));
}

static void run(fixed_composed *x) {
  mla_error err = mla_error_init();
  mla_args args = fixed_case_args(&x->c);
  mla_composed *composed;
  mla_device *dev;
  must(mla_open("ref", 0, NULL, &dev, &err), &err);
  must(mla_compose(dev, &x->what, &x->c.problem, &x->c.limits, &composed, &err),
       &err);
  uint64_t bytes = mla_composed_answer(composed)->workspace_bytes;
  unsigned char *memory = malloc((size_t)bytes + 256);
  if (!memory) exit(3);
  memset(memory, 0xff, (size_t)bytes + 256);
  uintptr_t skip = (uintptr_t)256 - (uintptr_t)memory % 256;
  must(mla_composed_run(composed, &args, &x->step, memory + skip, bytes, NULL,
                        &err),
       &err);
  free(memory);
  mla_composed_free(composed);
  mla_close(dev);
}

void fixed_composed_new(fixed_composed *x, int number) {
  const fixed_data data = {1, 1, 0.25, FIXED_BELL};
  mla_problem p = problem_of(number);
  memset(x, 0, sizeof *x);
  x->name = cases[number].name;
  x->what = cases[number].what;
  x->c = fixed_attention(&p, &cases[number].requests, &data,
                         47 + (uint64_t)number, 0);
  x->c.limits.context_chunk = cases[number].chunk;
  share_prefix(&x->c, cases[number].prefix);
  x->step.size = (uint32_t)sizeof x->step;
  x->step.requests = cases[number].requests.count;
  x->step.query_start_loc = x->c.tensor[MLA_T_QUERY_START_LOC].data;
  x->step.seq_lens = x->c.tensor[MLA_T_SEQ_LENS].data;
  x->step.block_table = x->c.tensor[MLA_T_BLOCK_TABLE].data;
  x->step.table_stride = x->c.tensor[MLA_T_BLOCK_TABLE].stride[0];
  x->step.prefix_len = cases[number].prefix;
  run(x);
}

void fixed_composed_free(fixed_composed *x) {
  fixed_case_free(&x->c);
}
