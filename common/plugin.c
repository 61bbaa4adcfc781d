/*
 * plugin.c - backends from shared objects.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "registry.h"

#define MAX_PATH_BYTES 4096

/* A bare file name would make the loader search its own path. */
static void *open_object(const char *path) {
  char here[MAX_PATH_BYTES];
  if (!strchr(path, '/')) {
    snprintf(here, sizeof here, "./%s", path);
    path = here;
  }
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Objects that were refused stay loaded too: what their constructors started
   may still run. */
static mla_status find_symbol(const char *path, mla_backend_get_fn *get,
                              mla_error *err) {
  void *object = open_object(path);
  if (!object) {
    const char *why = dlerror();
    return mla_fail(err, MLA_NOT_AVAILABLE, "path", "%s does not load: %s",
                    path, why ? why : "no reason given");
  }
  void *symbol = dlsym(object, MLA_BACKEND_SYMBOL);
  if (!symbol)
    return mla_fail(err, MLA_NOT_AVAILABLE, "path",
                    "%s does not export " MLA_BACKEND_SYMBOL, path);
  memcpy(get, &symbol, sizeof *get); /* ISO C has no such conversion */
  return MLA_OK;
}

mla_status mla_plugin_load(const char *path, const mla_backend **backend,
                           mla_error *err) {
  const mla_backend *found = NULL;
  mla_backend_get_fn get = NULL;
  if (backend) *backend = NULL;
  if (!path || !*path)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "path", "path is %s",
                    path ? "empty" : "NULL");
  if (strlen(path) + sizeof "./" > MAX_PATH_BYTES)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "path",
                    "path has %lu bytes, at most %d",
                    (unsigned long)strlen(path), MAX_PATH_BYTES - 3);
  mla_status st = find_symbol(path, &get, err);
  if (st != MLA_OK) return st;
  st = mla_registry_add(get(MLA_ABI_MAJOR, MLA_ABI_MINOR), path, &found, err);
  if (st == MLA_OK && backend) *backend = found;
  return st;
}

/* All are tried; the first that fails is told. */
mla_status mla_plugins_from_env(mla_error *err) {
  const char *rest = getenv("MLA_PLUGIN_PATH");
  mla_status first = MLA_OK;
  while (rest && *rest) {
    char path[MAX_PATH_BYTES];
    size_t length = strcspn(rest, ":");
    if (length >= sizeof path)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "MLA_PLUGIN_PATH",
                      "a path in MLA_PLUGIN_PATH has %lu bytes, at most %d",
                      (unsigned long)length, MAX_PATH_BYTES - 1);
    memcpy(path, rest, length);
    path[length] = 0;
    rest += length + (rest[length] == ':');
    if (!length) continue;
    mla_status st = mla_plugin_load(path, NULL, first == MLA_OK ? err : NULL);
    if (first == MLA_OK) first = st;
  }
  return first;
}
