/*
 * cmd_export.c - mlacheck export.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_json.h"
#include "commands.h"
#include "docket.h"
#include "error.h"
#include "file_text.h"
#include "folder.h"
#include "options.h"
#include "question.h"
#include "questions.h"

static const char help[] =
    "mlacheck export - the inputs of cases as files, for any program\n"
    "\n"
    "usage: mlacheck export [OPTIONS] DIR\n"
    "\n"
    "  --profile NAME     the cases of a profile (default: smoke)\n"
    "  --only PATTERN...  of these, cases that begin so: decode, decode:bf16\n"
    "  --case ID...       single cases instead\n"
    "  --seed N           another seed for all data\n"
    "\n"
    "DIR/index.json says what each case is. Whatever computes it writes\n"
    "DIR/NAME.out.safetensors with the outputs, by name; `mlacheck verify "
    "DIR`\n"
    "judges them. golden/FORMAT.md describes the files. Calls that must be\n"
    "refused, and those composed of several, are left out: no file can answer\n"
    "them; and so are caches of gigabytes.\n"
    "\n"
    "exit codes: 0 written, 2 usage, 3 environment, 77 no case\n";

typedef struct export_options {
  const char *profile;
  text_list dirs, only, cases;
  uint64_t seed;
  int help;
} export_options;

static int read_options(int argc, char **argv, export_options *o) {
  memset(o, 0, sizeof *o);
  o->seed = UINT64_MAX;
  const option table[] = {
      {"--profile", OPTION_TEXT, &o->profile},
      {"--only", OPTION_LIST, &o->only},
      {"--case", OPTION_LIST, &o->cases},
      {"--seed", OPTION_COUNT, &o->seed},
      {"--help", OPTION_FLAG, &o->help},
      {NULL, 0, NULL},
  };
  return options_read("export", argc, argv, table, &o->dirs);
}

static mla_status fill(mla_docket *d, const export_options *o, mla_error *err) {
  mla_suite suite;
  mla_status status = MLA_OK;
  int own_seed = o->seed != UINT64_MAX;
  for (int32_t i = 0; i < o->cases.count && status == MLA_OK; i++)
    status = mla_docket_add_case(d, o->cases.value[i],
                                 own_seed ? o->seed : MLA_SUITE_SEED, err);
  if (status != MLA_OK || !o->profile) return status;
  status = mla_suite_load(o->profile, &suite, err);
  for (int64_t i = 0; own_seed && i < suite.count; i++)
    suite.entry[i].seed = o->seed;
  if (status == MLA_OK) status = mla_docket_add_suite(d, &suite, err);
  mla_suite_free(&suite);
  if (status == MLA_OK)
    status = mla_docket_keep_only(d, o->only.value, o->only.count, err);
  return status;
}

#define VAST_GAP (1 << 26) /* elements: a file of gigabytes */

/* A file cannot refuse, nor be called several times to compose an answer, and
   is as long as what it holds. */
static int can_be_asked(const mla_item *item) {
  mla_case c;
  if (item->kind == MLA_ITEM_BATCH) return 1;
  return item->kind == MLA_ITEM_CASE &&
         mla_case_parse(item->id, &c, NULL) == MLA_OK &&
         !c.num[MLA_K_CASCADE] && !c.num[MLA_K_RANKS] &&
         !c.num[MLA_K_CHUNKED] && c.num[MLA_K_GAP] < VAST_GAP;
}

/* "0007_decode_bf16", "0008_batch" */
static void name_case(const mla_item *item, int32_t number, char *name,
                      size_t size) {
  size_t n = strcspn(item->id, ":");
  if (item->id[n] && item->kind == MLA_ITEM_CASE)
    n += 1 + strcspn(item->id + n + 1, ":");
  int head = snprintf(name, size, "%04d_", (int)number);
  for (size_t i = 0; i < n && (size_t)head + 1 < size; i++)
    name[head++] = item->id[i] == ':' ? '_' : item->id[i];
  name[head] = '\0';
}

/* All that is given are small numbers: the index itself holds them. */
static mla_status batch_entry(const mla_docket *docket, int32_t i,
                              cJSON **entry, mla_error *err) {
  mla_batch_case *c = malloc(sizeof *c);
  mla_status status =
      c ? mla_docket_batch(docket, i, c, NULL, err)
        : mla_fail(err, MLA_OUT_OF_MEMORY, "export", "no memory");
  if (status == MLA_OK) *entry = mla_batch_json(c, NULL);
  free(c);
  return status;
}

static mla_status vector_entry(const mla_docket *docket, int32_t i,
                               const char *dir, const char *name, cJSON **entry,
                               mla_error *err) {
  char path[4096];
  mla_vector v;
  mla_status status = mla_docket_vector(docket, i, MLA_POISON_NAN, &v, err);
  int n = snprintf(path, sizeof path, "%s/%s.safetensors", dir, name);
  if (status == MLA_OK && (n < 0 || (size_t)n >= sizeof path))
    status = mla_fail(err, MLA_INVALID_ARGUMENT, "export",
                      "the folder's name is too long");
  if (status == MLA_OK) status = mla_question_write(&v, path, entry, err);
  mla_vector_free(&v);
  return status;
}

static mla_status write_case(const mla_docket *docket, int32_t i,
                             int32_t number, const char *dir, cJSON *cases,
                             mla_error *err) {
  const mla_item *item = mla_docket_at(docket, i);
  char name[80];
  cJSON *entry = NULL;
  name_case(item, number, name, sizeof name);
  mla_status status = item->kind == MLA_ITEM_BATCH
                          ? batch_entry(docket, i, &entry, err)
                          : vector_entry(docket, i, dir, name, &entry, err);
  if (status == MLA_OK) {
    cJSON_AddStringToObject(entry, "name", name);
    cJSON_AddBoolToObject(entry, "required", !item->optional);
    cJSON_AddItemToArray(cases, entry);
  }
  return status;
}

static cJSON *index_json(const export_options *o) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "format", MLA_QUESTION_FORMAT);
  cJSON_AddNumberToObject(root, "version", 1);
  cJSON_AddStringToObject(root, "libmla", mla_version());
  if (o->profile) cJSON_AddStringToObject(root, "profile", o->profile);
  cJSON *only = cJSON_AddArrayToObject(root, "only");
  for (int32_t i = 0; i < o->only.count; i++)
    cJSON_AddItemToArray(only, cJSON_CreateString(o->only.value[i]));
  return root;
}

static mla_status save_index(cJSON *root, const char *dir, mla_error *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s/index.json", dir);
  questions_seal(root);
  char *text = cJSON_Print(root);
  mla_status status = text ? mla_file_write(path, text, strlen(text), err)
                           : mla_fail(err, MLA_OUT_OF_MEMORY, "", "no memory");
  cJSON_free(text);
  return status;
}

static int write_all(const export_options *o, const mla_docket *docket) {
  mla_error err = mla_error_init();
  const char *dir = o->dirs.value[0];
  cJSON *root = index_json(o);
  cJSON *cases = cJSON_AddArrayToObject(root, "cases");
  mla_status status = MLA_OK;
  int32_t written = 0, count = mla_docket_count(docket);
  for (int32_t i = 0; i < count && status == MLA_OK; i++) {
    if (!can_be_asked(mla_docket_at(docket, i))) continue;
    status = write_case(docket, i, ++written, dir, cases, &err);
  }
  if (status == MLA_OK) status = save_index(root, dir, &err);
  cJSON_Delete(root);
  if (status != MLA_OK) {
    fprintf(stderr, "mlacheck export: %s\n", err.message);
    return EXIT_ENVIRONMENT;
  }
  printf("wrote %d cases to %s", (int)written, dir);
  if (written < count)
    printf("; %d that no file can answer are left out", (int)(count - written));
  printf("\n");
  return written ? EXIT_SATISFIED : EXIT_NOTHING;
}

int cmd_export(int argc, char **argv) {
  export_options o;
  mla_error err = mla_error_init();
  if (!read_options(argc, argv, &o)) return EXIT_USAGE;
  if (o.help) return fputs(help, stdout), EXIT_SATISFIED;
  if (o.dirs.count != 1) return usage_error("export", "one folder is needed");
  if (o.seed != UINT64_MAX && o.seed > (uint64_t)1 << 53)
    return usage_error("export", "--seed is above 2^53");
  if (!o.profile && !o.cases.count) o.profile = "smoke";
  mla_docket *docket = mla_docket_new();
  mla_status status = docket ? fill(docket, &o, &err) : MLA_OUT_OF_MEMORY;
  int code = EXIT_SATISFIED;
  if (status != MLA_OK) {
    fprintf(stderr, "mlacheck export: %s\n", err.message);
    code = status == MLA_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_ENVIRONMENT;
  }
  if (code == EXIT_SATISFIED && !folder_make("export", o.dirs.value[0]))
    code = EXIT_ENVIRONMENT;
  if (code == EXIT_SATISFIED) code = write_all(&o, docket);
  mla_docket_free(docket);
  return code;
}
