/*
 * run_sums.c - what many verdicts mean together.
 */
#include "options.h"
#include "report.h"

int run_requires(const run_state *run, int32_t i) {
  return run->claim != NULL && !mla_docket_at(run->docket, i)->optional &&
         !run->record[i].verdict.excused;
}

run_sums run_sum(const run_state *run) {
  run_sums s = {0};
  for (int32_t i = 0; i < run->done; i++) {
    int32_t kind = run->record[i].verdict.kind;
    s.asked++;
    s.passed += kind == MLA_VERDICT_PASS;
    s.failed += kind == MLA_VERDICT_FAIL;
    s.errors += kind == MLA_VERDICT_ERROR;
    s.bad_vectors += kind == MLA_VERDICT_BAD_VECTOR;
    s.unsupported += kind == MLA_VERDICT_UNSUPPORTED;
    s.unsupported_required +=
        kind == MLA_VERDICT_UNSUPPORTED && run_requires(run, i);
  }
  s.judged = s.passed + s.failed;
  return s;
}

int run_exit_code(const run_state *run, const run_sums *s) {
  (void)run;
  if (s->failed || s->bad_vectors || s->unsupported_required)
    return EXIT_FAILED;
  if (s->errors) return EXIT_ENVIRONMENT;
  return s->judged ? EXIT_SATISFIED : EXIT_NOTHING;
}
