/*
 * oracle_digest - one number for all that the reference computes.
 *
 *   oracle_digest       prints the digest over a fixed set of cases
 *   oracle_digest -v    prints one for every group of cases before it
 *
 * Every compiler, option and machine must print what expected.txt holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "digest_group.h"
#include "dtype.h"
#include "oracle.h"

static uint64_t state, total;
static int verbose;

void digest_begin(void) {
  state = mla_digest_start();
}

void digest_bits(uint64_t bits) {
  state = mla_digest_u64(state, bits);
}

void digest_double(double value) {
  state = mla_digest_f64(state, value);
}

void digest_tensor(const mla_tensor *t) {
  int64_t count = t->rank ? t->shape[0] * t->stride[0] : 0;
  int whole = t->dtype == MLA_I32 || t->dtype == MLA_I64 || t->dtype == MLA_U8;
  for (int64_t i = 0; i < count; i++) {
    if (whole)
      digest_bits((uint64_t)mla_get_int(t->data, t->dtype, i));
    else
      digest_double(mla_get(t->data, t->dtype, i));
  }
}

static void print(const char *name, uint64_t digest) {
  printf("%-20s %08lx%08lx\n", name, (unsigned long)(digest >> 32),
         (unsigned long)(digest & 0xFFFFFFFFu));
}

uint64_t digest_end(const char *name) {
  total = mla_digest_u64(total, state);
  if (verbose) print(name, state);
  return state;
}

void digest_same(const char *what, uint64_t a, uint64_t b) {
  if (a == b) return;
  fprintf(stderr, "oracle_digest: %s: the bits differ\n", what);
  exit(1);
}

static void must(mla_status status, const mla_error *err) {
  if (status == MLA_OK) return;
  fprintf(stderr, "oracle_digest: %s: %s\n", mla_status_name(status),
          err->message);
  exit(1);
}

void digest_run(fixed_case *c) {
  mla_args args = fixed_case_args(c);
  mla_error err = mla_error_init();
  const mla_op_spec *op = mla_op_spec_of(c->problem.op);
  must(mla_oracle_run(&c->problem, &c->limits, &args, &err), &err);
  for (int32_t i = 0; i < op->slot_count; i++) {
    const mla_slot_spec *slot = &op->slots[i];
    if (slot->role != MLA_ROLE_IN && mla_slot_applies(slot, &c->problem))
      digest_tensor(&c->tensor[slot->slot]);
  }
}

static void budgets(const mla_expected *expected, int32_t i, int64_t count) {
  static const mla_numerics numerics[] = {
      {0x1p-24, 0x1p-8, 0x1p-8, 0, 0, 0, 0, 0, 0},
      {0x1p-24, 0x1p-11, 0x1p-11, 0, 0, 0, 1, 0, 0},
      {0x1p-24, 0x1p-24, 0x1p-24, 0, 0, 1, 0, 0, 0},
      {0x1p-53, 0x1p-53, 0x1p-53, 0, 0, 0, 0, 0, 0},
  };
  double *budget = malloc((size_t)count * sizeof *budget + 1);
  if (!budget) exit(3);
  for (size_t k = 0; k < sizeof numerics / sizeof *numerics; k++) {
    mla_expected_budget(expected, i, &numerics[k], budget);
    for (int64_t e = 0; e < count; e++) digest_double(budget[e]);
  }
  free(budget);
}

void digest_expect(const fixed_case *c, const mla_numerics *emulate) {
  mla_args args = fixed_case_args(c);
  mla_error err = mla_error_init();
  mla_expected *expected = NULL;
  must(mla_expect(&c->problem, &args, NULL, emulate, &expected, &err), &err);
  for (int32_t i = 0; i < mla_expected_count(expected); i++) {
    mla_expected_view view = mla_expected_at(expected, i);
    int64_t count = view.value ? view.rows * view.width : 0;
    for (int64_t e = 0; e < count; e++) digest_double(view.value[e]);
    if (count) budgets(expected, i, count);
    digest_bits((uint64_t)view.byte_count);
  }
  mla_expected_free(expected);
}

int main(int argc, char **argv) {
  verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  if (argc > 2 || (argc == 2 && !verbose)) {
    fprintf(stderr, "usage: oracle_digest [-v]\n");
    return 2;
  }
  total = mla_digest_start();
  digest_dmath();
  digest_dtypes();
  digest_decode();
  digest_prefill();
  digest_merge();
  digest_products();
  digest_cache();
  digest_layer();
  digest_formats();
  digest_sparse();
  digest_steps();
  print("total", total);
  return 0;
}
