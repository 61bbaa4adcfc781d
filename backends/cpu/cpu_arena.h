/*
 * cpu_arena.h - cutting the caller's workspace into pieces.
 *
 * The same code that takes the pieces in run() measures them in query(), on
 * an arena without memory: the two can not disagree.
 */
#ifndef MLA_CPU_ARENA_H
#define MLA_CPU_ARENA_H

#include <stdint.h>

#define MLA_CPU_ALIGNMENT 64

typedef struct mla_cpu_arena {
  unsigned char *base; /* NULL: only measure */
  uint64_t used;       /* UINT64_MAX once a size has overflowed */
} mla_cpu_arena;

/* count * size bytes, aligned to 64; NULL while measuring. */
void *mla_cpu_take(mla_cpu_arena *arena, uint64_t count, uint64_t size);

#endif
