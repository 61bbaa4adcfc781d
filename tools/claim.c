/*
 * claim.c - making and checking a conformance claim.
 */
#include "claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "report_model.h"

/* ----------------------------------------------------------------- making */

static void copy_text(cJSON *to, const cJSON *from, const char *name) {
  const char *text = model_text(from, name);
  if (!*text) return;
  char *clean = claim_without_paths(text);
  if (clean) cJSON_AddStringToObject(to, name, clean);
  free(clean);
}

static void copy_whole(cJSON *to, const cJSON *from, const char *name) {
  const cJSON *item = model_member(from, name);
  if (item) cJSON_AddItemToObject(to, name, cJSON_Duplicate(item, 1));
}

static void copy_texts(cJSON *to, const cJSON *report, const char *object,
                       const char *const *names) {
  const cJSON *from = model_member(report, object);
  if (!from) return;
  cJSON *made = cJSON_AddObjectToObject(to, object);
  for (; *names; names++) copy_text(made, from, *names);
}

static void copy_outputs(cJSON *to, const cJSON *record) {
  const cJSON *output;
  cJSON *outputs = cJSON_AddArrayToObject(to, "outputs");
  cJSON_ArrayForEach(output, model_member(record, "outputs")) {
    cJSON *made = cJSON_CreateObject();
    cJSON_AddItemToArray(outputs, made);
    copy_text(made, output, "tensor");
    copy_text(made, output, "compare");
    copy_whole(made, output, "worst");
    copy_text(made, output, "digest");
  }
}

static void copy_case(cJSON *cases, const cJSON *record) {
  cJSON *made = cJSON_CreateObject();
  cJSON_AddItemToArray(cases, made);
  copy_text(made, record, "id");
  copy_whole(made, record, "seed");
  copy_whole(made, record, "required");
  copy_text(made, record, "verdict");
  copy_text(made, record, "kernel");
  copy_text(made, record, "reason");
  copy_whole(made, record, "waived");
  copy_outputs(made, record);
}

static void seal(cJSON *claim) {
  char text[20];
  snprintf(text, sizeof text, "%016llx",
           (unsigned long long)claim_digest(claim));
  cJSON_AddStringToObject(claim, "digest", text);
}

static cJSON *pack(const cJSON *report) {
  static const char *const environment[] = {"interface", "compiler", "machine",
                                            "byte_order", NULL};
  static const char *const backend[] = {"name", "version", "description", NULL};
  static const char *const device[] = {"name", "arch", NULL};
  const cJSON *record;
  cJSON *claim = cJSON_CreateObject();
  cJSON_AddStringToObject(claim, "format", "mla-claim");
  cJSON_AddNumberToObject(claim, "version", 1);
  copy_text(claim, report, "libmla");
  copy_text(claim, report, "reference");
  copy_texts(claim, report, "environment", environment);
  copy_texts(claim, report, "backend", backend);
  copy_texts(claim, report, "device", device);
  cJSON *units = cJSON_GetObjectItemCaseSensitive(claim, "device");
  if (units) copy_whole(units, model_member(report, "device"), "compute_units");
  copy_whole(claim, report, "profile");
  copy_whole(claim, report, "only");
  cJSON *cases = cJSON_AddArrayToObject(claim, "cases");
  cJSON_ArrayForEach(record, model_member(report, "cases"))
      copy_case(cases, record);
  cJSON *sums = claim_sums(claim);
  cJSON_AddItemToObject(claim, "sums", sums);
  cJSON_AddStringToObject(claim, "verdict", claim_verdict(sums));
  seal(claim);
  return claim;
}

cJSON *claim_make(const cJSON *report, mla_error *err) {
  if (!*model_text(report, "profile")) {
    mla_fail(err, MLA_INVALID_ARGUMENT, "profile",
             "the run was of no profile: there is no claim");
    return NULL;
  }
  cJSON *claim = pack(report);
  if (claim_cases(claim, err) == MLA_OK && claim_check(claim, err) == MLA_OK)
    return claim;
  cJSON_Delete(claim);
  return NULL;
}

/* --------------------------------------------------------------- members */

/* What an object may hold: s text, n number, b truth, o object, a array, r
   number or "inf"; a capital letter: it must. */
typedef struct member {
  const char *name;
  char kind;
} member;

static const member of_claim[] = {
    {"format", 'S'},      {"version", 'N'}, {"libmla", 'S'}, {"reference", 'S'},
    {"environment", 'O'}, {"backend", 'O'}, {"device", 'o'}, {"profile", 'S'},
    {"only", 'A'},        {"cases", 'A'},   {"sums", 'O'},   {"verdict", 'S'},
    {"digest", 'S'},      {NULL, 0}};
static const member of_environment[] = {{"interface", 'S'},
                                        {"compiler", 's'},
                                        {"machine", 's'},
                                        {"byte_order", 'S'},
                                        {NULL, 0}};
static const member of_backend[] = {
    {"name", 'S'}, {"version", 's'}, {"description", 's'}, {NULL, 0}};
static const member of_device[] = {
    {"name", 's'}, {"arch", 's'}, {"compute_units", 'n'}, {NULL, 0}};
static const member of_case[] = {
    {"id", 'S'},      {"seed", 'N'},    {"required", 'B'},
    {"verdict", 'S'}, {"kernel", 's'},  {"reason", 's'},
    {"waived", 'o'},  {"outputs", 'A'}, {NULL, 0}};
static const member of_waived[] = {
    {"link", 'S'}, {"reason", 's'}, {"until", 's'}, {NULL, 0}};
static const member of_output[] = {{"tensor", 'S'},
                                   {"compare", 'S'},
                                   {"worst", 'R'},
                                   {"digest", 'S'},
                                   {NULL, 0}};

static int is_kind(const cJSON *item, char kind) {
  switch (kind | 32) {
    case 's': return cJSON_IsString(item) && item->valuestring[0];
    case 'n': return cJSON_IsNumber(item);
    case 'b': return cJSON_IsBool(item);
    case 'o': return cJSON_IsObject(item);
    case 'a': return cJSON_IsArray(item);
    default:
      return cJSON_IsNumber(item) ||
             (cJSON_IsString(item) && (strcmp(item->valuestring, "inf") == 0 ||
                                       strcmp(item->valuestring, "nan") == 0));
  }
}

static mla_status broken(mla_error *err, const char *where, const char *name,
                         const char *what) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "claim", "%.100s: %.60s %s", where,
                  name, what);
}

static mla_status check_members(const cJSON *object, const member *members,
                                const char *where, mla_error *err) {
  if (!cJSON_IsObject(object)) return broken(err, where, "it", "is no object");
  for (const member *m = members; m->name; m++)
    if (m->kind < 'a' && !model_member(object, m->name))
      return broken(err, where, m->name, "is missing");
  for (const cJSON *item = object->child; item; item = item->next) {
    const member *m = members;
    while (m->name && strcmp(m->name, item->string) != 0) m++;
    if (!m->name) return broken(err, where, item->string, "is no member");
    if (!is_kind(item, m->kind))
      return broken(err, where, item->string, "is of the wrong kind");
    if (model_member(object, m->name) != item)
      return broken(err, where, item->string, "stands twice");
    if (cJSON_IsString(item) && claim_has_path(item->valuestring))
      return broken(err, where, item->string, "holds a path");
  }
  return MLA_OK;
}

static int is_digest(const char *text) {
  return strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
}

/* ------------------------------------------------------------------ a case */

static mla_status check_output(const cJSON *output, const char *id, int pass,
                               mla_error *err) {
  mla_status status = check_members(output, of_output, id, err);
  if (status != MLA_OK) return status;
  if (!is_digest(model_text(output, "digest")))
    return broken(err, id, "digest", "is no digest");
  if (pass && !(model_real(output, "worst") <= 1))
    return broken(err, id, model_text(output, "tensor"),
                  "is over its budget, and yet it passed");
  return MLA_OK;
}

static int is_verdict(const char *word) {
  for (int32_t kind = MLA_VERDICT_PASS; kind <= MLA_VERDICT_BAD_VECTOR; kind++)
    if (strcmp(word, mla_verdict_name(kind)) == 0) return 1;
  return 0;
}

static mla_status check_record(const cJSON *record, mla_error *err) {
  const char *id = model_text(record, "id");
  const cJSON *output, *waived = model_member(record, "waived");
  mla_status status = check_members(record, of_case, id, err);
  const char *verdict = model_text(record, "verdict");
  int pass = strcmp(verdict, "pass") == 0, count = 0;
  if (status == MLA_OK && !is_verdict(verdict))
    return broken(err, id, verdict, "is no verdict");
  if (status == MLA_OK && waived)
    status = check_members(waived, of_waived, id, err);
  if (status == MLA_OK && waived && pass)
    return broken(err, id, "waived", "stands at a case that passed");
  cJSON_ArrayForEach(output, model_member(record, "outputs")) {
    if (status != MLA_OK) return status;
    status = check_output(output, id, pass, err);
    count++;
  }
  if (status == MLA_OK && pass && !count && !strchr(id, '!'))
    return broken(err, id, "outputs", "are none, and yet it passed");
  return status;
}

/* --------------------------------------------------------------- the whole */

static mla_status check_form(const cJSON *claim, mla_error *err) {
  const cJSON *record, *pattern;
  mla_status status = check_members(claim, of_claim, "claim", err);
  if (status != MLA_OK) return status;
  if (strcmp(model_text(claim, "format"), "mla-claim") != 0 ||
      model_number(claim, "version") != 1)
    return broken(err, "claim", "format", "is not mla-claim, version 1");
  status = check_members(model_member(claim, "environment"), of_environment,
                         "environment", err);
  if (status == MLA_OK)
    status = check_members(model_member(claim, "backend"), of_backend,
                           "backend", err);
  if (status == MLA_OK && model_member(claim, "device"))
    status =
        check_members(model_member(claim, "device"), of_device, "device", err);
  cJSON_ArrayForEach(
      pattern,
      model_member(
          claim,
          "only")) if (!cJSON_IsString(pattern)) return broken(err, "only",
                                                               "a pattern",
                                                               "is no text");
  cJSON_ArrayForEach(record, model_member(claim, "cases")) {
    if (status != MLA_OK) return status;
    status = check_record(record, err);
  }
  return status;
}

static mla_status check_seal(const cJSON *claim, mla_error *err) {
  char text[20];
  snprintf(text, sizeof text, "%016llx",
           (unsigned long long)claim_digest(claim));
  if (strcmp(text, model_text(claim, "digest")) == 0) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "digest",
                  "the digest of the content is %s, the claim says %.20s", text,
                  model_text(claim, "digest"));
}

static mla_status check_sums(const cJSON *claim, mla_error *err) {
  cJSON *sums = claim_sums(claim);
  const char *verdict = claim_verdict(sums);
  mla_status status = MLA_OK;
  if (!cJSON_Compare(sums, model_member(claim, "sums"), 1))
    status = mla_fail(err, MLA_INVALID_ARGUMENT, "sums",
                      "the sums are not those of the cases");
  else if (strcmp(verdict, model_text(claim, "verdict")) != 0)
    status = mla_fail(err, MLA_INVALID_ARGUMENT, "verdict",
                      "the verdict is \"%s\", the claim says \"%.40s\"",
                      verdict, model_text(claim, "verdict"));
  else if (model_number(sums, "passed") < 1)
    status = mla_fail(err, MLA_INVALID_ARGUMENT, "verdict",
                      "no case passed: that is no conformance");
  else if (strcmp(verdict, "does not conform") == 0)
    status = mla_fail(
        err, MLA_INVALID_ARGUMENT, "verdict",
        "it does not conform: %d failed, %d required ones "
        "unsupported, %d not judged",
        model_count(sums, "failed"), model_count(sums, "unsupported_required"),
        model_count(sums, "errors") + model_count(sums, "bad_vectors"));
  cJSON_Delete(sums);
  return status;
}

mla_status claim_check(const cJSON *claim, mla_error *err) {
  mla_status status = check_form(claim, err);
  if (status == MLA_OK) status = check_seal(claim, err);
  if (status == MLA_OK) status = claim_cases(claim, err);
  if (status == MLA_OK) status = check_sums(claim, err);
  return status;
}

int claim_waived(const cJSON *claim) {
  return model_count(model_member(claim, "sums"), "waived");
}
