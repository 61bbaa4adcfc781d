/*
 * batch_json.h - cases of batch building as JSON: files of them, questions,
 * and answers (golden/FORMAT.md, "Batches").
 */
#ifndef MLA_BATCH_JSON_H
#define MLA_BATCH_JSON_H

#include <cjson/cJSON.h>

#include "batch_case.h"

#define MLA_BATCH_FORMAT "mla-batches"

/* What a file says of the case; expected NULL: a question. NULL: no memory. */
cJSON *mla_batch_json(const mla_batch_case *c,
                      const mla_batch_answer *expected);

/* Fills the case, and expected. INVALID_ARGUMENT with the member. */
mla_status mla_batch_json_read(const cJSON *json, mla_batch_case *c,
                               mla_batch_answer *expected, mla_error *err);

/*
 * The answer in a file {"steps": [{"slot_mapping": [...], ...}, ...]}.
 * UNSUPPORTED: it says why there is none; NOT_AVAILABLE: no such file;
 * INVALID_ARGUMENT: it is broken, or an array is missing without a word.
 */
mla_status mla_batch_answer_read(const char *path, const mla_batch_case *c,
                                 mla_batch_answer *answer, mla_error *err);

/* ------------------------------------------------------------------ files */

/* Is this a JSON file of that format? Unreadable: no. */
int mla_batch_file_is(const char *path);
/* The file's JSON, its header checked; to be deleted. */
mla_status mla_batch_file_open(const char *path, cJSON **json, mla_error *err);
/* Its cases. */
int32_t mla_batch_file_count(const cJSON *json);
const cJSON *mla_batch_file_at(const cJSON *json, int32_t i);

#endif
