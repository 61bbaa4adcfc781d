/*
 * truth.c - the verdict on a layer from somebody else's outputs.
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "tensor.h"
#include "truth_distance.h"
#include "truth_file.h"
#include "truth_routes.h"
#include "truth_sparse.h"
#include "truth_stage.h"

int mla_truth_is_file(const mla_st *file) {
  return mla_st_meta(file, "truth") != NULL;
}

int mla_truth_is(const char *path) {
  mla_st *file;
  if (mla_st_open(path, &file, NULL) != MLA_OK) return 0;
  int is = mla_truth_is_file(file);
  mla_st_close(file);
  return is;
}

/* ------------------------------------------------------------- one judging */

/* One attention that no other route gave bit for bit. */
typedef struct distinct {
  unsigned char *bits;
  char route[64];
} distinct;

typedef struct judging {
  const mla_truth_file *truth;
  mla_layer *layer;
  mla_sequence sequence;
  mla_tensor hidden;
  mla_tensor attention; /* of the route at hand */
  distinct *seen;
  mla_stage_watch watch;
  mla_truth_result *result;
} judging;

static double compare_attention(const judging *j) {
  const mla_tensor *rows = &j->truth->rows, *want = &j->truth->attention;
  mla_distance d = {0, 0};
  for (int64_t r = 0; r < want->shape[0]; r++) {
    int64_t row = mla_get_int(rows->data, rows->dtype, r);
    for (int64_t i = 0; i < want->shape[1]; i++) {
      mla_measure(&d,
                  mla_get(j->attention.data, j->attention.dtype,
                          row * want->shape[1] + i),
                  mla_get(want->data, want->dtype, mla_at2(want, r, i)));
    }
  }
  return mla_relative(&d);
}

static void keep_worst(double error, double *worst, const char *route,
                       char *where, size_t size) {
  if (where[0] && error <= *worst) return;
  *worst = error;
  snprintf(where, size, "%s", route);
}

/* Keeps the attention for o_proj, unless another route gave the same. */
static mla_status keep_distinct(judging *j, mla_error *err) {
  size_t bytes = (size_t)mla_tensor_extent(&j->attention);
  int32_t n = j->result->distinct;
  for (int32_t i = 0; i < n; i++) {
    if (memcmp(j->seen[i].bits, j->attention.data, bytes) == 0) return MLA_OK;
  }
  j->seen[n].bits = malloc(bytes);
  if (!j->seen[n].bits) {
    return mla_fail(err, MLA_OUT_OF_MEMORY, "attention",
                    "no memory to keep %zu bytes", bytes);
  }
  memcpy(j->seen[n].bits, j->attention.data, bytes);
  snprintf(j->seen[n].route, sizeof j->seen[n].route, "%s", j->watch.route);
  j->result->distinct++;
  return MLA_OK;
}

/* After a route has filled j->attention. */
static mla_status judge_route(judging *j, mla_error *err) {
  mla_truth_result *r = j->result;
  r->combinations++;
  keep_worst(compare_attention(j), &r->attention_error, j->watch.route,
             r->attention_where, sizeof r->attention_where);
  return keep_distinct(j, err);
}

/* ----------------------------------------------------------------- o_proj */

static mla_tensor with_rows(const mla_tensor *t, int64_t rows) {
  mla_tensor many = *t;
  many.shape[0] = rows;
  many.data = NULL;
  int64_t bytes = mla_tensor_extent(&many);
  if (bytes > 0 && (uint64_t)bytes <= SIZE_MAX) {
    many.data = malloc((size_t)bytes);
  }
  return many;
}

/* All distinct attentions below each other, so that the largest of the
   weights is read once. */
static mla_status multiply_distinct(judging *j, const mla_tensor *all,
                                    const mla_tensor *out, mla_error *err) {
  mla_truth_result *r = j->result;
  size_t bytes = (size_t)mla_tensor_extent(&j->attention);
  mla_tensor part = *out;
  for (int32_t i = 0; i < r->distinct; i++) {
    memcpy((unsigned char *)all->data + (size_t)i * bytes, j->seen[i].bits,
           bytes);
  }
  snprintf(j->watch.route, sizeof j->watch.route, "output");
  mla_status status = mla_layer_output(j->layer, all, out, err);
  if (status != MLA_OK) return status;
  part.shape[0] = j->truth->tokens;
  bytes = (size_t)mla_tensor_extent(&part);
  for (int32_t i = 0; i < r->distinct; i++) {
    part.data = (unsigned char *)out->data + (size_t)i * bytes;
    keep_worst(mla_rows_distance(&part, &j->truth->output, 1), &r->output_error,
               j->seen[i].route, r->output_where, sizeof r->output_where);
  }
  return MLA_OK;
}

static mla_status judge_outputs(judging *j, mla_error *err) {
  int64_t rows = j->truth->tokens * j->result->distinct;
  mla_tensor all = with_rows(&j->attention, rows);
  mla_tensor out = with_rows(&j->hidden, rows);
  mla_status status =
      all.data && out.data
          ? multiply_distinct(j, &all, &out, err)
          : mla_fail(err, MLA_OUT_OF_MEMORY, "output", "no memory for outputs");
  free(all.data);
  free(out.data);
  return status;
}

/* ------------------------------------------------------------------ routes */

static const int32_t default_blocks[] = {1, 16, 64};
static const int32_t default_splits[] = {1, 2, 7, 64};

static mla_truth_options with_defaults(const mla_truth_options *given) {
  mla_truth_options o = {NULL, 0, NULL, 0};
  if (given) o = *given;
  if (o.block_size_count == 0) {
    o.block_sizes = default_blocks;
    o.block_size_count = 3;
  }
  if (o.split_count == 0) {
    o.splits = default_splits;
    o.split_count = 4;
  }
  return o;
}

static void clear(mla_tensor *t) {
  for (int64_t i = 0; i < mla_tensor_count(t); i++) {
    mla_put(t->data, t->dtype, i, mla_nan());
  }
}

static mla_status run_prefill(judging *j, mla_error *err) {
  snprintf(j->watch.route, sizeof j->watch.route, "prefill");
  clear(&j->attention);
  mla_status status = mla_sequence_prefill(&j->sequence, &j->attention, err);
  return status == MLA_OK ? judge_route(j, err) : status;
}

/* The rows of the first half stay as prefill left them. */
static mla_status run_resume(judging *j, int32_t block, mla_error *err) {
  int64_t past = j->truth->tokens / 2, chunk = past / 3 + 1;
  if (past == 0) return MLA_OK;
  snprintf(j->watch.route, sizeof j->watch.route, "prefill after %lld, page %d",
           (long long)past, block);
  mla_status status =
      mla_sequence_resume(&j->sequence, block, past, chunk, &j->attention, err);
  return status == MLA_OK ? judge_route(j, err) : status;
}

static mla_status run_decode(judging *j, int32_t block, int32_t splits,
                             mla_error *err) {
  snprintf(j->watch.route, sizeof j->watch.route, "decode, page %d, splits %d",
           block, splits);
  clear(&j->attention);
  mla_status status =
      mla_sequence_decode(&j->sequence, block, splits, &j->attention, err);
  return status == MLA_OK ? judge_route(j, err) : status;
}

/* ------------------------------------------------------- with an indexer */

/* Compares what the route chose, then what it attended to. */
static mla_status judge_sparse(judging *j, mla_error *err) {
  mla_truth_result *r = j->result;
  int64_t wrong = mla_sequence_wrong_choices(&j->sequence, &j->truth->topk);
  if (wrong && !r->wrong_choices) {
    snprintf(r->choice_where, sizeof r->choice_where, "%s", j->watch.route);
  }
  r->choices += j->truth->tokens;
  r->wrong_choices += wrong;
  return judge_route(j, err);
}

static mla_status run_sparse_prefill(judging *j, int32_t block,
                                     mla_error *err) {
  snprintf(j->watch.route, sizeof j->watch.route, "sparse prefill, page %d",
           block);
  clear(&j->attention);
  mla_status status =
      mla_sequence_sparse_prefill(&j->sequence, block, &j->attention, err);
  return status == MLA_OK ? judge_sparse(j, err) : status;
}

/* Rows that see no more than they may choose attend as in a dense layer; the
   other rows stay as sparse prefill left them. */
static mla_status run_front(judging *j, mla_error *err) {
  int64_t front = j->truth->config.index_topk;
  if (front > j->truth->tokens) front = j->truth->tokens;
  snprintf(j->watch.route, sizeof j->watch.route, "dense prefill of %lld",
           (long long)front);
  mla_status status =
      mla_sequence_prefill_front(&j->sequence, front, &j->attention, err);
  return status == MLA_OK ? judge_route(j, err) : status;
}

static mla_status run_sparse_decode(judging *j, int32_t block, int32_t splits,
                                    mla_error *err) {
  snprintf(j->watch.route, sizeof j->watch.route,
           "sparse decode, page %d, splits %d", block, splits);
  clear(&j->attention);
  mla_status status = mla_sequence_sparse_decode(&j->sequence, block, splits,
                                                 &j->attention, err);
  return status == MLA_OK ? judge_sparse(j, err) : status;
}

static mla_status run_sparse_routes(judging *j, const mla_truth_options *o,
                                    mla_error *err) {
  mla_status status = MLA_OK;
  for (int32_t b = 0; b < o->block_size_count && status == MLA_OK; b++) {
    status = run_sparse_prefill(j, o->block_sizes[b], err);
    if (status == MLA_OK && b == 0) status = run_front(j, err);
    for (int32_t s = 0; s < o->split_count && status == MLA_OK; s++) {
      status = run_sparse_decode(j, o->block_sizes[b], o->splits[s], err);
    }
  }
  return status == MLA_OK ? judge_outputs(j, err) : status;
}

static mla_status run_routes(judging *j, const mla_truth_options *o,
                             mla_error *err) {
  if (j->truth->config.index_topk) return run_sparse_routes(j, o, err);
  mla_status status = run_prefill(j, err);
  if (status == MLA_OK) status = run_resume(j, o->block_sizes[0], err);
  for (int32_t b = 0; b < o->block_size_count; b++) {
    for (int32_t s = 0; s < o->split_count && status == MLA_OK; s++) {
      status = run_decode(j, o->block_sizes[b], o->splits[s], err);
    }
  }
  if (status == MLA_OK) status = judge_outputs(j, err);
  return status;
}

/* ------------------------------------------------------------------- setup */

/* f64 where every product can be had in it, else f32. */
static int32_t choose_activation(mla_device *dev) {
  mla_problem problem = mla_problem_init(MLA_OP_MATMUL);
  mla_limits limits = mla_limits_init();
  mla_answer answer = mla_answer_init();
  problem.q_dtype = problem.out_dtype = MLA_F64;
  problem.weight_dtype = MLA_F32;
  problem.q_lora_rank = problem.hidden_size = 16;
  limits.tokens = 1;
  mla_status status = mla_query(dev, &problem, &limits, &answer, NULL);
  return status == MLA_OK && answer.supported ? MLA_F64 : MLA_F32;
}

static mla_status allocate(judging *j, int32_t dtype, int32_t routes,
                           mla_error *err) {
  const mla_layer_config *c = &j->truth->config;
  const int64_t wide[3] = {j->truth->tokens, c->num_heads, c->v_head_dim};
  mla_tensor attention = mla_tensor_dense(NULL, dtype, 3, wide);
  j->attention = with_rows(&attention, wide[0]);
  j->seen = calloc((size_t)routes, sizeof *j->seen);
  if (j->attention.data && j->seen) {
    return mla_truth_hidden(j->truth, dtype, &j->hidden, err);
  }
  return mla_fail(err, MLA_OUT_OF_MEMORY, "attention",
                  "no memory for the attention of %lld tokens",
                  (long long)wide[0]);
}

static void release(judging *j) {
  for (int32_t i = 0; j->seen && i < j->result->distinct; i++) {
    free(j->seen[i].bits);
  }
  free(j->seen);
  free(j->attention.data);
  free(j->hidden.data);
  mla_sequence_free(&j->sequence);
}

static mla_status project(judging *j, mla_error *err) {
  double scale = j->truth->config.mla_scale_kv_lora;
  snprintf(j->watch.route, sizeof j->watch.route, "projection");
  mla_status status = mla_sequence_project(&j->sequence, j->layer, &j->hidden,
                                           j->truth->first_position, err);
  if (status != MLA_OK) return status;
  j->result->latent_error = mla_rows_distance(
      &j->sequence.kv_c, &j->truth->kv_c, scale > 0 ? scale : 1);
  return MLA_OK;
}

static mla_status run_layer(const mla_truth_file *truth, mla_layer *layer,
                            const mla_truth_options *options,
                            mla_truth_result *result, mla_error *err) {
  judging j;
  memset(&j, 0, sizeof j);
  j.truth = truth;
  j.layer = layer;
  j.result = result;
  if (result->activation != MLA_F64) {
    mla_layer_observe(layer, mla_stage_observe, &j.watch);
  }
  int32_t routes = 2 + options->block_size_count * (options->split_count + 1);
  mla_status status = allocate(&j, result->activation, routes, err);
  if (status == MLA_OK) status = project(&j, err);
  if (status == MLA_OK) status = run_routes(&j, options, err);
  result->stage_ratio = j.watch.worst;
  result->stages = j.watch.count;
  snprintf(result->stage_where, sizeof result->stage_where, "%s",
           j.watch.where);
  release(&j);
  return status;
}

static mla_status run_file(const mla_truth_file *truth, mla_device *dev,
                           const mla_truth_options *options,
                           mla_truth_result *result, mla_error *err) {
  mla_layer_weights weights;
  mla_layer *layer = NULL;
  mla_status status = mla_truth_weights(truth, &weights, err);
  if (status == MLA_OK) {
    status = mla_layer_create(dev, &truth->config, &weights, result->activation,
                              &layer, err);
  }
  if (status == MLA_OK) {
    status = run_layer(truth, layer, options, result, err);
  }
  mla_layer_free(layer);
  mla_truth_weights_free(&weights);
  return status;
}

/* ----------------------------------------------------------------- verdict */

static int within(const mla_truth_result *r) {
  if (r->activation != MLA_F64) return r->stages > 0 && r->stage_ratio <= 1;
  return r->output_error <= MLA_TRUTH_TOLERANCE &&
         r->attention_error <= MLA_TRUTH_TOLERANCE && r->wrong_choices == 0 &&
         r->latent_error <= MLA_TRUTH_TOLERANCE;
}

static void decide(const mla_truth_file *truth, mla_truth_result *r) {
  r->verdict =
      r->combinations > 0 && within(r) ? MLA_TRUTH_PASS : MLA_TRUTH_FAIL;
  snprintf(r->reason, sizeof r->reason, "%s", truth->remark);
}

static mla_status judge_file(const mla_truth_file *truth, mla_device *dev,
                             const mla_truth_options *options,
                             mla_truth_result *result, mla_error *err) {
  mla_error own = mla_error_init();
  snprintf(result->name, sizeof result->name, "%s", truth->name);
  if (truth->unsupported[0]) {
    result->verdict = MLA_TRUTH_UNSUPPORTED;
    snprintf(result->reason, sizeof result->reason, "%s", truth->unsupported);
    return MLA_OK;
  }
  result->activation = choose_activation(dev);
  mla_status status = run_file(truth, dev, options, result, &own);
  if (status == MLA_OK) {
    decide(truth, result);
    return MLA_OK;
  }
  snprintf(result->reason, sizeof result->reason, "%s", own.message);
  if (status == MLA_OUT_OF_MEMORY || status == MLA_INVALID_ARGUMENT) {
    return mla_fail(err, status, own.field, "%s", own.message);
  }
  result->verdict =
      status == MLA_UNSUPPORTED ? MLA_TRUTH_UNSUPPORTED : MLA_TRUTH_FAIL;
  return MLA_OK;
}

mla_status mla_truth_judge(const char *path, mla_device *dev,
                           const mla_truth_options *options,
                           mla_truth_result *result, mla_error *err) {
  mla_truth_options all = with_defaults(options);
  mla_truth_file truth;
  memset(result, 0, sizeof *result);
  mla_status status = mla_truth_open(path, &truth, err);
  if (status == MLA_OK) status = judge_file(&truth, dev, &all, result, err);
  mla_truth_close(&truth);
  return status;
}
