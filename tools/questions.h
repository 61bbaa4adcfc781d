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

/* Neither: all. */
typedef struct questions_asked {
  text_list only;  /* how cases begin */
  text_list cases; /* single ones */
} questions_asked;

/*
 * DIR/index.json, of it what is asked. Free it, whatever is returned.
 * INVALID_ARGUMENT: no index, or one that was changed, or a word that asks for
 * no case; NOT_AVAILABLE: none that can be read.
 */
mla_status questions_load(const char *dir, const questions_asked *asked,
                          questions *q, mla_error *err);
void questions_free(questions *q);

#endif
