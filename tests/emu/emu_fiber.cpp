/*
 * emu_fiber.cpp - the switch itself. POSIX has one, which asks the kernel for
 * the signal mask each time; a kernel here switches a million times a second.
 */
#include "emu_fiber.h"

#include <stdint.h>

#if !defined(__x86_64__)

void emu_fiber_start(emu_fiber *f, void *stack, size_t bytes, void (*body)()) {
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = stack;
  f->context.uc_stack.ss_size = bytes;
  f->context.uc_link = nullptr;
  makecontext(&f->context, body, 0);
}

void emu_fiber_switch(emu_fiber *from, emu_fiber *to) {
  swapcontext(&from->context, &to->context);
}

#else

/* What the System V ABI says a call preserves, on the stack; then the other
   stack. The rounding modes never change. */
extern "C" __attribute__((visibility("hidden"))) void emu_switch_stacks(
    void **from, void *to);
asm(".text\n"
    ".hidden emu_switch_stacks\n"
    ".globl emu_switch_stacks\n"
    ".type emu_switch_stacks, @function\n"
    "emu_switch_stacks:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n"
    "  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n"
    "  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size emu_switch_stacks, . - emu_switch_stacks\n");

void emu_fiber_start(emu_fiber *f, void *stack, size_t bytes, void (*body)()) {
  uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t(15);
  void **sp = reinterpret_cast<void **>(top);
  *--sp = nullptr; /* where body would return to, if it did */
  *--sp = reinterpret_cast<void *>(body);
  for (int i = 0; i < 6; i++) *--sp = nullptr;
  f->sp = sp;
}

void emu_fiber_switch(emu_fiber *from, emu_fiber *to) {
  emu_switch_stacks(&from->sp, to->sp);
}

#endif
