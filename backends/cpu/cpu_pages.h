/*
 * cpu_pages.h - where entries of a paged cache lie.
 */
#ifndef MLA_CPU_PAGES_H
#define MLA_CPU_PAGES_H

#include "mla/backend.h"

/*
 * at[i] = entry first + i of a request whose blocks are listed, i < n, of one
 * kv head. One division a call: a division for every entry costs as much as a
 * head's product with it. Not for formats whose scales lie apart.
 */
void mla_cpu_pages_list(const mla_tensor *cache, const int32_t *blocks,
                        int64_t kv_head, int64_t first, int64_t n,
                        const void **at);

#endif
