/*
 * golden_files.c - the golden folder: manifest, writing, comparing.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "error.h"
#include "file_text.h"
#include "golden_text.h"

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* Bytes of DIR/NAME; NULL when it cannot be read. */
static unsigned char *read_file(const char *dir, const char *name,
                                uint64_t *count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  unsigned char *bytes = NULL;
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (size >= 0 && fseek(file, 0, SEEK_SET) == 0)
    bytes = malloc((size_t)size + 1);
  if (bytes && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
    free(bytes);
    bytes = NULL;
  }
  fclose(file);
  *count = size < 0 ? 0 : (uint64_t)size;
  return bytes;
}

/* ---------------------------------------------------------------- manifest */

static int add_row(mla_text *t, const char *name, const unsigned char *bytes,
                   uint64_t count) {
  char row[400];
  snprintf(row, sizeof row,
           "%s{\"path\":\"%s\",\"bytes\":%llu,\"xxh64\":\"%016llx\"}",
           strchr(t->text, '{') != strrchr(t->text, '{') ? ",\n" : "", name,
           (unsigned long long)count,
           (unsigned long long)XXH64(bytes, (size_t)count, 0));
  return mla_text_add(t, row);
}

static int is_data(const char *name) {
  const char *dot = strrchr(name, '.');
  return name[0] != '.' && dot &&
         (strcmp(dot, ".safetensors") == 0 || strcmp(dot, ".json") == 0);
}

static int add_external(mla_text *t, const char *dir) {
  char path[4096], name[300];
  struct dirent **list = NULL;
  int ok = 1;
  snprintf(path, sizeof path, "%s/external", dir);
  int n = scandir(path, &list, NULL, by_name);
  for (int i = 0; i < n; i++) {
    uint64_t count;
    snprintf(name, sizeof name, "external/%.255s", list[i]->d_name);
    if (is_data(list[i]->d_name)) {
      unsigned char *bytes = read_file(dir, name, &count);
      ok = ok && bytes && add_row(t, name, bytes, count);
      free(bytes);
    }
    free(list[i]);
  }
  free(list);
  return ok;
}

mla_status mla_golden_manifest(mla_golden *g, const char *dir, mla_error *err) {
  mla_text t = {NULL, 0, 0};
  int ok = mla_text_add(&t,
                        "{\"format\":\"mla-manifest\",\"version\":1,\n"
                        "\"files\":[\n");
  ok = ok && add_external(&t, dir);
  for (int32_t i = 0; i < g->count && ok; i++)
    ok = add_row(&t, g->file[i].name, g->file[i].bytes, g->file[i].count);
  ok = ok && mla_text_add(&t, "\n]}\n");
  if (ok)
    return mla_golden_add(g, "manifest.json", (unsigned char *)t.text, t.used,
                          err);
  free(t.text);
  return mla_fail(err, MLA_OUT_OF_MEMORY, "manifest",
                  "the manifest cannot be made");
}

/* --------------------------------------------------------------- comparing */

/* Does it differ? */
static int compare_file(const mla_golden_file *f, const char *dir, char *why,
                        size_t size) {
  uint64_t count, at = 0;
  unsigned char *bytes = read_file(dir, f->name, &count);
  if (!bytes) {
    snprintf(why, size, "%s/%s is absent", dir, f->name);
    return 1;
  }
  while (at < count && at < f->count && bytes[at] == f->bytes[at]) at++;
  free(bytes);
  snprintf(why, size,
           "%s/%s differs from byte %llu on (%llu bytes there, %llu made)", dir,
           f->name, (unsigned long long)at, (unsigned long long)count,
           (unsigned long long)f->count);
  return at != count || at != f->count;
}

static int is_made(const mla_golden *g, const char *name) {
  for (int32_t i = 0; i < g->count; i++)
    if (strcmp(g->file[i].name, name) == 0) return 1;
  return 0;
}

static int32_t find_strangers(const mla_golden *g, const char *dir,
                              void (*differs)(const char *why)) {
  char path[4096], name[300], why[4600];
  struct dirent **list = NULL;
  int32_t found = 0;
  snprintf(path, sizeof path, "%s/v1", dir);
  int n = scandir(path, &list, NULL, by_name);
  for (int i = 0; i < n; i++) {
    snprintf(name, sizeof name, "v1/%.255s", list[i]->d_name);
    if (is_data(list[i]->d_name) && !is_made(g, name)) {
      snprintf(why, sizeof why, "%.4000s/%s is no golden vector", dir, name);
      differs(why);
      found++;
    }
    free(list[i]);
  }
  free(list);
  return found;
}

int32_t mla_golden_compare(const mla_golden *g, const char *dir,
                           void (*differs)(const char *why)) {
  char why[4600];
  int32_t found = 0;
  for (int32_t i = 0; i < g->count; i++) {
    if (!compare_file(&g->file[i], dir, why, sizeof why)) continue;
    differs(why);
    found++;
  }
  return found + find_strangers(g, dir, differs);
}

mla_status mla_golden_write(const mla_golden *g, const char *dir,
                            mla_error *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s/v1", dir);
  mkdir(dir, 0777);
  mkdir(path, 0777); /* what is missing shows when a file is written */
  for (int32_t i = 0; i < g->count; i++) {
    snprintf(path, sizeof path, "%s/%s", dir, g->file[i].name);
    mla_status status =
        mla_file_write(path, g->file[i].bytes, (size_t)g->file[i].count, err);
    if (status != MLA_OK) return status;
  }
  return MLA_OK;
}
