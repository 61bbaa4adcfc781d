/*
 * golden_text.c - the JSON side of golden files.
 */
#include "golden_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "expect.h"

int mla_text_add(mla_text *t, const char *more) {
  size_t n = strlen(more), need = t->used + n + 1;
  if (need > t->room) {
    size_t room = need * 2;
    char *grown = realloc(t->text, room);
    if (!grown) return 0;
    t->text = grown;
    t->room = room;
  }
  memcpy(t->text + t->used, more, n + 1);
  t->used += n;
  return 1;
}

int mla_text_case(mla_text *t, const cJSON *json) {
  char *line = json ? cJSON_PrintUnformatted(json) : NULL;
  int ok =
      line && (!t->used || mla_text_add(t, ",\n")) && mla_text_add(t, line);
  cJSON_free(line);
  return ok;
}

mla_status mla_text_file(mla_golden *g, const char *name, const char *tensors,
                         const mla_text *cases, mla_error *err) {
  char head[400];
  mla_text t = {NULL, 0, 0};
  snprintf(head, sizeof head,
           "{\"format\":\"mla-vectors\",\"version\":1,\n\"expected_by\":\"%s\","
           "\n%s%s%s\"cases\":[\n",
           MLA_REFERENCE_NAME, tensors ? "\"tensors\":\"" : "",
           tensors ? tensors : "", tensors ? "\",\n" : "");
  int ok = mla_text_add(&t, head) &&
           (!cases->text || mla_text_add(&t, cases->text)) &&
           mla_text_add(&t, "\n]}\n");
  if (ok) return mla_golden_add(g, name, (unsigned char *)t.text, t.used, err);
  free(t.text);
  return mla_fail(err, MLA_OUT_OF_MEMORY, "golden", "no memory for %s", name);
}
