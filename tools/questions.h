/*
 * questions.h - the index of exported cases.
 */
#ifndef MLA_TOOL_QUESTIONS_H
#define MLA_TOOL_QUESTIONS_H

#include <cjson/cJSON.h>

#include "docket.h"
#include "options.h"

/* Adds a digest of the list, so that a list that was cut short shows. */
void questions_seal(cJSON *index);

/* An index, and its cases as a docket: case i is called name[i]. */
typedef struct questions {
  cJSON *json;
  mla_docket *docket;
  const char **name;   /* in json */
  const char *profile; /* or NULL */
  int restricted;      /* a part of the profile */
} questions;

/*
 * DIR/index.json. Free it, whatever is returned. INVALID_ARGUMENT: no index,
 * or one that was changed; NOT_AVAILABLE: none that can be read. Cases that
 * wanted() refuses are left out.
 */
mla_status questions_load(const char *dir,
                          int (*wanted)(const void *context, const char *id),
                          const void *context, questions *q, mla_error *err);
void questions_free(questions *q);

#endif
