/*
 * folder.c - making and removing folders.
 */
#define _POSIX_C_SOURCE 200809L
#include "folder.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int folder_make(const char *command, const char *path) {
  struct stat s;
  if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) return 1;
  if (mkdir(path, 0777) == 0) return 1;
  fprintf(stderr, "mlacheck %s: the folder %s cannot be made\n", command, path);
  return 0;
}

void folder_remove(const char *path) {
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
