/* Without oneDNN: our own products alone. */
#include "cpu_onednn.h"

mla_cpu_onednn *mla_cpu_onednn_open(uint32_t mask) {
  (void)mask;
  return NULL;
}

void mla_cpu_onednn_close(mla_cpu_onednn *onednn) {
  (void)onednn;
}

int mla_cpu_onednn_flushes(const mla_cpu_onednn *onednn, int x, int y) {
  (void)onednn, (void)x, (void)y;
  return 0;
}

uint64_t mla_cpu_onednn_workspace(const mla_cpu_context *context) {
  (void)context;
  return 0;
}

int mla_cpu_onednn_run(const mla_cpu_context *context, const mla_cpu_gemm *gemm,
                       void *workspace) {
  (void)context, (void)gemm, (void)workspace;
  return 1;
}
