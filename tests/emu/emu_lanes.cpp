/*
 * emu_lanes.cpp - fibers, their order, and what waves and blocks do together.
 */
#include "emu_lanes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emu_fiber.h"
#include "emu_mma.h"
#include "emu_watch.h"
#include "emu_where.h"

namespace {

enum lane_state { READY, IN_WAVE, IN_BLOCK, DONE };

/* Where a lane waits, and for what. */
struct site {
  const char *kind;
  const char *file;
  int line, argument;
  const void *pc;
};

struct lane {
  emu_fiber fiber;
  lane_state state;
  emu_index thread;
  site at;
};

struct wave {
  int first, count;
  uint32_t meetings; /* operations done: which of two payloads is current */
  uint32_t epoch;    /* synchronisations of memory */
  uint16_t tag;      /* of this epoch */
  emu_payload payload[2][EMU_MAX_WAVE];
};

lane lanes[EMU_MAX_LANES];
wave waves[EMU_MAX_LANES / 32];
int lane_count, wave_count, wave_width = 64;
uint32_t block_epoch;
uint16_t block_tag, tags_given;
emu_index block_index;
emu_fiber scheduler;
lane *now;
const emu_kernel *running;
bool failed;
char failure[400];
uint64_t random_state = 1;

/* A frame of a kernel is small; the step keeps stacks off each other's sets
   of the cache. */
const size_t STACK = (32 << 10) + 320;
unsigned char *stacks;

uint32_t draw() {
  random_state += 0x9E3779B97F4A7C15u;
  uint64_t z = random_state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (uint32_t)(z >> 32);
}

/* When they are used up, all that are in use change. */
uint16_t new_tag() {
  if (tags_given < UINT16_MAX) return ++tags_given;
  emu_forget_known();
  tags_given = 0;
  block_tag = ++tags_given;
  for (int i = 0; i < wave_count; i++) waves[i].tag = ++tags_given;
  return ++tags_given;
}

/* The block has met: what is known of its memory is so no longer. */
void begin_epoch() {
  block_epoch++;
  block_tag = new_tag();
  for (int i = 0; i < wave_count; i++) waves[i].tag = new_tag();
}

int number(const lane &l) {
  return (int)(&l - lanes);
}

void body_of_lane() {
  running->call(running->kernel, running->args);
  now->state = DONE;
  emu_fiber_switch(&now->fiber, &scheduler);
  abort(); /* a lane that is done never runs again */
}

void wait_as(lane_state state, const site &s) {
  now->at = s;
  now->state = state;
  emu_fiber_switch(&now->fiber, &scheduler);
}

/* The same operation: one place in the source, though the compiler may have
   made several of it. */
bool same_site(const site &a, const site &b) {
  if (a.pc == b.pc && a.argument == b.argument) return true;
  return strcmp(a.kind, b.kind) == 0 && a.argument == b.argument &&
         a.line == b.line && strcmp(a.file, b.file) == 0 &&
         emu_same_place(a.pc, b.pc);
}

void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void vfail(const char *format, va_list list) {
  if (failed) return;
  failed = true;
  int n = snprintf(failure, sizeof failure, "%s: ", running->name);
  if (n > 0 && n < (int)sizeof failure)
    vsnprintf(failure + n, sizeof failure - (size_t)n, format, list);
}
void fail(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vfail(format, list);
  va_end(list);
}

void describe(const lane &l, char *to, size_t size) {
  if (l.state == DONE)
    snprintf(to, size, "lane %d has returned", number(l));
  else
    snprintf(to, size, "lane %d is at %s, %s", number(l), l.at.kind,
             emu_where(l.at.pc, l.at.file, l.at.line).c_str());
}

void fail_between(const char *what, const lane &a, const lane &b) {
  char one[150], two[150];
  describe(a, one, sizeof one);
  describe(b, two, sizeof two);
  fail("%s: %s; %s", what, one, two);
}

/* ------------------------------------------------------------- scheduling */

void run_lane(const wave &w, lane &l) {
  now = &l;
  const int n = number(l);
  emu_current = {(uint64_t)block_epoch << 32 |
                     (uint64_t)(w.epoch & 0xffff) << 16 | (uint64_t)n << 4,
                 block_tag, w.tag, n, (int)(&w - waves)};
  emu_fiber_switch(&scheduler, &l.fiber);
}

/* Every lane that can, once, in an order of its own. */
void run_wave(wave &w) {
  const int mask = wave_width - 1, start = (int)draw(), step = (int)draw() | 1;
  for (int i = 0; i < wave_width && !failed; i++) {
    const int k = (start + i * step) & mask;
    if (k < w.count && lanes[w.first + k].state == READY)
      run_lane(w, lanes[w.first + k]);
  }
}

/* All lanes stand: they must stand at one operation. True: they go on. */
bool meet_in_wave(wave &w) {
  lane &first = lanes[w.first];
  const lane *waiting = NULL;
  for (int i = 0; i < w.count; i++)
    if (lanes[w.first + i].state == IN_WAVE) waiting = &lanes[w.first + i];
  if (!waiting) return false;
  for (int i = 0; i < w.count; i++) {
    const lane &l = lanes[w.first + i];
    if (l.state == IN_WAVE && same_site(l.at, waiting->at)) continue;
    fail_between("divergent wave operation", *waiting, l);
    return false;
  }
  w.meetings++;
  if (first.at.kind[0] == '=') { /* see emu_wave_sync() */
    w.epoch++;
    w.tag = new_tag();
  }
  for (int i = 0; i < w.count; i++) lanes[w.first + i].state = READY;
  return true;
}

/* Every wave waits for the block or is done. True: they go on. */
bool meet_in_block() {
  const lane *waiting = NULL;
  for (int i = 0; i < lane_count; i++)
    if (lanes[i].state == IN_BLOCK) waiting = &lanes[i];
  if (!waiting) return false;
  for (int i = 0; i < lane_count; i++) {
    if (lanes[i].state == IN_BLOCK && same_site(lanes[i].at, waiting->at))
      continue;
    fail_between("barrier in divergent code", *waiting, lanes[i]);
    return false;
  }
  begin_epoch();
  for (int i = 0; i < lane_count; i++) lanes[i].state = READY;
  return true;
}

bool can_run(const wave &w) {
  for (int i = 0; i < w.count; i++)
    if (lanes[w.first + i].state == READY) return true;
  return false;
}

/* A wave runs on for a while: lanes of others would find its data gone. */
void run_block() {
  do {
    for (int left = wave_count; left > 0 && !failed;) {
      left = 0;
      const int start = (int)(draw() % (unsigned)wave_count);
      for (int i = 0; i < wave_count && !failed; i++) {
        wave &w = waves[(start + i) % wave_count];
        if (!can_run(w)) continue;
        uint32_t turns = 1 + draw() % 16;
        do run_wave(w);
        while (!failed && meet_in_wave(w) && --turns);
        left += can_run(w);
      }
    }
  } while (!failed && meet_in_block());
}

void start_block(const emu_kernel &k, const emu_index &at) {
  block_index = at;
  begin_epoch();
  for (int i = 0; i < lane_count; i++) {
    lanes[i].state = READY;
    emu_fiber_start(&lanes[i].fiber, stacks + (size_t)i * STACK, STACK,
                    body_of_lane);
  }
  emu_shared_begin(k.shared);
  emu_copy_forget();
}

bool lawful(const emu_kernel &k) {
  const unsigned n = k.block.x;
  if (n == 0 || n > EMU_MAX_LANES || k.block.y != 1 || k.block.z != 1)
    fail("a block of %u x %u x %u", n, k.block.y, k.block.z);
  else if (k.grid.x == 0 || k.grid.y == 0 || k.grid.z == 0 ||
           k.grid.x > 0x7fffffffu || k.grid.y > 65535 || k.grid.z > 65535)
    fail("a grid of %u x %u x %u", k.grid.x, k.grid.y, k.grid.z);
  else if (k.shared > emu_shared_limit)
    fail("%zu bytes of shared memory", k.shared);
  return !failed;
}

void shape_block(const emu_kernel &k) {
  lane_count = (int)k.block.x;
  wave_count = (lane_count + wave_width - 1) / wave_width;
  for (int i = 0; i < lane_count; i++) lanes[i].thread = {(unsigned)i, 0, 0};
  for (int i = 0; i < wave_count; i++) {
    const int rest = lane_count - i * wave_width;
    waves[i].first = i * wave_width;
    waves[i].count = rest < wave_width ? rest : wave_width;
  }
}

site make_site(const char *kind, int argument, const char *file, int line,
               const void *pc) {
  return {kind, file, line, argument, pc};
}

wave &own_wave() {
  return waves[emu_current.wave];
}

/* What the lanes of a wave gave each other in the operation just done. */
const emu_payload *exchange(const void *give, size_t bytes, const site &s) {
  wave &w = own_wave();
  const uint32_t which = w.meetings & 1;
  memcpy(w.payload[which][number(*now) - w.first], give, bytes);
  wait_as(IN_WAVE, s);
  return w.payload[which];
}

}  // namespace

emu_moment emu_current;
emu_own_memory emu_own;
int emu_wave_shift = 6;
size_t emu_shared_limit = 64 << 10;

void emu_limit_shared(size_t bytes) {
  const size_t most = 163 << 10;
  emu_shared_limit = bytes < most ? bytes : most;
}

void emu_configure(int width, uint64_t seed) {
  wave_width = width;
  emu_wave_shift = width == 64 ? 6 : 5;
  random_state = seed;
}

bool emu_run(const emu_kernel &k) {
  running = &k;
  failed = false;
  failure[0] = 0;
  if (!stacks) {
    void *p = mmap(NULL, STACK * EMU_MAX_LANES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) abort();
    stacks = static_cast<unsigned char *>(p);
    emu_own.stacks = reinterpret_cast<uintptr_t>(p);
    emu_own.stacks_bytes = STACK * EMU_MAX_LANES;
  }
  if (!lawful(k)) return false;
  shape_block(k);
  emu_own.args = reinterpret_cast<uintptr_t>(k.args);
  emu_own.args_bytes = k.args_bytes;
  /* Blocks too run in an order of their own: from somewhere, round. */
  const uint64_t all = (uint64_t)k.grid.x * k.grid.y * k.grid.z;
  const uint64_t start = draw() % all;
  for (uint64_t i = 0; i < all && !failed; i++) {
    const uint64_t b = (start + i) % all;
    start_block(k,
                {(unsigned)(b % k.grid.x), (unsigned)(b / k.grid.x % k.grid.y),
                 (unsigned)(b / k.grid.x / k.grid.y)});
    run_block();
  }
  running = NULL;
  return !failed;
}

const char *emu_failure() {
  return failure;
}

int emu_wave_width() {
  return wave_width;
}
emu_index emu_thread_index() {
  return now->thread;
}
emu_index emu_block_index() {
  return block_index;
}

uint32_t emu_exchange(uint32_t bits, int other, int is_mask, const char *file,
                      int line) {
  const void *pc = __builtin_return_address(0);
  wave &w = own_wave();
  const int me = number(*now) - w.first;
  const int from = is_mask ? me ^ other : other;
  if (from < 0 || from >= w.count)
    emu_stop("lane %d shuffles with lane %d of %d, %s", me, from, w.count,
             emu_where(pc, file, line).c_str());
  const site s = make_site(is_mask ? "shuffle_xor" : "shuffle",
                           is_mask ? other : 0, file, line, pc);
  memcpy(&bits, exchange(&bits, sizeof bits, s)[from], sizeof bits);
  return bits;
}

/* The kinds that order memory within a wave begin with '='. */
void emu_wave_sync(const char *file, int line) {
  const int nothing = 0;
  exchange(&nothing, 0,
           make_site("=wave_sync", 0, file, line, __builtin_return_address(0)));
}

const emu_payload *emu_gather(const void *give, size_t bytes, const char *kind,
                              const char *file, int line, const void *pc) {
  return exchange(give, bytes, make_site(kind, 0, file, line, pc));
}

void emu_barrier(const char *file, int line) {
  wait_as(IN_BLOCK,
          make_site("barrier", 0, file, line, __builtin_return_address(0)));
}

void emu_stop(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vfail(format, list);
  va_end(list);
  emu_fiber_switch(&now->fiber, &scheduler);
  abort(); /* nobody goes on after a failure */
}

int emu_lanes_of_wave() {
  return own_wave().count;
}
