/*
 * golden_text.h - JSON files with a case a line, so that a change shows as
 * the lines that changed.
 */
#ifndef MLA_GOLDEN_TEXT_H
#define MLA_GOLDEN_TEXT_H

#include <cjson/cJSON.h>

#include "golden.h"

typedef struct mla_text {
  char *text;
  size_t used, room;
} mla_text;

/* 0: no memory. */
int mla_text_add(mla_text *text, const char *more);
/* A line for the case, with a comma before it unless it is the first. */
int mla_text_case(mla_text *text, const cJSON *json);
/* Header, cases, end; adds the file. tensors: the safetensors, or NULL. */
mla_status mla_text_file(mla_golden *golden, const char *name,
                         const char *tensors, const mla_text *cases,
                         mla_error *err);
/* golden_batch.c: v1/batch.json, of profile batch. */
mla_status mla_golden_batches(mla_golden *golden, mla_error *err);
/* Takes the bytes over. */
mla_status mla_golden_add(mla_golden *golden, const char *name,
                          unsigned char *bytes, uint64_t count, mla_error *err);

#endif
