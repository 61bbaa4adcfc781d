/*
 * test_layer.c - the layer on the reference: equal to plain loops by every
 * route, and refusing what it must.
 */
#include "layer.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dmath.h"
#include "layer_direct.h"
#include "mla/mla.h"
#include "tensor.h"
#include "truth_routes.h"

enum { T = DIRECT_T, HIDDEN = DIRECT_HIDDEN, L = DIRECT_L, H = DIRECT_H };

static mla_device *open_ref(void) {
  mla_device *dev;
  mla_error err = mla_error_init();
  ck_assert_msg(mla_open("ref", 0, NULL, &dev, &err) == MLA_OK, "%s",
                err.message);
  return dev;
}

static mla_tensor real(int64_t rows, int64_t heads, int64_t width) {
  const int64_t shape[3] = {rows, heads, width}, flat[2] = {rows, width};
  double *data = calloc((size_t)(rows * heads * width), sizeof *data);
  ck_assert_ptr_nonnull(data);
  return heads > 1 ? mla_tensor_dense(data, MLA_F64, 3, shape)
                   : mla_tensor_dense(data, MLA_F64, 2, flat);
}

/* Four layers that together use every scale and both pairings. */
static mla_layer_config variant(int i) {
  mla_layer_config c = mla_layer_config_init();
  c.q_lora_rank = i % 2;
  c.rope.half_split = i / 2;
  c.rope.theta = 100;
  c.kv_norm_eps = 0.25;
  c.q_norm_eps = 0.5;
  if (i == 1 || i == 2) {
    c.mla_scale_q_lora = 1.75;
    c.mla_scale_kv_lora = 0.625;
    c.rope.llama_4_beta = 0.5;
    c.rope.original_max_position = 4;
  }
  if (i == 3) c.softmax_scale = 0.8;
  return c;
}

static double worst(const double *a, const double *b, int64_t n) {
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < n; i++) {
    double x = mla_fabs(a[i] - b[i]);
    if (!(x <= difference)) difference = x;
    if (mla_fabs(b[i]) > largest) largest = mla_fabs(b[i]);
  }
  return difference / largest;
}

typedef struct fixture {
  direct_layer direct;
  mla_device *dev;
  mla_layer *layer;
  mla_sequence sequence;
  mla_tensor attention, out;
  double before[T * H * DIRECT_V], expected[T * HIDDEN], kv_c[T * L];
} fixture;

static void make(fixture *f, const mla_layer_config *config) {
  mla_error err = mla_error_init();
  direct_layer_make(&f->direct, config);
  f->direct.first_position = 2;
  f->dev = open_ref();
  mla_status status = mla_layer_create(
      f->dev, &f->direct.config, &f->direct.weights, MLA_F64, &f->layer, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  status =
      mla_sequence_project(&f->sequence, f->layer, &f->direct.hidden, 2, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  f->attention = real(T, H, DIRECT_V);
  f->out = real(T, 1, HIDDEN);
  direct_layer_run(&f->direct, f->before, f->expected, f->kv_c);
}

static void unmake(fixture *f) {
  mla_sequence_free(&f->sequence);
  mla_layer_free(f->layer);
  mla_close(f->dev);
  direct_layer_free(&f->direct);
  free(f->attention.data);
  free(f->out.data);
}

static void check_output(fixture *f, mla_status status, const mla_error *err) {
  ck_assert_msg(status == MLA_OK, "%s", err->message);
  ck_assert_int_eq(mla_layer_output(f->layer, &f->attention, &f->out, NULL),
                   MLA_OK);
  double error = worst(f->out.data, f->expected, T * HIDDEN);
  ck_assert_msg(error <= 1e-12, "output is off by %g", error);
  memset(f->attention.data, 0xFF, T * H * DIRECT_V * sizeof(double));
}

/* 1e-12: four thousand roundings of binary64, where a layer of this size has
   some hundreds one after another. */
START_TEST(every_route_equals_plain_loops) {
  static const int32_t pages[] = {1, 2, 16}, splits[] = {1, 2, 7, 64};
  mla_layer_config config = variant(_i);
  mla_error err = mla_error_init();
  fixture f;
  make(&f, &config);
  ck_assert(worst(f.sequence.kv_c.data, f.kv_c, T * L) <= 1e-14);
  check_output(&f, mla_sequence_prefill(&f.sequence, &f.attention, &err), &err);
  for (int p = 0; p < 3; p++) {
    for (int s = 0; s < 4; s++) {
      check_output(&f,
                   mla_sequence_decode(&f.sequence, pages[p], splits[s],
                                       &f.attention, &err),
                   &err);
    }
    for (int64_t chunk = 0; chunk < 5; chunk++) {
      mla_sequence_prefill(&f.sequence, &f.attention, &err);
      check_output(&f,
                   mla_sequence_resume(&f.sequence, pages[p], 4, chunk,
                                       &f.attention, &err),
                   &err);
    }
  }
  unmake(&f);
}
END_TEST

/* decode in one call is its three steps in one. */
START_TEST(decode_is_its_steps) {
  mla_layer_config config = variant(1);
  mla_error err = mla_error_init();
  fixture f;
  make(&f, &config);
  const int64_t one[1] = {1}, two[1] = {2}, page[3] = {1, T, L + DIRECT_R};
  const int64_t table[2] = {1, 1}, all[1] = {T};
  int32_t length = T, starts[2] = {0, T}, block = 0;
  int64_t slots[T];
  double *cache = malloc(T * (L + DIRECT_R) * sizeof *cache);
  ck_assert_ptr_nonnull(cache);
  for (int t = 0; t < T; t++) slots[t] = t;
  mla_layer_batch batch;
  memset(&batch, 0, sizeof batch);
  batch.cache_format = MLA_CACHE_F64;
  batch.cache = mla_tensor_dense(cache, MLA_F64, 3, page);
  batch.block_table = mla_tensor_dense(&block, MLA_I32, 2, table);
  batch.seq_lens = mla_tensor_dense(&length, MLA_I32, 1, one);
  batch.query_start_loc = mla_tensor_dense(starts, MLA_I32, 1, two);
  mla_tensor mapping = mla_tensor_dense(slots, MLA_I64, 1, all);
  ck_assert_int_eq(
      mla_layer_write(f.layer, MLA_CACHE_F64, &f.sequence.kv_c,
                      &f.sequence.k_pe, &mapping, &batch.cache, &err),
      MLA_OK);
  check_output(
      &f, mla_layer_decode(f.layer, &batch, &f.sequence.q, &f.attention, &err),
      &err);
  free(cache);
  unmake(&f);
}
END_TEST

/* --------------------------------------------------------------- observing */

typedef struct count {
  int seen[16];
  int32_t stop_at; /* mla_op */
} count;

static mla_status count_operation(void *context, const mla_problem *problem,
                                  const mla_answer *answer,
                                  const mla_args *args, mla_error *err) {
  count *c = context;
  (void)err;
  ck_assert_int_eq(answer->supported, 1);
  ck_assert_uint_eq(args->count, MLA_T_COUNT);
  c->seen[problem->op]++;
  return problem->op == c->stop_at ? MLA_DEVICE_ERROR : MLA_OK;
}

START_TEST(observer_sees_every_operation) {
  mla_layer_config config = variant(1);
  count c = {{0}, MLA_OP_NONE};
  fixture f;
  make(&f, &config);
  mla_layer_observe(f.layer, count_operation, &c);
  ck_assert_int_eq(mla_sequence_decode(&f.sequence, 2, 1, &f.attention, NULL),
                   MLA_OK);
  ck_assert_int_eq(c.seen[MLA_OP_KV_WRITE], T);
  ck_assert_int_eq(c.seen[MLA_OP_DECODE], T);
  ck_assert_int_eq(c.seen[MLA_OP_V_EXPAND], 1);
  c.stop_at = MLA_OP_PREFILL;
  ck_assert_int_eq(mla_sequence_prefill(&f.sequence, &f.attention, NULL),
                   MLA_DEVICE_ERROR);
  unmake(&f);
}
END_TEST

/* --------------------------------------------------------------- refusals */

static void refused(mla_status got, mla_status expected, const mla_error *err,
                    const char *word) {
  ck_assert_int_eq(got, expected);
  ck_assert_msg(strstr(err->message, word) != NULL, "\"%s\" lacks \"%s\"",
                err->message, word);
}

START_TEST(creation_refuses) {
  const mla_status bad = MLA_INVALID_ARGUMENT;
  mla_layer_config config = variant(1);
  mla_error err = mla_error_init();
  direct_layer d;
  mla_layer *layer;
  mla_device *dev = open_ref();
  direct_layer_make(&d, &config);
  mla_layer_config c = d.config;
  mla_layer_weights w = d.weights;
  c.qk_rope_head_dim = c.rope.dim = 3;
  refused(mla_layer_create(dev, &c, &w, MLA_F64, &layer, &err), bad, &err,
          "even");
  ck_assert_ptr_null(layer);
  c = d.config;
  c.rope.dim = 2;
  refused(mla_layer_create(dev, &c, &w, MLA_F64, &layer, &err), bad, &err,
          "rope.dim is 2");
  c = d.config;
  c.index_topk = 64;
  refused(mla_layer_create(dev, &c, &w, MLA_F64, &layer, &err), bad, &err,
          "index_n_heads is 0");
  c = d.config;
  c.v_head_dim++;
  refused(mla_layer_create(dev, &c, &w, MLA_F64, &layer, &err), bad, &err,
          "kv_b_proj");
  c = d.config;
  c.q_lora_rank = 0;
  refused(mla_layer_create(dev, &c, &w, MLA_F64, &layer, &err), bad, &err,
          "q_proj is absent");
  w.o_proj.data = NULL;
  refused(mla_layer_create(dev, &d.config, &w, MLA_F64, &layer, &err), bad,
          &err, "o_proj is absent");
  direct_layer_free(&d);
  mla_close(dev);
}
END_TEST

START_TEST(stages_refuse) {
  const mla_status bad = MLA_INVALID_ARGUMENT;
  mla_layer_config config = variant(0);
  mla_error err = mla_error_init();
  int64_t positions[T] = {0};
  fixture f;
  make(&f, &config);
  mla_sequence *s = &f.sequence;
  const mla_tensor *x = &f.direct.hidden;
  positions[3] = -1;
  refused(
      mla_layer_project(f.layer, x, positions, &s->q, &s->kv_c, &s->k_pe, &err),
      bad, &err, "positions[3] is -1");
  positions[3] = MLA_ROPE_MAX_POSITION + 1;
  refused(
      mla_layer_project(f.layer, x, positions, &s->q, &s->kv_c, &s->k_pe, &err),
      bad, &err, "positions[3] is 1048577");
  refused(mla_layer_project(f.layer, x, positions, &s->kv_c, &s->kv_c, &s->k_pe,
                            &err),
          bad, &err, "q has rank 2");
  mla_tensor narrow = f.attention;
  narrow.dtype = MLA_F32;
  refused(mla_layer_output(f.layer, &narrow, &f.out, &err), bad, &err, "f32");
  refused(mla_layer_output(f.layer, &f.attention, &s->kv_c, &err), bad, &err,
          "hidden has 8 on axis 1, not 10");
  mla_layer_batch batch;
  memset(&batch, 0, sizeof batch);
  refused(mla_layer_decode(f.layer, &batch, &s->q, &f.attention, &err), bad,
          &err, "seq_lens is absent");
  refused(mla_layer_prefill(f.layer, &batch, &s->q, &s->kv_c, &s->k_pe,
                            &f.attention, &err),
          bad, &err, "seq_lens is absent");
  unmake(&f);
}
END_TEST

START_TEST(configs_are_checked) {
  mla_layer_config good = variant(1);
  mla_error err = mla_error_init();
  direct_layer d;
  direct_layer_make(&d, &good);
  good = d.config;
  ck_assert_int_eq(mla_layer_config_check(&good, NULL), MLA_OK);
  mla_layer_config c = good;
  c.hidden_size = 0;
  refused(mla_layer_config_check(&c, &err), MLA_INVALID_ARGUMENT, &err,
          "hidden_size is 0");
  c = good;
  c.kv_norm_eps = mla_nan();
  refused(mla_layer_config_check(&c, &err), MLA_INVALID_ARGUMENT, &err,
          "rms_norm_eps of kv is nan");
  c = good;
  c.q_lora_rank = -1;
  refused(mla_layer_config_check(&c, &err), MLA_INVALID_ARGUMENT, &err,
          "q_lora_rank is -1");
  c = good;
  c.num_heads = INT32_MAX;
  refused(mla_layer_config_check(&c, &err), MLA_INVALID_ARGUMENT, &err,
          "num_attention_heads * (nope + rope)");
  direct_layer_free(&d);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("layer");
  TCase *tests = tcase_create("layer");
  tcase_add_loop_test(tests, every_route_equals_plain_loops, 0, 4);
  tcase_add_test(tests, decode_is_its_steps);
  tcase_add_test(tests, observer_sees_every_operation);
  tcase_add_test(tests, creation_refuses);
  tcase_add_test(tests, stages_refuse);
  tcase_add_test(tests, configs_are_checked);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
