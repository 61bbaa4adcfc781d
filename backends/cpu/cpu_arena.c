#include "cpu_arena.h"

#include <stddef.h>

/* Far above any real workspace, so that a few of them add up without
   overflow. */
#define LIMIT ((uint64_t)1 << 60)

void *mla_cpu_take(mla_cpu_arena *arena, uint64_t count, uint64_t size) {
  if (arena->used == UINT64_MAX || (size && count > LIMIT / size)) {
    arena->used = UINT64_MAX;
    return NULL;
  }
  uint64_t start = arena->used;
  uint64_t bytes = count * size + (MLA_CPU_ALIGNMENT - 1);
  arena->used += bytes - bytes % MLA_CPU_ALIGNMENT;
  if (arena->used > LIMIT) arena->used = UINT64_MAX;
  return arena->base ? arena->base + start : NULL;
}
