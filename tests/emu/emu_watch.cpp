/*
 * emu_watch.cpp - what a lane reads and writes.
 *
 * The compiler puts a call before every access to memory (-fsanitize=thread,
 * whose run-time library is not linked; the functions it calls are these).
 * An access to shared memory is compared with what others did there since the
 * lanes last met; one to global memory must lie in memory of the device.
 */
#include "emu_watch.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

#include <string>

#include "emu_lanes.h"
#include "emu_rt.h"
#include "emu_where.h"

namespace {

/* The block's memory lies in the midst of an arena; what is not its own there
   was reached by overrunning it. */
const size_t ARENA = 256 << 10, LEAD = 64 << 10, GAP = 256;
alignas(4096) unsigned char arena[ARENA];

enum { MAX_TILES = 16 };

struct tile {
  const char *name, *file;
  int line;
  size_t begin, bytes;
};

/*
 * Four bytes of shared memory: who wrote and who read them last. A stamp is
 * the block's epoch (32 bits), the wave's (16), the lane (12), and which of
 * the bytes (4). Instead of a lane: several of a wave, or of several waves.
 */
typedef uint64_t stamp;
struct cell {
  stamp write, read;
  uint32_t write_at, read_at; /* the code that did it, from the module's
                                 start; not of every read */
};
enum { SEVERAL_OF_WAVE = 0x400, SEVERAL = 0x7ff };

cell cells[ARENA / 4];
/* Of each four bytes: a lane for which it equals one of emu_current's two tags
   may read them, and nothing new is known then. Two bytes, not the sixteen
   of a cell: most reads are such, and end there. */
uint16_t known[ARENA / 4];
/* Of each four bytes: a copy is on its way there. */
bool awaited[ARENA / 4];
tile tiles[MAX_TILES];
int tile_count, recent_tile;
size_t used; /* bytes, as a device would count them */
size_t next; /* where the next tile goes */

uint32_t block_epoch_of(stamp s) {
  return (uint32_t)(s >> 32);
}
uint32_t wave_epoch_of(stamp s) {
  return (uint32_t)(s >> 16) & 0xffff;
}
int lane_of(stamp s) {
  return (int)(s >> 4) & 0xfff;
}

/* ----------------------------------------------- the module's own memory */

struct range {
  uintptr_t begin, end;
};
range module = {0, 0};

int look_for_module(dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  const uintptr_t here = reinterpret_cast<uintptr_t>(arena);
  range r = {UINTPTR_MAX, 0};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &h = info->dlpi_phdr[i];
    if (h.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + h.p_vaddr;
    if (begin < r.begin) r.begin = begin;
    if (begin + h.p_memsz > r.end) r.end = begin + h.p_memsz;
  }
  if (here < r.begin || here >= r.end) return 0;
  module = r;
  return 1;
}

uint32_t code_offset(const void *pc) {
  return (uint32_t)(reinterpret_cast<uintptr_t>(pc) - module.begin);
}
std::string place(uint32_t offset) {
  return emu_where(reinterpret_cast<const void *>(module.begin + offset), NULL,
                   0);
}

/* ---------------------------------------------------------- shared memory */

inline bool holds(const tile &t, size_t at) {
  return at - t.begin < t.bytes;
}

inline const tile *tile_at(size_t at) {
  if (recent_tile < tile_count && holds(tiles[recent_tile], at))
    return &tiles[recent_tile];
  for (int i = 0; i < tile_count; i++)
    if (holds(tiles[i], at)) {
      recent_tile = i;
      return &tiles[i];
    }
  return NULL;
}

/* The tile that an address outside of all is nearest to. */
void stop_outside(size_t at, size_t size, bool write, const void *pc) {
  const tile *best = NULL;
  size_t distance = SIZE_MAX;
  for (int i = 0; i < tile_count; i++) {
    const tile &t = tiles[i];
    const size_t d = at < t.begin ? t.begin - at : at - (t.begin + t.bytes) + 1;
    if (d < distance) distance = d, best = &t;
  }
  if (!best)
    emu_stop("shared memory touched, but the block has none, %s",
             emu_where(pc, NULL, 0).c_str());
  emu_stop(
      "shared memory overrun: %s of %zu bytes at byte %ld of %s (%zu "
      "bytes) by lane %d, %s",
      write ? "write" : "read", size, (long)at - (long)best->begin, best->name,
      best->bytes, emu_current.lane, emu_where(pc, NULL, 0).c_str());
}

void stop_race(size_t at, bool with_write, bool write, const void *pc) {
  const tile *t = tile_at(at);
  const cell &c = cells[at / 4];
  const int lane = lane_of(with_write ? c.write : c.read);
  char other[24];
  snprintf(other, sizeof other,
           lane >= SEVERAL_OF_WAVE ? "several lanes" : "lane %d", lane);
  emu_stop("no barrier between: byte %ld of %s %s by %s, %s; %s by lane %d, %s",
           (long)(at - t->begin), t->name, with_write ? "written" : "read",
           other, place(with_write ? c.write_at : c.read_at).c_str(),
           write ? "written" : "read", emu_current.lane,
           emu_where(pc, NULL, 0).c_str());
}

void stop_awaited(size_t at, bool write, const void *pc) {
  const tile *t = tile_at(at);
  emu_stop("a copy not waited for: byte %ld of %s %s by lane %d, %s",
           (long)(at - t->begin), t->name, write ? "written" : "read",
           emu_current.lane, emu_where(pc, NULL, 0).c_str());
}

/* Whether what s tells of may meet an access by this lane unordered: another
   lane, the same bytes, and neither block nor wave have met since. */
inline bool conflicts(stamp s, unsigned mask) {
  const emu_moment &m = emu_current;
  if (block_epoch_of(s) != block_epoch_of(m.stamp) || !(s & mask)) return false;
  const int lane = lane_of(s);
  if (lane == m.lane) return false;
  if (lane == SEVERAL) return true;
  const int wave =
      lane >= SEVERAL_OF_WAVE ? lane - SEVERAL_OF_WAVE : emu_wave_of(lane);
  return wave != m.wave || wave_epoch_of(s) == wave_epoch_of(m.stamp);
}

/* Several lanes have read: where they all are of one wave, which. */
stamp joined(stamp before, unsigned mask) {
  const emu_moment &m = emu_current;
  const int lane = lane_of(before);
  const int wave = lane == SEVERAL           ? -1
                   : lane >= SEVERAL_OF_WAVE ? lane - SEVERAL_OF_WAVE
                                             : emu_wave_of(lane);
  const stamp who = (stamp)(wave == m.wave ? SEVERAL_OF_WAVE + wave : SEVERAL);
  return (m.stamp & ~(stamp)0xffff) | who << 4 | (before & 0xf) | mask;
}

/* What every lane of the wave, or of the block, may read from here on without
   our looking: nobody has written since they met, and several of them are
   known to have read. */
inline uint16_t tag_for(const cell &c) {
  const emu_moment &m = emu_current;
  if (block_epoch_of(c.write ^ m.stamp) == 0 || (c.read & 0xf) != 0xf) return 0;
  const int lane = lane_of(c.read);
  return lane == SEVERAL                    ? m.block_tag
         : lane == SEVERAL_OF_WAVE + m.wave ? m.wave_tag
                                            : 0;
}

inline void read_word(size_t at, unsigned mask, const void *pc) {
  cell &c = cells[at / 4];
  if (awaited[at / 4]) stop_awaited(at, false, pc);
  if (conflicts(c.write, mask)) stop_race(at, true, false, pc);
  c.read_at = code_offset(pc);
  c.read =
      conflicts(c.read, 0xf) ? joined(c.read, mask) : emu_current.stamp | mask;
  known[at / 4] = tag_for(c);
}

inline void write_word(size_t at, unsigned mask, const void *pc) {
  cell &c = cells[at / 4];
  if (awaited[at / 4]) stop_awaited(at, true, pc);
  if (conflicts(c.write, mask)) stop_race(at, true, true, pc);
  if (conflicts(c.read, mask)) stop_race(at, false, true, pc);
  c.write = emu_current.stamp | mask;
  known[at / 4] = 0;
  c.write_at = code_offset(pc);
}

inline size_t arena_offset(const void *address) {
  return (size_t)(reinterpret_cast<uintptr_t>(address) -
                  reinterpret_cast<uintptr_t>(arena));
}

inline bool is_known(size_t at) {
  const uint16_t tag = known[at / 4];
  return tag == emu_current.block_tag || tag == emu_current.wave_tag;
}

inline void touch_shared(size_t at, size_t size, bool write, const void *pc) {
  const tile *t = tile_at(at);
  if (!t || at + size > t->begin + t->bytes) stop_outside(at, size, write, pc);
  if (size == 4 && at % 4 == 0) { /* most are */
    if (write)
      write_word(at, 0xf, pc);
    else
      read_word(at, 0xf, pc);
    return;
  }
  for (size_t end = at + size; at < end;) {
    const size_t in_word = at % 4;
    const size_t n = end - at < 4 - in_word ? end - at : 4 - in_word;
    const unsigned mask = ((1u << n) - 1) << in_word;
    if (write)
      write_word(at, mask, pc);
    else if (!is_known(at))
      read_word(at, mask, pc);
    at += n;
  }
}

/* Code of the host is watched by the compiler, too, and may run in another
   thread while lanes do: a lane is who stands on a lane's stack. */
inline bool is_by_lane() {
  const uintptr_t here =
      reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here - emu_own.stacks < emu_own.stacks_bytes;
}

void touch_memory(const void *address, size_t size, bool write,
                  const void *pc) {
  if (emu_is_private(address) || emu_is_device_memory(address, size)) return;
  const uintptr_t a = reinterpret_cast<uintptr_t>(address);
  if (!write && a >= module.begin && a < module.end) return; /* constants */
  emu_stop(
      "%s of %zu bytes at %p by lane %d, which no memory of the device "
      "holds, %s",
      write ? "write" : "read", size, address, emu_current.lane,
      emu_where(pc, NULL, 0).c_str());
}

/* Apart, so that a read of what is known, which most accesses are, saves no
   registers for the rest. */
__attribute__((noinline)) void touch_unknown(const void *address, size_t size,
                                             bool write, const void *pc) {
  const size_t at = arena_offset(address);
  if (!is_by_lane()) return;
  if (at < ARENA)
    touch_shared(at, size, write, pc);
  else
    touch_memory(address, size, write, pc);
}

inline void touch(const void *address, size_t size, bool write,
                  const void *pc) {
  const size_t at = arena_offset(address);
  /* What is known to be read lies in a tile of this block. */
  if (at < ARENA && !write && size == 4 && at % 4 == 0 && is_known(at)) return;
  touch_unknown(address, size, write, pc);
}

/* Devices fault where a host does not. */
__attribute__((noinline)) void stop_misaligned(const void *address, size_t size,
                                               bool write, const void *pc) {
  if (!is_by_lane()) return;
  emu_stop("misaligned %s of %zu bytes at %p by lane %d, %s",
           write ? "write" : "read", size, address, emu_current.lane,
           emu_where(pc, NULL, 0).c_str());
}

inline void touch_aligned(const void *address, size_t size, bool write,
                          const void *pc) {
  if (reinterpret_cast<uintptr_t>(address) % size != 0)
    stop_misaligned(address, size, write, pc);
  touch(address, size, write, pc);
}

}  // namespace

void emu_forget_known() {
  memset(known, 0, sizeof known);
}

/* What is not shared memory at all was meant to be. */
static size_t in_arena(const void *at, const void *pc) {
  const size_t offset = arena_offset(at);
  if (offset >= ARENA)
    emu_stop("lane %d wants shared memory at %p, which is none, %s",
             emu_current.lane, at, emu_where(pc, NULL, 0).c_str());
  return offset;
}

void emu_read_shared(const void *at, size_t size, const void *pc) {
  (void)in_arena(at, pc);
  touch(at, size, false, pc);
}

void emu_read_global(const void *at, size_t size, const void *pc) {
  touch_memory(at, size, false, pc);
}

void emu_copy_started(void *to, size_t size, const void *pc) {
  const size_t at = in_arena(to, pc);
  touch(to, size, true, pc);
  memset(to, 0xff, size);
  memset(awaited + at / 4, 1, size / 4);
}

void emu_copy_landed(void *to, size_t size, const void *pc) {
  memset(awaited + in_arena(to, pc) / 4, 0, size / 4);
  touch(to, size, true, pc);
}

void emu_shared_begin(size_t dynamic_bytes) {
  memset(awaited, 0, sizeof awaited);
  if (!module.end) dl_iterate_phdr(look_for_module, NULL);
  tile_count = recent_tile = 0;
  used = dynamic_bytes;
  next = LEAD;
  if (!dynamic_bytes) return;
  tiles[tile_count++] = {"dynamic shared memory", "", 0, LEAD, dynamic_bytes};
  memset(arena + LEAD, 0xff, dynamic_bytes); /* NaN in every type */
  next = LEAD + (dynamic_bytes + GAP + 15) / 16 * 16;
}

void *emu_dynamic_shared() {
  if (!tile_count || tiles[0].line != 0)
    emu_stop("dynamic shared memory, but the launch gave none");
  return arena + LEAD;
}

void *emu_shared_tile(size_t bytes, size_t alignment, const char *name,
                      const char *file, int line) {
  for (int i = 0; i < tile_count; i++)
    if (tiles[i].line == line && strcmp(tiles[i].name, name) == 0 &&
        strcmp(tiles[i].file, file) == 0)
      return arena + tiles[i].begin;
  used = (used + alignment - 1) / alignment * alignment + bytes;
  if (used > emu_shared_limit || tile_count == MAX_TILES)
    emu_stop("%zu bytes of shared memory with %s", used, name);
  next = (next + alignment - 1) / alignment * alignment;
  tiles[tile_count++] = {name, file, line, next, bytes};
  memset(arena + next, 0xff, bytes);
  void *at = arena + next;
  next = (next + bytes + GAP + 15) / 16 * 16;
  return at;
}

/* ------------------------------------- the functions that compilers call */

#define HOOK extern "C" __attribute__((visibility("hidden"))) void
#define CALLER __builtin_return_address(0)
#define ACCESS(size)                           \
  HOOK __tsan_read##size(void *p) {            \
    touch_aligned(p, size, false, CALLER);     \
  }                                            \
  HOOK __tsan_write##size(void *p) {           \
    touch_aligned(p, size, true, CALLER);      \
  }                                            \
  HOOK __tsan_unaligned_read##size(void *p) {  \
    touch(p, size, false, CALLER);             \
  }                                            \
  HOOK __tsan_unaligned_write##size(void *p) { \
    touch(p, size, true, CALLER);              \
  }                                            \
  HOOK __tsan_volatile_read##size(void *p) {   \
    touch_aligned(p, size, false, CALLER);     \
  }                                            \
  HOOK __tsan_volatile_write##size(void *p) {  \
    touch_aligned(p, size, true, CALLER);      \
  }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
HOOK __tsan_read_range(void *p, long n) {
  touch(p, (size_t)n, false, CALLER);
}
HOOK __tsan_write_range(void *p, long n) {
  touch(p, (size_t)n, true, CALLER);
}
HOOK __tsan_vptr_read(void **) {}
HOOK __tsan_vptr_update(void **, void *) {}
HOOK __tsan_func_entry(void *) {}
HOOK __tsan_func_exit() {}
HOOK __tsan_init() {}

/* clang makes calls of these out of those in the source. */
extern "C" __attribute__((visibility("hidden"))) void *__tsan_memcpy(
    void *to, const void *from, size_t n) {
  touch(from, n, false, CALLER);
  touch(to, n, true, CALLER);
  return memcpy(to, from, n);
}
extern "C" __attribute__((visibility("hidden"))) void *__tsan_memset(void *to,
                                                                     int value,
                                                                     size_t n) {
  touch(to, n, true, CALLER);
  return memset(to, value, n);
}
