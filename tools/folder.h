/*
 * folder.h - folders that a command writes to.
 */
#ifndef MLA_TOOL_FOLDER_H
#define MLA_TOOL_FOLDER_H

/* 0, and a sentence on stderr, when it is none and cannot be made. */
int folder_make(const char *command, const char *path);
/* The files in it, and itself. */
void folder_remove(const char *path);

#endif
