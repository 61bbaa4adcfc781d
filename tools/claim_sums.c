/*
 * claim_sums.c - what follows from a claim's cases.
 */
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "claim.h"
#include "docket.h"
#include "error.h"
#include "report_model.h"

/* Printed by one printer from one parse, so that spaces and the spelling of
   numbers do not count; the order of members does. */
uint64_t claim_digest(const cJSON *claim) {
  cJSON *copy = cJSON_Duplicate(claim, 1);
  cJSON_DeleteItemFromObjectCaseSensitive(copy, "digest");
  char *text = copy ? cJSON_PrintUnformatted(copy) : NULL;
  uint64_t digest = text ? XXH64(text, strlen(text), 0) : 0;
  cJSON_free(text);
  cJSON_Delete(copy);
  return digest;
}

cJSON *claim_sums(const cJSON *claim) {
  static const char *const names[] = {
      "asked",  "judged",      "passed",      "failed",
      "errors", "bad_vectors", "unsupported", "unsupported_required",
      "waived"};
  enum { ASKED, JUDGED, PASSED, FAILED, ERRORS, BAD, NO, NO_REQUIRED, WAIVED };
  int n[9] = {0};
  const cJSON *record;
  cJSON_ArrayForEach(record, model_member(claim, "cases")) {
    const char *verdict = model_text(record, "verdict");
    int waived = model_member(record, "waived") != NULL;
    int pass = strcmp(verdict, "pass") == 0;
    int fail = strcmp(verdict, "fail") == 0;
    int no = strcmp(verdict, "unsupported") == 0;
    n[ASKED]++;
    n[JUDGED] += pass || fail;
    n[PASSED] += pass;
    n[FAILED] += fail && !waived;
    n[ERRORS] += strcmp(verdict, "error") == 0;
    n[BAD] += strcmp(verdict, "bad vector") == 0;
    n[NO] += no;
    n[NO_REQUIRED] += no && model_true(record, "required") && !waived;
    n[WAIVED] += waived;
  }
  cJSON *sums = cJSON_CreateObject();
  for (int i = 0; i < 9; i++) cJSON_AddNumberToObject(sums, names[i], n[i]);
  return sums;
}

const char *claim_verdict(const cJSON *sums) {
  int bad = model_number(sums, "failed") || model_number(sums, "errors") ||
            model_number(sums, "bad_vectors") ||
            model_number(sums, "unsupported_required");
  if (bad || model_number(sums, "passed") < 1) return "does not conform";
  return model_number(sums, "waived") ? "conforms with waivers" : "conforms";
}

/* ------------------------------------------------------------------ cases */

static mla_status wrong(mla_error *err, const char *id, const char *what) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "cases", "%.120s: %s", id, what);
}

/* A refusal for want of workspace cannot be asked of a backend that needs
   none: of the required cases, such alone may be let off. */
static mla_status check_case(const mla_item *item, const cJSON *record,
                             mla_error *err) {
  int required = model_true(record, "required");
  const char *verdict = model_text(record, "verdict");
  if (strcmp(item->id, model_text(record, "id")) != 0)
    return wrong(err, model_text(record, "id"),
                 "stands where the profile has another case");
  if ((double)item->seed != model_number(record, "seed"))
    return wrong(err, item->id, "was run with another seed");
  if (item->optional && required)
    return wrong(err, item->id, "is not required by the profile");
  if (!item->optional && !required &&
      (item->kind != MLA_ITEM_INVALID || strcmp(verdict, "unsupported") != 0))
    return wrong(err, item->id, "is required by the profile");
  return MLA_OK;
}

static mla_status fill(mla_docket *docket, const cJSON *claim, mla_error *err) {
  const char *only[MOST_VALUES];
  const cJSON *pattern;
  int32_t count = 0;
  mla_suite suite;
  mla_status status = mla_suite_load(model_text(claim, "profile"), &suite, err);
  if (status == MLA_OK) status = mla_docket_add_suite(docket, &suite, err);
  mla_suite_free(&suite);
  cJSON_ArrayForEach(pattern,
                     model_member(claim, "only")) if (cJSON_IsString(pattern) &&
                                                      count < MOST_VALUES)
      only[count++] = pattern->valuestring;
  if (status == MLA_OK) status = mla_docket_keep_only(docket, only, count, err);
  return status;
}

static int is_builtin(const char *name) {
  for (int i = 0; mla_suite_builtin(i); i++)
    if (strcmp(mla_suite_builtin(i), name) == 0) return 1;
  return 0;
}

static mla_status compare(const mla_docket *docket, const cJSON *cases,
                          mla_error *err) {
  int32_t i = 0, count = mla_docket_count(docket), others = 0, judged = 0;
  const cJSON *record;
  if (count != cJSON_GetArraySize(cases))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "cases",
                    "there are %d cases, and the profile has %d here",
                    cJSON_GetArraySize(cases), (int)count);
  cJSON_ArrayForEach(record, cases) {
    const mla_item *item = mla_docket_at(docket, i++);
    mla_status status = check_case(item, record, err);
    if (status != MLA_OK) return status;
    if (item->kind == MLA_ITEM_INVALID) continue;
    others++;
    judged += model_true(record, "required") ||
              strcmp(model_text(record, "verdict"), "unsupported") != 0;
  }
  if (others && !judged)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "cases",
                    "no case was judged but refusals: that is no conformance");
  return MLA_OK;
}

mla_status claim_cases(const cJSON *claim, mla_error *err) {
  const char *profile = model_text(claim, "profile");
  if (!is_builtin(profile))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "profile",
                    "\"%.60s\" is no profile that everybody has", profile);
  mla_docket *docket = mla_docket_new();
  mla_status status = docket ? fill(docket, claim, err)
                             : mla_fail(err, MLA_OUT_OF_MEMORY, "cases",
                                        "no memory for the profile");
  if (status == MLA_OK)
    status = compare(docket, model_member(claim, "cases"), err);
  mla_docket_free(docket);
  return status;
}
