/*
 * target.h - the backend that a command works on.
 */
#ifndef MLA_TOOL_TARGET_H
#define MLA_TOOL_TARGET_H

#include "mla/mla.h"

typedef struct target {
  const char *backend; /* name, or NULL: the plugin's, else "cpu" */
  const char *plugin;  /* path, or NULL */
  const char *options;
  const char *cpu_mask; /* level of the "cpu" backend, or NULL: any */
  uint64_t index;
  const mla_backend *table;
  mla_device *device; /* NULL: open in child processes only */
  int described;      /* info stands */
  mla_device_info info;
  char joined[256]; /* options, with the mask among them */
} target;

/* Lines for a table of options (options.h). */
#define TARGET_OPTIONS(t)                          \
  {"--backend", OPTION_TEXT, &(t)->backend},       \
      {"--plugin", OPTION_TEXT, &(t)->plugin},     \
      {"--device", OPTION_COUNT, &(t)->index},     \
      {"--options", OPTION_TEXT, &(t)->options}, { \
    "--cpu-mask", OPTION_TEXT, &(t)->cpu_mask      \
  }

/* Loads and finds it, without opening it. Says on stderr what went wrong. An
   exit code, 0 when found. */
int target_find(const char *command, target *t);
/* Finds and opens it. */
int target_open(const char *command, target *t);
void target_close(target *t);
/* "mlacheck run --plugin ./libport.so": how to judge it again. */
void target_rerun(const target *t, char *text, size_t size);

/* Plugins of MLA_PLUGIN_PATH; 0 when one does not load, said on stderr. */
int target_load_environment(const char *command);

#endif
