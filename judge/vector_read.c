/*
 * vector_read.c - a stored case from JSON and safetensors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_swap.h"
#include "error.h"
#include "fields.h"
#include "safetensors_types.h"
#include "tensor.h"
#include "vector_json.h"

#define GET cJSON_GetObjectItemCaseSensitive

/* ------------------------------------------------------------- sentences */

static mla_status bad(const mla_json_source *s, const char *what,
                      const char *why, mla_error *err) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, what, "case %d, %s: %s",
                  (int)s->number, what, why);
}

void mla_json_join(const cJSON *list, char *text, size_t size) {
  const cJSON *item;
  size_t used = 0;
  text[0] = '\0';
  cJSON_ArrayForEach(item, list) {
    const char *word = cJSON_GetStringValue(item);
    int n = snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                     word ? word : "");
    if (n < 0 || (size_t)n >= size - used) return;
    used += (size_t)n;
  }
}

mla_status mla_json_only(const cJSON *json, const char *const *known,
                         mla_error *err) {
  const cJSON *item;
  cJSON_ArrayForEach(item, json) {
    int found = 0;
    for (int i = 0; known[i]; i++) found |= strcmp(known[i], item->string) == 0;
    if (!found)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "file",
                      "\"%.40s\" is no member that version 1 knows",
                      item->string);
  }
  return MLA_OK;
}

/* ------------------------------------------------------ problem and limits */

static int set_flags(const mla_field *f, void *object, const cJSON *list) {
  char text[400] = "";
  size_t used = 0;
  const cJSON *item;
  if (!cJSON_IsArray(list)) return 0;
  cJSON_ArrayForEach(item, list) {
    if (!cJSON_IsString(item)) return 0;
    int n = snprintf(text + used, sizeof text - used, "%s%s", used ? "+" : "",
                     item->valuestring);
    if (n < 0 || (size_t)n >= sizeof text - used) return 0;
    used += (size_t)n;
  }
  return used == 0 || mla_field_set(f, object, text);
}

static int set_member(const mla_field *f, void *object, const cJSON *value) {
  char text[40];
  if (f->kind == MLA_FIELD_FLAGS) return set_flags(f, object, value);
  if (cJSON_IsString(value))
    return f->kind != MLA_FIELD_REAL &&
           mla_field_set(f, object, value->valuestring);
  if (!cJSON_IsNumber(value)) return 0;
  int whole = f->kind != MLA_FIELD_REAL;
  snprintf(text, sizeof text, whole ? "%.0f" : "%.17g", value->valuedouble);
  return mla_field_set(f, object, text);
}

static mla_status read_members(const mla_json_source *s, const char *what,
                               const mla_field *fields, void *object,
                               mla_error *err) {
  const cJSON *json = GET(s->json, what), *item;
  if (!cJSON_IsObject(json)) return bad(s, what, "it is absent", err);
  cJSON_ArrayForEach(item, json) {
    const mla_field *f = mla_field_find(fields, item->string);
    if (!f) return bad(s, what, "it has an unknown member", err);
    if (!set_member(f, object, item)) return bad(s, f->name, "no value", err);
  }
  return MLA_OK;
}

/* ---------------------------------------------------------------- tensors */

static int read_axes(const cJSON *list, int64_t *axes, int32_t *rank) {
  const cJSON *item;
  int32_t n = 0;
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > MLA_MAX_RANK) return 0;
  cJSON_ArrayForEach(item, list) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
        item->valuedouble > 9007199254740992.0)
      return 0;
    axes[n++] = (int64_t)item->valuedouble;
  }
  *rank = n;
  return n > 0;
}

static int read_shape(const cJSON *json, mla_tensor *t) {
  int64_t shape[MLA_MAX_RANK], stride[MLA_MAX_RANK];
  int32_t rank = 0, strides = 0;
  const char *dtype = cJSON_GetStringValue(GET(json, "dtype"));
  int32_t type = dtype ? mla_dtype_from_name(dtype) : MLA_DTYPE_NONE;
  if (type == MLA_DTYPE_NONE || !read_axes(GET(json, "shape"), shape, &rank))
    return 0;
  *t = mla_tensor_dense(NULL, type, rank, shape);
  if (!GET(json, "stride")) return mla_tensor_extent(t) >= 0;
  if (!read_axes(GET(json, "stride"), stride, &strides) || strides != rank)
    return 0;
  memcpy(t->stride, stride, (size_t)rank * sizeof *stride);
  return mla_tensor_extent(t) >= 0;
}

static mla_status read_tensor(const mla_json_source *s, mla_vector *v,
                              const cJSON *json, mla_error *err) {
  static const char *const known[] = {"key",    "dtype", "shape",
                                      "stride", "alias", NULL};
  int32_t slot = mla_slot_from_name(json->string);
  const char *alias = cJSON_GetStringValue(GET(json, "alias"));
  if (slot < 0) return bad(s, json->string, "no slot has this name", err);
  mla_status status = mla_json_only(json, known, err);
  if (status != MLA_OK) return status;
  if (!read_shape(json, &v->tensor[slot]))
    return bad(s, json->string, "dtype, shape or stride are wrong", err);
  if (!alias) return MLA_OK;
  int32_t other = mla_slot_from_name(alias);
  if (other < 0 || other == slot)
    return bad(s, json->string, "alias is no other slot", err);
  v->alias[slot] = (int8_t)other;
  return MLA_OK;
}

/* An alias lies within the memory of the slot it names, which has its own. */
static mla_status check_alias(const mla_json_source *s, const mla_vector *v,
                              int slot, mla_error *err) {
  int other = v->alias[slot];
  if (other < 0) return MLA_OK;
  if (v->alias[other] >= 0 || v->tensor[other].rank == 0 ||
      mla_tensor_extent(&v->tensor[slot]) >
          mla_tensor_extent(&v->tensor[other]))
    return bad(s, mla_slot_name(slot), "alias has not that much memory", err);
  return MLA_OK;
}

static mla_status read_tensors(const mla_json_source *s, mla_vector *v,
                               mla_error *err) {
  const cJSON *json = GET(s->json, "tensors"), *item;
  mla_status status = MLA_OK;
  if (!cJSON_IsObject(json)) return bad(s, "tensors", "it is absent", err);
  cJSON_ArrayForEach(item, json) {
    status = read_tensor(s, v, item, err);
    if (status != MLA_OK) return status;
  }
  for (int i = 0; i < MLA_T_COUNT && status == MLA_OK; i++)
    status = check_alias(s, v, i, err);
  return status;
}

/* Every slot that the call needs is there, and no other. */
static mla_status check_slots(const mla_json_source *s, mla_vector *v,
                              mla_error *err) {
  const mla_op_spec *op = mla_op_spec_of(v->problem.op);
  char used[MLA_T_COUNT] = {0};
  for (int32_t i = 0; i < op->slot_count; i++) {
    const mla_slot_spec *spec = &op->slots[i];
    if (!mla_slot_applies(spec, &v->problem)) continue;
    if (!spec->optional && v->tensor[spec->slot].rank == 0)
      return bad(s, mla_slot_name(spec->slot), "the call needs it", err);
    used[spec->slot] = 1;
  }
  for (int i = 0; i < MLA_T_COUNT; i++)
    if (v->tensor[i].rank && !used[i])
      return bad(s, mla_slot_name(i), "the operation takes none", err);
  return MLA_OK;
}

static const mla_st_tensor *find(const mla_json_source *s, const cJSON *json) {
  const char *key = cJSON_GetStringValue(GET(json, "key"));
  return key && s->tensors ? mla_st_find(s->tensors, key) : NULL;
}

static mla_status fill_tensor(const mla_json_source *s, mla_vector *v, int slot,
                              mla_error *err) {
  mla_tensor *t = &v->tensor[slot];
  const cJSON *json = GET(GET(s->json, "tensors"), mla_slot_name(slot));
  const mla_st_tensor *stored = find(s, json);
  size_t extent = (size_t)mla_tensor_extent(t);
  if (v->alias[slot] >= 0) return MLA_OK;
  if (v->role[slot] == MLA_ROLE_OUT) {
    memset(t->data, mla_vector_poison(v, slot, 0xff), extent);
    return MLA_OK;
  }
  if (!stored) return bad(s, mla_slot_name(slot), "no such key", err);
  if (stored->bytes != extent)
    return bad(s, mla_slot_name(slot), "stored bytes and shape differ", err);
  if (extent) memcpy(t->data, stored->data, extent);
  if (mla_st_swaps()) mla_cache_swap(&v->problem, slot, t, t->data);
  return MLA_OK;
}

/* ----------------------------------------------------------- expectations */

static int compare_from_name(const char *name) {
  static const char *const names[] = {"",     "budget", "bits",
                                      "sums", "bytes",  "choice"};
  for (int i = 1; name && i < 6; i++)
    if (strcmp(names[i], name) == 0) return i;
  return -1;
}

static mla_status read_expected(const mla_json_source *s, mla_vector *v,
                                int slot, mla_error *err) {
  const char *name = mla_slot_name(slot);
  const cJSON *json = GET(GET(s->json, "expected"), name);
  const mla_st_tensor *stored = find(s, json);
  const mla_tensor *t = &v->tensor[slot];
  int compare = compare_from_name(cJSON_GetStringValue(GET(json, "compare")));
  if (!stored || compare < 0) return bad(s, name, "no expectation", err);
  int bytes = compare == MLA_COMPARE_BYTES;
  if (bytes != (v->role[slot] == MLA_ROLE_INOUT))
    return bad(s, name, "this output is not compared in that way", err);
  v->compare[slot] = (int8_t)compare;
  mla_stored *to = &v->stored[slot];
  int64_t count = mla_tensor_count(t);
  if (bytes) {
    to->bytes = stored->data;
    if (mla_st_swaps())
      mla_cache_swap(&v->problem, slot, t, (void *)stored->data);
    to->byte_count = (int64_t)stored->bytes;
    return to->byte_count == mla_tensor_extent(t)
               ? MLA_OK
               : bad(s, name, "expected bytes and shape differ", err);
  }
  if (stored->dtype != MLA_F64 || stored->bytes != (uint64_t)count * 8)
    return bad(s, name, "expected values are not f64 of its shape", err);
  to->width = slot == MLA_T_LSE ? 1 : t->shape[t->rank - 1];
  to->rows = to->width ? count / to->width : 0;
  to->value = stored->data;
  return MLA_OK;
}

mla_status mla_json_vector(const mla_json_source *s, mla_vector *v,
                           mla_error *err) {
  static const char *const known[] = {
      "kind",     "id",  "seed",       "hunts",  "problem", "limits", "tensors",
      "expected", "got", "looks_like", "reason", "fences",  NULL};
  mla_status status = mla_json_only(s->json, known, err);
  if (status == MLA_OK)
    status = read_members(s, "problem", mla_problem_fields, &v->problem, err);
  if (status == MLA_OK)
    status = read_members(s, "limits", mla_limits_fields, &v->limits, err);
  if (status == MLA_OK && !mla_op_spec_of(v->problem.op))
    status = bad(s, "op", "no known operation", err);
  if (status == MLA_OK) status = read_tensors(s, v, err);
  if (status == MLA_OK) status = check_slots(s, v, err);
  if (status == MLA_OK) status = mla_vector_alloc(v, err);
  for (int i = 0; i < MLA_T_COUNT && status == MLA_OK; i++) {
    if (!v->role[i]) continue;
    status = fill_tensor(s, v, i, err);
    if (status == MLA_OK && (v->role[i] & MLA_ROLE_OUT))
      status = read_expected(s, v, i, err);
  }
  return status;
}
