/*
 * run_sums.c - what many verdicts mean together.
 */
#include <string.h>

#include "options.h"
#include "report.h"

const mla_backend *run_backend(const run_state *run) {
  return run->target->table;
}

int run_device(const run_state *run, mla_device_info *info) {
  *info = run->target->info;
  return run->target->described;
}

int run_requires(const run_state *run, int32_t i) {
  return run->claim != NULL && !mla_docket_at(run->docket, i)->optional &&
         !run->record[i].verdict.excused;
}

/* What could not be judged, or contradicts the reference, is no known failure
   of a backend: nothing waives it. */
const mla_waiver *run_waiver(const run_state *run, int32_t i) {
  const mla_verdict *v = &run->record[i].verdict;
  const mla_waivers *known = run->reports ? &run->reports->known : NULL;
  int missing = v->kind == MLA_VERDICT_UNSUPPORTED && run_requires(run, i);
  if (v->kind != MLA_VERDICT_FAIL && !missing) return NULL;
  const char *backend = run_backend(run)->name;
  int32_t entry = mla_waiver_for(
      known, backend, mla_docket_at(run->docket, i)->id, v->look.cls);
  return entry < 0 ? NULL : &known->entry[entry];
}

int run_is_stale(const run_state *run, int32_t waiver) {
  const mla_waiver *w = &run->reports->known.entry[waiver];
  if (!mla_waiver_concerns(w, run_backend(run)->name)) return 0;
  for (int32_t i = 0; i < run->done; i++)
    if (run_waiver(run, i) == w) return 0;
  return 1;
}

int run_is_bad(const run_state *run, int32_t i) {
  int32_t kind = run->record[i].verdict.kind;
  return kind != MLA_VERDICT_PASS && kind != MLA_VERDICT_UNSUPPORTED &&
         !run_waiver(run, i);
}

/* Who refuses everything refuses what must be refused, too. */
static int judged_refusals_alone(const run_state *run) {
  int others = 0;
  for (int32_t i = 0; i < run->done; i++) {
    if (mla_docket_at(run->docket, i)->kind == MLA_ITEM_INVALID) continue;
    if (run->record[i].verdict.kind != MLA_VERDICT_UNSUPPORTED) return 0;
    others++;
  }
  return others > 0;
}

run_sums run_sum(const run_state *run) {
  run_sums s = {0};
  for (int32_t i = 0; i < run->done; i++) {
    int32_t kind = run->record[i].verdict.kind;
    int waived = run_waiver(run, i) != NULL;
    s.asked++;
    s.judged += kind == MLA_VERDICT_PASS || kind == MLA_VERDICT_FAIL;
    s.passed += kind == MLA_VERDICT_PASS;
    s.failed += kind == MLA_VERDICT_FAIL && !waived;
    s.errors += kind == MLA_VERDICT_ERROR;
    s.bad_vectors += kind == MLA_VERDICT_BAD_VECTOR;
    s.unsupported += kind == MLA_VERDICT_UNSUPPORTED;
    s.unsupported_required +=
        kind == MLA_VERDICT_UNSUPPORTED && run_requires(run, i) && !waived;
    s.waived += waived;
  }
  s.refusals_alone = s.passed && judged_refusals_alone(run);
  return s;
}

/* Waivers alone satisfy nothing, nor do refusals: something must have
   passed. */
int run_exit_code(const run_state *run, const run_sums *s) {
  int required = run->reports && run->reports->required;
  if (s->failed || s->bad_vectors || s->unsupported_required)
    return EXIT_FAILED;
  if (s->errors) return EXIT_ENVIRONMENT;
  if (s->passed && !s->refusals_alone) return EXIT_SATISFIED;
  return s->waived || required ? EXIT_FAILED : EXIT_NOTHING;
}
