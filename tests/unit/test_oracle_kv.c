/*
 * Writing, reading and copying caches in the reference, to the byte.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dtype.h"
#include "oracle_fixture.h"
#include "tensor.h"

#define LATENT 5
#define ROPE 3
#define ENTRY (LATENT + ROPE)
#define BLOCK 4
#define BLOCKS 6

static const struct {
  int32_t from, format, to;
} types[] = {
    {MLA_F64, MLA_CACHE_F64, MLA_F64},    {MLA_F32, MLA_CACHE_F32, MLA_F32},
    {MLA_BF16, MLA_CACHE_BF16, MLA_BF16}, {MLA_F16, MLA_CACHE_F16, MLA_F16},
    {MLA_F32, MLA_CACHE_BF16, MLA_F32},   {MLA_BF16, MLA_CACHE_F16, MLA_BF16}};
#define TYPES ((int)(sizeof types / sizeof types[0]))

static void setup(fixture *f, mla_op op, int type, int64_t pad) {
  fixture_init(f, op);
  f->problem.q_dtype = types[type].from;
  f->problem.cache_format = types[type].format;
  f->problem.out_dtype = types[type].to;
  f->problem.kv_lora_rank = LATENT;
  f->problem.qk_rope_head_dim = ROPE;
  f->problem.block_size = BLOCK;
  int32_t cache = mla_format_dtype(types[type].format);
  fixture_tensor(f, MLA_T_CACHE, cache, pad, BLOCKS, BLOCK, ENTRY, 0);
}

/* Bytes of a tensor, gaps included; to be freed. */
static unsigned char *bytes_of(const fixture *f, int slot, int64_t *count) {
  *count = mla_tensor_extent(&f->tensor[slot]);
  unsigned char *copy = malloc((size_t)*count + 1);
  memcpy(copy, f->tensor[slot].data, (size_t)*count);
  return copy;
}

START_TEST(tokens_land_in_their_slots_and_nowhere_else) {
  static const int64_t slots[] = {9, -1, 0, 23, -5, 14};
  fixture f;
  setup(&f, MLA_OP_KV_WRITE, _i, _i % 3);
  fixture_tensor(&f, MLA_T_KV_C, types[_i].from, 2, 8, LATENT, 0, 0);
  fixture_tensor(&f, MLA_T_K_PE, types[_i].from, 1, 8, ROPE, 0, 0);
  fixture_tensor(&f, MLA_T_SLOT_MAPPING, MLA_I64, 0, 6, 0, 0, 0);
  fixture_bell(&f, MLA_T_KV_C, 1);
  fixture_bell(&f, MLA_T_K_PE, 1);
  fixture_set_ints(&f, MLA_T_SLOT_MAPPING, slots);
  int64_t count;
  unsigned char *before = bytes_of(&f, MLA_T_CACHE, &count);
  fixture_run(&f);
  for (int64_t i = 0; i < 6; i++)
    for (int64_t e = 0; e < ENTRY && slots[i] >= 0; e++) {
      double x = e < LATENT
                     ? fixture_get(&f, MLA_T_KV_C, i * LATENT + e)
                     : fixture_get(&f, MLA_T_K_PE, i * ROPE + e - LATENT);
      int64_t at = slots[i] * ENTRY + e;
      ck_assert_double_eq(fixture_get(&f, MLA_T_CACHE, at),
                          mla_round_to(f.tensor[MLA_T_CACHE].dtype, x));
      fixture_set(&f, MLA_T_CACHE, at, NAN); /* as it was */
    }
  ck_assert_mem_eq(before, f.tensor[MLA_T_CACHE].data, (size_t)count);
  free(before);
  fixture_free(&f);
}
END_TEST

START_TEST(of_two_tokens_in_one_slot_the_later_stays) {
  static const int64_t slots[] = {3, 3};
  fixture f;
  setup(&f, MLA_OP_KV_WRITE, 0, 0);
  fixture_tensor(&f, MLA_T_KV_C, MLA_F64, 0, 2, LATENT, 0, 0);
  fixture_tensor(&f, MLA_T_K_PE, MLA_F64, 0, 2, ROPE, 0, 0);
  fixture_tensor(&f, MLA_T_SLOT_MAPPING, MLA_I64, 0, 2, 0, 0, 0);
  fixture_bell(&f, MLA_T_KV_C, 1);
  fixture_bell(&f, MLA_T_K_PE, 1);
  fixture_set_ints(&f, MLA_T_SLOT_MAPPING, slots);
  fixture_run(&f);
  ck_assert_double_eq(fixture_get(&f, MLA_T_CACHE, 3 * ENTRY),
                      fixture_get(&f, MLA_T_KV_C, LATENT));
  fixture_free(&f);
}
END_TEST

/* Three requests: one begins inside a block, one has nothing to gather. */
static void setup_read(fixture *f, int type, int with_starts) {
  static const int64_t table[] = {4, 1, -9, 1000, -1, -1, 5, 3, 0};
  static const int64_t ends[] = {0, 5, 5, 11};
  static const int64_t starts[] = {2, 0, 5};
  setup(f, MLA_OP_KV_READ, type, 1);
  fixture_bell(f, MLA_T_CACHE, 1);
  fixture_tensor(f, MLA_T_BLOCK_TABLE, MLA_I32, 0, 3, 3, 0, 0);
  fixture_tensor(f, MLA_T_CU_SEQ_LENS, MLA_I32, 0, 4, 0, 0, 0);
  fixture_set_ints(f, MLA_T_BLOCK_TABLE, table);
  fixture_set_ints(f, MLA_T_CU_SEQ_LENS, ends);
  if (with_starts) {
    fixture_tensor(f, MLA_T_SEQ_STARTS, MLA_I32, 0, 3, 0, 0, 0);
    fixture_set_ints(f, MLA_T_SEQ_STARTS, starts);
  }
  fixture_tensor(f, MLA_T_DST, types[type].to, 2, 13, ENTRY, 0, 0);
}

START_TEST(rows_are_gathered_by_the_table) {
  static const int64_t slots[2][11] = {
      {16, 17, 18, 19, 4, 20, 21, 22, 23, 12, 13},
      {18, 19, 4, 5, 6, 13, 14, 15, 0, 1, 2}};
  fixture f;
  setup_read(&f, _i / 2, _i % 2);
  fixture_run(&f);
  for (int64_t row = 0; row < 13; row++)
    for (int64_t e = 0; e < ENTRY; e++) {
      double x = fixture_get(&f, MLA_T_DST, row * ENTRY + e);
      if (row >= 11) {
        ck_assert(isnan(x));
        continue;
      }
      int64_t at = slots[_i % 2][row] * ENTRY + e;
      ck_assert_double_eq(
          x, mla_round_to(types[_i / 2].to, fixture_get(&f, MLA_T_CACHE, at)));
    }
  fixture_free(&f);
}
END_TEST

static void setup_copy(fixture *f, int type, int64_t count,
                       const int64_t *mapping) {
  setup(f, MLA_OP_KV_COPY, type, 2);
  fixture_bell(f, MLA_T_CACHE, 1);
  fixture_tensor(f, MLA_T_BLOCK_MAPPING, MLA_I64, 0, count, 2, 0, 0);
  fixture_set_ints(f, MLA_T_BLOCK_MAPPING, mapping);
}

START_TEST(blocks_are_copied_between_caches) {
  static const int64_t mapping[] = {0, 5, 7, 2, 7, 3};
  fixture f;
  setup_copy(&f, _i, 3, mapping);
  int32_t dtype = f.tensor[MLA_T_CACHE].dtype;
  fixture_tensor(&f, MLA_T_SRC_CACHE, dtype, 0, 8, BLOCK, ENTRY, 0);
  fixture_bell(&f, MLA_T_SRC_CACHE, 1);
  double *before = fixture_values(&f, MLA_T_CACHE);
  fixture_run(&f);
  for (int64_t i = 0; i < BLOCKS * BLOCK * ENTRY; i++) {
    int64_t block = i / (BLOCK * ENTRY), from = -1;
    for (int m = 0; m < 3; m++)
      if (mapping[2 * m + 1] == block) from = mapping[2 * m];
    double want = from < 0 ? before[i]
                           : fixture_get(&f, MLA_T_SRC_CACHE,
                                         i + (from - block) * BLOCK * ENTRY);
    ck_assert_double_eq(fixture_get(&f, MLA_T_CACHE, i), want);
  }
  free(before);
  fixture_free(&f);
}
END_TEST

/* 1 -> 2, then 2 -> 4: within one cache the second copies the first's. */
START_TEST(blocks_are_copied_within_a_cache_in_order) {
  static const int64_t mapping[] = {1, 2, 2, 4, 3, 3};
  fixture f;
  setup_copy(&f, 2, 3, mapping);
  f.tensor[MLA_T_SRC_CACHE] = f.tensor[MLA_T_CACHE];
  double *before = fixture_values(&f, MLA_T_CACHE);
  fixture_run(&f);
  for (int64_t i = 0; i < BLOCKS * BLOCK * ENTRY; i++) {
    int64_t block = i / (BLOCK * ENTRY);
    int64_t from = block == 2 || block == 4 ? 1 : block;
    ck_assert_double_eq(fixture_get(&f, MLA_T_CACHE, i),
                        before[i + (from - block) * BLOCK * ENTRY]);
  }
  free(before);
  fixture_free(&f);
}
END_TEST

/* What the bytes should be, told beforehand, without touching them. */
static void check_exact(fixture *f, int slot) {
  int64_t count;
  unsigned char *before = bytes_of(f, slot, &count);
  mla_expected *x = fixture_expect(f, NULL);
  ck_assert_int_eq(mla_expected_count(x), 1);
  mla_expected_view view = mla_expected_at(x, 0);
  ck_assert_int_eq(view.slot, slot);
  ck_assert_int_eq(view.byte_count, count);
  ck_assert_mem_eq(before, f->tensor[slot].data, (size_t)count);
  ck_assert(memcmp(before, view.bytes, (size_t)count) != 0);
  fixture_run(f);
  ck_assert_mem_eq(view.bytes, f->tensor[slot].data, (size_t)count);
  mla_expected_free(x);
  free(before);
}

START_TEST(expected_bytes_are_those_of_a_run) {
  static const int64_t mapping[] = {1, 2, 2, 4};
  fixture f;
  setup_read(&f, _i, 1);
  check_exact(&f, MLA_T_DST);
  fixture_free(&f);
  setup_copy(&f, _i, 2, mapping);
  mla_tensor *src = &f.tensor[MLA_T_SRC_CACHE];
  *src = f.tensor[MLA_T_CACHE];
  if (_i % 2) { /* the source begins one block later in the same memory */
    src->data =
        (char *)src->data + src->stride[0] * mla_dtype_bits(src->dtype) / 8;
    src->shape[0]--;
  }
  check_exact(&f, MLA_T_CACHE);
  fixture_free(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_kv");
  TCase *tests = tcase_create("kv");
  tcase_add_loop_test(tests, tokens_land_in_their_slots_and_nowhere_else, 0,
                      TYPES);
  tcase_add_test(tests, of_two_tokens_in_one_slot_the_later_stays);
  tcase_add_loop_test(tests, rows_are_gathered_by_the_table, 0, 2 * TYPES);
  tcase_add_loop_test(tests, blocks_are_copied_between_caches, 0, TYPES);
  tcase_add_test(tests, blocks_are_copied_within_a_cache_in_order);
  tcase_add_loop_test(tests, expected_bytes_are_those_of_a_run, 0, TYPES);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
