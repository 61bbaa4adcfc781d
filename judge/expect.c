/*
 * expect.c - asking the reference, and keeping what it said.
 */
#include "expect.h"

#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "expect_keep.h"
#include "sample.h"

static mla_status ask(const mla_vector *v, const mla_selection *selection,
                      const mla_numerics *emulate, const char *keep,
                      mla_expectation *e, mla_error *err) {
  mla_args args = mla_vector_args(v);
  char path[MLA_KEEP_PATH_MAX];
  if (mla_vector_has_vast_output(v)) keep = NULL; /* a file of gigabytes */
  if (keep) {
    mla_keep_path(v, selection, emulate, keep, path);
    if (mla_expected_alloc(&v->problem, &args, selection, &e->expected, err) ==
            MLA_OK &&
        mla_keep_load(e->expected, path) == MLA_OK)
      return MLA_OK;
    mla_expected_free(e->expected);
    e->expected = NULL;
  }
  mla_status status =
      mla_expect(&v->problem, &args, selection, emulate, &e->expected, err);
  if (status == MLA_OK && keep) status = mla_keep_save(e->expected, path, err);
  return status;
}

typedef mla_status sampler(const mla_vector *v, double most_flops,
                           mla_sample *sample, mla_error *err);

static mla_status make(const mla_vector *v, sampler *choose,
                       const mla_numerics *emulate, const char *keep,
                       mla_expectation *e, mla_error *err) {
  mla_sample sample;
  memset(e, 0, sizeof *e);
  mla_status status = choose(v, MLA_SAMPLE_ABOVE, &sample, err);
  if (status != MLA_OK) return status;
  e->row = sample.row;
  e->rows = sample.count;
  e->rows_total = sample.total;
  mla_selection selection = {sample.row ? sample.count : 0, sample.row};
  int nothing = sample.total == 0 && v->tensor[MLA_T_OUT].data != NULL;
  return nothing ? MLA_OK : ask(v, &selection, emulate, keep, e, err);
}

mla_status mla_expectation_make(const mla_vector *v,
                                const mla_numerics *emulate, const char *keep,
                                mla_expectation *e, mla_error *err) {
  return make(v, mla_sample_rows, emulate, keep, e, err);
}

mla_status mla_expectation_few(const mla_vector *v, const mla_numerics *emulate,
                               mla_expectation *e, mla_error *err) {
  return make(v, mla_sample_few, emulate, NULL, e, err);
}

void mla_expectation_free(mla_expectation *e) {
  mla_expected_free(e->expected);
  free(e->row);
  memset(e, 0, sizeof *e);
}

mla_expected_view mla_expectation_of(const mla_expectation *e, int32_t slot,
                                     int32_t *index) {
  mla_expected_view none;
  memset(&none, 0, sizeof none);
  none.slot = -1;
  *index = -1;
  int32_t count = e->expected ? mla_expected_count(e->expected) : 0;
  for (int32_t i = 0; i < count; i++) {
    mla_expected_view view = mla_expected_at(e->expected, i);
    if (view.slot != slot) continue;
    *index = i;
    return view;
  }
  return none;
}

/* Bytes of plain types by value, so that the host's byte order is nothing. */
static uint64_t digest_bytes(uint64_t digest, const mla_tensor *t,
                             mla_expected_view view) {
  int64_t size = mla_dtype_bits(t->dtype) / 8;
  int64_t count = size ? view.byte_count / size : 0;
  for (int64_t k = 0; k < count; k++)
    digest = mla_digest_f64(digest, mla_get(view.bytes, t->dtype, k));
  return digest;
}

uint64_t mla_expectation_digest(const mla_vector *v, const mla_expectation *e) {
  uint64_t digest = mla_digest_start();
  int32_t count = e->expected ? mla_expected_count(e->expected) : 0;
  for (int32_t i = 0; i < count; i++) {
    mla_expected_view view = mla_expected_at(e->expected, i);
    for (int64_t k = 0; view.value && k < view.rows * view.width; k++)
      digest = mla_digest_f64(digest, view.value[k]);
    if (view.bytes) digest = digest_bytes(digest, &v->tensor[view.slot], view);
  }
  return digest;
}

/* ------------------------------------------------------- stored expectation */

static int same_bits(double a, double b) {
  if (mla_isnan(a) || mla_isnan(b)) return mla_isnan(a) && mla_isnan(b);
  return memcmp(&a, &b, sizeof a) == 0;
}

static double largest(const double *x, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    double a = mla_fabs(x[i]);
    if (a > most && !mla_isinf(a)) most = a;
  }
  return most;
}

/* Values of other people may differ by their own rounding. */
static int agrees(double stored, double ours, double allowed) {
  if (same_bits(stored, ours)) return 1;
  return mla_fabs(stored - ours) <= allowed;
}

static mla_status check_values(const mla_vector *v, int32_t slot,
                               mla_expected_view view, mla_error *err) {
  const mla_stored *s = &v->stored[slot];
  const char *name = mla_slot_name(slot);
  if (s->width != view.width)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "the vector's %s has rows of %lld values, the reference's "
                    "of %lld",
                    name, (long long)s->width, (long long)view.width);
  double allowed =
      v->stored_exactly
          ? 0
          : v->stored_agreement * largest(s->value, s->rows * s->width);
  for (int64_t r = 0; r < view.rows; r++) {
    int64_t row = view.row_index ? view.row_index[r] : r;
    for (int64_t d = 0; d < view.width && row < s->rows; d++) {
      double stored = s->value[row * s->width + d];
      double ours = view.value[r * view.width + d];
      if (v->stored_exactly ? !same_bits(stored, ours)
                            : !agrees(stored, ours, allowed))
        return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                        "the vector expects %.17g in row %lld, column %lld of "
                        "%s; the reference says %.17g",
                        stored, (long long)row, (long long)d, name, ours);
    }
  }
  return MLA_OK;
}

static mla_status check_bytes(const mla_vector *v, int32_t slot,
                              mla_expected_view view, mla_error *err) {
  const mla_stored *s = &v->stored[slot];
  const char *name = mla_slot_name(slot);
  if (s->byte_count != view.byte_count)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "the vector has %lld bytes of %s, the reference %lld",
                    (long long)s->byte_count, name, (long long)view.byte_count);
  for (int64_t i = 0; i < view.byte_count; i++)
    if (s->bytes[i] != view.bytes[i])
      return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                      "byte %lld of %s is %d in the vector, %d in the "
                      "reference",
                      (long long)i, name, s->bytes[i], view.bytes[i]);
  return MLA_OK;
}

mla_status mla_expectation_check(const mla_vector *v, const mla_expectation *e,
                                 mla_error *err) {
  mla_status status = MLA_OK;
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++) {
    const mla_stored *stored = &v->stored[s];
    int32_t index;
    mla_expected_view view = mla_expectation_of(e, s, &index);
    if (index < 0) continue;
    if (stored->value && view.value)
      status = check_values(v, s, view, err);
    else if (stored->bytes && view.bytes)
      status = check_bytes(v, s, view, err);
    else if (stored->value || stored->bytes)
      status = mla_fail(err, MLA_INVALID_ARGUMENT, mla_slot_name(s),
                        "the vector's way to compare %s is not the "
                        "reference's",
                        mla_slot_name(s));
  }
  return status;
}
