/*
 * question.c - inputs of a case as a file.
 */
#include "question.h"

#include <stdlib.h>

#include "error.h"
#include "vector_json.h"

static void add(cJSON *to, const char *name, int64_t value) {
  if (value) cJSON_AddNumberToObject(to, name, (double)value);
}

/* What the zeros of a problem mean, so that nobody need know it. */
static void add_sizes(cJSON *entry, const mla_problem *p) {
  cJSON *sizes = cJSON_AddObjectToObject(entry, "sizes");
  add(sizes, "head_dim", mla_problem_head_dim(p));
  add(sizes, "v_dim", mla_problem_v_dim(p));
  add(sizes, "num_kv_heads", mla_problem_kv_heads(p));
  if (p->cache_format) add(sizes, "entry", mla_problem_entry(p));
}

static void add_outputs(cJSON *entry, const mla_vector *v) {
  cJSON *list = cJSON_AddArrayToObject(entry, "outputs");
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (v->role[s] & MLA_ROLE_OUT)
      cJSON_AddItemToArray(list, cJSON_CreateString(mla_slot_name(s)));
}

mla_status mla_question_write(const mla_vector *v, const char *path,
                              cJSON **entry, mla_error *err) {
  double *owned[MLA_T_COUNT] = {NULL};
  mla_st_writer *w = mla_st_writer_new();
  mla_status status = w ? MLA_OK : MLA_OUT_OF_MEMORY;
  char *text = NULL;
  *entry = NULL;
  if (status == MLA_OK)
    status = mla_json_stored(v, NULL, 0, w, owned, entry, err);
  if (status == MLA_OK) {
    add_outputs(*entry, v);
    add_sizes(*entry, &v->problem);
    text = cJSON_PrintUnformatted(*entry);
    if (!text) status = mla_fail(err, MLA_OUT_OF_MEMORY, "case", "no memory");
  }
  if (status == MLA_OK)
    status = mla_st_writer_meta(w, "mla-question", text, err);
  if (status == MLA_OK) status = mla_st_writer_save(w, path, err);
  cJSON_free(text);
  mla_st_writer_free(w);
  if (status == MLA_OK) return MLA_OK;
  cJSON_Delete(*entry);
  *entry = NULL;
  return status;
}
