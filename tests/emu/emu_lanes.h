/*
 * emu_lanes.h - a block of lanes on one host thread.
 *
 * Each lane is a fiber that runs until it meets others: at an operation of its
 * wave or a barrier of the block. Which wave runs next, and its lanes in which
 * order, is drawn anew each time. Found and reported, with the source line:
 *   - lanes of a wave that meet in different operations, or not all of them
 *   - a barrier that not all lanes of the block reach
 *   - shared memory: two lanes at one place, one of them writing, and no
 *     barrier between; accesses outside of what a block has
 *   - memory that is not the device's
 * A launch that fails is abandoned; its stream reports the sentence.
 */
#ifndef EMU_LANES_H
#define EMU_LANES_H

#include <stddef.h>
#include <stdint.h>

struct emu_index {
  unsigned x, y, z;
};

struct emu_kernel {
  const char *name;
  emu_index grid, block;
  size_t shared; /* bytes of dynamic shared memory */
  /* What a lane does: call(kernel, args). */
  void (*call)(void (*kernel)(), const void *args);
  void (*kernel)();
  const void *args;
  size_t args_bytes;
};

enum { EMU_MAX_LANES = 1024, EMU_MAX_WAVE = 64 };

/* Lanes of a wave, 32 or 64, and what orders are drawn from. */
void emu_configure(int wave, uint64_t seed);

/* Shared memory a block may have: 64 KiB unless this says more, up to 163. */
void emu_limit_shared(size_t bytes);
extern size_t emu_shared_limit;

/* Runs a grid. False: stopped, the reason in emu_failure(). */
bool emu_run(const emu_kernel &kernel);
const char *emu_failure();

/* ------------------------------------------------- called by device code */

/* The same throughout a lane's life, so the compiler may ask once. */
__attribute__((const)) int emu_wave_width();
__attribute__((const)) emu_index emu_thread_index();
__attribute__((const)) emu_index emu_block_index();

/* The bits of lane `other`, or with `is_mask` of the own number ^ other. */
uint32_t emu_exchange(uint32_t bits, int other, int is_mask, const char *file,
                      int line);
void emu_wave_sync(const char *file, int line);
void emu_barrier(const char *file, int line);
void *emu_dynamic_shared();
/* One memory a block for each name and line, poison around it. */
void *emu_shared_tile(size_t bytes, size_t alignment, const char *name,
                      const char *file, int line);

/* All lanes give `bytes`; done() sees what the wave gave, by lane. At most
   EMU_PAYLOAD bytes; `kind` names the operation, pc where it was called. */
enum { EMU_PAYLOAD = 64 };
typedef unsigned char emu_payload[EMU_PAYLOAD];
const emu_payload *emu_gather(const void *give, size_t bytes, const char *kind,
                              const char *file, int line, const void *pc);

/* --------------------------------------------- between emulator's files */

/* Ends the kernel that runs, with that sentence; does not return. */
[[noreturn]] void emu_stop(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* The lane that runs, and when: epochs of block and wave, then the lane, as
   emu_watch.cpp keeps them; and numbers of those epochs that no other has. */
struct emu_moment {
  uint64_t stamp;
  uint16_t block_tag, wave_tag;
  int lane, wave;
};
extern emu_moment emu_current;
extern int emu_wave_shift; /* log2 of a wave's width */
inline int emu_wave_of(int lane) {
  return lane >> emu_wave_shift;
}
int emu_lanes_of_wave(); /* fewer than its width in a block's last */
/* The lanes' stacks, and the arguments of the kernel. */
struct emu_own_memory {
  uintptr_t stacks, stacks_bytes, args, args_bytes;
};
extern emu_own_memory emu_own;
inline bool emu_is_private(const void *at) {
  const uintptr_t p = reinterpret_cast<uintptr_t>(at);
  return p - emu_own.stacks < emu_own.stacks_bytes ||
         p - emu_own.args < emu_own.args_bytes;
}

#endif
