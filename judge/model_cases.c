/*
 * model_cases.c - the cases of a model's sizes.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_json.h"
#include "dmath.h"
#include "error.h"
#include "file_text.h"
#include "model_presets.h"

/* ------------------------------------------------------------- the model */

static mla_status from_config(const char *path, mla_model *model,
                              mla_error *err) {
  mla_layer_config c;
  char *text = mla_file_text(path, NULL);
  if (!text)
    return mla_fail(err, MLA_NOT_AVAILABLE, "model",
                    "no model and no file is called \"%.150s\"", path);
  mla_status status = mla_config_parse(text, strlen(text), &c, err);
  free(text);
  if (status != MLA_OK) return MLA_INVALID_ARGUMENT;
  memset(model, 0, sizeof *model);
  model->name = path;
  model->hidden_size = c.hidden_size;
  model->num_heads = c.num_heads;
  model->q_lora_rank = c.q_lora_rank;
  model->kv_lora_rank = c.kv_lora_rank;
  model->qk_nope_head_dim = c.qk_nope_head_dim;
  model->qk_rope_head_dim = c.qk_rope_head_dim;
  model->v_head_dim = c.v_head_dim;
  model->index_n_heads = c.index_n_heads;
  model->index_head_dim = c.index_head_dim;
  model->index_topk = c.index_topk;
  model->softmax_scale = mla_layer_softmax_scale(&c);
  return MLA_OK;
}

/* Takes ":tpN" off the end of a name; 1 where there is none, 0: no number. */
static int64_t take_sharding(char *name) {
  char *at = strrchr(name, ':'), *end;
  if (!at || strncmp(at, ":tp", 3) != 0) return 1;
  if (at[3] < '1' || at[3] > '9') return 0;
  int64_t n = strtoll(at + 3, &end, 10);
  if (*end || n > 65536) return 0;
  *at = '\0';
  return n;
}

static mla_status find(const char *words, char *name, size_t size,
                       mla_model *model, mla_error *err) {
  int n = snprintf(name, size, "%s", words);
  if (n < 0 || (size_t)n >= size)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "model", "the name is too long");
  int64_t shards = take_sharding(name);
  if (shards < 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "model",
                    "\"%.100s\" does not end with a number of devices, as "
                    "in :tp8",
                    words);
  const mla_model *known = mla_model_find(name);
  if (known) *model = *known;
  mla_status status = known ? MLA_OK : from_config(name, model, err);
  if (status != MLA_OK) return status;
  if (model->num_heads % shards)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "num_heads",
                    "%d heads do not divide among %lld devices",
                    (int)model->num_heads, (long long)shards);
  model->num_heads /= (int32_t)shards;
  return MLA_OK;
}

/* ------------------------------------------------------------- the cases */

typedef struct making {
  const mla_model *model;
  mla_suite *suite;
  mla_status status;
  mla_error *err;
} making;

/* The name as one writes it: it is made canonical. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void
add(making *m, const char *hunts, const char *format, ...) {
  char text[512], id[MLA_CASE_ID_MAX];
  mla_case c;
  va_list args;
  if (m->status != MLA_OK) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  m->status = mla_case_parse(text, &c, m->err);
  if (m->status != MLA_OK) return;
  mla_case_print(&c, id, sizeof id);
  m->status = mla_suite_add(m->suite, id, MLA_SUITE_SEED, hunts, 0, m->err);
}

/* ",scale=X" where it is not what the case has by itself. */
static void scale_key(const mla_model *m, int32_t nope, char *text,
                      size_t size) {
  double own = 1 / mla_sqrt((double)m->qk_nope_head_dim + m->qk_rope_head_dim);
  double def = 1 / mla_sqrt((double)nope + m->qk_rope_head_dim);
  double scale = m->softmax_scale > 0 ? m->softmax_scale : own;
  text[0] = '\0';
  if (mla_fabs(scale - def) > 1e-15)
    snprintf(text, size, ",scale=%.17g", scale);
}

static void add_decode(making *m) {
  static const char *const steps[] = {
      "b1,q1,len=1",        "b4,q1,len=64+65+0+1023",
      "b2,q1,len=2048+333", "b1,q1,len=8191",
      "b2,q2,len=1025+7",   "b8,q1,len=17+130+255+256+257+512+3+900"};
  const mla_model *k = m->model;
  char scale[48];
  scale_key(k, 128, scale, sizeof scale);
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
    add(m, "HEADS", "decode:bf16:h%d,page64,l%d,r%d%s,%s", (int)k->num_heads,
        (int)k->kv_lora_rank, (int)k->qk_rope_head_dim, scale, steps[i]);
}

static void add_prefill(making *m) {
  static const char *const steps[] = {"b2,q=64+33", "b1,q200",
                                      "b3,q=32+17+1,page64,ctx=100+0+700"};
  const mla_model *k = m->model;
  char scale[48];
  scale_key(k, k->qk_nope_head_dim, scale, sizeof scale);
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
    add(m, "HEADS", "prefill:bf16:h%d,l%d,r%d,p%d,v%d%s,%s", (int)k->num_heads,
        (int)k->kv_lora_rank, (int)k->qk_rope_head_dim,
        (int)k->qk_nope_head_dim, (int)k->v_head_dim, scale, steps[i]);
}

static void add_products(making *m) {
  const mla_model *k = m->model;
  int h = (int)k->num_heads, l = (int)k->kv_lora_rank;
  int p = (int)k->qk_nope_head_dim, v = (int)k->v_head_dim;
  add(m, "ABSORB", "absorb:bf16:h%d,l%d,p%d,v%d", h, l, p, v);
  add(m, "ABSORB", "q_absorb:bf16:n8,h%d,l%d,p%d", h, l, p);
  add(m, "ABSORB", "v_expand:bf16:n8,h%d,l%d,v%d", h, l, v);
}

static void add_cache(making *m) {
  const mla_model *k = m->model;
  int l = (int)k->kv_lora_rank, r = (int)k->qk_rope_head_dim;
  add(m, "TABLE", "kv_write:bf16:n100,page64,nb4,l%d,r%d,slots=holes", l, r);
  add(m, "TABLE", "kv_read:bf16:b3,page64,len=100+0+65,l%d,r%d", l, r);
}

static void add_sparse(making *m) {
  const mla_model *k = m->model;
  char scale[48];
  if (!k->index_n_heads) return;
  scale_key(k, 128, scale, sizeof scale);
  add(m, "SPARSE-IDX", "index:bf16:b2,h%d,q1,page64,len=3000+65,topk=%d,d%d",
      (int)k->index_n_heads, (int)k->index_topk, (int)k->index_head_dim);
  add(m, "SPARSE-IDX", "map_indices:bf16:b2,q1,page64,len=3000+65,topk=%d",
      (int)k->index_topk);
  add(m, "SPARSE-IDX",
      "decode:bf16:b2,h%d,q1,page64,len=3000+65,topk=%d,l%d,"
      "r%d%s",
      (int)k->num_heads, (int)k->index_topk, (int)k->kv_lora_rank,
      (int)k->qk_rope_head_dim, scale);
}

mla_status mla_model_suite(const char *words, mla_suite *suite,
                           mla_error *err) {
  char name[1024], title[80];
  mla_model model;
  making m = {&model, suite, MLA_OK, err};
  snprintf(title, sizeof title, "model:%.70s", words);
  mla_suite_init(suite, title);
  m.status = find(words, name, sizeof name, &model, err);
  if (m.status != MLA_OK) return m.status;
  snprintf(suite->title, sizeof suite->title, "the sizes of %.70s, %d heads",
           model.title ? model.title : name, (int)model.num_heads);
  add_decode(&m);
  add_prefill(&m);
  add_products(&m);
  add_cache(&m);
  add_sparse(&m);
  return m.status;
}
