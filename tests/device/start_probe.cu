/*
 * start_probe: what a process pays before its first answer, by steps. A
 * development tool.
 *
 *   start_probe     milliseconds of each step, then of calls of q_absorb,
 *                   v_expand (64 tokens, 128 heads) and matmul: first, second
 */
#include <chrono>

#include "probe.cuh"

static double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch())
      .count();
}

static double last = now();
static void step(const char *what) {
  CK(cudaDeviceSynchronize());
  const double t = now();
  printf("%-24s %8.1f ms\n", what, t - last);
  last = now();
}

static void product(const char *name, int op) {
  enum { N = 64, H = 128, P = 128, L = 512 };
  mla_problem pr = {};
  pr.size = sizeof pr;
  pr.op = op;
  pr.q_dtype = pr.out_dtype = pr.weight_dtype = MLA_BF16;
  pr.num_heads = H;
  pr.kv_lora_rank = op == MLA_OP_MATMUL ? 0 : L;
  pr.qk_nope_head_dim = op == MLA_OP_Q_ABSORB ? P : 0;
  pr.v_head_dim = op == MLA_OP_V_EXPAND ? P : 0;
  pr.q_lora_rank = op == MLA_OP_MATMUL ? L : 0;
  pr.hidden_size = op == MLA_OP_MATMUL ? L : 0;
  mla_limits l = {};
  l.size = sizeof l;
  l.tokens = N;
  const size_t bytes = (size_t)H * L * 128 * 2;
  void *a, *w, *out;
  CK(cudaMalloc(&a, bytes));
  CK(cudaMalloc(&w, bytes));
  CK(cudaMalloc(&out, bytes));
  CK(cudaMemset(a, 0, bytes));
  CK(cudaMemset(w, 0, bytes));
  step("  memory");
  session x;
  begin(x, pr, l);
  step("  open, query, plan");
  mla_tensor t[MLA_T_COUNT] = {};
  if (op == MLA_OP_MATMUL) {
    t[MLA_T_A] = dense(a, MLA_BF16, {N, L});
    t[MLA_T_B] = dense(w, MLA_BF16, {L, L});
    t[MLA_T_OUT] = dense(out, MLA_BF16, {N, L});
  } else if (op == MLA_OP_Q_ABSORB) {
    t[MLA_T_Q_NOPE] = dense(a, MLA_BF16, {N, H, P});
    t[MLA_T_W_UK] = dense(w, MLA_BF16, {H, P, L});
    t[MLA_T_Q_LATENT] = dense(out, MLA_BF16, {N, H, L});
  } else {
    t[MLA_T_O_LATENT] = dense(a, MLA_BF16, {N, H, L});
    t[MLA_T_W_UV] = dense(w, MLA_BF16, {H, P, L});
    t[MLA_T_OUT] = dense(out, MLA_BF16, {N, H, P});
  }
  mla_args args = {sizeof args, MLA_T_COUNT, t};
  for (int i = 0; i < 2; i++) {
    mla_error err = {};
    err.size = sizeof err;
    if (x.b->run(x.plan, &args, x.ws, x.ws_bytes, NULL, &err)) {
      printf("run: %s\n", err.message);
      exit(1);
    }
    printf("%s ", name);
    step(i ? "second call" : "first call");
  }
  finish(x);
}

int main() {
  step("loaded");
  CK(cudaFree(NULL));
  step("context");
  product("q_absorb", MLA_OP_Q_ABSORB);
  product("v_expand", MLA_OP_V_EXPAND);
  product("matmul", MLA_OP_MATMUL);
  return 0;
}
