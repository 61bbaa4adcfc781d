/*
 * vector_write.c - cases into JSON and safetensors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_swap.h"
#include "dmath.h"
#include "error.h"
#include "fields.h"
#include "invalid.h"
#include "safetensors_types.h"
#include "tensor.h"
#include "vector_json.h"

static cJSON *hunts_json(const char *hunts) {
  cJSON *list = cJSON_CreateArray();
  while (*hunts) {
    char word[64];
    size_t n = strcspn(hunts, ",");
    snprintf(word, sizeof word, "%.*s", (int)n, hunts);
    cJSON_AddItemToArray(list, cJSON_CreateString(word));
    hunts += n;
    hunts += strspn(hunts, ", ");
  }
  return list;
}

static cJSON *start(const char *kind, const char *id, uint64_t seed,
                    const char *hunts) {
  cJSON *json = cJSON_CreateObject();
  cJSON_AddStringToObject(json, "kind", kind);
  cJSON_AddStringToObject(json, "id", id);
  cJSON_AddNumberToObject(json, "seed", (double)seed);
  cJSON_AddItemToObject(json, "hunts", hunts_json(hunts));
  return json;
}

/* ------------------------------------------------------ problem and limits */

static void add_flags(cJSON *json, uint64_t flags) {
  cJSON *list = cJSON_AddArrayToObject(json, "flags");
  for (int bit = 0; mla_flag_word(bit); bit++)
    if (flags >> bit & 1)
      cJSON_AddItemToArray(list, cJSON_CreateString(mla_flag_word(bit)));
}

static cJSON *members_json(const mla_field *fields, const void *object) {
  cJSON *json = cJSON_CreateObject();
  for (const mla_field *f = fields; f->name; f++) {
    char text[400];
    if (mla_field_is_zero(f, object)) continue;
    if (f->kind == MLA_FIELD_FLAGS) {
      add_flags(json, ((const mla_problem *)object)->flags);
      continue;
    }
    mla_field_print(f, object, text, sizeof text);
    if (f->kind == MLA_FIELD_OP || f->kind == MLA_FIELD_DTYPE ||
        f->kind == MLA_FIELD_FORMAT)
      cJSON_AddStringToObject(json, f->name, text);
    else
      cJSON_AddItemToObject(json, f->name, cJSON_CreateRaw(text));
  }
  return json;
}

/* ---------------------------------------------------------------- tensors */

static int is_dense(const mla_tensor *t) {
  mla_tensor dense = mla_tensor_dense(NULL, t->dtype, t->rank, t->shape);
  return memcmp(dense.stride, t->stride, sizeof t->stride) == 0;
}

static cJSON *axes_json(const int64_t *axes, int32_t rank) {
  cJSON *list = cJSON_CreateArray();
  for (int32_t a = 0; a < rank; a++)
    cJSON_AddItemToArray(list, cJSON_CreateNumber((double)axes[a]));
  return list;
}

/* The writer turns elements into the file's order, but knows bytes only where
   entries are packed: a big-endian host's are turned here. It borrows them:
   they are the vector's own, which is written once and then given up. */
static void turn_entries(const mla_vector *v, int slot, const void *bytes) {
  if (mla_st_swaps())
    mla_cache_swap(&v->problem, slot, &v->tensor[slot], (void *)bytes);
}

static mla_status add_bytes(const mla_vector *v, int slot, mla_st_writer *w,
                            const char *key, const void *bytes,
                            mla_error *err) {
  const mla_tensor *t = &v->tensor[slot];
  int64_t flat = mla_tensor_extent(t) * 8 / mla_dtype_bits(t->dtype);
  turn_entries(v, slot, bytes);
  if (is_dense(t))
    return mla_st_writer_add(w, key, t->dtype, t->rank, t->shape, bytes, err);
  return mla_st_writer_add(w, key, t->dtype, 1, &flat, bytes, err);
}

static mla_status add_tensor(const mla_vector *v, int slot, int32_t number,
                             mla_st_writer *w, cJSON *tensors, mla_error *err) {
  const mla_tensor *t = &v->tensor[slot];
  const char *name = mla_slot_name(slot);
  char key[64];
  cJSON *json = cJSON_AddObjectToObject(tensors, name);
  snprintf(key, sizeof key, "%d/%s", (int)number, name);
  int stored = v->role[slot] != MLA_ROLE_OUT && v->alias[slot] < 0;
  if (v->alias[slot] >= 0)
    cJSON_AddStringToObject(json, "alias", mla_slot_name(v->alias[slot]));
  if (stored) cJSON_AddStringToObject(json, "key", key);
  cJSON_AddStringToObject(json, "dtype", mla_dtype_name(t->dtype));
  cJSON_AddItemToObject(json, "shape", axes_json(t->shape, t->rank));
  if (!is_dense(t))
    cJSON_AddItemToObject(json, "stride", axes_json(t->stride, t->rank));
  return stored ? add_bytes(v, slot, w, key, t->data, err) : MLA_OK;
}

/* ----------------------------------------------------------- expectations */

/* All values of an output, NaN where nothing is expected. The writer borrows
   them: they live as long as it, as stored values of the vector. */
static double *dense_values(const mla_tensor *t, mla_expected_view view) {
  int64_t count = mla_tensor_count(t);
  double *values = malloc((size_t)(count + 1) * sizeof *values);
  if (!values) return NULL;
  for (int64_t i = 0; i < count; i++) values[i] = mla_nan();
  for (int64_t r = 0; r < view.rows; r++) {
    int64_t row = view.row_index ? view.row_index[r] : r;
    memcpy(values + row * view.width, view.value + r * view.width,
           (size_t)view.width * sizeof *values);
  }
  return values;
}

static mla_status add_expected(const mla_vector *v, const mla_expectation *e,
                               int slot, int32_t number, mla_st_writer *w,
                               cJSON *expected, double **owned,
                               mla_error *err) {
  static const char *const names[] = {"",     "budget", "bits",
                                      "sums", "bytes",  "choice"};
  const mla_tensor *t = &v->tensor[slot];
  char key[64];
  int32_t index;
  mla_expected_view view = mla_expectation_of(e, slot, &index);
  cJSON *json = cJSON_AddObjectToObject(expected, mla_slot_name(slot));
  snprintf(key, sizeof key, "%d/expected/%s", (int)number, mla_slot_name(slot));
  cJSON_AddStringToObject(json, "key", key);
  cJSON_AddStringToObject(json, "compare", names[v->compare[slot]]);
  if (view.bytes) return add_bytes(v, slot, w, key, view.bytes, err);
  *owned = dense_values(t, view);
  if (!*owned) return mla_fail(err, MLA_OUT_OF_MEMORY, "expected", "no memory");
  return mla_st_writer_add(w, key, MLA_F64, t->rank, t->shape, *owned, err);
}

mla_status mla_json_stored(const mla_vector *v, const mla_expectation *e,
                           int32_t number, mla_st_writer *w, double **owned,
                           cJSON **to, mla_error *err) {
  cJSON *json = start(e ? "stored" : "question", v->id, v->seed, v->hunts);
  cJSON *expected = NULL;
  mla_status status = MLA_OK;
  *to = json;
  cJSON_AddItemToObject(json, "problem",
                        members_json(mla_problem_fields, &v->problem));
  cJSON_AddItemToObject(json, "limits",
                        members_json(mla_limits_fields, &v->limits));
  cJSON *tensors = cJSON_AddObjectToObject(json, "tensors");
  if (e) expected = cJSON_AddObjectToObject(json, "expected");
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++) {
    if (!v->role[s]) continue;
    status = add_tensor(v, s, number, w, tensors, err);
    if (status == MLA_OK && e && (v->role[s] & MLA_ROLE_OUT))
      status = add_expected(v, e, s, number, w, expected, &owned[s], err);
  }
  return status;
}

cJSON *mla_json_seeded(const char *id, uint64_t seed, const char *hunts,
                       uint64_t digest) {
  char text[20];
  cJSON *json = start("seeded", id, seed, hunts);
  snprintf(text, sizeof text, "%016llx", (unsigned long long)digest);
  cJSON_AddStringToObject(json, "digest", text);
  return json;
}

/* ---------------------------------------------------------------- invalid */

/* A number that every JSON reader takes for the same one. */
static int is_plain_number(const char *text) {
  size_t digits;
  if (*text == '-') text++;
  digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 15 || (digits > 1 && *text == '0')) return 0;
  text += digits;
  if (*text != '.') return *text == '\0';
  digits = strspn(text + 1, "0123456789");
  return digits > 0 && text[1 + digits] == '\0';
}

static cJSON *value_json(const char *text) {
  if (strcmp(text, "null") == 0) return cJSON_CreateNull();
  return is_plain_number(text) ? cJSON_CreateRaw(text)
                               : cJSON_CreateString(text);
}

cJSON *mla_json_invalid(const char *id, uint64_t seed, const char *hunts) {
  char base[MLA_CASE_ID_MAX];
  mla_change c;
  size_t n = strcspn(id, "!");
  snprintf(base, sizeof base, "%.*s", (int)n, id);
  if (!id[n] || mla_change_parse(id + n + 1, &c, NULL) != MLA_OK) return NULL;
  cJSON *json = start("invalid", base, seed, hunts);
  cJSON *set = cJSON_AddObjectToObject(json, "set");
  cJSON_AddItemToObject(set, c.path, value_json(c.value));
  cJSON_AddStringToObject(json, "status",
                          mla_status_name((mla_status)c.status));
  cJSON_AddStringToObject(json, "field", c.field);
  return json;
}

int mla_json_invalid_id(const cJSON *json, const char *id, char *text,
                        size_t size) {
  const cJSON *set = cJSON_GetObjectItemCaseSensitive(json, "set");
  const cJSON *change = set ? set->child : NULL;
  const char *status =
      cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "status"));
  const char *field =
      cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "field"));
  char value[64];
  if (!change || change->next || !status || !field) return 0;
  if (cJSON_IsNull(change))
    snprintf(value, sizeof value, "null");
  else if (cJSON_IsNumber(change))
    snprintf(value, sizeof value, "%.17g", change->valuedouble);
  else if (cJSON_IsString(change))
    snprintf(value, sizeof value, "%s", change->valuestring);
  else
    return 0;
  int n = snprintf(text, size, "%s!%s=%s:%s:%s", id, change->string, value,
                   status, field);
  return n > 0 && (size_t)n < size;
}
