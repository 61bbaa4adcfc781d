/*
 * tensor.c - sizes of tensors, with every product checked.
 */
#include "tensor.h"

#include <string.h>

/* a * b for a, b >= 0; -1 when it does not fit. */
static int64_t multiply(int64_t a, int64_t b) {
  if (a != 0 && b > INT64_MAX / a) return -1;
  return a * b;
}

static int rank_is_lawful(int32_t rank) {
  return rank >= 0 && rank <= MLA_MAX_RANK;
}

mla_tensor mla_tensor_dense(void *data, int32_t dtype, int32_t rank,
                            const int64_t *shape) {
  mla_tensor t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.dtype = dtype;
  t.rank = rank;
  int64_t stride = 1;
  for (int32_t axis = rank - 1; axis >= 0; axis--) {
    t.shape[axis] = shape[axis];
    t.stride[axis] = stride;
    /* An empty axis must not make the strides before it zero; a product that
       overflows is found by mla_tensor_count(). */
    if (shape[axis] > 0) {
      int64_t next = multiply(stride, shape[axis]);
      stride = next < 0 ? INT64_MAX : next;
    }
  }
  return t;
}

int64_t mla_tensor_count(const mla_tensor *t) {
  int64_t count = 1;
  int empty = 0;
  if (!rank_is_lawful(t->rank)) return -1;
  for (int32_t axis = 0; axis < t->rank; axis++) {
    if (t->shape[axis] < 0) return -1;
    if (t->shape[axis] == 0) empty = 1;
  }
  if (empty) return 0;
  for (int32_t axis = 0; axis < t->rank; axis++) {
    count = multiply(count, t->shape[axis]);
    if (count < 0) return -1;
  }
  return count;
}

int64_t mla_tensor_extent(const mla_tensor *t) {
  int64_t count = mla_tensor_count(t);
  int64_t bits = mla_dtype_bits(t->dtype);
  if (count <= 0) return count;
  if (bits == 0) return -1;
  int64_t elements = 1; /* one more than the offset of the last */
  for (int32_t axis = 0; axis < t->rank; axis++) {
    if (t->stride[axis] < 0) return -1;
    int64_t step = multiply(t->shape[axis] - 1, t->stride[axis]);
    if (step < 0 || step > INT64_MAX - elements) return -1;
    elements += step;
  }
  if (bits < 8) return elements / 2 + elements % 2;
  return multiply(elements, bits / 8);
}
