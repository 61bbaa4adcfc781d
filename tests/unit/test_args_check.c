/*
 * Every rule for the tensors of a call, broken one at a time in a lawful
 * step: the status, the field, a sentence with the value and the limit, and
 * nothing written or passed on.
 */
#include <string.h>

#include "args_faults.h"
#include "check_main.h"
#include "dtype.h"
#include "fixed_step.h"
#include "tensor.h"
#include "witness.h"

static void break_tensor(fixed_step *step, const broken *f) {
  mla_tensor *t = &step->tensor[f->slot];
  switch (f->how) {
    case SHAPE: t->shape[f->index] = f->value; break;
    case STRIDE: t->stride[f->index] = f->value; break;
    case DTYPE: t->dtype = (int32_t)f->value; break;
    case RANK: t->rank = (int32_t)f->value; break;
    case NO_DATA: t->data = NULL; break;
    case AT_END:
      t->data = (void *)(UINTPTR_MAX + 1 - (uintptr_t)f->value);
      break;
    case SHIFT: t->data = (char *)t->data + f->value; break;
    case GIVEN:
      *t = step->tensor[f->index];
      if (f->slot == MLA_T_COUNT) step->args.count = MLA_T_COUNT + 1;
      break;
    case ELEMENT: mla_put_int(t->data, t->dtype, f->index, f->value); break;
    case LIMIT:
      memcpy((char *)&step->limits + f->index, &f->value, sizeof f->value);
      break;
    case ALIGN:
      the_witness.answer.tensor_alignment = (uint64_t)f->value;
      if ((uintptr_t)t->data % (uint64_t)f->value == 0)
        t->data = (char *)t->data + 16; /* by luck it was */
      break;
    case COUNT: step->args.count = (uint32_t)f->value; break;
    default: break;
  }
}

/* Plans and runs; the plan must succeed. */
static mla_status run_step(mla_device *dev, fixed_step *step, mla_error *err) {
  mla_plan *plan = NULL;
  mla_status st =
      mla_plan_create(dev, &step->problem, &step->limits, &plan, err);
  ck_assert_msg(st == MLA_OK, "plan: %s", err->message);
  st = mla_run(plan, &step->args, NULL, 0, NULL, err);
  mla_plan_free(plan);
  return st;
}

START_TEST(one_fault_is_told) {
  const broken *f = &args_faults[_i];
  mla_device *dev = witness_open();
  mla_error err = mla_error_init();
  fixed_step *step = fixed_step_new(f->op, f->flags, f->format);
  mla_tensor lawful[MLA_T_COUNT + 1];
  memcpy(lawful, step->tensor, sizeof lawful);
  break_tensor(step, f);
  mla_status st = run_step(dev, step, &err);
  memcpy(step->tensor, lawful, sizeof lawful);
  ck_assert_msg(st == MLA_INVALID_ARGUMENT, "fault %d: %s %s", _i,
                mla_status_name(st), err.message);
  ck_assert_int_eq(err.status, MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.field, f->field);
  ck_assert_ptr_nonnull(strstr(err.message, f->field));
  for (int k = 0; k < 3 && f->says[k]; k++)
    ck_assert_msg(strstr(err.message, f->says[k]) != NULL,
                  "\"%s\" is not in: %s", f->says[k], err.message);
  ck_assert_int_eq(the_witness.runs, 0);
  ck_assert(fixed_step_untouched(step));
  fixed_step_free(step);
  mla_close(dev);
}
END_TEST

START_TEST(lawful_is_passed_on) {
  const broken *f = &args_lawful[_i];
  mla_device *dev = witness_open();
  mla_error err = mla_error_init();
  fixed_step *step = fixed_step_new(f->op, f->flags, f->format);
  mla_tensor first[MLA_T_COUNT + 1];
  memcpy(first, step->tensor, sizeof first);
  break_tensor(step, f);
  mla_status st = run_step(dev, step, &err);
  ck_assert_msg(st == MLA_OK, "step %d: %s", _i, err.message);
  ck_assert_int_eq(the_witness.runs, 1);
  ck_assert_ptr_eq(the_witness.args.tensor, step->tensor);
  memcpy(step->tensor, first, sizeof first);
  fixed_step_free(step);
  mla_close(dev);
}
END_TEST

/* A step without rows: no data, no call. */
START_TEST(nothing_to_do_is_done) {
  static const struct {
    int op;
    int slot[4];
  } empty[] = {
      {MLA_OP_KV_WRITE, {MLA_T_KV_C, MLA_T_K_PE, MLA_T_SLOT_MAPPING, -1}},
      {MLA_OP_KV_WRITE, {MLA_T_SLOT_MAPPING, -1, -1, -1}},
      {MLA_OP_KV_COPY, {MLA_T_BLOCK_MAPPING, -1, -1, -1}},
      {MLA_OP_DECODE, {MLA_T_Q, MLA_T_OUT, -1, -1}},
      {MLA_OP_PREFILL, {MLA_T_Q, MLA_T_KV_C, MLA_T_K_PE, MLA_T_OUT}},
      {MLA_OP_Q_ABSORB, {MLA_T_Q_NOPE, MLA_T_Q_LATENT, -1, -1}},
      {MLA_OP_MATMUL, {MLA_T_A, MLA_T_OUT, -1, -1}},
  };
  mla_device *dev = witness_open();
  mla_error err = mla_error_init();
  fixed_step *step = fixed_step_new(empty[_i].op, 0, MLA_CACHE_F32);
  mla_tensor first[MLA_T_COUNT + 1];
  memcpy(first, step->tensor, sizeof first);
  for (int k = 0; k < 4 && empty[_i].slot[k] >= 0; k++) {
    step->tensor[empty[_i].slot[k]].shape[0] = 0;
    step->tensor[empty[_i].slot[k]].data = NULL;
  }
  int32_t *start = step->tensor[MLA_T_QUERY_START_LOC].data;
  int32_t *lens = step->tensor[MLA_T_SEQ_LENS].data;
  if (start) memset(start, 0, 4 * sizeof *start);
  if (lens) memset(lens, 0, 3 * sizeof *lens);
  mla_status st = run_step(dev, step, &err);
  ck_assert_msg(st == MLA_OK, "step %d: %s", _i, err.message);
  ck_assert_int_eq(the_witness.runs, 0);
  memcpy(step->tensor, first, sizeof first);
  ck_assert(fixed_step_untouched(step));
  fixed_step_free(step);
  mla_close(dev);
}
END_TEST

/* Contents on a device cannot be read: only shapes are checked. */
START_TEST(device_contents_are_left_alone) {
  mla_device *dev = NULL;
  mla_error err = mla_error_init();
  mla_close(witness_open());
  the_witness.memory_space = MLA_MEMORY_CUDA;
  ck_assert_int_eq(mla_open("witness", 0, NULL, &dev, &err), MLA_OK);
  fixed_step *step = fixed_step_new(MLA_OP_DECODE, 0, MLA_CACHE_F32);
  mla_put_int(step->tensor[MLA_T_SEQ_LENS].data, MLA_I32, 0, -5);
  ck_assert_int_eq(run_step(dev, step, &err), MLA_OK);
  ck_assert_int_eq(the_witness.runs, 1);
  fixed_step_free(step);
  mla_close(dev);
}
END_TEST

/* f64 queries: lse and sink are f64 too. */
START_TEST(f64_takes_f64_lse) {
  mla_device *dev = witness_open();
  mla_error err = mla_error_init();
  fixed_step *step =
      fixed_step_new(MLA_OP_DECODE, MLA_RETURN_LSE, MLA_CACHE_F64);
  step->problem.q_dtype = MLA_F64;
  ck_assert_int_eq(run_step(dev, step, &err), MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.field, "q");
  step->tensor[MLA_T_Q].dtype = MLA_F64;
  ck_assert_int_eq(run_step(dev, step, &err), MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.field, "lse");
  step->tensor[MLA_T_LSE].dtype = MLA_F64;
  ck_assert_int_eq(run_step(dev, step, &err), MLA_OK);
  fixed_step_free(step);
  mla_close(dev);
}
END_TEST

/* SplitMix64, as everywhere. */
static uint64_t draw(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static int64_t nasty(uint64_t *state) {
  static const int64_t values[] = {
      INT64_MIN, INT64_MAX, INT64_MAX / 2,
      INT32_MIN, INT32_MAX, -1,
      0,         1,         2,
      3,         4,         5,
      6,         7,         9,
      12,
  };
  return values[draw(state) % (sizeof values / sizeof values[0])];
}

/* What index tensors say is read: their rows must stay where memory is. */
static void spoil_stride(mla_tensor *t, int axis, int64_t stride) {
  int is_index = t->dtype == MLA_I32 || t->dtype == MLA_I64;
  if (!is_index || stride < t->stride[axis]) t->stride[axis] = stride;
}

static void spoil(fixed_step *step, uint64_t *state) {
  mla_tensor *t = &step->tensor[draw(state) % MLA_T_COUNT];
  int axis = (int)(draw(state) % MLA_MAX_RANK);
  switch (draw(state) % 8) {
    case 0: t->dtype = (int32_t)nasty(state); break;
    case 1: t->rank = (int32_t)nasty(state); break;
    case 2:
    case 3: t->shape[axis] = nasty(state); break;
    case 4: t->data = NULL; break;
    default: spoil_stride(t, axis, nasty(state)); break;
  }
}

/* Whatever the fields hold: an answer, a sentence, nothing written, and (with
   sanitizers) nothing undefined. */
START_TEST(any_nonsense_is_answered) {
  static const struct {
    int op;
    uint64_t flags;
  } of[] = {{MLA_OP_KV_WRITE, 0},
            {MLA_OP_KV_READ, 0},
            {MLA_OP_KV_COPY, 0},
            {MLA_OP_DECODE, MLA_CAUSAL | MLA_RETURN_LSE},
            {MLA_OP_DECODE, MLA_SEPARATE_V},
            {MLA_OP_PREFILL, MLA_CONTEXT},
            {MLA_OP_MERGE, MLA_HAS_SINK}};
  mla_device *dev = witness_open();
  mla_error err = mla_error_init();
  fixed_step *step = fixed_step_new(of[_i].op, of[_i].flags, MLA_CACHE_F32);
  mla_tensor lawful[MLA_T_COUNT + 1];
  uint64_t state = 20261129;
  int refused = 0, passed = 0;
  memcpy(lawful, step->tensor, sizeof lawful);
  for (int i = 0; i < 2000; i++) {
    for (uint64_t k = draw(&state) % 3 + 1; k > 0; k--) spoil(step, &state);
    mla_status st = run_step(dev, step, &err);
    REQUIRE(st == MLA_OK || (st == MLA_INVALID_ARGUMENT && err.message[0]),
            "step %d: %s", i, mla_status_name(st));
    st == MLA_OK ? passed++ : refused++;
    memcpy(step->tensor, lawful, sizeof lawful);
  }
  ck_assert_int_gt(passed, 0);
  ck_assert_int_gt(refused, 100);
  ck_assert(fixed_step_untouched(step));
  fixed_step_free(step);
  mla_close(dev);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("args_check");
  TCase *tests = tcase_create("args_check");
  tcase_add_loop_test(tests, one_fault_is_told, 0, broken_count(args_faults));
  tcase_add_loop_test(tests, lawful_is_passed_on, 0, broken_count(args_lawful));
  tcase_add_loop_test(tests, nothing_to_do_is_done, 0, 7);
  tcase_add_test(tests, device_contents_are_left_alone);
  tcase_add_test(tests, f64_takes_f64_lse);
  tcase_add_loop_test(tests, any_nonsense_is_answered, 0, 7);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
