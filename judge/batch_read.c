/*
 * batch_read.c - cases of batch building, and answers, from JSON. Files may
 * come from anybody.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_json.h"
#include "error.h"
#include "expect.h"
#include "file_text.h"
#include "planted_batch.h"
#include "vector_json.h"

#define GET cJSON_GetObjectItemCaseSensitive
#define LARGEST 9007199254740992.0 /* 2^53: exact in any JSON reader */

static mla_status bad(mla_error *err, const char *member, const char *why) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "file", "\"%.40s\" %s", member,
                  why);
}

/* ----------------------------------------------------------------- numbers */

static int is_whole(const cJSON *item, double least, double most) {
  return cJSON_IsNumber(item) && item->valuedouble >= least &&
         item->valuedouble <= most &&
         (double)(int64_t)item->valuedouble == item->valuedouble;
}

/* -1: no list of at most `room` whole numbers. */
static int64_t read_longs(const cJSON *list, int64_t *to, int64_t room) {
  const cJSON *item;
  int64_t n = 0;
  if (!cJSON_IsArray(list)) return -1;
  cJSON_ArrayForEach(item, list) {
    if (n == room || !is_whole(item, -LARGEST, LARGEST)) return -1;
    to[n++] = (int64_t)item->valuedouble;
  }
  return n;
}

static int64_t read_ints(const cJSON *list, int32_t *to, int64_t room) {
  const cJSON *item;
  int64_t n = 0;
  if (!cJSON_IsArray(list)) return -1;
  cJSON_ArrayForEach(item, list) {
    if (n == room || !is_whole(item, INT32_MIN, INT32_MAX)) return -1;
    to[n++] = (int32_t)item->valuedouble;
  }
  return n;
}

/* Lists of block ids, one a request. */
static int read_lists(const cJSON *lists, int32_t n, int32_t *to, int64_t room,
                      int32_t *starts) {
  if (!cJSON_IsArray(lists) || cJSON_GetArraySize(lists) != n) return 0;
  starts[0] = 0;
  for (int32_t i = 0; i < n; i++) {
    int64_t count = read_ints(cJSON_GetArrayItem(lists, i), to + starts[i],
                              room - starts[i]);
    if (count < 0) return 0;
    starts[i + 1] = starts[i] + (int32_t)count;
  }
  return 1;
}

/* --------------------------------------------------------------- the case */

typedef struct whole_member {
  const char *name;
  size_t offset;
} whole_member;

static const whole_member members[] = {
    {"block_size", offsetof(mla_batch_case, block_size)},
    {"table_width", offsetof(mla_batch_case, table_width)},
    {"decode_threshold", offsetof(mla_batch_case, threshold)},
    {"compute_units", offsetof(mla_batch_case, units)},
    {"pad_requests", offsetof(mla_batch_case, pad_requests)},
    {"pad_tokens", offsetof(mla_batch_case, pad_tokens)},
    {"ranks", offsetof(mla_batch_case, ranks)},
    {"interleave", offsetof(mla_batch_case, interleave)},
};

static mla_status read_scalars(const cJSON *given, mla_batch_case *c,
                               mla_error *err) {
  for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
    const cJSON *item = GET(given, members[i].name);
    if (!is_whole(item, 0, INT32_MAX))
      return bad(err, members[i].name, "is no whole number from 0 on");
    *(int32_t *)((char *)c + members[i].offset) = (int32_t)item->valuedouble;
  }
  const cJSON *blocks = GET(given, "num_blocks");
  if (!is_whole(blocks, 1, INT32_MAX))
    return bad(err, "num_blocks", "is no whole number from 1 on");
  c->num_blocks = (int64_t)blocks->valuedouble;
  if (!cJSON_IsBool(GET(given, "causal")) ||
      !cJSON_IsBool(GET(given, "batch_invariant")))
    return bad(err, "causal, batch_invariant", "are not true or false");
  c->causal = cJSON_IsTrue(GET(given, "causal"));
  c->invariant = cJSON_IsTrue(GET(given, "batch_invariant"));
  return MLA_OK;
}

static int64_t sum(const int32_t *x, int32_t n) {
  int64_t total = 0;
  for (int32_t i = 0; i < n; i++) total += x[i];
  return total;
}

static mla_status read_given(const cJSON *given, mla_batch_case *c,
                             mla_error *err) {
  static const char *const known[] = {
      "block_size", "num_blocks",      "table_width",   "decode_threshold",
      "causal",     "batch_invariant", "compute_units", "pad_requests",
      "pad_tokens", "ranks",           "interleave",    "context_lens",
      "query_lens", "block_ids",       "token_ids",     NULL};
  if (!cJSON_IsObject(given)) return bad(err, "given", "is absent");
  mla_status status = mla_json_only(given, known, err);
  if (status == MLA_OK) status = read_scalars(given, c, err);
  if (status != MLA_OK) return status;
  int64_t n =
      read_ints(GET(given, "context_lens"), c->context, MLA_BATCH_REQUESTS);
  if (n < 0 ||
      read_ints(GET(given, "query_lens"), c->rows, MLA_BATCH_REQUESTS) != n)
    return bad(err, "context_lens, query_lens",
               "are not as long as each other");
  c->requests = (int32_t)n;
  if (!read_lists(GET(given, "block_ids"), c->requests, c->blocks,
                  MLA_BATCH_REQUESTS * MLA_BATCH_WIDTH, c->starts))
    return bad(err, "block_ids", "is no list of block ids for each request");
  if (read_ints(GET(given, "token_ids"), c->tokens, MLA_BATCH_ROWS) !=
      sum(c->rows, c->requests))
    return bad(err, "token_ids", "does not have an id for each row");
  return MLA_OK;
}

static mla_status read_turn(const cJSON *json, mla_batch_turn *t,
                            mla_error *err) {
  static const char *const known[] = {"kept", "query_lens", "block_ids",
                                      "token_ids", NULL};
  mla_status status = mla_json_only(json, known, err);
  if (status != MLA_OK) return status;
  int64_t n = read_ints(GET(json, "kept"), t->kept, MLA_BATCH_REQUESTS);
  if (n < 0 ||
      read_ints(GET(json, "query_lens"), t->rows, MLA_BATCH_REQUESTS) != n)
    return bad(err, "kept, query_lens", "are not as long as each other");
  t->requests = (int32_t)n;
  if (!read_lists(GET(json, "block_ids"), t->requests, t->more, MLA_BATCH_WIDTH,
                  t->more_starts))
    return bad(err, "block_ids", "is no list of block ids for each request");
  if (read_ints(GET(json, "token_ids"), t->tokens, MLA_BATCH_ROWS) !=
      sum(t->rows, t->requests))
    return bad(err, "token_ids", "does not have an id for each row");
  return MLA_OK;
}

static mla_status read_turns(const cJSON *next, mla_batch_case *c,
                             mla_error *err) {
  const cJSON *item;
  mla_status status = MLA_OK;
  if (!cJSON_IsArray(next) || cJSON_GetArraySize(next) > MLA_BATCH_NEXT)
    return bad(err, "next", "is no list of at most 7 steps");
  cJSON_ArrayForEach(item, next) {
    if (status == MLA_OK) status = read_turn(item, &c->turn[c->turns], err);
    c->turns++;
  }
  return status;
}

/* ------------------------------------------------------------------ arrays */

static int is_asked(const mla_batch_case *c, int array) {
  return array < MLA_BATCH_RANK_SLOTS || c->ranks > 0;
}

static mla_status read_array(const cJSON *json, int32_t step, int array,
                             mla_batch_answer *to, mla_error *err) {
  const char *name = mla_batch_array_name(array);
  mla_batch_step *at = &to->step[step];
  at->count[array] = 0;
  if (to->left_out >> array & 1) return MLA_OK;
  const cJSON *list = GET(json, name);
  if (!list)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "file",
                    "step %d has no %s, and it is not among \"leaves_out\"",
                    (int)step, name);
  at->count[array] =
      read_longs(list, mla_batch_values(at, array), mla_batch_most(array));
  if (at->count[array] >= 0) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "file",
                  "step %d: %s is no list of at most %lld whole numbers",
                  (int)step, name, (long long)mla_batch_most(array));
}

static mla_status check_names(const cJSON *json, mla_error *err) {
  const cJSON *item;
  if (!cJSON_IsObject(json)) return bad(err, "steps", "holds no object");
  cJSON_ArrayForEach(item, json) if (mla_batch_array_find(item->string) <
                                     0) return bad(err, item->string,
                                                   "is no array of a step");
  return MLA_OK;
}

static mla_status read_steps(const cJSON *steps, const mla_batch_case *c,
                             mla_batch_answer *to, mla_error *err) {
  int32_t wanted = c->turns + 1;
  mla_status status = MLA_OK;
  if (!cJSON_IsArray(steps) || cJSON_GetArraySize(steps) != wanted)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "file",
                    "there are %d steps, the case has %d",
                    cJSON_GetArraySize(steps), (int)wanted);
  to->steps = wanted;
  for (int32_t s = 0; status == MLA_OK && s < wanted; s++) {
    const cJSON *json = cJSON_GetArrayItem(steps, s);
    status = check_names(json, err);
    for (int a = 0; status == MLA_OK && a < MLA_BATCH_ARRAYS; a++)
      if (is_asked(c, a)) status = read_array(json, s, a, to, err);
  }
  return status;
}

/* What is expected must have the extents that follow from what is given. */
static mla_status check_extents(const mla_batch_case *c,
                                const mla_batch_answer *to, mla_error *err) {
  mla_batch_answer *plain = mla_batch_answer_new();
  mla_status status = plain ? MLA_OK : MLA_OUT_OF_MEMORY;
  if (plain) planted_batch_build(c, PLANTED_BATCH_NONE, 0, plain);
  for (int32_t s = 0; status == MLA_OK && s < to->steps; s++)
    for (int a = 0; status == MLA_OK && a < MLA_BATCH_ARRAYS; a++)
      if (to->step[s].count[a] != plain->step[s].count[a])
        status = mla_fail(err, MLA_INVALID_ARGUMENT, "file",
                          "step %d: %s has %lld values, %lld follow from what "
                          "is given",
                          (int)s, mla_batch_array_name(a),
                          (long long)to->step[s].count[a],
                          (long long)plain->step[s].count[a]);
  free(plain);
  return status;
}

mla_status mla_batch_json_read(const cJSON *json, mla_batch_case *c,
                               mla_batch_answer *expected, mla_error *err) {
  static const char *const known[] = {"kind",  "id",   "seed",     "hunts",
                                      "given", "next", "expected", NULL};
  memset(c, 0, sizeof *c);
  memset(expected, 0, sizeof *expected);
  mla_status status = mla_json_only(json, known, err);
  const char *id = cJSON_GetStringValue(GET(json, "id"));
  if (status == MLA_OK && !id) return bad(err, "id", "is absent");
  if (status == MLA_OK) status = read_given(GET(json, "given"), c, err);
  if (status == MLA_OK) status = read_turns(GET(json, "next"), c, err);
  if (status == MLA_OK) status = mla_batch_case_check(c, err);
  if (status == MLA_OK)
    status = read_steps(GET(json, "expected"), c, expected, err);
  if (status == MLA_OK) status = check_extents(c, expected, err);
  if (status != MLA_OK) return status;
  snprintf(c->id, sizeof c->id, "%s", id);
  mla_json_join(GET(json, "hunts"), c->hunts, sizeof c->hunts);
  return MLA_OK;
}

/* ----------------------------------------------------------------- answers */

/* Without these there is nothing to judge. */
static int is_core(int array) {
  return array <= MLA_BATCH_BLOCK_TABLE;
}

static mla_status read_left_out(const cJSON *json, mla_batch_answer *to,
                                mla_error *err) {
  const cJSON *item;
  size_t used = 0;
  if (json && !cJSON_IsObject(json))
    return bad(err, "leaves_out", "is no object of reasons by name");
  cJSON_ArrayForEach(item, json) {
    int array = mla_batch_array_find(item->string);
    int padding = strcmp(item->string, "padding") == 0;
    const char *why = cJSON_GetStringValue(item);
    if ((array < 0 || is_core(array)) && !padding)
      return bad(err, item->string, "cannot be left out");
    if (!why || !*why)
      return bad(err, item->string, "is left out for no reason");
    if (padding)
      to->no_padding = 1;
    else
      to->left_out |= 1u << array;
    int n = snprintf(to->why + used, sizeof to->why - used, "%s%s (%.60s)",
                     used ? ", " : "", item->string, why);
    used += n > 0 ? (size_t)n : 0;
    if (used >= sizeof to->why) used = sizeof to->why - 1;
  }
  return MLA_OK;
}

static mla_status read_answer(const cJSON *json, const mla_batch_case *c,
                              mla_batch_answer *to, mla_error *err) {
  static const char *const known[] = {"steps", "leaves_out", "unsupported",
                                      NULL};
  const char *no = cJSON_GetStringValue(GET(json, "unsupported"));
  mla_status status = cJSON_IsObject(json)
                          ? mla_json_only(json, known, err)
                          : bad(err, "steps", "is in no object");
  if (status == MLA_OK && no)
    return mla_fail(err, MLA_UNSUPPORTED, "file", "%.200s",
                    *no ? no : "no reason is given");
  if (status == MLA_OK)
    status = read_left_out(GET(json, "leaves_out"), to, err);
  return status == MLA_OK ? read_steps(GET(json, "steps"), c, to, err) : status;
}

mla_status mla_batch_answer_read(const char *path, const mla_batch_case *c,
                                 mla_batch_answer *answer, mla_error *err) {
  memset(answer, 0, sizeof *answer);
  char *text = mla_file_text(path, NULL);
  if (!text)
    return mla_fail(err, MLA_NOT_AVAILABLE, "file", "%.200s cannot be read",
                    path);
  cJSON *json = cJSON_Parse(text);
  free(text);
  mla_status status = json ? read_answer(json, c, answer, err)
                           : mla_fail(err, MLA_INVALID_ARGUMENT, "file",
                                      "%.200s is no JSON", path);
  cJSON_Delete(json);
  return status;
}

/* ------------------------------------------------------------------- files */

static int is_ours(const cJSON *json) {
  const char *format = cJSON_GetStringValue(GET(json, "format"));
  return format && strcmp(format, MLA_BATCH_FORMAT) == 0;
}

static cJSON *parse_file(const char *path, mla_error *err) {
  char *text = mla_file_text(path, err);
  cJSON *json = text ? cJSON_Parse(text) : NULL;
  free(text);
  return json;
}

int mla_batch_file_is(const char *path) {
  cJSON *json = parse_file(path, NULL);
  int ours = json && is_ours(json);
  cJSON_Delete(json);
  return ours;
}

int32_t mla_batch_file_count(const cJSON *json) {
  return cJSON_GetArraySize(GET(json, "cases"));
}

const cJSON *mla_batch_file_at(const cJSON *json, int32_t i) {
  return cJSON_GetArrayItem(GET(json, "cases"), i);
}

static mla_status check_header(const cJSON *json, mla_error *err) {
  static const char *const known[] = {"format", "version", "expected_by",
                                      "cases", NULL};
  const cJSON *version = GET(json, "version");
  const char *by = cJSON_GetStringValue(GET(json, "expected_by"));
  if (!is_ours(json)) return bad(err, "format", "is not \"mla-batches\"");
  if (!cJSON_IsNumber(version) || version->valuedouble != 1)
    return bad(err, "version", "is not 1, the one that this judge reads");
  if (!by) return bad(err, "expected_by", "is absent");
  if (!cJSON_IsArray(GET(json, "cases")))
    return bad(err, "cases", "is no list");
  return mla_json_only(json, known, err);
}

mla_status mla_batch_file_open(const char *path, cJSON **json, mla_error *err) {
  *json = parse_file(path, err);
  if (!*json)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "file", "%.200s is no JSON",
                    path);
  mla_status status = check_header(*json, err);
  if (status == MLA_OK) return MLA_OK;
  cJSON_Delete(*json);
  *json = NULL;
  return status;
}
