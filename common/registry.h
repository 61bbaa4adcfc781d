/*
 * registry.h - the one list of backends: those built in, then plugins.
 */
#ifndef MLA_REGISTRY_H
#define MLA_REGISTRY_H

#include "mla/mla.h"

/* Getters of what is built in, NULL at the end; made by the build. */
extern const mla_backend_get_fn mla_builtin_backends[];

/* How many of mla_backend_count() are built in: the first ones. */
size_t mla_registry_builtin_count(void);

/*
 * Checks a table and enters a full copy of it, for ever. A table entered
 * before is found again, not entered twice. `origin` is for sentences.
 * Errors: VERSION_MISMATCH, INVALID_ARGUMENT, OUT_OF_MEMORY.
 */
mla_status mla_registry_add(const mla_backend *table, const char *origin,
                            const mla_backend **backend, mla_error *err);

/* Every rule of backend.h for the table itself, its name's uniqueness
   apart. Reads no member past table->size. */
mla_status mla_backend_check(const mla_backend *table, const char *origin,
                             mla_error *err);

#endif
