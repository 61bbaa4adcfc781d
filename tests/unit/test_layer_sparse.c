/*
 * test_layer_sparse.c - the layer with an indexer: choices and outputs equal
 * to plain loops by every route, for every pairing of either rotation.
 */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dmath.h"
#include "dtype.h"
#include "layer_direct.h"
#include "mla/mla.h"
#include "tensor.h"
#include "truth_sparse.h"

enum { T = DIRECT_T, HIDDEN = DIRECT_HIDDEN, WIDE = DIRECT_H * DIRECT_V };

typedef struct fixture {
  direct_layer direct;
  mla_device *dev;
  mla_layer *layer;
  mla_sequence sequence;
  mla_tensor attention, out, topk;
  double attention_data[T * WIDE], out_data[T * HIDDEN];
  double before[T * WIDE], expected[T * HIDDEN], kv_c[T * DIRECT_L];
  int32_t chosen[T * DIRECT_TOPK];
} fixture;

/* Pairs interleaved or half-split: bit 0 the main path's, 1 the indexer's. */
static void make(fixture *f, int pairs) {
  const int64_t heads[3] = {T, DIRECT_H, DIRECT_V}, flat[2] = {T, HIDDEN};
  const int64_t list[2] = {T, DIRECT_TOPK};
  mla_layer_config config = mla_layer_config_init();
  mla_error err = mla_error_init();
  memset(f, 0, sizeof *f);
  config.q_lora_rank = config.index_topk = 1;
  config.rope.theta = 100;
  config.rope.half_split = pairs & 1;
  config.index_half_split = pairs >> 1 & 1;
  config.index_norm_eps = 0.125;
  direct_layer_make(&f->direct, &config);
  f->direct.first_position = 2;
  ck_assert_int_eq(mla_open("ref", 0, NULL, &f->dev, &err), MLA_OK);
  mla_status status = mla_layer_create(
      f->dev, &f->direct.config, &f->direct.weights, MLA_F64, &f->layer, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  status =
      mla_sequence_project(&f->sequence, f->layer, &f->direct.hidden, 2, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  f->attention = mla_tensor_dense(f->attention_data, MLA_F64, 3, heads);
  f->out = mla_tensor_dense(f->out_data, MLA_F64, 2, flat);
  f->topk = mla_tensor_dense(f->chosen, MLA_I32, 2, list);
  direct_layer_run(&f->direct, f->before, f->expected, f->kv_c);
  direct_layer_choose(&f->direct, f->chosen);
}

static void unmake(fixture *f) {
  mla_sequence_free(&f->sequence);
  mla_layer_free(f->layer);
  mla_close(f->dev);
  direct_layer_free(&f->direct);
}

static void check(fixture *f, mla_status status, const mla_error *err) {
  ck_assert_msg(status == MLA_OK, "%s", err->message);
  ck_assert_int_eq((int)mla_sequence_wrong_choices(&f->sequence, &f->topk), 0);
  ck_assert_int_eq(mla_layer_output(f->layer, &f->attention, &f->out, NULL),
                   MLA_OK);
  for (int i = 0; i < T * HIDDEN; i++) {
    ck_assert_msg(mla_fabs(f->out_data[i] - f->expected[i]) <= 1e-12,
                  "output %d is %g, not %g", i, f->out_data[i], f->expected[i]);
  }
  memset(f->attention_data, 0xFF, sizeof f->attention_data);
}

START_TEST(every_route_equals_plain_loops) {
  static const int32_t pages[] = {1, 2, 16}, splits[] = {1, 2, 7};
  mla_error err = mla_error_init();
  fixture f;
  make(&f, _i);
  for (int p = 0; p < 3; p++) {
    check(
        &f,
        mla_sequence_sparse_prefill(&f.sequence, pages[p], &f.attention, &err),
        &err);
    for (int s = 0; s < 3; s++) {
      check(&f,
            mla_sequence_sparse_decode(&f.sequence, pages[p], splits[s],
                                       &f.attention, &err),
            &err);
    }
  }
  unmake(&f);
}
END_TEST

/* The two pairings of the indexer do not choose alike: a layer that took the
   wrong one would be found. */
START_TEST(pairings_choose_differently) {
  fixture a, b;
  mla_error err = mla_error_init();
  make(&a, 0);
  make(&b, 2);
  ck_assert_int_eq(
      mla_sequence_sparse_prefill(&a.sequence, 2, &a.attention, &err), MLA_OK);
  ck_assert_int_gt((int)mla_sequence_wrong_choices(&a.sequence, &b.topk), 0);
  unmake(&a);
  unmake(&b);
}
END_TEST

/* What the last rows see is more than they choose; the first see less. */
START_TEST(dense_prefill_is_right_for_the_front) {
  mla_error err = mla_error_init();
  fixture f;
  make(&f, 0);
  mla_status status = mla_sequence_prefill(&f.sequence, &f.attention, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  for (int i = 0; i < T * WIDE; i++) {
    double off = mla_fabs(f.attention_data[i] - f.before[i]);
    if (i < DIRECT_TOPK * WIDE) ck_assert(off <= 1e-13);
  }
  ck_assert(mla_fabs(f.attention_data[T * WIDE - 1] - f.before[T * WIDE - 1]) >
            1e-3);
  unmake(&f);
}
END_TEST

START_TEST(wrong_choices_are_counted) {
  mla_error err = mla_error_init();
  fixture f;
  make(&f, 2);
  ck_assert_int_eq(
      mla_sequence_sparse_prefill(&f.sequence, 1, &f.attention, &err), MLA_OK);
  int32_t *chosen = f.sequence.positions.data;
  static const struct {
    int at;
    int32_t value;
  } wrong[] = {
      {0, -1},                   /* one that is seen is missing */
      {1, 0},                    /* one behind them all */
      {DIRECT_TOPK, 5},          /* not seen */
      {4 * DIRECT_TOPK + 1, -1}, /* a hole */
      {6 * DIRECT_TOPK, INT32_MIN},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    int32_t right = chosen[wrong[i].at];
    chosen[wrong[i].at] = wrong[i].value;
    ck_assert_int_eq((int)mla_sequence_wrong_choices(&f.sequence, &f.topk), 1);
    chosen[wrong[i].at] = right;
  }
  chosen[5 * DIRECT_TOPK] = chosen[5 * DIRECT_TOPK + 1]; /* twice */
  ck_assert_int_eq((int)mla_sequence_wrong_choices(&f.sequence, &f.topk), 1);
  unmake(&f);
}
END_TEST

/* --------------------------------------------------------------- refusals */

static void refused(mla_status got, const mla_error *err, const char *word) {
  ck_assert_int_eq(got, MLA_INVALID_ARGUMENT);
  ck_assert_msg(strstr(err->message, word) != NULL, "\"%s\" lacks \"%s\"",
                err->message, word);
}

START_TEST(indexers_are_checked) {
  mla_error err = mla_error_init();
  mla_layer *layer;
  fixture f;
  make(&f, 0);
  mla_layer_config c = f.direct.config;
  mla_layer_weights w = f.direct.weights;
  c.index_n_heads = 0;
  refused(mla_layer_config_check(&c, &err), &err, "index_n_heads is 0");
  c = f.direct.config;
  c.index_head_dim = 3;
  refused(mla_layer_config_check(&c, &err), &err, "index_head_dim is 3");
  c = f.direct.config;
  c.q_lora_rank = 0;
  refused(mla_layer_config_check(&c, &err), &err, "q latent");
  c = f.direct.config;
  c.index_norm_eps = -1;
  refused(mla_layer_config_check(&c, &err), &err, "eps of the indexer is -1");
  w.index_k_norm_bias.data = NULL;
  refused(mla_layer_create(f.dev, &f.direct.config, &w, MLA_F64, &layer, &err),
          &err, "index_k_norm_bias is absent");
  mla_layer_batch batch;
  memset(&batch, 0, sizeof batch);
  refused(mla_layer_choose(f.layer, &batch, &f.sequence.q_index,
                           &f.sequence.index_weights, &f.topk, &err),
          &err, "seq_lens is absent");
  unmake(&f);
}
END_TEST

START_TEST(a_layer_without_one_has_no_stages) {
  mla_layer_config config = mla_layer_config_init();
  mla_error err = mla_error_init();
  direct_layer d;
  mla_device *dev;
  mla_layer *layer;
  config.q_lora_rank = 1;
  direct_layer_make(&d, &config);
  ck_assert_int_eq(mla_open("ref", 0, NULL, &dev, NULL), MLA_OK);
  ck_assert_int_eq(
      mla_layer_create(dev, &d.config, &d.weights, MLA_F64, &layer, &err),
      MLA_OK);
  refused(mla_layer_write_keys(layer, MLA_CACHE_F64, &d.hidden, &d.hidden,
                               &d.hidden, &err),
          &err, "no indexer");
  refused(mla_layer_index_project(layer, &d.hidden, NULL, &d.hidden, &d.hidden,
                                  &d.hidden, &err),
          &err, "no indexer");
  mla_layer_free(layer);
  mla_close(dev);
  direct_layer_free(&d);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("layer_sparse");
  TCase *tests = tcase_create("layer_sparse");
  tcase_add_loop_test(tests, every_route_equals_plain_loops, 0, 4);
  tcase_add_test(tests, pairings_choose_differently);
  tcase_add_test(tests, dense_prefill_is_right_for_the_front);
  tcase_add_test(tests, wrong_choices_are_counted);
  tcase_add_test(tests, indexers_are_checked);
  tcase_add_test(tests, a_layer_without_one_has_no_stages);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
