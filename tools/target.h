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
  mla_device *device;
  char joined[256]; /* options, with the mask among them */
} target;

/* Loads, opens; says on stderr what went wrong. An exit code, 0 when open. */
int target_open(const char *command, target *t);
void target_close(target *t);

/* Plugins of MLA_PLUGIN_PATH; 0 when one does not load, said on stderr. */
int target_load_environment(const char *command);

#endif
