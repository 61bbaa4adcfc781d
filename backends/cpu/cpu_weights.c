#include "cpu_weights.h"

#include <string.h>

#include "cpu_parallel.h"
#include "half.h"
#include "tensor.h"

enum { block = 128 }; /* weights that share a scale, along either axis */

static const struct {
  int codes, scales;
  uint64_t need; /* flag without which the call has none */
} pairs[3] = {{MLA_T_KV_B_PROJ, MLA_T_KV_B_SCALE, 0},
              {MLA_T_Q_B_PROJ, MLA_T_Q_B_SCALE, MLA_FUSED_Q},
              {MLA_T_O_PROJ, MLA_T_O_SCALE, MLA_FUSED_O}};

static uint64_t count_of(const mla_problem *p, int pair) {
  uint64_t h = (uint64_t)p->num_heads, v = (uint64_t)p->v_head_dim;
  uint64_t nope = (uint64_t)p->qk_nope_head_dim;
  switch (pair) {
    case 0: return h * (nope + v) * (uint64_t)p->kv_lora_rank;
    case 1:
      return h * (nope + (uint64_t)p->qk_rope_head_dim) *
             (uint64_t)p->q_lora_rank;
    default: return h * v * (uint64_t)p->hidden_size;
  }
}

uint64_t mla_cpu_weights_take(mla_cpu_arena *arena, const mla_cpu_context *c,
                              float *memory[3]) {
  const mla_problem *p = &c->problem;
  for (int i = 0; i < 3; i++) {
    memory[i] = NULL;
    if ((p->flags & MLA_BLOCK_SCALED) &&
        (p->flags & pairs[i].need) == pairs[i].need)
      memory[i] = mla_cpu_take(arena, count_of(p, i), sizeof(float));
  }
  return arena->used;
}

typedef struct widening {
  const mla_tensor *codes, *scales;
  float *to;
} widening;

static void widen_row(void *state, int64_t row, int thread) {
  const widening *w = state;
  int64_t columns = w->codes->shape[1];
  const uint8_t *code =
      (const uint8_t *)w->codes->data + mla_at1(w->codes, row);
  const float *scale =
      (const float *)w->scales->data + mla_at1(w->scales, row / block);
  (void)thread;
  for (int64_t c = 0; c < columns; c++)
    w->to[row * columns + c] = mla_e4m3_to_f32(code[c]) * scale[c / block];
}

void mla_cpu_weights_widen(const mla_cpu_context *c, const mla_args *args,
                           float *const memory[3],
                           mla_tensor tensor[MLA_T_COUNT]) {
  uint32_t count = args->count < MLA_T_COUNT ? args->count : MLA_T_COUNT;
  memset(tensor, 0, MLA_T_COUNT * sizeof *tensor);
  memcpy(tensor, args->tensor, count * sizeof *tensor);
  for (int i = 0; i < 3; i++) {
    if (!memory[i]) continue;
    widening w = {mla_arg(args, pairs[i].codes), mla_arg(args, pairs[i].scales),
                  memory[i]};
    mla_cpu_parallel(c->threads, w.codes->shape[0], widen_row, &w);
    tensor[pairs[i].codes] =
        mla_tensor_dense(memory[i], MLA_F32, 2, w.codes->shape);
  }
}
