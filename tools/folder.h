/*
 * folder.h - folders that a command writes to.
 */
#ifndef MLA_TOOL_FOLDER_H
#define MLA_TOOL_FOLDER_H

#include <sys/types.h>

/* 0, and a sentence on stderr, when it is none and cannot be made. */
int folder_make(const char *command, const char *path);

/* One that goes with this process, however that ends. */
typedef struct folder_lent {
  char path[4096];
  int line;  /* that the keeper listens to */
  pid_t pid; /* of the keeper, a process of its own */
} folder_lent;

/* A new one in $TMPDIR. 0, and a sentence on stderr: it cannot be made. */
int folder_lend(const char *command, folder_lent *folder);
/* Waits until it is gone, with the files in it. */
void folder_return(folder_lent *folder);

#endif
