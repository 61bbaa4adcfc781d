/*
 * emu_fiber.h - a stack of one's own, and going from one to another.
 */
#ifndef EMU_FIBER_H
#define EMU_FIBER_H

#include <stddef.h>

#if !defined(__x86_64__)
#include <ucontext.h>
struct emu_fiber {
  ucontext_t context;
};
#else
struct emu_fiber {
  void *sp; /* saved registers lie there */
};
#endif

/* The first switch to it calls body, which must never return. */
void emu_fiber_start(emu_fiber *f, void *stack, size_t bytes, void (*body)());
/* Goes on in `to`; returns when someone switches to `from`. */
void emu_fiber_switch(emu_fiber *from, emu_fiber *to);

#endif
