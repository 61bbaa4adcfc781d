/*
 * consumer.c - a caller that knows nothing but what is installed: decodes one
 * step on "ref" and on a plugin, and compares.
 */
#include <stdio.h>
#include <string.h>

#include <mla/dlpack.h>
#include <mla/mla.h>

enum { HEADS = 2, LATENT = 4, ROPE = 2, WIDTH = 6, BLOCK = 2, BLOCKS = 3 };

static float q[2 * HEADS * WIDTH], cache[BLOCKS * BLOCK * WIDTH];
static int32_t table[2] = {2, 0}, seq_lens[1] = {3}, starts[2] = {0, 2};

static int32_t tensor_of(mla_tensor *t, void *data, uint8_t code, uint8_t bits,
                         int32_t rank, const int64_t *shape) {
  return mla_dlpack_import(data, MLA_MEMORY_HOST, code, bits, 1, rank, shape,
                           NULL, 0, t, NULL) != MLA_OK;
}

static int describe(mla_tensor *t, float *out) {
  const int64_t q_shape[] = {2, HEADS, WIDTH}, out_shape[] = {2, HEADS, LATENT};
  const int64_t cache_shape[] = {BLOCKS, BLOCK, WIDTH};
  const int64_t one_two[] = {1, 2}, one[] = {1}, two[] = {2};
  memset(t, 0, MLA_T_COUNT * sizeof *t);
  return tensor_of(&t[MLA_T_Q], q, MLA_DLPACK_FLOAT, 32, 3, q_shape) ||
         tensor_of(&t[MLA_T_CACHE], cache, MLA_DLPACK_FLOAT, 32, 3,
                   cache_shape) ||
         tensor_of(&t[MLA_T_BLOCK_TABLE], table, MLA_DLPACK_INT, 32, 2,
                   one_two) ||
         tensor_of(&t[MLA_T_SEQ_LENS], seq_lens, MLA_DLPACK_INT, 32, 1, one) ||
         tensor_of(&t[MLA_T_QUERY_START_LOC], starts, MLA_DLPACK_INT, 32, 1,
                   two) ||
         tensor_of(&t[MLA_T_OUT], out, MLA_DLPACK_FLOAT, 32, 3, out_shape);
}

static mla_status plan_on(mla_device *dev, mla_plan **plan, mla_error *err) {
  mla_problem p = mla_problem_init(MLA_OP_DECODE);
  mla_limits l = mla_limits_init();
  p.flags = MLA_CAUSAL;
  p.q_dtype = p.out_dtype = MLA_F32;
  p.cache_format = MLA_CACHE_F32;
  p.num_heads = HEADS;
  p.kv_lora_rank = LATENT;
  p.qk_rope_head_dim = ROPE;
  p.block_size = BLOCK;
  p.scale = 0.5;
  l.requests = 1;
  l.tokens = l.max_query_len = l.table_width = 2;
  l.max_seq_len = 3;
  l.num_blocks = BLOCKS;
  return mla_plan_create(dev, &p, &l, plan, err);
}

static mla_status decode_on(const char *name, float *out, mla_error *err) {
  static double workspace[1024];
  mla_device *dev = NULL;
  mla_plan *plan = NULL;
  mla_tensor tensors[MLA_T_COUNT];
  mla_args args = {sizeof(mla_args), MLA_T_COUNT, NULL};
  mla_status st = mla_open(name, 0, NULL, &dev, err);
  args.tensor = tensors;
  if (describe(tensors, out)) return MLA_INVALID_ARGUMENT;
  if (st == MLA_OK) st = plan_on(dev, &plan, err);
  if (st == MLA_OK)
    st = mla_run(plan, &args, workspace, sizeof workspace, NULL, err);
  mla_plan_free(plan);
  mla_close(dev);
  return st;
}

int main(int argc, char **argv) {
  static float want[2 * HEADS * LATENT], got[2 * HEADS * LATENT];
  const mla_backend *plugin = NULL;
  mla_error err = mla_error_init();
  int i;
  for (i = 0; i < 2 * HEADS * WIDTH; i++) q[i] = (float)(i % 5 - 2);
  for (i = 0; i < BLOCKS * BLOCK * WIDTH; i++) cache[i] = (float)(i % 7 - 3);
  if (argc != 2 || strcmp(mla_version(), MLA_VERSION_STRING) != 0) return 2;
  if (mla_plugin_load(argv[1], &plugin, &err) != MLA_OK ||
      decode_on("ref", want, &err) != MLA_OK ||
      decode_on(plugin->name, got, &err) != MLA_OK) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  for (i = 0; i < 2 * HEADS * LATENT; i++) {
    float error = want[i] - got[i];
    if (!(error > -1e-5f && error < 1e-5f)) {
      fprintf(stderr, "element %d: ref %g, %s %g\n", i, (double)want[i],
              plugin->name, (double)got[i]);
      return 1;
    }
  }
  printf("libmla %s: ref and %s agree, out[0] is %g\n", mla_version(),
         plugin->name, (double)want[0]);
  return 0;
}
