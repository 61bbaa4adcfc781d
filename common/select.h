/*
 * select.h - the order in which mla_select() prefers what can serve.
 */
#ifndef MLA_SELECT_H
#define MLA_SELECT_H

#include "mla/mla.h"

/*
 * Lower is better. `position` is that in the registry, where the first
 * `builtin` are built in. Two numbers are equal only for devices of one
 * backend with one memory space.
 */
int64_t mla_select_rank(size_t position, size_t builtin, const char *name,
                        int32_t memory_space);

#endif
