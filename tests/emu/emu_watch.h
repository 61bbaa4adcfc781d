/*
 * emu_watch.h - shared memory of the block that runs, and every access to it.
 */
#ifndef EMU_WATCH_H
#define EMU_WATCH_H

#include <stddef.h>

/* A new block: its dynamic part, filled with NaN; no tiles yet. */
void emu_shared_begin(size_t dynamic_bytes);
/* Tags of emu_moment are given anew from 1 on. */
void emu_forget_known();

#endif
