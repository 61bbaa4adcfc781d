/*
 * registry.c - which backends there are.
 *
 * Plugins are only ever appended, and the count is published after the entry,
 * so that readers need no lock; writers take turns.
 */
#include "registry.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "sized.h"

#define MAX_PLUGINS 256

typedef struct entry {
  const mla_backend *origin; /* the plugin's own table */
  mla_backend table;         /* full, whatever the length of the origin */
} entry;

static entry *plugins[MAX_PLUGINS];
static atomic_size_t plugin_count;
static atomic_flag writing = ATOMIC_FLAG_INIT;

size_t mla_registry_builtin_count(void) {
  size_t count = 0;
  while (mla_builtin_backends[count]) count++;
  return count;
}

size_t mla_backend_count(void) {
  return mla_registry_builtin_count() + atomic_load(&plugin_count);
}

const mla_backend *mla_backend_at(size_t index) {
  size_t builtin = mla_registry_builtin_count();
  if (index < builtin)
    return mla_builtin_backends[index](MLA_ABI_MAJOR, MLA_ABI_MINOR);
  index -= builtin;
  return index < atomic_load(&plugin_count) ? &plugins[index]->table : NULL;
}

const mla_backend *mla_backend_find(const char *name) {
  if (!name) return NULL;
  for (size_t i = 0; i < mla_backend_count(); i++) {
    const mla_backend *backend = mla_backend_at(i);
    if (backend && strcmp(backend->name, name) == 0) return backend;
  }
  return NULL;
}

static const mla_backend *entered_before(const mla_backend *origin) {
  for (size_t i = 0; i < atomic_load(&plugin_count); i++)
    if (plugins[i]->origin == origin) return &plugins[i]->table;
  return NULL;
}

static entry *new_entry(const mla_backend *origin) {
  entry *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  e->origin = origin;
  e->table.size = (uint32_t)sizeof e->table;
  /* Members a newer minor appended are of no use here: they are cut off. */
  uint32_t size = origin->size;
  memcpy(&e->table, origin, size < e->table.size ? size : e->table.size);
  e->table.size = (uint32_t)sizeof e->table;
  if (!e->table.version) e->table.version = "";
  if (!e->table.description) e->table.description = "";
  return e;
}

static mla_status append(const mla_backend *table, const char *origin,
                         const mla_backend **backend, mla_error *err) {
  *backend = entered_before(table);
  if (*backend) return MLA_OK;
  if (mla_backend_find(table->name))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "name",
                    "%s calls itself \"%s\", a name that is taken; names are "
                    "unique",
                    origin, table->name);
  size_t count = atomic_load(&plugin_count);
  if (count == MAX_PLUGINS)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "plugins",
                    "%s would be plugin %d, at most %d are held", origin,
                    MAX_PLUGINS + 1, MAX_PLUGINS);
  entry *e = new_entry(table);
  if (!e)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "plugins", "no memory for %s",
                    origin);
  plugins[count] = e;
  atomic_store(&plugin_count, count + 1);
  *backend = &e->table;
  return MLA_OK;
}

mla_status mla_registry_add(const mla_backend *table, const char *origin,
                            const mla_backend **backend, mla_error *err) {
  mla_status st = mla_backend_check(table, origin, err);
  if (st != MLA_OK) return st;
  while (atomic_flag_test_and_set(&writing)) continue;
  st = append(table, origin, backend, err);
  atomic_flag_clear(&writing);
  return st;
}
