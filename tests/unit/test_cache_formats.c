/*
 * Scaled caches in the reference: bytes written, values read, and attention
 * over them, against the formats written down anew (cache_direct.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache_direct.h"
#include "cache_swap.h"
#include "check_main.h"
#include "dtype.h"
#include "oracle_fixture.h"
#include "rng.h"
#include "tensor.h"

#define PAGE 4
#define BLOCKS 6
#define MOST 400 /* values or bytes of an entry, at most */
#define ONE 0.37 /* the scale of formats that have one */

static int32_t element(const direct_format *f) {
  int32_t plain = mla_format_dtype(f->format);
  return plain == MLA_DTYPE_NONE ? MLA_U8 : plain;
}

/* A cache with bytes all different, in blocks that are padded. */
static void set_cache(fixture *f, const direct_format *x, int slot,
                      int64_t blocks) {
  int64_t stride = (PAGE * x->entry + 575) / 576 * 576 + 576;
  mla_tensor *t = &f->tensor[slot];
  fixture_tensor(f, slot, MLA_U8, 0, blocks, stride, 0, 0);
  mla_rng rng = mla_rng_named(3, mla_slot_name(slot));
  for (int64_t i = 0; i < blocks * stride; i++)
    ((unsigned char *)t->data)[i] = (unsigned char)mla_rng_bits(rng, i);
  t->rank = 3;
  t->dtype = element(x);
  t->shape[1] = PAGE;
  t->shape[2] = x->entry;
  t->stride[0] = stride;
  t->stride[1] = x->entry;
  t->stride[2] = 1;
}

static void setup(fixture *f, const direct_format *x, mla_op op) {
  fixture_init(f, op);
  f->problem.cache_format = x->format;
  f->problem.kv_lora_rank = (int32_t)x->latent;
  f->problem.qk_rope_head_dim = (int32_t)x->rope;
  f->problem.block_size = PAGE;
  f->problem.k_scale = ONE;
  f->problem.v_scale = 2;
  ck_assert_int_eq(mla_problem_entry(&f->problem), x->entry);
}

static void put_entry(fixture *f, int slot, const direct_format *x, int64_t at,
                      const unsigned char *entry) {
  const mla_tensor *t = &f->tensor[slot];
  unsigned char *block = (unsigned char *)t->data + at / PAGE * t->stride[0];
  for (int64_t e = 0; e < x->entry; e++)
    block[direct_byte(x, PAGE, at % PAGE, e)] = entry[e];
}

static void get_entry(const fixture *f, const direct_format *x, int64_t at,
                      unsigned char *entry) {
  const mla_tensor *t = &f->tensor[MLA_T_CACHE];
  const unsigned char *block =
      (const unsigned char *)t->data + at / PAGE * t->stride[0];
  for (int64_t e = 0; e < x->entry; e++)
    entry[e] = block[direct_byte(x, PAGE, at % PAGE, e)];
}

/* ---------------------------------------------------------------- writing */

#define TOKENS 9
static const int64_t slots[TOKENS] = {9, -1, 0, 23, -5, 14, 7, 8, 22};

/* Tokens of all sizes: rows of zeros, one huge value, ties, beyond range. */
static double token_value(int64_t token, int64_t i) {
  static const double ties[] = {1.0625, 17, -0.001953125, 464, 0.5, -3.5};
  mla_rng rng = mla_rng_named(5, "token");
  double bell = mla_rng_bell(rng, (uint64_t)(token * MOST + i));
  switch (token) {
    case 2: return 0;
    case 3: return i == 5 ? -1e9 : bell;
    case 5: return ties[i % 6] * (i == 0 ? 448 / 464.0 : 1);
    case 6: return i < 64 ? 0 : bell * 1e-30;
    case 7: return bell * 1e5;
    default: return (double)(float)(bell * (1 + (double)(i / 64)));
  }
}

static void set_tokens(fixture *f, const direct_format *x, int32_t type) {
  f->problem.q_dtype = type;
  fixture_tensor(f, MLA_T_KV_C, type, 2, TOKENS, x->latent, 0, 0);
  fixture_tensor(f, MLA_T_K_PE, type, 1, TOKENS, x->rope, 0, 0);
  fixture_tensor(f, MLA_T_SLOT_MAPPING, MLA_I64, 0, TOKENS, 0, 0, 0);
  fixture_set_ints(f, MLA_T_SLOT_MAPPING, slots);
  for (int64_t t = 0; t < TOKENS; t++)
    for (int64_t i = 0; i < x->latent + x->rope; i++) {
      int rope = i >= x->latent;
      int64_t at = rope ? t * x->rope + i - x->latent : t * x->latent + i;
      double value = token_value(t, i);
      /* A tile with an infinity has no meaning. */
      if (type == MLA_F16) value = fmax(fmin(value, 65504), -65504);
      fixture_set(f, rope ? MLA_T_K_PE : MLA_T_KV_C, at, value);
    }
}

static void token_of(const fixture *f, const direct_format *x, int64_t t,
                     double *row) {
  for (int64_t i = 0; i < x->latent; i++)
    row[i] = fixture_get(f, MLA_T_KV_C, t * x->latent + i);
  for (int64_t i = 0; i < x->rope; i++)
    row[x->latent + i] = fixture_get(f, MLA_T_K_PE, t * x->rope + i);
}

START_TEST(writers_leave_these_bytes_and_no_others) {
  static const int32_t types[] = {MLA_F32, MLA_BF16, MLA_F16, MLA_F64};
  const direct_format *x = &direct_formats[_i / 8];
  int pow2 = _i % 2 && x->format == MLA_CACHE_FP8_DS_MLA;
  fixture f;
  setup(&f, x, MLA_OP_KV_WRITE);
  set_cache(&f, x, MLA_T_CACHE, BLOCKS);
  set_tokens(&f, x, types[_i / 2 % 4]);
  if (pow2) f.problem.flags = MLA_SCALE_POW2;
  int64_t bytes = mla_tensor_extent(&f.tensor[MLA_T_CACHE]);
  unsigned char *before = malloc((size_t)bytes), entry[MOST], old[MOST];
  memcpy(before, f.tensor[MLA_T_CACHE].data, (size_t)bytes);
  fixture_run(&f);
  unsigned char *after = malloc((size_t)bytes);
  memcpy(after, f.tensor[MLA_T_CACHE].data, (size_t)bytes);
  memcpy(f.tensor[MLA_T_CACHE].data, before, (size_t)bytes);
  for (int64_t t = 0; t < TOKENS; t++) {
    double row[MOST];
    if (slots[t] < 0) continue;
    token_of(&f, x, t, row);
    get_entry(&f, x, slots[t], old);
    direct_entry(x, row, ONE, pow2, entry);
    ck_assert(memcmp(old, entry, (size_t)x->entry) != 0);
    put_entry(&f, MLA_T_CACHE, x, slots[t], entry);
  }
  for (int64_t i = 0; i < bytes; i++)
    REQUIRE(((unsigned char *)f.tensor[MLA_T_CACHE].data)[i] == after[i],
            "%s byte %lld", mla_format_name(x->format), (long long)i);
  free(before);
  free(after);
  fixture_free(&f);
}
END_TEST

/* An all-zero tile has the least scale: 2^-13 by the rule for powers of two,
   else the smallest normal f32. */
START_TEST(scales_of_zeros_are_the_least) {
  static const float least[] = {0x1p-126f, 0x1p-13f};
  const direct_format *x = &direct_formats[3];
  fixture f;
  float scale;
  setup(&f, x, MLA_OP_KV_WRITE);
  set_cache(&f, x, MLA_T_CACHE, BLOCKS);
  set_tokens(&f, x, MLA_F32);
  f.problem.flags = _i ? MLA_SCALE_POW2 : 0;
  fixture_run(&f);
  memcpy(&scale, (char *)f.tensor[MLA_T_CACHE].data + x->latent + 4, 4);
  ck_assert(scale == least[_i]);
  fixture_free(&f);
}
END_TEST

/* ---------------------------------------------------------------- reading */

/* Random bytes are lawful entries, all codes and odd scales among them. */
static void random_entry(const direct_format *x, int64_t at,
                         unsigned char *entry) {
  mla_rng rng = mla_rng_named(11, "entry");
  double row[MOST];
  for (int64_t i = 0; i < x->latent + x->rope; i++)
    row[i] = mla_rng_bell(rng, (uint64_t)(at * MOST + i)) * (double)(1 + at);
  direct_entry(x, row, ONE, 0, entry);
  int64_t codes = x->format == MLA_CACHE_INT4_TOKEN ? x->latent / 2 : x->latent;
  for (int64_t i = 0; i < codes; i++)
    entry[i] = (unsigned char)mla_rng_bits(rng, (uint64_t)(at * MOST + i));
}

static const int64_t table[] = {4, 1, 5, 3};
static const int64_t ends[] = {0, 5, 11};

static void setup_read(fixture *f, const direct_format *x, int32_t to) {
  setup(f, x, MLA_OP_KV_READ);
  set_cache(f, x, MLA_T_CACHE, BLOCKS);
  f->problem.out_dtype = to;
  fixture_tensor(f, MLA_T_BLOCK_TABLE, MLA_I32, 0, 2, 2, 0, 0);
  fixture_tensor(f, MLA_T_CU_SEQ_LENS, MLA_I32, 0, 3, 0, 0, 0);
  fixture_set_ints(f, MLA_T_BLOCK_TABLE, table);
  fixture_set_ints(f, MLA_T_CU_SEQ_LENS, ends);
  fixture_tensor(f, MLA_T_DST, to, 2, 11, x->latent + x->rope, 0, 0);
  for (int64_t at = 0; at < BLOCKS * PAGE; at++) {
    unsigned char entry[MOST];
    random_entry(x, at, entry);
    put_entry(f, MLA_T_CACHE, x, at, entry);
  }
}

static int64_t slot_of_row(int64_t row) {
  int64_t b = row >= ends[1], j = row - ends[b];
  return table[2 * b + j / PAGE] * PAGE + j % PAGE;
}

START_TEST(readers_give_these_values) {
  static const int32_t types[] = {MLA_F32, MLA_BF16, MLA_F16, MLA_F64};
  const direct_format *x = &direct_formats[_i / 4];
  int64_t width = x->latent + x->rope;
  fixture f;
  setup_read(&f, x, types[_i % 4]);
  fixture_run(&f);
  for (int64_t row = 0; row < 11; row++) {
    unsigned char entry[MOST];
    double values[MOST];
    get_entry(&f, x, slot_of_row(row), entry);
    direct_read(x, entry, ONE, values);
    for (int64_t i = 0; i < width; i++) {
      double got = fixture_get(&f, MLA_T_DST, row * width + i);
      double want = mla_round_to(types[_i % 4], values[i]);
      REQUIRE(got == want || (isnan(got) && isnan(want)), "%s %lld,%lld",
              mla_format_name(x->format), (long long)row, (long long)i);
    }
  }
  fixture_free(&f);
}
END_TEST

START_TEST(copies_move_rows_and_scales) {
  static const int64_t mapping[] = {0, 5, 3, 1};
  const direct_format *x = &direct_formats[_i];
  unsigned char from[MOST], to[MOST];
  fixture f;
  setup(&f, x, MLA_OP_KV_COPY);
  set_cache(&f, x, MLA_T_CACHE, BLOCKS);
  set_cache(&f, x, MLA_T_SRC_CACHE, BLOCKS);
  fixture_tensor(&f, MLA_T_BLOCK_MAPPING, MLA_I64, 0, 2, 2, 0, 0);
  fixture_set_ints(&f, MLA_T_BLOCK_MAPPING, mapping);
  fixture_run(&f);
  for (int64_t at = 0; at < 2 * PAGE; at++) {
    int64_t m = at / PAGE;
    mla_tensor keep = f.tensor[MLA_T_CACHE];
    get_entry(&f, x, mapping[2 * m + 1] * PAGE + at % PAGE, to);
    f.tensor[MLA_T_CACHE] = f.tensor[MLA_T_SRC_CACHE];
    get_entry(&f, x, mapping[2 * m] * PAGE + at % PAGE, from);
    f.tensor[MLA_T_CACHE] = keep;
    ck_assert_mem_eq(from, to, (size_t)x->entry);
  }
  fixture_free(&f);
}
END_TEST

/* Bytes of an entry whose number ends at `e`, turned: 4 of an f32 scale, 2 of
   a bf16 value. Codes and e8m0 scales are bytes. */
static int64_t turned(const direct_format *x, int64_t e) {
  int64_t codes = x->latent + (x->format < MLA_CACHE_FP8_TOKEN ? 0 : x->rope);
  if (x->format == MLA_CACHE_INT4_TOKEN) codes = (codes + 1) / 2;
  int64_t scales = x->format == MLA_CACHE_FP8_DS_MLA ? x->latent / 32 : 4;
  if (x->format == MLA_CACHE_FP8_584) scales = 0;
  int64_t rope = x->format < MLA_CACHE_FP8_TOKEN ? 2 * x->rope : 0;
  if (e >= codes && e < codes + scales) return e + 3 - 2 * ((e - codes) % 4);
  if (e >= codes + scales && e < codes + scales + rope)
    return e + 1 - 2 * ((e - codes - scales) % 2);
  return e;
}

START_TEST(other_hosts_have_the_bytes_of_numbers_turned) {
  const direct_format *x = &direct_formats[_i];
  unsigned char before[MOST], after[MOST];
  fixture f;
  setup(&f, x, MLA_OP_KV_COPY);
  set_cache(&f, x, MLA_T_CACHE, BLOCKS);
  const mla_tensor *t = &f.tensor[MLA_T_CACHE];
  int64_t bytes = mla_tensor_extent(t);
  unsigned char *copy = malloc((size_t)bytes);
  memcpy(copy, t->data, (size_t)bytes);
  get_entry(&f, x, 7, before);
  mla_cache_swap(&f.problem, MLA_T_CACHE, t, t->data);
  get_entry(&f, x, 7, after);
  for (int64_t e = 0; e < x->entry; e++) {
    int64_t from = t->dtype == MLA_U8 ? turned(x, e) : e;
    REQUIRE(after[e] == before[from], "%s byte %lld",
            mla_format_name(x->format), (long long)e);
  }
  mla_cache_swap(&f.problem, MLA_T_CACHE, t, t->data);
  ck_assert_mem_eq(copy, t->data, (size_t)bytes);
  free(copy);
  fixture_free(&f);
}
END_TEST

/* -------------------------------------------------------------- attention */

static const int64_t seq[] = {5, 0, 9}, queries[] = {1, 2, 3};
static const requests ragged = {3, seq, queries};

/* The compute type's rounding under each way to dequantise. */
static double operand(double code, double scale, int32_t type, int mode) {
  switch (mode) {
    case MLA_DEQUANT_ROUND_PRODUCT:
      return mla_round_to(type, (double)(float)(code * scale));
    case MLA_DEQUANT_ROUND_SCALE:
      return mla_round_to(type, code * mla_round_to(type, scale));
    case MLA_DEQUANT_F32: return (double)(float)(code * scale);
    default: return code * scale;
  }
}

/* Codes are e4m3 with k_scale ONE: what each way makes of them. */
START_TEST(each_way_to_dequantise_is_emulated) {
  fixture f, plain;
  mla_expected *x[2] = {NULL, NULL};
  mla_numerics numerics = {0};
  setup(&f, &direct_formats[0], MLA_OP_DECODE);
  f.problem.num_heads = 2;
  f.problem.q_dtype = MLA_BF16;
  f.problem.out_dtype = MLA_F32;
  fixture_decode(&f, ragged, 0);
  plain = f;
  plain.args.tensor = plain.tensor;
  plain.memory[MLA_T_CACHE] = NULL;
  plain.problem.cache_format = MLA_CACHE_F64;
  plain.problem.q_dtype = MLA_F32;
  const mla_tensor *cache = &f.tensor[MLA_T_CACHE];
  fixture_tensor(&plain, MLA_T_CACHE, MLA_F64, 0, cache->shape[0],
                 cache->shape[1], cache->shape[2], 0);
  for (int64_t i = 0; i < fixture_count(&f, MLA_T_CACHE); i++)
    fixture_set(&plain, MLA_T_CACHE, i,
                operand(fixture_get(&f, MLA_T_CACHE, i), (double)(float)ONE,
                        MLA_BF16, _i));
  numerics.dequant = _i;
  ck_assert_int_eq(
      mla_expect(&f.problem, &f.args, NULL, &numerics, &x[0], NULL), MLA_OK);
  ck_assert_int_eq(
      mla_expect(&plain.problem, &plain.args, NULL, NULL, &x[1], NULL), MLA_OK);
  for (int output = 0; output < 2; output++) {
    mla_expected_view a = mla_expected_at(x[0], output);
    mla_expected_view b = mla_expected_at(x[1], output);
    ck_assert_mem_eq(a.value, b.value,
                     (size_t)(a.rows * a.width) * sizeof *a.value);
  }
  for (int i = 0; i < 2; i++) mla_expected_free(x[i]);
  free(plain.memory[MLA_T_CACHE]);
  fixture_free(&f);
}
END_TEST

/* A scaled cache, entry by entry over the one a fixture made. */
static void scaled_cache(fixture *f, const direct_format *x,
                         const fixture *plain) {
  int64_t blocks = plain->tensor[MLA_T_CACHE].shape[0];
  int64_t width = x->latent + x->rope;
  set_cache(f, x, MLA_T_CACHE, blocks);
  for (int64_t at = 0; at < blocks * PAGE; at++) {
    unsigned char entry[MOST];
    double row[MOST];
    for (int64_t i = 0; i < width; i++)
      row[i] = fixture_get(plain, MLA_T_CACHE, at * width + i);
    if (isnan(row[0])) continue;
    direct_entry(x, row, ONE, 0, entry);
    put_entry(f, MLA_T_CACHE, x, at, entry);
    direct_read(x, entry, ONE, row);
    for (int64_t i = 0; i < width; i++)
      fixture_set((fixture *)plain, MLA_T_CACHE, at * width + i,
                  mla_round_to(f->problem.q_dtype, row[i]));
  }
}

/* Attention over a scaled cache is that over the plain cache of its values. */
START_TEST(attention_reads_what_readers_read) {
  const direct_format *x = &direct_formats[_i % DIRECT_FORMATS];
  mla_op op = _i < DIRECT_FORMATS ? MLA_OP_DECODE : MLA_OP_PREFILL;
  static const int64_t longer[] = {5, 2, 9};
  requests r = {3, op == MLA_OP_DECODE ? seq : longer, queries};
  fixture f, plain;
  for (int i = 0; i < 2; i++) {
    fixture *y = i ? &f : &plain;
    setup(y, x, op);
    y->problem.num_heads = 2;
    y->problem.qk_nope_head_dim = 6;
    y->problem.v_head_dim = 5;
    y->problem.flags = MLA_CAUSAL | (op == MLA_OP_PREFILL ? MLA_CONTEXT : 0);
    y->problem.cache_format = MLA_CACHE_F64;
    y->problem.q_dtype = MLA_F32;
    if (op == MLA_OP_DECODE)
      fixture_decode(y, r, 0);
    else
      fixture_prefill(y, r, 0);
  }
  f.problem.cache_format = x->format;
  scaled_cache(&f, x, &plain);
  fixture_run(&f);
  fixture_run(&plain);
  for (int slot = MLA_T_OUT; slot <= MLA_T_LSE; slot++) {
    int64_t bytes = mla_tensor_extent(&f.tensor[slot]);
    ck_assert_mem_eq(f.tensor[slot].data, plain.tensor[slot].data,
                     (size_t)bytes);
  }
  ck_assert(isfinite(fixture_get(&f, MLA_T_OUT, 0)));
  fixture_free(&f);
  fixture_free(&plain);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cache_formats");
  TCase *tests = tcase_create("formats");
  tcase_add_loop_test(tests, writers_leave_these_bytes_and_no_others, 0,
                      DIRECT_FORMATS * 8);
  tcase_add_loop_test(tests, scales_of_zeros_are_the_least, 0, 2);
  tcase_add_loop_test(tests, readers_give_these_values, 0, DIRECT_FORMATS * 4);
  tcase_add_loop_test(tests, copies_move_rows_and_scales, 0, DIRECT_FORMATS);
  tcase_add_loop_test(tests, other_hosts_have_the_bytes_of_numbers_turned, 0,
                      DIRECT_FORMATS);
  tcase_add_loop_test(tests, each_way_to_dequantise_is_emulated, 0, 4);
  tcase_add_loop_test(tests, attention_reads_what_readers_read, 0,
                      2 * DIRECT_FORMATS);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
