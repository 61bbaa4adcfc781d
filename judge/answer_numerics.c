/*
 * answer_numerics.c - the arithmetic that somebody declares, from JSON.
 */
#include <string.h>

#include "error.h"
#include "question.h"

/* The members that are one of a few words. */
static const char *const dequants[] = {"round_product", "round_scale", "f32",
                                       "scale_after", NULL};
static const char *const q_rounds[] = {"none", "int8_row", NULL};

static int word_of(const cJSON *value, const char *const *words, int32_t *to) {
  const char *text = cJSON_GetStringValue(value);
  for (int32_t i = 0; text && words[i]; i++) {
    if (strcmp(words[i], text) != 0) continue;
    *to = i;
    return 1;
  }
  return 0;
}

static int roundoff_of(const cJSON *value, double *to) {
  if (!cJSON_IsNumber(value) || !(value->valuedouble >= 0) ||
      value->valuedouble > 1)
    return 0;
  *to = value->valuedouble;
  return 1;
}

static int flag_of(const cJSON *value, int32_t *to) {
  if (!cJSON_IsBool(value)) return 0;
  *to = cJSON_IsTrue(value);
  return 1;
}

/* -1: no member has this name. */
static int set_member(const cJSON *value, mla_numerics *n) {
  const char *name = value->string;
  if (!strcmp(name, "u_acc")) return roundoff_of(value, &n->u_acc);
  if (!strcmp(name, "u_p")) return roundoff_of(value, &n->u_p);
  if (!strcmp(name, "u_mid")) return roundoff_of(value, &n->u_mid);
  if (!strcmp(name, "dequant")) return word_of(value, dequants, &n->dequant);
  if (!strcmp(name, "q_round")) return word_of(value, q_rounds, &n->q_round);
  if (!strcmp(name, "flushes_subnormals"))
    return flag_of(value, &n->flushes_subnormals);
  if (!strcmp(name, "rounded_denominator"))
    return flag_of(value, &n->rounded_denominator);
  if (!strcmp(name, "lse_empty_positive"))
    return flag_of(value, &n->lse_empty_positive);
  return -1;
}

mla_status mla_numerics_read(const cJSON *json, mla_numerics *numerics,
                             mla_error *err) {
  const cJSON *item;
  if (!cJSON_IsObject(json))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "numerics",
                    "the declared numerics are no JSON object");
  cJSON_ArrayForEach(item, json) {
    int ok = set_member(item, numerics);
    if (ok > 0) continue;
    return mla_fail(err, MLA_INVALID_ARGUMENT, "numerics",
                    ok ? "\"%.40s\" is no member of the declared numerics"
                       : "%.40s has no lawful value in the declared numerics",
                    item->string);
  }
  return MLA_OK;
}
