/*
 * emu_watch.h - shared memory of the block that runs, and every access to it.
 */
#ifndef EMU_WATCH_H
#define EMU_WATCH_H

#include <stddef.h>

/* A new block: its dynamic part, filled with NaN; no tiles yet. */
void emu_shared_begin(size_t dynamic_bytes);
/* Memory that an instruction reads, for the lane that runs. */
void emu_read_shared(const void *at, size_t size, const void *pc);
void emu_read_global(const void *at, size_t size, const void *pc);
/* Shared memory that a copy will write: between the two nobody may touch it,
   and it is NaN. */
void emu_copy_started(void *to, size_t size, const void *pc);
void emu_copy_landed(void *to, size_t size, const void *pc);
/* Tags of emu_moment are given anew from 1 on. */
void emu_forget_known();

#endif
