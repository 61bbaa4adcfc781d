/*
 * vector_json.h - one case of a file of vectors, to and from JSON.
 */
#ifndef MLA_VECTOR_JSON_H
#define MLA_VECTOR_JSON_H

#include <cjson/cJSON.h>

#include "expect.h"
#include "safetensors.h"
#include "vector.h"

typedef struct mla_json_source {
  const cJSON *json;
  const mla_st *tensors;
  int32_t number; /* of the case, for sentences */
} mla_json_source;

/* Fills problem, limits, tensors and stored expectations of a stored case. */
mla_status mla_json_vector(const mla_json_source *source, mla_vector *v,
                           mla_error *err);
/* INVALID_ARGUMENT when the object has members that are not listed. */
mla_status mla_json_only(const cJSON *json, const char *const *known,
                         mla_error *err);
/* The words of a list as one text, "PAGE-SIZE, TAIL-NAN"; as many as fit. */
void mla_json_join(const cJSON *list, char *text, size_t size);
/* "ID!PATH=VALUE:STATUS:FIELD"; 0 when the members do not say so. */
int mla_json_invalid_id(const cJSON *json, const char *id, char *text,
                        size_t size);

/*
 * Writing: the case, and its tensors into w under "NUMBER/...". The writer
 * borrows from v, e and owned[MLA_T_COUNT] (zeroed; for the caller to free).
 * e NULL: a question, without expected values.
 */
mla_status mla_json_stored(const mla_vector *v, const mla_expectation *e,
                           int32_t number, mla_st_writer *w, double **owned,
                           cJSON **json, mla_error *err);
cJSON *mla_json_seeded(const char *id, uint64_t seed, const char *hunts,
                       uint64_t digest);
cJSON *mla_json_invalid(const char *id, uint64_t seed, const char *hunts);

#endif
