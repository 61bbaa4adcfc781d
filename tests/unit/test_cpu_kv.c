/* kv_write, kv_read, kv_copy on "cpu": to the byte. */
#include <stdio.h>

#include "check_main.h"
#include "cpu_convert.h"
#include "dtype.h"
#include "tensor.h"
#include "test_cpu_fixture.h"

static const int32_t dtypes[] = {MLA_F32, MLA_F16, MLA_BF16};
static const int32_t formats[] = {MLA_CACHE_F32, MLA_CACHE_F16, MLA_CACHE_BF16};
static const int32_t pages[] = {1, 2, 16, 53, 64};

static cpu_case case_of(mla_op op, int type, int format, int32_t page) {
  cpu_case c = cpu_case_init(op);
  c.problem.q_dtype = c.problem.out_dtype = dtypes[type];
  c.problem.cache_format = formats[format];
  c.problem.kv_lora_rank = 300;
  c.problem.qk_rope_head_dim = 17;
  c.problem.block_size = page;
  c.pad = page % 3;
  c.free_dim[MLA_S_NB] = c.limits.num_blocks = 130 / page + 2;
  return c;
}

static void judge(cpu_case *c, const char *what) {
  char name[96];
  snprintf(name, sizeof name, "%s, q %s, cache %s, page %d", what,
           mla_dtype_name(c->problem.q_dtype),
           mla_format_name(c->problem.cache_format), c->problem.block_size);
  ck_assert(cpu_case_judge(c, name) == 0.0);
  cpu_case_free(c);
}

START_TEST(write) {
  for (int p = 0; p < 5; p++) {
    cpu_case c = case_of(MLA_OP_KV_WRITE, _i / 3, _i % 3, pages[p]);
    c.free_dim[MLA_S_N] = c.limits.tokens = 70;
    c.free_dim[MLA_S_SLOTS] = 67; /* three rows of padding */
    cpu_case_build(&c);
    int64_t *slot = c.tensor[MLA_T_SLOT_MAPPING].data;
    for (int64_t t = 0; t < 67; t++) slot[t] = t % 9 == 4 ? -1 : t * 37 % 130;
    slot[66] = slot[0]; /* twice: the later stays */
    judge(&c, "kv_write");
  }
}
END_TEST

/* More than goes through the caches; two tokens of one slot keep their order
   there too. */
START_TEST(write_far) {
  cpu_case c = case_of(MLA_OP_KV_WRITE, 0, 2, 64);
  c.problem.kv_lora_rank = 512;
  c.problem.qk_rope_head_dim = 64;
  int64_t tokens = MLA_CPU_FAR / (576 * 2) + 40;
  c.free_dim[MLA_S_NB] = c.limits.num_blocks = tokens / 64 + 1;
  c.free_dim[MLA_S_N] = c.free_dim[MLA_S_SLOTS] = c.limits.tokens = tokens;
  cpu_case_build(&c);
  int64_t *slot = c.tensor[MLA_T_SLOT_MAPPING].data;
  for (int64_t t = 0; t < tokens; t++) slot[t] = t % 5 ? t : t / 2;
  judge(&c, "kv_write, far");
}
END_TEST

START_TEST(read) {
  for (int p = 0; p < 5; p++) {
    static const int32_t ends[] = {0, 40, 40, 41, 120};
    static const int32_t starts[] = {3, 0, 129, 50};
    cpu_case c = case_of(MLA_OP_KV_READ, _i / 3, _i % 3, pages[p]);
    int64_t width = 130 / pages[p] + 1;
    c.free_dim[MLA_S_B] = c.limits.requests = 4;
    c.free_dim[MLA_S_B1] = 5;
    c.free_dim[MLA_S_W] = c.limits.table_width = width;
    c.free_dim[MLA_S_GATHERED] = c.limits.tokens = 125;
    c.limits.max_seq_len = 130;
    cpu_case_build(&c);
    const mla_tensor *cache = &c.tensor[MLA_T_CACHE];
    int64_t size = cpu_tensor_bytes(cache) / (mla_dtype_bits(cache->dtype) / 8);
    for (int64_t i = 0; i < size; i++)
      mla_put(cache->data, cache->dtype, i, (double)(i % 2039) - 1000.3);
    int32_t seq_starts[4];
    for (int b = 0; b < 4; b++) seq_starts[b] = starts[b];
    mla_tensor *from = &c.tensor[MLA_T_SEQ_STARTS];
    *from = mla_tensor_dense(NULL, MLA_I32, 1, (const int64_t[]){4});
    if (p % 2) from->data = seq_starts;
    for (int b = 0; b < 5; b++)
      ((int32_t *)c.tensor[MLA_T_CU_SEQ_LENS].data)[b] = ends[b];
    const mla_tensor *table = &c.tensor[MLA_T_BLOCK_TABLE];
    for (int64_t b = 0; b < 4; b++)
      for (int64_t w = 0; w < width; w++)
        mla_put_int(table->data, MLA_I32, mla_at2(table, b, w),
                    (w * 7 + b) % c.free_dim[MLA_S_NB]);
    char name[96];
    snprintf(name, sizeof name, "kv_read, dst %s, cache %s, page %d",
             mla_dtype_name(c.problem.out_dtype),
             mla_format_name(c.problem.cache_format), pages[p]);
    ck_assert(cpu_case_judge(&c, name) == 0.0);
    from->data = NULL;
    cpu_case_free(&c);
  }
}
END_TEST

START_TEST(read_far) {
  cpu_case c = case_of(MLA_OP_KV_READ, 0, 2, 64);
  int64_t tokens = MLA_CPU_FAR / (317 * 4) + 40;
  c.free_dim[MLA_S_B] = c.limits.requests = 1;
  c.free_dim[MLA_S_B1] = 2;
  c.free_dim[MLA_S_W] = c.limits.table_width = tokens / 64 + 1;
  c.free_dim[MLA_S_GATHERED] = c.limits.tokens = tokens;
  c.limits.max_seq_len = tokens;
  cpu_case_build(&c);
  const mla_tensor *cache = &c.tensor[MLA_T_CACHE];
  for (int64_t i = 0; i < cpu_tensor_bytes(cache) / 2; i++)
    mla_put(cache->data, cache->dtype, i, (double)(i % 2039) - 1000.3);
  mla_tensor *from = &c.tensor[MLA_T_SEQ_STARTS];
  *from = mla_tensor_dense(NULL, MLA_I32, 1, (const int64_t[]){1});
  int32_t *ends = c.tensor[MLA_T_CU_SEQ_LENS].data;
  int32_t *table = c.tensor[MLA_T_BLOCK_TABLE].data;
  ends[0] = 0;
  ends[1] = (int32_t)tokens;
  for (int32_t w = 0; w < tokens / 64 + 1; w++)
    table[w] = w % (int32_t)c.free_dim[MLA_S_NB];
  judge(&c, "kv_read, far");
}
END_TEST

START_TEST(copy) {
  for (int p = 0; p < 5; p++) {
    cpu_case c = case_of(MLA_OP_KV_COPY, 0, _i, pages[p]);
    c.free_dim[MLA_S_NBS] = c.free_dim[MLA_S_NB];
    c.free_dim[MLA_S_COPIES] = c.limits.tokens = 3;
    cpu_case_build(&c);
    const mla_tensor *from = &c.tensor[MLA_T_SRC_CACHE];
    int64_t size = cpu_tensor_bytes(from) / (mla_dtype_bits(from->dtype) / 8);
    for (int64_t i = 0; i < size; i++)
      mla_put(from->data, from->dtype, i, (double)(i % 2039) - 1000.3);
    const mla_tensor *pairs = &c.tensor[MLA_T_BLOCK_MAPPING];
    static const int64_t pair[3][2] = {{0, 2}, {2, 0}, {1, 2}};
    for (int64_t i = 0; i < 3; i++)
      for (int64_t k = 0; k < 2; k++)
        mla_put_int(pairs->data, MLA_I64, mla_at2(pairs, i, k), pair[i][k]);
    judge(&c, "kv_copy");
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu kv");
  TCase *t = tcase_create("kv");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, write, 0, 9);
  tcase_add_test(t, write_far);
  tcase_add_loop_test(t, read, 0, 9);
  tcase_add_test(t, read_far);
  tcase_add_loop_test(t, copy, 0, 3);
  suite_add_tcase(s, t);
  return check_main(s);
}
