/*
 * verdict.c - words and sums of verdicts.
 */
#include "verdict.h"

const char *mla_verdict_name(int32_t kind) {
  static const char *const names[] = {"pass", "fail", "unsupported", "error",
                                      "bad vector"};
  return kind >= 0 && kind < 5 ? names[kind] : "unknown";
}

double mla_verdict_worst(const mla_verdict *v, int lse) {
  double worst = -1;
  for (int32_t i = 0; i < v->outputs; i++) {
    const mla_output_verdict *o = &v->output[i];
    if ((o->slot == MLA_T_LSE) != (lse != 0) || o->checked == 0) continue;
    if (o->worst > worst) worst = o->worst;
  }
  return worst;
}
