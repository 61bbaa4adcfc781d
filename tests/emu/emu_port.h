/*
 * emu_port.h - the words of gpu_port.h on a host: every lane of a block is a
 * fiber, and what lanes do together is checked (emu_lanes.h).
 *
 * Files that include it are compiled with calls before every access to memory
 * (emu_watch.cpp), so that shared memory needs no types of its own.
 */
#ifndef EMU_PORT_H
#define EMU_PORT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <tuple>
#include <type_traits>

#include "emu_lanes.h"
#include "emu_mfma.h"
#include "emu_mma.h"
#include "emu_rt.h"

struct dim3 {
  unsigned x, y, z;
  explicit dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1)
      : x(x_), y(y_), z(z_) {}
};

#define MLA_LEAST_WAVE 32
#define MLA_WAVE (emu_wave_width())
#define threadIdx (emu_thread_index())
#define blockIdx (emu_block_index())

#define EMU_SITE __FILE__, __LINE__
#define MLA_SHFL_XOR(v, m) emu_shuffle_xor(v, m, EMU_SITE)
#define MLA_SHFL(v, lane) emu_shuffle(v, lane, EMU_SITE)
#define MLA_BARRIER() emu_barrier(EMU_SITE)
#define MLA_UNROLL
#define MLA_WAVE_SYNC() emu_wave_sync(EMU_SITE)

#define MLA_KERNEL static void
#define MLA_KERNEL_OF(threads) static void
#define MLA_DEV static inline __attribute__((always_inline))
#define MLA_SHARED_TILE(type, name, rows, columns)                   \
  auto &name = *static_cast<type(*)[rows][columns]>(emu_shared_tile( \
      sizeof(type[rows][columns]), alignof(type), #name, EMU_SITE))
#define MLA_DYNAMIC_SHARED(type, name) \
  type *name = static_cast<type *>(emu_dynamic_shared())
#define MLA_LAUNCH(kernel, grid, block, shared, stream, ...) \
  emu_launch(#kernel, kernel, grid, block, shared, stream, __VA_ARGS__)

static inline uint32_t __float_as_uint(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}
static inline float __uint_as_float(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}
static inline float __int_as_float(int i) {
  return __uint_as_float((uint32_t)i);
}
static inline int __popc(uint32_t x) {
  return __builtin_popcount(x);
}
static inline int __float_as_int(float f) {
  return (int)__float_as_uint(f);
}

template <typename T>
static inline T emu_shuffle_xor(T v, int mask, const char *file, int line) {
  static_assert(sizeof(T) == 4, "a register");
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits = emu_exchange(bits, mask, 1, file, line);
  memcpy(&v, &bits, sizeof v);
  return v;
}
template <typename T>
static inline T emu_shuffle(T v, int lane, const char *file, int line) {
  static_assert(sizeof(T) == 4, "a register");
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits = emu_exchange(bits, lane, 0, file, line);
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* Arguments are copied now; the kernel runs when the stream comes to it. */
template <typename... P>
static void emu_call(void (*kernel)(), const void *args) {
  std::apply(reinterpret_cast<void (*)(P...)>(kernel),
             *static_cast<const std::tuple<P...> *>(args));
}
template <typename... P, typename... A>
static void emu_launch(const char *name, void (*kernel)(P...), dim3 grid,
                       dim3 block, size_t shared, emuStream_t stream,
                       const A &...a) {
  static_assert((std::is_trivially_copyable<P>::value && ...), "by bytes");
  const std::tuple<P...> args(a...);
  emu_enqueue_kernel({name,
                      {grid.x, grid.y, grid.z},
                      {block.x, block.y, block.z},
                      shared,
                      emu_call<P...>,
                      reinterpret_cast<void (*)()>(kernel),
                      &args,
                      sizeof args},
                     stream);
}

#define MLA_RT(name) emu##name
#define MLA_GPU_SPACE MLA_MEMORY_ROCM
typedef emuDeviceProp mla_rt_prop;

#endif
