/*
 * emu_where.h - a place in the machine code as a place in the source, through
 * what was inlined: "gpu_port.h:72 < gpu_attend.h:161".
 */
#ifndef EMU_WHERE_H
#define EMU_WHERE_H

#include <string>

/* Of a call or access that ends at pc; file and line if nothing better is
   known (file NULL: an offset then). */
std::string emu_where(const void *pc, const char *file, int line);
/* Two places that one place of the source became. */
bool emu_same_place(const void *a, const void *b);

#endif
