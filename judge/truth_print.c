/*
 * truth_print.c - a verdict on somebody else's outputs, in one line.
 */
#include <stdio.h>

#include "truth.h"

static const char *verdict_name(int32_t verdict) {
  switch (verdict) {
    case MLA_TRUTH_PASS: return "PASS";
    case MLA_TRUTH_UNSUPPORTED: return "UNSUPPORTED";
    default: return "FAIL";
  }
}

int mla_truth_print(const mla_truth_result *r, char *text, size_t size) {
  const char *verdict = verdict_name(r->verdict);
  const char *gap = r->reason[0] ? "  " : "";
  if (r->combinations == 0) {
    return snprintf(text, size, "%-12s %s%s%s", r->name, verdict, gap,
                    r->reason);
  }
  char stages[192] = "";
  if (r->stages > 0) {
    snprintf(stages, sizeof stages,
             "  error/budget %.3f of %lld operations (%s)", r->stage_ratio,
             (long long)r->stages, r->stage_where);
  }
  char choices[128] = "";
  if (r->choices > 0) {
    snprintf(choices, sizeof choices, "  %lld of %lld choices equal%s%s%s",
             (long long)(r->choices - r->wrong_choices), (long long)r->choices,
             r->wrong_choices ? " (" : "", r->choice_where,
             r->wrong_choices ? ")" : "");
  }
  return snprintf(text, size,
                  "%-12s %s  output %.1e (%s)  latents %.1e  before o_proj "
                  "%.1e  %d ways in %s, %d through o_proj%s%s%s%s",
                  r->name, verdict, r->output_error, r->output_where,
                  r->latent_error, r->attention_error, r->combinations,
                  mla_dtype_name(r->activation), r->distinct, choices, stages,
                  gap, r->reason);
}
