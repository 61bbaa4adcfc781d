/*
 * file_text.c - reading and writing whole files.
 */
#define _POSIX_C_SOURCE 200809L
#include "file_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

#define TRIES 1000 /* names of parts: those of killed runs may lie there */

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

/*
 * A name beside PATH that nobody else writes under: others, threads or
 * processes, may be writing the same PATH, and with one name for both the
 * first to rename it would hand on a file that the second is still filling.
 */
static FILE *open_part(const char *path, char *part, size_t room) {
  for (int i = 0; i < TRIES; i++) {
    int n = snprintf(part, room, "%s.%ld.%d.part", path, (long)getpid(), i);
    if (n <= 0 || (size_t)n >= room) {
      errno = ENAMETOOLONG;
      return NULL;
    }
    FILE *file = fopen(part, "wbx");
    if (file || errno != EEXIST) return file;
  }
  return NULL;
}

/* A pipe, a device or a link is written to: a new file in its place would take
   /dev/null from everybody. */
static int is_special(const char *path) {
  struct stat s;
  return lstat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

mla_status mla_file_write(const char *path, const void *bytes, size_t count,
                          mla_error *err) {
  char part[4096];
  int special = is_special(path);
  errno = 0;
  FILE *file = special ? fopen(path, "wb") : open_part(path, part, sizeof part);
  int ok = file && fwrite(bytes, 1, count, file) == count;
  if (file && fclose(file) != 0) ok = 0;
  if (ok && (special || rename(part, path) == 0)) return MLA_OK;
  mla_fail(err, MLA_NOT_AVAILABLE, "path", "%.160s cannot be written: %s", path,
           strerror(errno));
  if (file && !special) remove(part);
  return MLA_NOT_AVAILABLE;
}
