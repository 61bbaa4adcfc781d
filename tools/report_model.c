/*
 * report_model.c - reading members of a report.
 */
#include "report_model.h"

#include <string.h>

#include "dmath.h"

const cJSON *model_member(const cJSON *object, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(object, name);
}

const char *model_text(const cJSON *object, const char *name) {
  const cJSON *item = model_member(object, name);
  return cJSON_IsString(item) ? item->valuestring : "";
}

double model_number(const cJSON *object, const char *name) {
  const cJSON *item = model_member(object, name);
  return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

int model_count(const cJSON *object, const char *name) {
  double value = model_number(object, name);
  if (!(value > 0)) return 0;
  return value < 1e6 ? (int)value : 1000000;
}

int model_exit(const cJSON *model) {
  static const int codes[] = {EXIT_SATISFIED, EXIT_FAILED, EXIT_USAGE,
                              EXIT_ENVIRONMENT, EXIT_NOTHING};
  double value = model_number(model, "exit");
  if (!cJSON_IsNumber(model_member(model, "exit"))) return EXIT_ENVIRONMENT;
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
    if (value == codes[i]) return codes[i];
  return EXIT_ENVIRONMENT;
}

int model_true(const cJSON *object, const char *name) {
  return cJSON_IsTrue(model_member(object, name));
}

double model_real(const cJSON *object, const char *name) {
  const char *word = model_text(object, name);
  if (strcmp(word, "nan") == 0) return mla_nan();
  if (strcmp(word, "inf") == 0) return mla_inf();
  if (strcmp(word, "-inf") == 0) return -mla_inf();
  return model_number(object, name);
}

int model_is_bad(const cJSON *record) {
  const char *verdict = model_text(record, "verdict");
  if (strcmp(verdict, "pass") == 0 || model_member(record, "waived")) return 0;
  return strcmp(verdict, "unsupported") != 0 || model_true(record, "required");
}

/* What stands before the first or second ":" of an id. */
static const char *part(const char *id, char *text, size_t size) {
  size_t n = strcspn(id, ":");
  snprintf(text, size, "%.*s", (int)(n < size ? n : size - 1), id);
  return id[n] ? id + n + 1 : id + n;
}

void model_group(const cJSON *record, char *op, char *format, size_t size) {
  const char *id = model_text(record, "id");
  op[0] = format[0] = '\0';
  if (strcmp(model_text(record, "kind"), "truth") == 0 || !strchr(id, ':'))
    return;
  const char *rest = part(id, op, size);
  if (strcmp(model_text(record, "kind"), "batch") == 0)
    snprintf(format, size, "any"); /* arrays of integers: of no format */
  else
    part(rest, format, size);
}
