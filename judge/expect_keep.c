/*
 * expect_keep.c - answers of the reference as files.
 */
#include "expect_keep.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "expect.h"
#include "safetensors.h"
#include "spans.h"

static void add(XXH64_state_t *state, const void *bytes, size_t count) {
  XXH64_update(state, bytes, count);
}

static void add_tensor(XXH64_state_t *state, const mla_tensor *t, int read) {
  add(state, &t->dtype, sizeof t->dtype);
  add(state, &t->rank, sizeof t->rank);
  add(state, t->shape, sizeof t->shape);
  add(state, t->stride, sizeof t->stride);
  for (int64_t i = 0; t->data && read && i < mla_span_count(t); i++) {
    mla_span span = mla_span_at(t, i);
    add(state, (const unsigned char *)t->data + span.at, (size_t)span.bytes);
  }
}

static uint64_t hash_of(const mla_vector *v, const mla_selection *selection,
                        const mla_numerics *emulate) {
  static const char name[] = MLA_REFERENCE_NAME;
  XXH64_state_t *state = XXH64_createState();
  uint64_t hash = 0;
  if (!state) return 0;
  XXH64_reset(state, 0);
  add(state, name, sizeof name);
  add(state, &v->problem, sizeof v->problem);
  add(state, &selection->count, sizeof selection->count);
  if (selection->count)
    add(state, selection->row, (size_t)selection->count * sizeof(int64_t));
  if (emulate) {
    add(state, &emulate->dequant, sizeof emulate->dequant);
    add(state, &emulate->q_round, sizeof emulate->q_round);
  }
  for (int s = 0; s < MLA_T_COUNT; s++)
    add_tensor(state, &v->tensor[s], v->role[s] != MLA_ROLE_OUT);
  hash = XXH64_digest(state);
  XXH64_freeState(state);
  return hash;
}

void mla_keep_path(const mla_vector *v, const mla_selection *selection,
                   const mla_numerics *emulate, const char *dir,
                   char path[MLA_KEEP_PATH_MAX]) {
  snprintf(path, MLA_KEEP_PATH_MAX, "%s/%016llx.safetensors", dir,
           (unsigned long long)hash_of(v, selection, emulate));
}

static size_t bytes_of(mla_expected_array a) {
  return (size_t)(a.byte_count ? a.byte_count
                               : a.count * (int64_t)sizeof(double));
}

static int is_ours(const mla_st *file) {
  const char *by = mla_st_meta(file, "reference");
  return by && strcmp(by, mla_reference_digest) == 0;
}

mla_status mla_keep_load(mla_expected *expected, const char *path) {
  mla_st *file = NULL;
  mla_status status = mla_st_open(path, &file, NULL);
  if (status == MLA_OK && !is_ours(file)) status = MLA_INVALID_ARGUMENT;
  for (int32_t k = 0; status == MLA_OK; k++) {
    mla_expected_array a = mla_expected_array_at(expected, k);
    if (!a.data) break;
    const mla_st_tensor *t = mla_st_find(file, a.name);
    if (!t || t->bytes != bytes_of(a))
      status = MLA_INVALID_ARGUMENT;
    else if (t->bytes)
      memcpy(a.data, t->data, (size_t)t->bytes);
  }
  mla_st_close(file);
  return status;
}

mla_status mla_keep_save(mla_expected *expected, const char *path,
                         mla_error *err) {
  mla_st_writer *w = mla_st_writer_new();
  mla_status status = w ? MLA_OK : MLA_OUT_OF_MEMORY;
  for (int32_t k = 0; status == MLA_OK; k++) {
    mla_expected_array a = mla_expected_array_at(expected, k);
    if (!a.data) break;
    int64_t count = a.byte_count ? a.byte_count : a.count;
    status = mla_st_writer_add(w, a.name, a.byte_count ? MLA_U8 : MLA_F64, 1,
                               &count, a.data, err);
  }
  if (status == MLA_OK)
    status = mla_st_writer_meta(w, "reference", mla_reference_digest, err);
  if (status == MLA_OK) status = mla_st_writer_save(w, path, err);
  mla_st_writer_free(w);
  return status;
}
