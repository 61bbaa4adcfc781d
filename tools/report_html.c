/*
 * report_html.c - reports as one page: verdicts, the matrix of all of them,
 * pictures, failures with their maps, and what it was run on.
 */
#include <stdlib.h>

#include "html_page.h"

#define MOST_OPEN 5 /* failures unfolded at once, of each run */

static const char *backend_of(const cJSON *model) {
  return model_text(model_member(model, "backend"), "name");
}

/* ------------------------------------------------------------ the verdict */

static const char *word_of(int code) {
  switch (code) {
    case EXIT_SATISFIED: return "PASS";
    case EXIT_NOTHING: return "NOTHING";
    case EXIT_FAILED: return "FAIL";
    default: return "ERROR";
  }
}

static void add_sum(text_buffer *b, const cJSON *sums, const char *name,
                    const char *words) {
  int n = model_count(sums, name);
  if (n) text_add(b, ", %d %s", n, words);
}

static void add_verdict(text_buffer *b, const cJSON *model) {
  const cJSON *sums = model_member(model, "sums");
  int code = model_exit(model);
  text_add(b, "<div class=\"verdict %s\"><b>%s</b> <strong>",
           code == EXIT_SATISFIED ? "good" : "bad", word_of(code));
  text_data(b, backend_of(model));
  text_add(b, "</strong>");
  if (*model_text(model, "profile")) {
    text_add(b, " on %sprofile ",
             model_true(model, "restricted") ? "part of " : "");
    text_data(b, model_text(model, "profile"));
  }
  text_add(b, ": %d of %d cases judged, %d passed", model_count(sums, "judged"),
           model_count(sums, "asked"), model_count(sums, "passed"));
  add_sum(b, sums, "failed", "failed");
  add_sum(b, sums, "waived", "waived");
  add_sum(b, sums, "bad_vectors", "vectors contradict the reference");
  add_sum(b, sums, "errors", "could not be judged");
  add_sum(b, sums, "unsupported_required", "required ones unsupported");
  int may = model_count(sums, "unsupported") -
            model_count(sums, "unsupported_required");
  if (may > 0) text_add(b, ", %d unsupported that may be", may);
  text_add(b, "</div>\n");
}

/* ------------------------------------------------------------ environment */

static void add_fact(text_buffer *b, const char *name, const char *value) {
  if (!*value) return;
  text_add(b, "<tr><th scope=\"row\">%s</th><td>", name);
  text_data(b, value);
  text_add(b, "</td></tr>\n");
}

static void add_environment(text_buffer *b, const cJSON *model) {
  const cJSON *backend = model_member(model, "backend");
  const cJSON *device = model_member(model, "device");
  const cJSON *made = model_member(model, "environment");
  char units[32] = "";
  if (model_number(device, "compute_units") > 0)
    snprintf(units, sizeof units, "%.0f",
             model_number(device, "compute_units"));
  text_add(b, "<div class=\"wide\"><table>\n");
  add_fact(b, "backend", model_text(backend, "name"));
  add_fact(b, "its version", model_text(backend, "version"));
  add_fact(b, "its words", model_text(backend, "description"));
  add_fact(b, "device", model_text(device, "name"));
  add_fact(b, "architecture", model_text(device, "arch"));
  add_fact(b, "compute units", units);
  add_fact(b, "libmla", model_text(model, "libmla"));
  add_fact(b, "interface", model_text(made, "interface"));
  add_fact(b, "reference", model_text(model, "reference"));
  add_fact(b, "built by", model_text(made, "compiler"));
  add_fact(b, "for", model_text(made, "machine"));
  text_add(b, "</table></div>\n");
}

/* --------------------------------------------------------------- one run */

static void add_failures(text_buffer *b, const cJSON *model) {
  const cJSON *record;
  int shown = 0;
  cJSON_ArrayForEach(record, model_member(model, "cases")) {
    int known = model_member(record, "waived") != NULL;
    int missing = strcmp(model_text(record, "verdict"), "unsupported") == 0;
    if ((!model_is_bad(record) && !known) || missing) continue;
    html_failure(b, record, shown++ < MOST_OPEN);
  }
  if (!shown) text_add(b, "<p>None.</p>\n");
}

static int is_first_reason(const cJSON *model, const cJSON *record) {
  const cJSON *other;
  cJSON_ArrayForEach(other, model_member(model, "cases")) {
    if (other == record) return 1;
    if (strcmp(model_text(other, "verdict"), "unsupported") == 0 &&
        strcmp(model_text(other, "reason"), model_text(record, "reason")) == 0)
      return 0;
  }
  return 1;
}

static void count_reason(const cJSON *model, const char *reason, int *count,
                         int *bad) {
  const cJSON *other;
  *count = *bad = 0;
  cJSON_ArrayForEach(other, model_member(model, "cases")) {
    if (strcmp(model_text(other, "verdict"), "unsupported") != 0 ||
        strcmp(model_text(other, "reason"), reason) != 0)
      continue;
    ++*count;
    *bad += model_is_bad(other);
  }
}

static void add_reasons(text_buffer *b, const cJSON *model) {
  const cJSON *record;
  int shown = 0, count, bad;
  cJSON_ArrayForEach(record, model_member(model, "cases")) {
    if (strcmp(model_text(record, "verdict"), "unsupported") != 0 ||
        !is_first_reason(model, record))
      continue;
    if (!shown++)
      text_add(b,
               "<h3>Unsupported</h3>\n<div class=\"wide\"><table><tr><th>"
               "cases</th><th>required</th><th>why</th><th>first</th></tr>\n");
    count_reason(model, model_text(record, "reason"), &count, &bad);
    text_add(b, "<tr><td>%d</td><td%s>%d</td><td>", count,
             bad ? " class=\"bad\"" : "", bad);
    text_data(b, model_text(record, "reason"));
    text_add(b, "</td><td><code>");
    text_data(b, model_text(record, "id"));
    text_add(b, "</code></td></tr>\n");
  }
  if (shown) text_add(b, "</table></div>\n");
}

static void add_stale(text_buffer *b, const cJSON *model) {
  const cJSON *entry;
  int shown = 0;
  cJSON_ArrayForEach(entry, model_member(model, "stale_waivers")) {
    if (!shown++)
      text_add(b, "<h3>Stale waivers</h3>\n<p>Nothing was waived by:</p><ul>");
    text_add(b, "<li><code>");
    text_data(b, model_text(entry, "case"));
    text_add(b, "</code> ");
    text_data(b, model_text(entry, "class"));
    text_add(b, " <code>");
    text_data(b, model_text(entry, "link"));
    text_add(b, "</code></li>");
  }
  if (shown) text_add(b, "</ul>\n");
}

/* Error / budget of one tensor's output, or "-". */
static void add_worst(text_buffer *b, const cJSON *record, int lse) {
  const cJSON *output;
  double worst = -1;
  cJSON_ArrayForEach(output, model_member(record, "outputs")) {
    int is_lse = strcmp(model_text(output, "tensor"), "lse") == 0;
    if (is_lse != lse || model_number(output, "checked") < 1) continue;
    double value = model_real(output, "worst");
    if (!(value <= worst)) worst = value;
  }
  if (worst == -1)
    text_add(b, "<td>-</td>");
  else if (worst <= 1e6)
    text_add(b, "<td>%.3f</td>", worst);
  else
    text_add(b, "<td>beyond</td>");
}

static void add_cases(text_buffer *b, const cJSON *model) {
  const cJSON *record;
  text_add(b,
           "<details><summary>All cases</summary>\n<div class=\"wide\"><table>"
           "<tr><th>verdict</th><th>case</th><th>out</th><th>lse</th><th>"
           "kernel</th></tr>\n");
  cJSON_ArrayForEach(record, model_member(model, "cases")) {
    int waived = model_member(record, "waived") != NULL;
    text_add(b, "<tr><td class=\"%s\">",
             waived                                               ? "waived"
             : model_is_bad(record)                               ? "bad"
             : strcmp(model_text(record, "verdict"), "pass") == 0 ? "good"
                                                                  : "no");
    text_data(b, waived ? "waived" : model_text(record, "verdict"));
    text_add(b, "</td><td><code>");
    text_data(b, model_text(record, "id"));
    text_add(b, "</code></td>");
    add_worst(b, record, 0);
    add_worst(b, record, 1);
    text_add(b, "<td>");
    text_data(b, model_text(record, "kernel"));
    text_add(b, "</td></tr>\n");
  }
  text_add(b, "</table></div></details>\n");
}

static void add_run(text_buffer *b, const cJSON *model) {
  text_add(b, "<h2>");
  text_data(b, backend_of(model));
  text_add(b, "</h2>\n<h3>Error over budget</h3>\n");
  html_histogram(b, model);
  text_add(b, "<h3>Failures</h3>\n");
  add_failures(b, model);
  add_reasons(b, model);
  add_stale(b, model);
  text_add(b, "<h3>Environment</h3>\n");
  add_environment(b, model);
  add_cases(b, model);
}

char *report_html_text(const cJSON *const *models, int32_t count) {
  text_buffer b = {NULL, 0, 0, 0};
  text_buffer title = {NULL, 0, 0, 0};
  for (int32_t i = 0; i < count; i++)
    text_add(&title, "%s%s %s", i ? ", " : "", backend_of(models[i]),
             word_of(model_exit(models[i])));
  text_add(&title, " - mlacheck");
  html_begin(&b, title.text ? title.text : "mlacheck");
  text_add(&b, "<h1>mlacheck</h1>\n");
  for (int32_t i = 0; i < count; i++) add_verdict(&b, models[i]);
  text_add(&b, "<h2>Operation, format, backend</h2>\n");
  html_matrix(&b, models, count);
  for (int32_t i = 0; i < count; i++) add_run(&b, models[i]);
  html_end(&b);
  char *none = text_take(&title), *text = text_take(&b);
  int short_of_memory = !none;
  free(none);
  if (!short_of_memory) return text;
  free(text);
  return NULL;
}
