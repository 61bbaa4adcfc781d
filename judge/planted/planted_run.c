/* One run of the planted backend, and the faults outside the kernels. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dtype.h"
#include "error.h"
#include "planted_core.h"
#include "planted_kept.h"
#include "tensor.h"

mla_status planted_dispatch(const planted_call *c) {
  typedef mla_status (*kernel)(const planted_call *);
  static const kernel kernels[] = {
      [MLA_OP_KV_WRITE] = planted_kv_write,
      [MLA_OP_KV_READ] = planted_kv_read,
      [MLA_OP_KV_COPY] = planted_kv_copy,
      [MLA_OP_ABSORB] = planted_absorb,
      [MLA_OP_Q_ABSORB] = planted_q_absorb,
      [MLA_OP_V_EXPAND] = planted_v_expand,
      [MLA_OP_DECODE] = planted_decode,
      [MLA_OP_PREFILL] = planted_prefill,
      [MLA_OP_MERGE] = planted_merge,
      [MLA_OP_MATMUL] = planted_matmul,
      [MLA_OP_INDEX] = planted_index,
      [MLA_OP_MAP_INDICES] = planted_map,
  };
  if (c->p->flags & MLA_SPARSE) return planted_sparse(c);
  return kernels[c->p->op](c);
}

static void remember_lens(mla_backend_plan *plan, const mla_args *args) {
  const mla_tensor *lens = mla_arg(args, MLA_T_SEQ_LENS);
  if (plan->handle.fault != PLANTED_STALE_LENS || !lens || plan->first_lens)
    return;
  plan->first_lens = calloc((size_t)lens->shape[0] + 1, sizeof(int32_t));
  if (!plan->first_lens) return;
  plan->first_count = lens->shape[0];
  for (int64_t i = 0; i < lens->shape[0]; i++)
    plan->first_lens[i] = (int32_t)planted_int(lens, i);
}

static const mla_tensor *first_output(const planted_call *c) {
  static const int outputs[] = {MLA_T_OUT,     MLA_T_INDICES, MLA_T_POSITIONS,
                                MLA_T_CACHE,   MLA_T_DST,     MLA_T_W_UV,
                                MLA_T_Q_LATENT};
  for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
    const mla_tensor *t = planted_arg(c, outputs[i]);
    int32_t op = c->p->op;
    int is_written = op == MLA_OP_KV_WRITE || op == MLA_OP_KV_COPY;
    if (t && (outputs[i] != MLA_T_CACHE || is_written)) return t;
  }
  return NULL;
}

static void write_past_out(const planted_call *c) {
  const mla_tensor *t = first_output(c);
  if (!t) return;
  int64_t end = mla_tensor_extent(t);
  memset((unsigned char *)t->data + end, 0x5a, (size_t)c->a);
}

static void write_input(const planted_call *c) {
  const mla_tensor *t = planted_arg(c, MLA_T_Q);
  if (!t) t = planted_arg(c, MLA_T_KV_C);
  if (t) mla_put(t->data, t->dtype, 0, 0.5);
}

/* The worst of neighbours: an address that nobody may touch. */
static void touch_nothing(void) {
  volatile uintptr_t nowhere = 16;
  *(volatile unsigned char *)nowhere = 1;
}

/* Has no request a token? */
static int is_padding(const planted_call *c) {
  const mla_tensor *start = planted_arg(c, MLA_T_QUERY_START_LOC);
  return start && planted_query_start(c, start->shape[0] - 1) == 0;
}

/* Mistakes made before the kernel. Nonzero: it is not run. */
static int misbehave(const planted_call *c, mla_status *st, mla_error *err) {
  if (FAULT(c, CRASH)) touch_nothing();
  if (FAULT(c, ABORT)) abort();
  if (FAULT(c, ISA_ILLEGAL)) raise(SIGILL);
  while (FAULT(c, HANG)) sleep(1);
  if (FAULT(c, WS_OVERRUN) && c->ws_floats)
    memset((unsigned char *)c->ws + c->ws_floats * (int64_t)sizeof(float), 0x5a,
           (size_t)c->a);
  if (FAULT(c, OVERRUN)) write_past_out(c);
  if (FAULT(c, HONESTY_INPUT)) write_input(c);
  *st = MLA_OK;
  if (FAULT(c, STEP_EMPTY) && is_padding(c)) {
    *st = mla_fail(err, MLA_DEVICE_ERROR, "device", "the grid is empty");
    return 1;
  }
  if (FAULT(c, THREAD_OPENER) && !planted_is_opener()) {
    *st = mla_fail(err, MLA_DEVICE_ERROR, "device", "no context is current");
    return 1;
  }
  if (FAULT(c, CLOSE_ALL) && planted_is_closed()) {
    *st = mla_fail(err, MLA_NOT_AVAILABLE, "device", "the device is closed");
    return 1;
  }
  if (FAULT(c, HONESTY_REFUSE))
    *st = mla_fail(err, MLA_UNSUPPORTED, "op", "run refuses what query took");
  return FAULT(c, HONESTY_REFUSE) || FAULT(c, HONESTY_NOTHING);
}

/* Mistakes made behind the kernel: the results on their way, and what becomes
   of them where a factor is 0. Of equal moments two threads in step would
   always be spoilt alike, and one of them never. */
static void pass_through(const mla_tensor *t) {
  static unsigned char shared[1 << 18];
  static atomic_uint runs;
  unsigned moments = atomic_fetch_add(&runs, 1) * 3 % 5 + 1;
  const struct timespec moment = {0, 400000 * (long)moments};
  size_t bytes = (size_t)mla_tensor_extent(t);
  if (bytes > sizeof shared) return;
  memcpy(shared, t->data, bytes);
  nanosleep(&moment, NULL);
  memcpy(t->data, shared, bytes);
}

static void spoil_results(const planted_call *c) {
  const mla_tensor *t = first_output(c);
  if (!t) return;
  if (FAULT(c, RACE_STAGE)) pass_through(t);
  if (FAULT(c, THREAD_TABLE) && !planted_is_opener())
    memset(t->data, 0, (size_t)mla_tensor_extent(t));
}

/* The first input begins where a load of `a` bytes would have it. */
static void move_input(mla_tensor *tensor, int32_t op, int32_t a) {
  static const int inputs[] = {MLA_T_Q,         MLA_T_KV_C,      MLA_T_PARTS,
                               MLA_T_A,         MLA_T_Q_NOPE,    MLA_T_O_LATENT,
                               MLA_T_KV_B_PROJ, MLA_T_SRC_CACHE, MLA_T_CACHE};
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
    mla_tensor *t = &tensor[inputs[i]];
    if (!t->data || (inputs[i] == MLA_T_CACHE && op != MLA_OP_KV_READ))
      continue;
    t->data = (unsigned char *)t->data - (uintptr_t)t->data % (uintptr_t)a;
    return;
  }
}

/* With a fault in one head or request, all rows are right at first. */
static mla_status run_right(const planted_call *c) {
  planted_call right = *c;
  right.fault = PLANTED_NONE;
  right.only_head = right.only_request = -1;
  return planted_dispatch(&right);
}

mla_status planted_run(const mla_backend_plan *plan, const mla_args *args,
                       void *workspace, uint64_t workspace_bytes,
                       mla_stream stream, mla_error *err) {
  return planted_run_prefix(plan, args, 0, workspace, workspace_bytes, stream,
                            err);
}

mla_status planted_run_prefix(const mla_backend_plan *plan,
                              const mla_args *args, int64_t prefix_len,
                              void *workspace, uint64_t workspace_bytes,
                              mla_stream stream, mla_error *err) {
  mla_status st;
  (void)stream;
  (void)workspace_bytes;
  mla_backend_plan *own = (mla_backend_plan *)(uintptr_t)plan;
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  mla_args moved = {(uint32_t)sizeof moved, MLA_T_COUNT, tensor};
  remember_lens(own, args);
  own->runs++;
  memcpy(
      tensor, args->tensor,
      (args->count < MLA_T_COUNT ? args->count : MLA_T_COUNT) * sizeof *tensor);
  if (own->handle.fault == PLANTED_ADDRESS_BITS)
    move_input(tensor, own->problem.op, own->handle.a);
  planted_keep(own, tensor);
  args = &moved;
  planted_call c = {own,
                    &plan->problem,
                    args,
                    workspace,
                    (int64_t)(plan->workspace_bytes / sizeof(float)),
                    plan->handle.fault,
                    plan->handle.a,
                    plan->handle.x,
                    NULL,
                    plan->handle.head,
                    plan->handle.request,
                    prefix_len};
  if (misbehave(&c, &st, err)) return st;
  if (c.only_head >= 0 || c.only_request >= 0) {
    st = run_right(&c);
    if (st != MLA_OK) return st;
  }
  st = planted_dispatch(&c);
  if (st == MLA_OK) spoil_results(&c);
  return st;
}

mla_status mla_planted_probe(const planted_probe *probe,
                             const mla_problem *problem,
                             const mla_limits *limits, const mla_args *args,
                             mla_error *err) {
  const planted_fault *fault = planted_fault_at(probe->fault);
  const char *no = planted_refusal(problem);
  if (no || (probe->fault && !(fault->traits & PLANTED_SHOWS)))
    return mla_fail(err, MLA_UNSUPPORTED, "probe", "%s",
                    no ? no : "the fault shows by traces alone");
  mla_backend_plan plan;
  memset(&plan, 0, sizeof plan);
  plan.handle = (mla_handle){probe->fault, probe->a, probe->x, -1, -1};
  plan.problem = *problem;
  if (probe->prefix) plan.problem.flags |= MLA_COMMON_PREFIX;
  plan.limits = *limits;
  plan.first_lens = (int32_t *)(uintptr_t)probe->stale_lens;
  if (probe->stale_lens) plan.first_count = limits->requests;
  int64_t floats = planted_scratch(probe->fault, &plan.problem, limits);
  plan.workspace_bytes = (uint64_t)floats * sizeof(float);
  float *ws = malloc((size_t)(floats + 1) * sizeof *ws);
  if (!ws) return mla_fail(err, MLA_OUT_OF_MEMORY, "probe", "no memory");
  memset(ws, probe->poison, (size_t)floats * sizeof *ws);
  planted_call c = {
      &plan,    &plan.problem, args,          ws, floats, probe->fault,
      probe->a, probe->x,      probe->wanted, -1, -1,     probe->prefix};
  mla_status st = planted_dispatch(&c);
  free(ws);
  return st;
}
