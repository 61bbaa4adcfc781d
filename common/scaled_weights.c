#include "scaled_weights.h"

#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "tensor.h"

static const struct {
  int32_t slot, scale;
} pairs[] = {{MLA_T_KV_B_PROJ, MLA_T_KV_B_SCALE},
             {MLA_T_Q_B_PROJ, MLA_T_Q_B_SCALE},
             {MLA_T_O_PROJ, MLA_T_O_SCALE}};

/* code * scale has 28 bits: exact in binary64. */
static void widen(const mla_tensor *codes, const mla_tensor *scales,
                  double *to) {
  int64_t rows = codes->shape[0], columns = codes->shape[1];
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) {
      int64_t at = mla_at2(scales, r / MLA_WEIGHT_BLOCK, c / MLA_WEIGHT_BLOCK);
      to[r * columns + c] =
          mla_get(codes->data, codes->dtype, mla_at2(codes, r, c)) *
          mla_get(scales->data, scales->dtype, at);
    }
}

mla_status mla_weights_widen(const mla_problem *problem, const mla_args *args,
                             mla_scaled_weights *w, mla_error *err) {
  memset(w, 0, sizeof *w);
  w->args = *args;
  if (!(problem->flags & MLA_BLOCK_SCALED)) return MLA_OK;
  uint32_t count = args->count < MLA_T_COUNT ? args->count : MLA_T_COUNT;
  memcpy(w->tensor, args->tensor, count * sizeof *w->tensor);
  w->args.tensor = w->tensor;
  w->args.count = count;
  for (int i = 0; i < 3; i++) {
    const mla_tensor *codes = mla_arg(args, pairs[i].slot);
    const mla_tensor *scales = mla_arg(args, pairs[i].scale);
    if (!codes || !scales) continue;
    int64_t elements = mla_tensor_count(codes);
    w->memory[i] = malloc((size_t)(elements + 1) * sizeof(double));
    if (!w->memory[i])
      return mla_fail(err, MLA_OUT_OF_MEMORY, mla_slot_name(pairs[i].slot),
                      "no memory for %lld weights", (long long)elements);
    widen(codes, scales, w->memory[i]);
    w->tensor[pairs[i].slot] =
        mla_tensor_dense(w->memory[i], MLA_F64, 2, codes->shape);
  }
  return MLA_OK;
}

void mla_weights_free(mla_scaled_weights *w) {
  for (int i = 0; i < 3; i++) free(w->memory[i]);
}
