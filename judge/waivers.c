/*
 * waivers.c - reading waivers, and finding the one for a failure.
 */
#define _POSIX_C_SOURCE 200809L
#include "waivers.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "error.h"
#include "file_text.h"

/* Greedy with one step back: enough for any number of stars. */
int mla_pattern_matches(const char *pattern, const char *text) {
  const char *star = NULL, *again = NULL;
  while (*text) {
    if (*pattern == '*') {
      star = ++pattern;
      again = text;
    } else if (*pattern == *text) {
      pattern++;
      text++;
    } else if (star) {
      pattern = star;
      text = ++again;
    } else {
      return 0;
    }
  }
  while (*pattern == '*') pattern++;
  return *pattern == '\0';
}

int mla_waiver_concerns(const mla_waiver *w, const char *backend) {
  return !w->backend[0] || strcmp(w->backend, backend) == 0;
}

int32_t mla_waiver_for(const mla_waivers *waivers, const char *backend,
                       const char *id, const char *cls) {
  for (int32_t i = 0; waivers && i < waivers->count; i++) {
    const mla_waiver *w = &waivers->entry[i];
    if (!w->expired && mla_waiver_concerns(w, backend) &&
        (!w->cls[0] || strcmp(w->cls, cls) == 0) &&
        mla_pattern_matches(w->pattern, id))
      return i;
  }
  return -1;
}

void mla_waivers_free(mla_waivers *waivers) {
  free(waivers->entry);
  waivers->entry = NULL;
  waivers->count = 0;
}

/* ---------------------------------------------------------------- reading */

static mla_status wrong(mla_error *err, int32_t i, const char *what) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "waivers", "waiver %d: %s",
                  (int)i + 1, what);
}

static const struct {
  const char *name;
  size_t offset, room;
} members[] = {
#define MEMBER(json, name) \
  { json, offsetof(mla_waiver, name), sizeof(((mla_waiver *)0)->name) }
    MEMBER("case", pattern),    MEMBER("class", cls),
    MEMBER("backend", backend), MEMBER("link", link),
    MEMBER("reason", reason),   MEMBER("until", until),
#undef MEMBER
};
#define MEMBERS (sizeof members / sizeof members[0])

static mla_status read_member(const cJSON *item, int32_t i, mla_waiver *w,
                              mla_error *err) {
  char what[160];
  for (size_t m = 0; m < MEMBERS; m++) {
    if (strcmp(item->string, members[m].name) != 0) continue;
    snprintf(what, sizeof what, "%s must be a text of 1 to %d bytes",
             members[m].name, (int)members[m].room - 1);
    if (!cJSON_IsString(item) || !item->valuestring[0] ||
        strlen(item->valuestring) >= members[m].room)
      return wrong(err, i, what);
    strcpy((char *)w + members[m].offset, item->valuestring);
    return MLA_OK;
  }
  snprintf(what, sizeof what, "\"%.40s\" is no member", item->string);
  return wrong(err, i, what);
}

/* A scheme, "://" and something behind it. */
static int is_link(const char *text) {
  size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
  return n > 0 && strncmp(text + n, "://", 3) == 0 && text[n + 3] > ' ' &&
         !strpbrk(text, " \t\r\n\"<>");
}

static int is_day(const char *text) {
  int year, month, day, n = 0;
  return sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &n) == 3 &&
         n == 10 && text[10] == '\0' && month >= 1 && month <= 12 && day >= 1 &&
         day <= 31;
}

static mla_status read_waiver(const cJSON *json, int32_t i, const char *today,
                              mla_waiver *w, mla_error *err) {
  memset(w, 0, sizeof *w);
  if (!cJSON_IsObject(json)) return wrong(err, i, "it is no object");
  for (const cJSON *item = json->child; item; item = item->next) {
    mla_status status = read_member(item, i, w, err);
    if (status != MLA_OK) return status;
  }
  if (!w->link[0])
    return wrong(err, i, "it has no link: say where the failure is known");
  if (!is_link(w->link))
    return wrong(err, i, "link is no address (https://...)");
  if (!w->pattern[0] && !w->cls[0])
    return wrong(err, i, "it names neither a case nor a class");
  if (w->until[0] && !is_day(w->until))
    return wrong(err, i, "until is no day (YYYY-MM-DD)");
  if (!w->pattern[0]) strcpy(w->pattern, "*");
  w->expired = w->until[0] && strcmp(w->until, today) < 0;
  return MLA_OK;
}

/* Of the clock, unless somebody wants the same answer every day. */
static void this_day(char *text, size_t size) {
  const char *epoch = getenv("SOURCE_DATE_EPOCH");
  char *end = NULL;
  long long said = epoch ? strtoll(epoch, &end, 10) : 0;
  int is_said = end && end != epoch && *end == '\0';
  time_t now = is_said ? (time_t)said : time(NULL);
  struct tm parts;
  if (!gmtime_r(&now, &parts) || !strftime(text, size, "%Y-%m-%d", &parts))
    snprintf(text, size, "9999-12-31"); /* no clock: nothing is in force */
}

static mla_status read_all(const cJSON *root, const char *today,
                           mla_waivers *waivers, mla_error *err) {
  const cJSON *format = cJSON_GetObjectItemCaseSensitive(root, "format");
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(root, "version");
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "waivers");
  if (!cJSON_IsString(format) ||
      strcmp(format->valuestring, "mla-waivers") != 0 ||
      !cJSON_IsNumber(version) || version->valueint != 1 ||
      !cJSON_IsArray(list) || cJSON_GetArraySize(root) != 3)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "waivers",
                    "the file is no JSON of format \"mla-waivers\", version 1, "
                    "with a list of waivers and nothing else");
  waivers->entry =
      calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *waivers->entry);
  if (!waivers->entry)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "waivers", "no memory for waivers");
  const cJSON *item;
  cJSON_ArrayForEach(item, list) {
    mla_status status = read_waiver(item, waivers->count, today,
                                    &waivers->entry[waivers->count], err);
    if (status != MLA_OK) return status;
    waivers->count++;
  }
  return MLA_OK;
}

mla_status mla_waivers_parse(const char *text, const char *today,
                             mla_waivers *waivers, mla_error *err) {
  char day[16];
  const char *end = NULL;
  memset(waivers, 0, sizeof *waivers);
  if (!today) this_day(day, sizeof day);
  cJSON *root = cJSON_ParseWithOpts(text, &end, 1);
  mla_status status = read_all(root, today ? today : day, waivers, err);
  cJSON_Delete(root);
  return status;
}

mla_status mla_waivers_load(const char *path, const char *today,
                            mla_waivers *waivers, mla_error *err) {
  memset(waivers, 0, sizeof *waivers);
  char *text = mla_file_text(path, err);
  if (!text) return MLA_NOT_AVAILABLE;
  mla_status status = mla_waivers_parse(text, today, waivers, err);
  free(text);
  return status;
}
