/*
 * report_junit.c - reports as JUnit XML, the form that CI servers read.
 *
 * A suite for each operation and format of each backend, a test for each
 * case. Where the form has no word for what happened:
 *   unsupported, required by the claim   failure
 *   unsupported, and may be              skipped
 *   waived                               skipped, with the link
 *   not judged, or a bad vector          error
 * A last suite has one test, the verdict: a run of which nothing was judged
 * is red, although no case failed.
 */
#include <string.h>

#include "report_model.h"
#include "text_buffer.h"

typedef struct counts {
  int tests, failures, errors, skipped;
} counts;

typedef enum outcome { PASSED, FAILED, BROKEN, SKIPPED } outcome;

static outcome outcome_of(const cJSON *record) {
  const char *verdict = model_text(record, "verdict");
  if (model_member(record, "waived")) return SKIPPED;
  if (strcmp(verdict, "pass") == 0) return PASSED;
  if (strcmp(verdict, "fail") == 0) return FAILED;
  if (strcmp(verdict, "unsupported") == 0)
    return model_true(record, "required") ? FAILED : SKIPPED;
  return BROKEN;
}

static void count(counts *c, outcome o) {
  c->tests++;
  c->failures += o == FAILED;
  c->errors += o == BROKEN;
  c->skipped += o == SKIPPED;
}

static void add_attribute(text_buffer *b, const char *name, const char *value) {
  text_add(b, " %s=\"", name);
  text_attribute(b, value);
  text_add(b, "\"");
}

static void add_counts(text_buffer *b, const counts *c) {
  text_add(b, " tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\"",
           c->tests, c->failures, c->errors, c->skipped);
}

static void add_property(text_buffer *b, const char *name, const char *value) {
  if (!*value) return;
  text_add(b, "      <property");
  add_attribute(b, "name", name);
  add_attribute(b, "value", value);
  text_add(b, "/>\n");
}

static void add_properties(text_buffer *b, const cJSON *model) {
  const cJSON *device = model_member(model, "device");
  const cJSON *backend = model_member(model, "backend");
  text_add(b, "    <properties>\n");
  add_property(b, "libmla", model_text(model, "libmla"));
  add_property(b, "backend", model_text(backend, "name"));
  add_property(b, "backend_version", model_text(backend, "version"));
  add_property(b, "device", model_text(device, "name"));
  add_property(b, "arch", model_text(device, "arch"));
  add_property(b, "profile", model_text(model, "profile"));
  text_add(b, "    </properties>\n");
}

/* ---------------------------------------------------------------- a test */

static void add_message(text_buffer *b, const cJSON *record) {
  const cJSON *look = model_member(record, "looks_like");
  const cJSON *waived = model_member(record, "waived");
  text_add(b, " message=\"");
  if (waived) {
    text_attribute(b, "waived: ");
    text_attribute(b, model_text(waived, "link"));
    if (*model_text(waived, "reason")) text_add(b, " ");
    text_attribute(b, model_text(waived, "reason"));
  } else if (*model_text(record, "reason")) {
    text_attribute(b, model_text(record, "reason"));
  } else if (look) {
    text_attribute(b, model_text(look, "sentence"));
  } else {
    text_attribute(b, model_text(record, "verdict"));
  }
  text_add(b, "\"");
}

static void add_type(text_buffer *b, const cJSON *record, outcome o) {
  const char *class = model_text(model_member(record, "looks_like"), "class");
  int missing = strcmp(model_text(record, "verdict"), "unsupported") == 0;
  if (!*class)
    class = missing ? "UNSUPPORTED" : o == BROKEN ? "NOT-JUDGED" : "WRONG";
  add_attribute(b, "type", class);
}

static void add_case(text_buffer *b, const cJSON *record, const char *suite) {
  outcome o = outcome_of(record);
  const char *element = o == FAILED ? "failure" : "error";
  text_add(b, "    <testcase");
  add_attribute(b, "name", model_text(record, "id"));
  add_attribute(b, "classname", suite);
  if (o == PASSED) {
    text_add(b, "/>\n");
    return;
  }
  text_add(b, ">\n      <%s", o == SKIPPED ? "skipped" : element);
  add_message(b, record);
  if (o == SKIPPED) {
    text_add(b, "/>\n    </testcase>\n");
    return;
  }
  add_type(b, record, o);
  text_add(b, ">");
  const char *text = model_text(record, "text");
  text_data(b, *text ? text : model_text(record, "reason"));
  text_add(b, "</%s>\n    </testcase>\n", element);
}

/* ------------------------------------------------------------ the suites */

/* A run, and its name: that of the backend, "cpu-2" for a second run of it. */
typedef struct run_name {
  const cJSON *model;
  char name[80];
} run_name;

static const char *backend_of(const cJSON *model) {
  return model_text(model_member(model, "backend"), "name");
}

static run_name name_run(const cJSON *const *models, int32_t i) {
  run_name r = {models[i], ""};
  int same = 1;
  for (int32_t k = 0; k < i; k++)
    same += strcmp(backend_of(models[k]), backend_of(models[i])) == 0;
  if (same == 1)
    snprintf(r.name, sizeof r.name, "%.64s", backend_of(models[i]));
  else
    snprintf(r.name, sizeof r.name, "%.64s-%d", backend_of(models[i]), same);
  return r;
}

/* "cpu.decode.bf16"; files of other people's layers: "cpu.layer". */
static void name_suite(const run_name *run, const cJSON *record, char *name,
                       size_t size) {
  char op[64], format[64];
  const char *backend = run->name;
  model_group(record, op, format, sizeof op);
  if (op[0])
    snprintf(name, size, "%s.%s.%s", backend, op, format);
  else
    snprintf(name, size, "%s.layer", backend);
}

static int is_of_suite(const run_name *run, const cJSON *record,
                       const char *suite) {
  char name[256];
  name_suite(run, record, name, sizeof name);
  return strcmp(name, suite) == 0;
}

static int is_first_of_suite(const run_name *run, const cJSON *record,
                             const char *suite) {
  const cJSON *other;
  cJSON_ArrayForEach(other, model_member(run->model, "cases")) {
    if (other == record) return 1;
    if (is_of_suite(run, other, suite)) return 0;
  }
  return 1;
}

static void add_suite(text_buffer *b, const run_name *run, const char *suite) {
  counts c = {0, 0, 0, 0};
  const cJSON *record;
  cJSON_ArrayForEach(
      record,
      model_member(run->model, "cases")) if (is_of_suite(run, record, suite))
      count(&c, outcome_of(record));
  text_add(b, "  <testsuite");
  add_attribute(b, "name", suite);
  add_counts(b, &c);
  text_add(b, ">\n");
  add_properties(b, run->model);
  cJSON_ArrayForEach(
      record,
      model_member(run->model, "cases")) if (is_of_suite(run, record, suite))
      add_case(b, record, suite);
  text_add(b, "  </testsuite>\n");
}

static void add_verdict(text_buffer *b, const run_name *run) {
  int code = model_exit(run->model);
  counts c = {1, code != EXIT_SATISFIED, 0, 0};
  char suite[256];
  snprintf(suite, sizeof suite, "%s.verdict", run->name);
  text_add(b, "  <testsuite");
  add_attribute(b, "name", suite);
  add_counts(b, &c);
  text_add(b, ">\n");
  add_properties(b, run->model);
  text_add(b, "    <testcase name=\"verdict\"");
  add_attribute(b, "classname", suite);
  if (code == EXIT_SATISFIED)
    text_add(b, "/>\n");
  else
    text_add(b,
             ">\n      <failure message=\"%s\" type=\"VERDICT\">exit code %d"
             "</failure>\n    </testcase>\n",
             code == EXIT_NOTHING ? "nothing was judged" : "not satisfied",
             code);
  text_add(b, "  </testsuite>\n");
}

static void add_run(text_buffer *b, const run_name *run) {
  char suite[256];
  const cJSON *record;
  cJSON_ArrayForEach(record, model_member(run->model, "cases")) {
    name_suite(run, record, suite, sizeof suite);
    if (is_first_of_suite(run, record, suite)) add_suite(b, run, suite);
  }
  add_verdict(b, run);
}

static counts sum_models(const cJSON *const *models, int32_t n) {
  counts c = {0, 0, 0, 0};
  for (int32_t i = 0; i < n; i++) {
    const cJSON *record;
    cJSON_ArrayForEach(record, model_member(models[i], "cases"))
        count(&c, outcome_of(record));
    int code = model_exit(models[i]);
    count(&c, code == EXIT_SATISFIED ? PASSED : FAILED);
  }
  return c;
}

char *report_junit_text(const cJSON *const *models, int32_t count_of) {
  text_buffer b = {NULL, 0, 0, 0};
  counts c = sum_models(models, count_of);
  text_add(&b,
           "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "
           "name=\"mlacheck\"");
  add_counts(&b, &c);
  text_add(&b, ">\n");
  for (int32_t i = 0; i < count_of; i++) {
    run_name run = name_run(models, i);
    add_run(&b, &run);
  }
  text_add(&b, "</testsuites>\n");
  return text_take(&b);
}
