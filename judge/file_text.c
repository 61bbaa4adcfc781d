/*
 * file_text.c - reading and writing whole files.
 */
#include "file_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "error.h"

static char *read_all(FILE *file) {
  size_t used = 0, room = 1 << 16;
  char *text = malloc(room);
  while (text) {
    size_t n = fread(text + used, 1, room - used - 1, file);
    used += n;
    if (n == 0) break;
    if (used + 1 < room) continue;
    char *grown = realloc(text, room *= 2);
    if (!grown) free(text);
    text = grown;
  }
  if (text) text[used] = '\0';
  return text;
}

char *mla_file_text(const char *path, mla_error *err) {
  FILE *file = fopen(path, "rb");
  char *text = file ? read_all(file) : NULL;
  int failed = file && ferror(file);
  if (file) fclose(file);
  if (text && !failed) return text;
  free(text);
  mla_fail(err, MLA_NOT_AVAILABLE, "file", "%.200s cannot be read", path);
  return NULL;
}

mla_status mla_file_write(const char *path, const void *bytes, size_t count,
                          mla_error *err) {
  char part[4096];
  int n = snprintf(part, sizeof part, "%s.part", path);
  FILE *file = n > 0 && (size_t)n < sizeof part ? fopen(part, "wb") : NULL;
  int ok = file && fwrite(bytes, 1, count, file) == count;
  if (file && fclose(file) != 0) ok = 0;
  if (ok) ok = rename(part, path) == 0;
  if (ok) return MLA_OK;
  return mla_fail(err, MLA_NOT_AVAILABLE, "file", "%.200s cannot be written",
                  path);
}
