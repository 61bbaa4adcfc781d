/*
 * repro.c - writing a failure as a file of one vector.
 */
#include "repro.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "explain.h"
#include "machine.h"
#include "safetensors_types.h"
#include "spans.h"
#include "tensor.h"
#include "vector_json.h"

static void add_text(cJSON *to, const char *name, const char *text) {
  if (text && *text) cJSON_AddStringToObject(to, name, text);
}

/* What another person needs to know of the place it happened. */
static cJSON *environment(const mla_repro *r, const mla_evidence *e) {
  const mla_backend *b = mla_device_backend(r->device);
  mla_device_info info;
  cJSON *json = cJSON_CreateObject();
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  add_text(json, "libmla", mla_version());
  add_text(json, "backend", b->name);
  add_text(json, "backend_version", b->version);
  add_text(json, "kernel", e->answer->kernel);
  if (mla_device_describe(r->device, &info, NULL) == MLA_OK) {
    add_text(json, "device", info.name);
    add_text(json, "arch", info.arch);
  }
  if (*mla_machine_name()) add_text(json, "machine", mla_machine_name());
  add_text(json, "byte_order", mla_st_swaps() ? "big" : "little");
  return json;
}

static mla_status add_got(const mla_vector *v, const mla_evidence *e,
                          mla_st_writer *w, cJSON *got, mla_error *err) {
  mla_status status = MLA_OK;
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++) {
    char key[64];
    const mla_tensor *t = &v->tensor[s];
    if (!(v->role[s] & MLA_ROLE_OUT) || !e->got[s]) continue;
    int64_t flat = mla_tensor_extent(t) * 8 / mla_dtype_bits(t->dtype);
    snprintf(key, sizeof key, "0/got/%s", mla_slot_name(s));
    cJSON *json = cJSON_AddObjectToObject(got, mla_slot_name(s));
    cJSON_AddStringToObject(json, "key", key);
    status = mla_st_writer_add(w, key, t->dtype, 1, &flat, e->got[s], err);
  }
  return status;
}

static void add_verdict(cJSON *json, const mla_verdict *verdict) {
  char look[400];
  if (mla_look_print(&verdict->look, look, sizeof look) > 0)
    add_text(json, "looks_like", look);
  add_text(json, "reason", verdict->reason);
  add_text(json, "fences", verdict->fences);
}

static mla_status fill(mla_repro *r, const mla_vector *v, const mla_evidence *e,
                       const mla_verdict *verdict, mla_st_writer *w,
                       double **owned, cJSON *root) {
  cJSON *stored = NULL;
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (v->role[s] && mla_span_is_vast(&v->tensor[s]))
      return mla_fail(&r->err, MLA_UNSUPPORTED, "repro",
                      "%s has gaps of gigabytes, and makes no file",
                      mla_slot_name(s));
  add_text(root, "format", "mla-vectors");
  cJSON_AddNumberToObject(root, "version", 1);
  add_text(root, "expected_by", MLA_REFERENCE_NAME);
  cJSON_AddItemToObject(root, "environment", environment(r, e));
  cJSON *cases = cJSON_AddArrayToObject(root, "cases");
  mla_status status =
      mla_json_stored(v, e->expectation, 0, w, owned, &stored, &r->err);
  cJSON_AddItemToArray(cases, stored);
  if (status != MLA_OK) return status;
  add_verdict(stored, verdict);
  cJSON *got = cJSON_AddObjectToObject(stored, "got");
  return add_got(v, e, w, got, &r->err);
}

/* FNV-1a: cases of one group get names of their own. */
static uint64_t name_hash(const mla_vector *v) {
  uint64_t h = 14695981039346656037u ^ v->seed;
  for (const char *c = v->id; *c; c++)
    h = (h ^ (unsigned char)*c) * 1099511628211u;
  return h;
}

static void name_file(mla_repro *r, const mla_vector *v) {
  char group[64];
  size_t n = strcspn(v->id, ":");
  if (v->id[n]) n += 1 + strcspn(v->id + n + 1, ":");
  snprintf(group, sizeof group, "%.*s", n < 60 ? (int)n : 60, v->id);
  for (char *c = group; *c; c++)
    if (*c == ':' || *c == '/') *c = '_';
  snprintf(r->path, sizeof r->path, "%.900s/%s-%016llx.safetensors", r->dir,
           group, (unsigned long long)name_hash(v));
}

static mla_status save(mla_repro *r, mla_st_writer *w, const cJSON *root) {
  char *text = cJSON_PrintUnformatted(root);
  mla_status status =
      text ? mla_st_writer_meta(w, "mla-vectors", text, &r->err)
           : mla_fail(&r->err, MLA_OUT_OF_MEMORY, "repro", "no memory");
  cJSON_free(text);
  return status == MLA_OK ? mla_st_writer_save(w, r->path, &r->err) : status;
}

void mla_repro_observe(void *context, const mla_vector *v,
                       const mla_evidence *e, mla_verdict *verdict) {
  mla_repro *r = context;
  double *owned[MLA_T_COUNT] = {NULL};
  mla_st_writer *w = mla_st_writer_new();
  cJSON *root = cJSON_CreateObject();
  name_file(r, v);
  if (!e->expectation->expected)
    r->status = mla_fail(&r->err, MLA_UNSUPPORTED, "repro",
                         "nothing was compared: the case's name is all");
  else if (!w || !root)
    r->status = mla_fail(&r->err, MLA_OUT_OF_MEMORY, "repro", "no memory");
  else
    r->status = fill(r, v, e, verdict, w, owned, root);
  if (r->status == MLA_OK) r->status = save(r, w, root);
  if (r->status != MLA_OK) r->path[0] = '\0';
  cJSON_Delete(root);
  mla_st_writer_free(w);
  for (int s = 0; s < MLA_T_COUNT; s++) free(owned[s]);
}
