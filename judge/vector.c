/*
 * vector.c - memory and small questions of a vector.
 */
#include "vector.h"

#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "guard.h"
#include "spans.h"
#include "tensor.h"

void mla_vector_init(mla_vector *v) {
  memset(v, 0, sizeof *v);
  v->problem = mla_problem_init(MLA_OP_NONE);
  v->limits = mla_limits_init();
  memset(v->alias, -1, sizeof v->alias);
}

static void free_slot(mla_vector *v, int s) {
  if (v->alias[s] >= 0) return;
  if (v->lazy[s])
    mla_lazy_give(v->tensor[s].data, v->lazy[s]);
  else
    free(v->tensor[s].data);
}

void mla_vector_free(mla_vector *v) {
  for (int s = 0; s < MLA_T_COUNT; s++) free_slot(v, s);
  free(v->id);
  mla_vector_init(v);
}

#define VAST ((uint64_t)1 << 28) /* bytes: with gaps that nobody touches */

/* Zeroed, and a pointer even when empty. */
static void *take_bytes(mla_vector *v, int32_t slot, uint64_t extent) {
  if (extent < VAST) return calloc((size_t)extent + 64, 1);
  void *memory = mla_lazy_take(extent + 64);
  if (memory) v->lazy[slot] = extent + 64;
  return memory;
}

static mla_status alloc_slot(mla_vector *v, const mla_slot_spec *spec,
                             mla_error *err) {
  mla_tensor *t = &v->tensor[spec->slot];
  int64_t extent = mla_tensor_extent(t);
  const char *name = mla_slot_name(spec->slot);
  v->role[spec->slot] = spec->role;
  if (spec->role == MLA_ROLE_OUT) v->compare[spec->slot] = MLA_COMPARE_BUDGET;
  if (spec->role == MLA_ROLE_INOUT) v->compare[spec->slot] = MLA_COMPARE_BYTES;
  if (spec->role == MLA_ROLE_OUT && spec->slot == MLA_T_POSITIONS)
    v->compare[spec->slot] = MLA_COMPARE_CHOICE;
  if (t->data || v->alias[spec->slot] >= 0) return MLA_OK;
  if (sizeof(void *) < 8 && extent > INT32_MAX / 2)
    return mla_fail(err, MLA_UNSUPPORTED, name,
                    "%s has more bytes than this machine has addresses", name);
  if (extent < 0 || (uint64_t)extent > SIZE_MAX - 64)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s is larger than memory can be", name);
  t->data = take_bytes(v, spec->slot, (uint64_t)extent);
  if (t->data) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, name, "no %lld bytes for %s",
                  (long long)extent, name);
}

mla_status mla_vector_alloc(mla_vector *v, mla_error *err) {
  const mla_op_spec *op = mla_op_spec_of(v->problem.op);
  for (int32_t i = 0; i < op->slot_count; i++) {
    const mla_slot_spec *spec = &op->slots[i];
    if (!mla_slot_applies(spec, &v->problem)) continue;
    if (spec->optional && v->tensor[spec->slot].rank == 0) continue;
    mla_status status = alloc_slot(v, spec, err);
    if (status != MLA_OK) return status;
  }
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (v->alias[s] >= 0) v->tensor[s].data = v->tensor[v->alias[s]].data;
  return MLA_OK;
}

int mla_vector_has_vast_output(const mla_vector *v) {
  for (int s = 0; s < MLA_T_COUNT; s++)
    if ((v->role[s] & MLA_ROLE_OUT) && mla_span_is_vast(&v->tensor[s]))
      return 1;
  return 0;
}

static int64_t last_of(const mla_vector *v, int32_t slot) {
  const mla_tensor *t = &v->tensor[slot];
  if (!t->data || t->rank != 1 || t->shape[0] < 1) return -1;
  return mla_get_int(t->data, t->dtype, mla_at1(t, t->shape[0] - 1));
}

int64_t mla_vector_live(const mla_vector *v, int32_t slot) {
  if (slot == MLA_T_DST) return last_of(v, MLA_T_CU_SEQ_LENS);
  int by_token = slot == MLA_T_OUT || slot == MLA_T_LSE ||
                 slot == MLA_T_POSITIONS || slot == MLA_T_LOGITS ||
                 slot == MLA_T_INDICES;
  if (!by_token) return -1;
  return last_of(v, MLA_T_QUERY_START_LOC);
}

unsigned char mla_vector_poison(const mla_vector *v, int32_t slot,
                                unsigned char poison) {
  int32_t dtype = v->tensor[slot].dtype;
  int whole = dtype == MLA_I32 || dtype == MLA_I64;
  return whole && poison == 0xff ? 0x7e : poison;
}

mla_args mla_vector_args(const mla_vector *v) {
  mla_args args = {(uint32_t)sizeof(mla_args), MLA_T_COUNT, v->tensor};
  return args;
}

mla_limits mla_vector_limits(const mla_vector *v) {
  mla_limits limits = v->limits;
  const mla_tensor *lens = &v->tensor[MLA_T_SEQ_LENS];
  const mla_tensor *starts = &v->tensor[MLA_T_QUERY_START_LOC];
  if (v->hints && lens->data && starts->data) {
    limits.seq_lens = lens->data;
    limits.query_start_loc = starts->data;
  }
  return limits;
}

int64_t mla_vector_earlier_len(const mla_vector *v, int64_t b) {
  const mla_tensor *lens = &v->tensor[MLA_T_SEQ_LENS];
  const mla_tensor *starts = &v->tensor[MLA_T_QUERY_START_LOC];
  int64_t n = mla_get_int(lens->data, lens->dtype, mla_at1(lens, b));
  if (v->problem.op != MLA_OP_PREFILL) return n / 2;
  int64_t q = mla_get_int(starts->data, starts->dtype, mla_at1(starts, b + 1)) -
              mla_get_int(starts->data, starts->dtype, mla_at1(starts, b));
  return q + (n - q) / 2;
}

void mla_vector_put_earlier(const mla_vector *v, void *lens) {
  const mla_tensor *t = &v->tensor[MLA_T_SEQ_LENS];
  for (int64_t b = 0; b < t->shape[0]; b++)
    mla_put_int(lens, t->dtype, mla_at1(t, b), mla_vector_earlier_len(v, b));
}

int64_t mla_vector_request(const mla_vector *v, int64_t token,
                           int64_t *within) {
  int32_t slot = v->problem.op == MLA_OP_KV_READ ? MLA_T_CU_SEQ_LENS
                                                 : MLA_T_QUERY_START_LOC;
  const mla_tensor *t = &v->tensor[slot];
  *within = token;
  if (!t->data || t->shape[0] < 2 || token < 0) return -1;
  /* The last entry that is not above the token begins its request: empty ones
     before it have the same. */
  int64_t low = 0, high = t->shape[0] - 1;
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    if (mla_get_int(t->data, t->dtype, mla_at1(t, middle)) <= token)
      low = middle;
    else
      high = middle - 1;
  }
  if (low == t->shape[0] - 1) return -1; /* a padding row */
  *within = token - mla_get_int(t->data, t->dtype, mla_at1(t, low));
  return low;
}
