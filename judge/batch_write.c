/*
 * batch_write.c - cases of batch building to JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "batch_json.h"

static cJSON *ints(const int32_t *x, int64_t n) {
  return cJSON_CreateIntArray(x, (int)n);
}

static cJSON *longs(const int64_t *x, int64_t n) {
  cJSON *list = cJSON_CreateArray();
  for (int64_t i = 0; list && i < n; i++)
    cJSON_AddItemToArray(list, cJSON_CreateNumber((double)x[i]));
  return list;
}

/* [[3, 1], [], [7]] */
static cJSON *lists(const int32_t *x, const int32_t *starts, int32_t n) {
  cJSON *list = cJSON_CreateArray();
  for (int32_t i = 0; list && i < n; i++)
    cJSON_AddItemToArray(list, ints(x + starts[i], starts[i + 1] - starts[i]));
  return list;
}

static int64_t sum(const int32_t *x, int32_t n) {
  int64_t total = 0;
  for (int32_t i = 0; i < n; i++) total += x[i];
  return total;
}

static void add_int(cJSON *to, const char *name, int64_t value) {
  cJSON_AddNumberToObject(to, name, (double)value);
}

static void add_given(cJSON *json, const mla_batch_case *c) {
  cJSON *to = cJSON_AddObjectToObject(json, "given");
  add_int(to, "block_size", c->block_size);
  add_int(to, "num_blocks", c->num_blocks);
  add_int(to, "table_width", c->table_width);
  add_int(to, "decode_threshold", c->threshold);
  cJSON_AddBoolToObject(to, "causal", c->causal);
  cJSON_AddBoolToObject(to, "batch_invariant", c->invariant);
  add_int(to, "compute_units", c->units);
  add_int(to, "pad_requests", c->pad_requests);
  add_int(to, "pad_tokens", c->pad_tokens);
  add_int(to, "ranks", c->ranks);
  add_int(to, "interleave", c->interleave);
  cJSON_AddItemToObject(to, "context_lens", ints(c->context, c->requests));
  cJSON_AddItemToObject(to, "query_lens", ints(c->rows, c->requests));
  cJSON_AddItemToObject(to, "block_ids",
                        lists(c->blocks, c->starts, c->requests));
  cJSON_AddItemToObject(to, "token_ids",
                        ints(c->tokens, sum(c->rows, c->requests)));
}

static void add_turn(cJSON *list, const mla_batch_turn *t) {
  cJSON *to = cJSON_CreateObject();
  cJSON_AddItemToObject(to, "kept", ints(t->kept, t->requests));
  cJSON_AddItemToObject(to, "query_lens", ints(t->rows, t->requests));
  cJSON_AddItemToObject(to, "block_ids",
                        lists(t->more, t->more_starts, t->requests));
  cJSON_AddItemToObject(to, "token_ids",
                        ints(t->tokens, sum(t->rows, t->requests)));
  cJSON_AddItemToArray(list, to);
}

static void add_step(cJSON *list, const mla_batch_case *c,
                     const mla_batch_step *step) {
  cJSON *to = cJSON_CreateObject();
  for (int a = 0; a < MLA_BATCH_ARRAYS; a++) {
    if (a >= MLA_BATCH_RANK_SLOTS && !c->ranks) continue;
    cJSON_AddItemToObject(to, mla_batch_array_name(a),
                          longs(mla_batch_values_of(step, a), step->count[a]));
  }
  cJSON_AddItemToArray(list, to);
}

static void add_hunts(cJSON *json, const char *hunts) {
  cJSON *list = cJSON_AddArrayToObject(json, "hunts");
  char word[64];
  while (*hunts) {
    size_t n = strcspn(hunts, ", ");
    if (n && n < sizeof word) {
      memcpy(word, hunts, n);
      word[n] = '\0';
      cJSON_AddItemToArray(list, cJSON_CreateString(word));
    }
    hunts += n + strspn(hunts + n, ", ");
  }
}

cJSON *mla_batch_json(const mla_batch_case *c,
                      const mla_batch_answer *expected) {
  cJSON *json = cJSON_CreateObject();
  cJSON_AddStringToObject(json, "kind", "batch");
  cJSON_AddStringToObject(json, "id", c->id);
  add_int(json, "seed", (int64_t)c->seed);
  add_hunts(json, c->hunts);
  add_given(json, c);
  cJSON *next = cJSON_AddArrayToObject(json, "next");
  for (int32_t t = 0; t < c->turns; t++) add_turn(next, &c->turn[t]);
  if (!expected) return json;
  cJSON *steps = cJSON_AddArrayToObject(json, "expected");
  for (int32_t s = 0; s < expected->steps; s++)
    add_step(steps, c, &expected->step[s]);
  return json;
}
