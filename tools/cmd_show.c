/*
 * cmd_show.c - mlacheck show.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_json.h"
#include "commands.h"
#include "dmath.h"
#include "expect.h"
#include "fields.h"
#include "generate.h"
#include "options.h"
#include "suite.h"

static const char help[] =
    "mlacheck show - what a case is\n"
    "\n"
    "usage: mlacheck show CASE... [--seed N]\n"
    "\n"
    "Prints the problem, the limits, every tensor with shape and strides, the\n"
    "work, and what the reference expects (for a sample of rows if the case "
    "is\n"
    "big).\n";

static void print_members(const char *title, const mla_field *fields,
                          const void *object) {
  char text[400];
  printf("%s\n", title);
  for (const mla_field *f = fields; f->name; f++) {
    if (mla_field_is_zero(f, object)) continue;
    mla_field_print(f, object, text, sizeof text);
    printf("  %-18s %s\n", f->name, text);
  }
}

static void print_axes(const char *name, const int64_t *axes, int32_t rank) {
  printf(" %s ", name);
  for (int32_t a = 0; a < rank; a++)
    printf("%s%lld", a ? "x" : "", (long long)axes[a]);
}

static void print_tensors(const mla_vector *v) {
  static const char *const roles[] = {"", "in", "out", "in and out"};
  printf("tensors\n");
  for (int s = 0; s < MLA_T_COUNT; s++) {
    const mla_tensor *t = &v->tensor[s];
    if (!v->role[s]) continue;
    printf("  %-16s %-10s %-5s", mla_slot_name(s), roles[v->role[s]],
           mla_dtype_name(t->dtype));
    print_axes("", t->shape, t->rank);
    print_axes("stride", t->stride, t->rank);
    if (v->alias[s] >= 0) printf(" (memory of %s)", mla_slot_name(v->alias[s]));
    printf("\n");
  }
}

/* ----------------------------------------------------------- expectations */

static void print_values(mla_expected_view view) {
  int64_t n = view.rows * view.width, infinite = 0, nan = 0, finite = 0;
  double low = 0, high = 0, sum2 = 0;
  for (int64_t i = 0; i < n; i++) {
    double x = view.value[i];
    if (mla_isnan(x))
      nan++;
    else if (mla_isinf(x))
      infinite++;
    else {
      if (!finite || x < low) low = x;
      if (!finite || x > high) high = x;
      finite++;
      sum2 += x * x;
    }
  }
  printf("  %-16s %lld values", mla_slot_name(view.slot), (long long)n);
  if (finite)
    printf(", from %.6g to %.6g, root mean square %.6g", low, high,
           mla_sqrt(sum2 / (double)finite));
  if (infinite) printf(", %lld infinite", (long long)infinite);
  if (nan) printf(", %lld NaN", (long long)nan);
  printf("\n");
}

static int print_expected(const mla_vector *v) {
  mla_expectation e;
  mla_error err = mla_error_init();
  mla_status status = mla_expectation_make(v, NULL, NULL, &e, &err);
  if (status != MLA_OK) {
    fprintf(stderr, "mlacheck show: %s\n", err.message);
    mla_expectation_free(&e);
    return EXIT_ENVIRONMENT;
  }
  printf("expected");
  if (e.rows < e.rows_total)
    printf(" (%lld of %lld rows)", (long long)e.rows, (long long)e.rows_total);
  printf("\n");
  int32_t count = e.expected ? mla_expected_count(e.expected) : 0;
  for (int32_t i = 0; i < count; i++) {
    mla_expected_view view = mla_expected_at(e.expected, i);
    if (view.value)
      print_values(view);
    else
      printf("  %-16s %lld bytes\n", mla_slot_name(view.slot),
             (long long)view.byte_count);
  }
  printf("  digest           %016llx\n",
         (unsigned long long)mla_expectation_digest(v, &e));
  mla_expectation_free(&e);
  return EXIT_SATISFIED;
}

static int show_vector(const mla_case *c, uint64_t seed) {
  mla_vector v;
  mla_error err = mla_error_init();
  mla_status status = mla_generate(c, seed, MLA_POISON_NAN, &v, &err);
  int code = EXIT_ENVIRONMENT;
  if (status == MLA_OK) {
    printf("%s\nseed %llu, %.3f MFLOP, about %.3f MB\n", v.id,
           (unsigned long long)seed, mla_case_flops(c) / 1e6,
           mla_case_bytes(c) / 1e6);
    print_members("problem", mla_problem_fields, &v.problem);
    print_members("limits", mla_limits_fields, &v.limits);
    print_tensors(&v);
    code = print_expected(&v);
  } else {
    fprintf(stderr, "mlacheck show: %s\n", err.message);
  }
  mla_vector_free(&v);
  return code;
}

/* As a golden file has it. */
static int show_batch(const char *id, uint64_t seed) {
  mla_batch_case *c = malloc(sizeof *c);
  mla_batch_answer *made = mla_batch_answer_new();
  mla_error err = mla_error_init();
  mla_status status =
      c && made ? mla_batch_case_draw(id, seed, c, &err) : MLA_OUT_OF_MEMORY;
  int wrong = status == MLA_INVALID_ARGUMENT;
  if (status == MLA_OK) status = mla_batch_case_build(c, made, &err);
  cJSON *json = status == MLA_OK ? mla_batch_json(c, made) : NULL;
  char *text = json ? cJSON_Print(json) : NULL;
  if (text) printf("%s\n", text);
  if (!text) fprintf(stderr, "mlacheck show: %s\n", err.message);
  cJSON_free(text);
  cJSON_Delete(json);
  free(made);
  free(c);
  return text ? EXIT_SATISFIED : wrong ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

int cmd_show(int argc, char **argv) {
  text_list ids = {0, {NULL}};
  uint64_t seed = MLA_SUITE_SEED;
  int want_help = 0, code = EXIT_SATISFIED;
  const option table[] = {{"--case", OPTION_LIST, &ids},
                          {"--seed", OPTION_COUNT, &seed},
                          {"--help", OPTION_FLAG, &want_help},
                          {NULL, 0, NULL}};
  if (!options_read("show", argc, argv, table, &ids)) return EXIT_USAGE;
  if (want_help) return fputs(help, stdout), EXIT_SATISFIED;
  if (!ids.count) return usage_error("show", "which case?");
  for (int32_t i = 0; i < ids.count && code == EXIT_SATISFIED; i++) {
    mla_case c;
    mla_error err = mla_error_init();
    if (mla_batch_case_is(ids.value[i])) {
      code = show_batch(ids.value[i], seed);
      continue;
    }
    if (mla_case_parse(ids.value[i], &c, &err) != MLA_OK)
      return usage_error("show", "%s", err.message);
    if (c.edit[0]) {
      printf("invalid: \"%s\" is changed in the call of\n", c.edit);
      c.edit[0] = '\0';
    }
    code = show_vector(&c, seed);
  }
  return code;
}
