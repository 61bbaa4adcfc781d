/*
 * cmd_list.c - mlacheck list.
 */
#include <stdio.h>
#include <string.h>

#include "batch_case.h"
#include "commands.h"
#include "docket.h"
#include "error.h"
#include "model_presets.h"
#include "options.h"
#include "suite.h"
#include "target.h"

static const char help[] =
    "mlacheck list - what there is\n"
    "\n"
    "usage: mlacheck list [cases] [--profile NAME] [--only PATTERN...]\n"
    "       mlacheck list [cases] --model NAME|config.json\n"
    "       mlacheck list --models    models whose sizes are known\n"
    "       mlacheck list profiles    names and sizes of profiles\n"
    "       mlacheck list backends    those that find a device here\n"
    "       mlacheck list ops         the operations\n"
    "       mlacheck list --keys [OP...]   how a case is written\n";

/* ------------------------------------------------------------------- keys */

static void print_words(const mla_key_spec *spec) {
  for (int i = 0; spec->words && spec->words[i]; i++)
    printf("%s%s", i ? " | " : "", spec->words[i]);
}

static void print_default(const mla_key_spec *spec, const mla_key_use *use) {
  switch (spec->kind) {
    case MLA_KIND_INT:
    case MLA_KIND_REAL: printf(" [%lld]", (long long)use->def); break;
    case MLA_KIND_LIST:
      if (use->always)
        printf(" [%lld]", (long long)use->def);
      else
        printf(" [absent]");
      break;
    case MLA_KIND_WORD: printf(" [%s]", spec->words[use->def]); break;
    case MLA_KIND_FLAG: break;
    default: printf(" [as the format says]"); break;
  }
}

static void print_key(const mla_key_use *use) {
  const mla_key_spec *spec = mla_key_spec_of(use->key);
  char form[40];
  const char *eq = spec->kind == MLA_KIND_FLAG ? "" : spec->bare ? "N" : "=";
  const char *value =
      spec->kind == MLA_KIND_LIST && spec->bare   ? " or =N+N"
      : spec->kind == MLA_KIND_LIST               ? "N+N.."
      : spec->kind == MLA_KIND_INT && !spec->bare ? "N"
      : spec->kind == MLA_KIND_REAL               ? "X"
      : spec->kind == MLA_KIND_DTYPE || spec->kind == MLA_KIND_FORMAT ? "TYPE"
      : spec->kind == MLA_KIND_WORD                                   ? "WORD"
                                                                      : "";
  snprintf(form, sizeof form, "%s%s%s", spec->name, eq, value);
  printf("  %-14s %s", form, spec->help);
  print_default(spec, use);
  if (spec->words) printf("\n  %-14s ", "");
  print_words(spec);
  printf("\n");
}

static int is_batch(const char *word) {
  return strcmp(word, "batch") == 0;
}

static void list_batch_keys(const text_list *ops) {
  char form[100], what[100];
  int wanted = ops->count == 0;
  for (int32_t i = 0; i < ops->count; i++) wanted |= is_batch(ops->value[i]);
  if (!wanted) return;
  printf("batch:KEY,KEY,...\n");
  for (int i = 0; mla_batch_case_key(i, form, what, sizeof form); i++)
    printf("  %-14s %s\n", form, what);
  printf("\n");
}

static void list_formats(void) {
  printf("FORMAT:");
  for (int32_t f = 1; mla_format_name(f); f++)
    printf(" %s", mla_format_name(f));
  printf("\n        (without a cache one of the first four)\n\n");
}

static int list_keys(const text_list *ops) {
  list_formats();
  for (int32_t op = 1; mla_op_name(op); op++) {
    int wanted = ops->count == 0;
    int32_t count;
    const mla_key_use *uses = mla_key_uses(op, &count);
    for (int32_t i = 0; i < ops->count; i++)
      wanted |= strcmp(ops->value[i], mla_op_name(op)) == 0;
    if (!wanted) continue;
    printf("%s:FORMAT:KEY,KEY,...\n", mla_op_name(op));
    for (int32_t i = 0; i < count; i++) print_key(&uses[i]);
    printf("\n");
  }
  list_batch_keys(ops);
  for (int32_t i = 0; i < ops->count; i++)
    if (mla_op_from_name(ops->value[i]) == MLA_OP_NONE &&
        !is_batch(ops->value[i]))
      return usage_error("list", "\"%s\" is no operation", ops->value[i]);
  return EXIT_SATISFIED;
}

/* --------------------------------------------------------------- profiles */

static int list_profiles(void) {
  for (int i = 0; mla_suite_builtin(i); i++) {
    mla_suite suite;
    mla_error err = mla_error_init();
    const char *name = mla_suite_builtin(i);
    if (mla_suite_load(name, &suite, &err) != MLA_OK) {
      fprintf(stderr, "mlacheck list: %s\n", err.message);
      mla_suite_free(&suite);
      return EXIT_ENVIRONMENT;
    }
    printf("%-10s %4lld cases %9.3f GFLOP  %s\n", name, (long long)suite.count,
           mla_suite_flops(&suite) / 1e9, suite.title);
    mla_suite_free(&suite);
  }
  return EXIT_SATISFIED;
}

/* Heads of a device of n, or "-" where they do not divide. */
static void print_heads(const mla_model *m, int32_t n) {
  if (m->num_heads % n)
    printf(" %5s", "-");
  else
    printf(" %5d", (int)(m->num_heads / n));
}

static void print_size(int32_t size) {
  if (size)
    printf(" %6d", (int)size);
  else
    printf(" %6s", "-");
}

/* Sizes by the symbols of docs/spec.md, section 1. */
static int list_models(void) {
  static const int32_t shards[] = {1, 8, 16};
  printf("%-17s %6s %6s %6s %6s %6s %6s %6s   heads on 1, 8, 16\n", "",
         "hidden", "Lq", "L", "P", "R", "V", "topk");
  for (int i = 0; mla_model_at(i); i++) {
    const mla_model *m = mla_model_at(i);
    printf("%-17s", m->name);
    print_size(m->hidden_size);
    print_size(m->q_lora_rank);
    print_size(m->kv_lora_rank);
    print_size(m->qk_nope_head_dim);
    print_size(m->qk_rope_head_dim);
    print_size(m->v_head_dim);
    print_size(m->index_topk);
    for (int k = 0; k < 3; k++) print_heads(m, shards[k]);
    printf("\n");
  }
  printf(
      "\nA \"-\" says that there is none, or that the heads do not divide.\n"
      "mlacheck run --model deepseek-v3:tp8 judges a backend at such sizes.\n");
  return EXIT_SATISFIED;
}

static double flops_of(const char *id) {
  mla_case c;
  if (mla_case_parse(id, &c, NULL) != MLA_OK || c.edit[0]) return 0;
  return mla_case_flops(&c);
}

static mla_status choose(mla_suite *suite, const text_list *only,
                         mla_docket *docket, mla_error *err) {
  mla_status status =
      docket ? mla_docket_add_suite(docket, suite, err)
             : mla_fail(err, MLA_OUT_OF_MEMORY, "list", "no memory");
  if (status == MLA_OK)
    status = mla_docket_keep_only(docket, only->value, only->count, err);
  return status;
}

static void print_cases(const mla_docket *docket, const char *profile) {
  double flops = 0;
  int32_t count = mla_docket_count(docket);
  for (int32_t i = 0; i < count; i++) {
    const mla_item *item = mla_docket_at(docket, i);
    flops += flops_of(item->id);
    printf("%10.3f MFLOP %c %s    %s\n", flops_of(item->id) / 1e6,
           item->optional ? '?' : ' ', item->id, item->hunts);
  }
  printf("%d cases of profile %s, %.3f GFLOP together\n", (int)count, profile,
         flops / 1e9);
}

static int list_cases(const char *profile, const text_list *only) {
  mla_suite suite;
  mla_error err = mla_error_init();
  mla_docket *docket = mla_docket_new();
  mla_status status = mla_suite_load(profile, &suite, &err);
  if (status == MLA_OK) status = choose(&suite, only, docket, &err);
  int shown = status == MLA_OK && mla_docket_count(docket) > 0;
  if (status == MLA_OK)
    print_cases(docket, suite.name);
  else
    fprintf(stderr, "mlacheck list: %s\n", err.message);
  mla_suite_free(&suite);
  mla_docket_free(docket);
  if (status == MLA_INVALID_ARGUMENT) return EXIT_USAGE;
  if (status != MLA_OK) return EXIT_ENVIRONMENT;
  return shown ? EXIT_SATISFIED : EXIT_NOTHING;
}

static int list_ops(void) {
  for (int32_t op = 1; mla_op_name(op); op++) printf("%s\n", mla_op_name(op));
  return EXIT_SATISFIED;
}

/* One name a line, for scripts that go through them. */
static int list_backends(void) {
  int found = 0;
  if (!target_load_environment("list")) return EXIT_ENVIRONMENT;
  for (size_t i = 0; i < mla_backend_count(); i++) {
    mla_error err = mla_error_init();
    const mla_backend *b = mla_backend_at(i);
    if (b->device_count(&err) <= 0) continue;
    printf("%s\n", b->name);
    found = 1;
  }
  return found ? EXIT_SATISFIED : EXIT_NOTHING;
}

int cmd_list(int argc, char **argv) {
  const char *profile = NULL, *model = NULL;
  char of_model[1024];
  text_list only = {0, {NULL}}, rest = {0, {NULL}};
  int keys = 0, models = 0, want_help = 0;
  const option table[] = {{"--profile", OPTION_TEXT, &profile},
                          {"--only", OPTION_LIST, &only},
                          {"--model", OPTION_TEXT, &model},
                          {"--models", OPTION_FLAG, &models},
                          {"--keys", OPTION_FLAG, &keys},
                          {"--help", OPTION_FLAG, &want_help},
                          {NULL, 0, NULL}};
  if (!options_read("list", argc, argv, table, &rest)) return EXIT_USAGE;
  if (want_help) return fputs(help, stdout), EXIT_SATISFIED;
  if (keys) return list_keys(&rest);
  if (models) return list_models();
  if (model && profile)
    return usage_error("list", "--model is a profile: one of both");
  if (!profile) profile = "smoke";
  if (model) {
    snprintf(of_model, sizeof of_model, "model:%s", model);
    profile = of_model;
  }
  if (rest.count > 1)
    return usage_error("list", "\"%s\" is one word too many", rest.value[1]);
  const char *what = rest.count ? rest.value[0] : "cases";
  if (strcmp(what, "cases") == 0) return list_cases(profile, &only);
  if (strcmp(what, "profiles") == 0) return list_profiles();
  if (strcmp(what, "backends") == 0) return list_backends();
  if (strcmp(what, "ops") == 0) return list_ops();
  return usage_error("list", "\"%s\" is nothing to list", what);
}
