/*
 * folder.c - making folders, and removing those that are lent.
 */
#define _POSIX_C_SOURCE 200809L
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int folder_make(const char *command, const char *path) {
  struct stat s;
  if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) return 1;
  if (mkdir(path, 0777) == 0) return 1;
  fprintf(stderr, "mlacheck %s: the folder %s cannot be made\n", command, path);
  return 0;
}

/* The files in it, and itself. */
static void empty_and_remove(const char *path) {
  DIR *folder = opendir(path);
  struct dirent *entry;
  while (folder && (entry = readdir(folder)) != NULL) {
    char file[4096];
    if (entry->d_name[0] == '.') continue;
    int n = snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
    if (n > 0 && (size_t)n < sizeof file) unlink(file);
  }
  if (folder) closedir(folder);
  rmdir(path);
}

/*
 * Nobody ever writes to the line: it ends when all that hold its other end
 * have, our worker processes too, so that nothing is written there any more.
 * In a session of its own, what ends the command does not end the keeper.
 */
static void keep(const char *path, int line) {
  char byte;
  setsid();
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  while (read(line, &byte, 1) < 0 && errno == EINTR) continue;
  empty_and_remove(path);
  _exit(0);
}

int folder_lend(const char *command, folder_lent *f) {
  const char *tmp = getenv("TMPDIR");
  int ends[2];
  snprintf(f->path, sizeof f->path, "%.4000s/mlacheck-XXXXXX",
           tmp && *tmp ? tmp : "/tmp");
  f->pid = -1;
  int made = mkdtemp(f->path) != NULL;
  int piped = made && pipe(ends) == 0;
  if (piped) f->pid = fork();
  if (f->pid == 0) {
    close(ends[1]);
    keep(f->path, ends[0]);
  }
  if (piped) close(ends[0]);
  if (f->pid > 0) {
    f->line = ends[1];
    return 1;
  }
  if (piped) close(ends[1]);
  if (made) rmdir(f->path);
  fprintf(stderr, "mlacheck %s: %s cannot be made\n", command, f->path);
  return 0;
}

void folder_return(folder_lent *f) {
  close(f->line);
  while (waitpid(f->pid, NULL, 0) < 0 && errno == EINTR) continue;
}
