/*
 * docket.c - collecting what is to be judged, and judging an item.
 */
#include "docket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_json.h"
#include "batch_judge.h"
#include "docket_parts.h"
#include "error.h"
#include "invalid.h"

mla_docket *mla_docket_new(void) {
  return calloc(1, sizeof(mla_docket));
}

void mla_docket_free(mla_docket *d) {
  if (!d) return;
  for (int32_t i = 0; i < d->file_count; i++) mla_vector_file_close(d->file[i]);
  for (int32_t i = 0; i < d->batch_count; i++) cJSON_Delete(d->batch[i]);
  for (int32_t i = 0; i < d->path_count; i++) free(d->path[i]);
  free(d->item);
  free(d->file);
  free(d->batch);
  free(d->path);
  free(d);
}

int32_t mla_docket_count(const mla_docket *d) {
  return d->count;
}

const mla_item *mla_docket_at(const mla_docket *d, int32_t i) {
  return &d->item[i];
}

/* ---------------------------------------------------------------- growing */

mla_status mla_docket_no_memory(mla_error *err) {
  return mla_fail(err, MLA_OUT_OF_MEMORY, "docket", "no memory for the list");
}

const char *mla_docket_keep_text(mla_docket *d, const char *text) {
  size_t n = (size_t)d->path_count + 1;
  char **grown = realloc(d->path, n * sizeof *grown);
  if (!grown) return NULL;
  d->path = grown;
  char *copy = malloc(strlen(text) + 1);
  if (!copy) return NULL;
  d->path[d->path_count++] = strcpy(copy, text);
  return copy;
}

mla_item *mla_docket_new_item(mla_docket *d, int32_t kind, const char *id) {
  size_t n = (size_t)d->count + 1;
  mla_item *grown = realloc(d->item, n * sizeof *grown);
  if (!grown) return NULL;
  d->item = grown;
  const char *kept = mla_docket_keep_text(d, id);
  if (!kept) return NULL;
  mla_item *item = &grown[d->count++];
  memset(item, 0, sizeof *item);
  item->kind = kind;
  item->id = kept;
  item->file = -1;
  return item;
}

static int kind_of(const char *id) {
  if (mla_batch_case_is(id)) return MLA_ITEM_BATCH;
  return strchr(id, '!') ? MLA_ITEM_INVALID : MLA_ITEM_CASE;
}

mla_status mla_docket_add_suite(mla_docket *d, const mla_suite *suite,
                                mla_error *err) {
  for (int64_t i = 0; i < suite->count; i++) {
    const mla_suite_entry *e = &suite->entry[i];
    mla_item *item = mla_docket_new_item(d, kind_of(e->id), e->id);
    if (!item) return mla_docket_no_memory(err);
    item->seed = e->seed;
    item->optional = e->optional;
    snprintf(item->hunts, sizeof item->hunts, "%s", e->hunts);
  }
  return MLA_OK;
}

mla_status mla_docket_add_case(mla_docket *d, const char *id, uint64_t seed,
                               mla_error *err) {
  mla_suite one;
  mla_suite_init(&one, "");
  mla_status status = mla_suite_add(&one, id, seed, "", 0, err);
  if (status == MLA_OK) status = mla_docket_add_suite(d, &one, err);
  mla_suite_free(&one);
  return status;
}

void mla_docket_know(mla_docket *d, const mla_suite *suite) {
  for (int32_t i = 0; i < d->count; i++)
    for (int64_t k = 0; k < suite->count; k++)
      if (!d->item[i].hunts[0] && !strcmp(d->item[i].id, suite->entry[k].id))
        memcpy(d->item[i].hunts, suite->entry[k].hunts,
               sizeof d->item[i].hunts);
}

/* --------------------------------------------------------------- choosing */

int mla_docket_matches(const char *id, const char *pattern) {
  size_t n = strlen(pattern);
  if (strncmp(id, pattern, n) != 0) return 0;
  return id[n] == '\0' || id[n] == ':' || id[n] == '!' ||
         (n && pattern[n - 1] == ':');
}

/* The operations that the docket has cases of, once each. */
static void name_ops(const mla_docket *d, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int32_t i = 0; i < d->count; i++) {
    const char *id = d->item[i].id;
    int known = 0;
    for (int32_t k = 0; k < i && !known; k++)
      known = strncmp(d->item[k].id, id, strcspn(id, ":") + 1) == 0;
    if (known || used >= size) continue;
    used += (size_t)snprintf(text + used, size - used, "%s%.*s",
                             used ? " " : "", (int)strcspn(id, ":"), id);
  }
}

static mla_status check_pattern(const mla_docket *d, const char *pattern,
                                mla_error *err) {
  char ops[150];
  for (int32_t i = 0; i < d->count; i++)
    if (mla_docket_matches(d->item[i].id, pattern)) return MLA_OK;
  name_ops(d, ops, sizeof ops);
  return mla_fail(err, MLA_INVALID_ARGUMENT, "only",
                  "no case begins with \"%.40s\" as a whole word; there are: "
                  "%s",
                  pattern, ops);
}

mla_status mla_docket_keep_only(mla_docket *d, const char *const *patterns,
                                int32_t count, mla_error *err) {
  int32_t kept = 0;
  for (int32_t k = 0; k < count; k++) {
    mla_status status = check_pattern(d, patterns[k], err);
    if (status != MLA_OK) return status;
  }
  for (int32_t i = 0; i < d->count; i++) {
    int wanted = count == 0;
    for (int32_t k = 0; k < count; k++)
      wanted |= mla_docket_matches(d->item[i].id, patterns[k]);
    if (wanted) d->item[kept++] = d->item[i];
  }
  d->count = kept;
  return MLA_OK;
}

/* ---------------------------------------------------------------- judging */

mla_status mla_docket_vector(const mla_docket *d, int32_t i, mla_poison poison,
                             mla_vector *v, mla_error *err) {
  const mla_item *item = &d->item[i];
  mla_case c;
  mla_vector_init(v);
  if (item->kind == MLA_ITEM_STORED)
    return mla_vector_file_load(d->file[item->file], item->index, v, err);
  mla_status status = mla_case_parse(item->id, &c, err);
  if (status != MLA_OK) return status;
  c.edit[0] = '\0';
  status = mla_generate(&c, item->seed, poison, v, err);
  snprintf(v->hunts, sizeof v->hunts, "%s", item->hunts);
  return status;
}

static void judge_truth(const mla_item *item, mla_device *device,
                        mla_record *r) {
  mla_truth_options options = {NULL, 0, NULL, 0};
  mla_error err = mla_error_init();
  mla_status status =
      mla_truth_judge(item->path, device, &options, &r->truth, &err);
  if (status != MLA_OK) {
    int file = status == MLA_INVALID_ARGUMENT;
    r->verdict.kind = file ? MLA_VERDICT_BAD_VECTOR : MLA_VERDICT_ERROR;
    snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s", err.message);
    return;
  }
  r->verdict.kind = r->truth.verdict == MLA_TRUTH_PASS ? MLA_VERDICT_PASS
                    : r->truth.verdict == MLA_TRUTH_FAIL
                        ? MLA_VERDICT_FAIL
                        : MLA_VERDICT_UNSUPPORTED;
  snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s", r->truth.reason);
}

static void judge_vector(const mla_item *item, const mla_vector *v,
                         mla_device *device, const mla_judge_options *options,
                         mla_record *r) {
  mla_error err = mla_error_init();
  mla_change change;
  const char *edit = strchr(item->id, '!');
  if (item->kind != MLA_ITEM_INVALID) {
    mla_judge_vector(device, v, options, &r->verdict);
  } else if (mla_change_parse(edit + 1, &change, &err) == MLA_OK) {
    mla_judge_invalid(device, v, &change, &r->verdict);
  } else {
    r->verdict.kind = MLA_VERDICT_BAD_VECTOR;
    snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s", err.message);
  }
}

mla_status mla_docket_batch(const mla_docket *d, int32_t i, mla_batch_case *c,
                            mla_batch_answer *expected, mla_error *err) {
  const mla_item *item = &d->item[i];
  if (item->file >= 0)
    return mla_batch_json_read(
        mla_batch_file_at(d->batch[item->file], item->index), c, expected, err);
  mla_status status = mla_batch_case_draw(item->id, item->seed, c, err);
  snprintf(c->hunts, sizeof c->hunts, "%s", item->hunts);
  return status;
}

static void judge_batch(const mla_docket *d, int32_t i, mla_verdict *v) {
  int stored = d->item[i].file >= 0;
  mla_batch_case *c = malloc(sizeof *c);
  mla_batch_answer *expected = mla_batch_answer_new();
  mla_error err = mla_error_init();
  mla_status status = c && expected ? mla_docket_batch(d, i, c, expected, &err)
                                    : mla_docket_no_memory(&err);
  if (status == MLA_OK) {
    mla_batch_judge(c, stored ? expected : NULL, v);
  } else {
    v->kind = status == MLA_INVALID_ARGUMENT ? MLA_VERDICT_BAD_VECTOR
                                             : MLA_VERDICT_ERROR;
    snprintf(v->reason, sizeof v->reason, "%s", err.message);
  }
  free(c);
  free(expected);
}

void mla_docket_judge(const mla_docket *d, int32_t i, mla_device *device,
                      const mla_judge_options *options, mla_record *r) {
  const mla_item *item = &d->item[i];
  mla_judge_options own = *options;
  mla_error err = mla_error_init();
  mla_vector v;
  memset(r, 0, sizeof *r);
  if (item->kind == MLA_ITEM_TRUTH) {
    judge_truth(item, device, r);
    return;
  }
  if (item->kind == MLA_ITEM_BATCH) {
    judge_batch(d, i, &r->verdict);
    return;
  }
  own.has_digest = item->has_digest;
  own.digest = item->digest;
  mla_status status = mla_docket_vector(d, i, options->poison, &v, &err);
  if (status == MLA_OK) {
    judge_vector(item, &v, device, &own, r);
  } else {
    int bad = status == MLA_INVALID_ARGUMENT;
    r->verdict.kind = bad ? MLA_VERDICT_BAD_VECTOR : MLA_VERDICT_ERROR;
    /* Nothing that a backend could do about it. */
    if (status == MLA_UNSUPPORTED) {
      r->verdict.kind = MLA_VERDICT_UNSUPPORTED;
      r->verdict.excused = 1;
    }
    snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s", err.message);
  }
  mla_vector_free(&v);
}
