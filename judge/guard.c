/*
 * guard.c - zones between forbidden pages, and who touched them.
 */
#if defined(__unix__) || defined(__APPLE__)
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#define HAS_MMAP 1
#endif
#include "guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "op_table.h"

#ifdef HAS_MMAP
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif
#endif

/* Forbidden bytes at either end: strides past a tensor land there too. */
#define FORBIDDEN ((uint64_t)1 << 18)

static uint64_t round_up(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

static mla_status no_memory(uint64_t size, mla_error *err) {
  return mla_fail(err, MLA_OUT_OF_MEMORY, "memory",
                  "no %llu bytes of host memory", (unsigned long long)size);
}

/* ------------------------------------------------------------ the watched */

/* Two calls at a time have their tensors in zones: a case, and its request
   alone. Read by a signal handler, when nobody is writing. */
#define MOST_WATCHED 128

typedef struct watched {
  const unsigned char *map, *zone, *tensor;
  uint64_t mapped, bytes, size;
  int32_t slot;
} watched;

static watched list[MOST_WATCHED];

static int32_t enter(const mla_zone *z) {
  for (int32_t i = 0; i < MOST_WATCHED; i++) {
    if (list[i].map) continue;
    list[i] = (watched){z->map, z->at, z->at, z->mapped, z->bytes, z->bytes, 0};
    return i;
  }
  return -1;
}

void mla_zone_watch(mla_zone *z, int32_t slot, const unsigned char *tensor,
                    uint64_t size) {
  if (z->entry < 0) return;
  list[z->entry].slot = slot;
  list[z->entry].tensor = tensor;
  list[z->entry].size = size;
}

/* s390x tells the page of a fault, not the byte: one in the pages of the zone
   is a write to a locked input, wherever in them the tensor begins. */
static const unsigned char *as_told(const watched *w, const unsigned char *at) {
#ifdef __s390x__
  if (at >= w->zone && at < w->zone + w->bytes && at < w->tensor)
    return w->tensor;
#else
  (void)w;
#endif
  return at;
}

static int find_touched(const unsigned char *at, mla_touch *touch) {
  for (int32_t i = 0; i < MOST_WATCHED; i++) {
    const watched *w = &list[i];
    if (!w->map || at < w->map || at >= w->map + w->mapped) continue;
    at = as_told(w, at);
    touch->slot = w->slot;
    touch->side = at < w->tensor ? -1 : at >= w->tensor + w->size ? 1 : 0;
    touch->bytes = touch->side < 0   ? w->tensor - at
                   : touch->side > 0 ? at - (w->tensor + w->size) + 1
                                     : at - w->tensor;
    return 1;
  }
  return 0;
}

int mla_touch_print(const mla_touch *t, const char *verb, char *text,
                    size_t size) {
  const char *name = t->slot < 0 ? "the workspace" : mla_slot_name(t->slot);
  if (t->side == 0)
    return snprintf(text, size, "input %s was written, at byte %lld", name,
                    (long long)t->bytes);
  return snprintf(text, size, "memory %s %s was %s, %lld byte%s %s",
                  t->side < 0 ? "before" : "behind", name, verb,
                  (long long)t->bytes, t->bytes == 1 ? "" : "s",
                  t->side < 0 ? "ahead of it" : "past its end");
}

#ifdef HAS_MMAP

int mla_guard_is_possible(void) {
  return 1;
}

static uint64_t page_bytes(void) {
  long n = sysconf(_SC_PAGESIZE);
  return n > 0 ? (uint64_t)n : 4096;
}

/* [forbidden][margin][pages of the tensor][margin][forbidden], the zone being
   what is between; the first usable byte is a multiple of `unit`. */
mla_status mla_zone_take(uint64_t size, uint64_t unit, int closed, mla_zone *z,
                         mla_error *err) {
  uint64_t page = page_bytes(), whole = unit > page ? unit : page;
  memset(z, 0, sizeof *z);
  z->entry = -1;
  z->margin = closed ? 0 : whole;
  if (size > UINT64_MAX / 4 || unit > UINT64_MAX / 16)
    return no_memory(size, err);
  z->bytes = round_up(size ? size : 1, whole) + 2 * z->margin;
  z->mapped = z->bytes + 2 * FORBIDDEN + whole;
  if (z->mapped > SIZE_MAX / 2) return no_memory(size, err);
  z->map = mmap(NULL, (size_t)z->mapped, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (z->map == MAP_FAILED) {
    z->map = NULL;
    return no_memory(size, err);
  }
  uintptr_t first = (uintptr_t)z->map + FORBIDDEN;
  first = (uintptr_t)round_up(first, whole);
  z->at = (unsigned char *)z->map + (first - (uintptr_t)z->map);
  if (mprotect(z->at, (size_t)z->bytes, PROT_READ | PROT_WRITE) != 0) {
    mla_zone_give(z);
    return no_memory(size, err);
  }
  if (closed) z->entry = enter(z);
  return MLA_OK;
}

void mla_zone_give(mla_zone *z) {
  if (z->map && z->entry >= 0) memset(&list[z->entry], 0, sizeof list[0]);
  if (z->map) munmap(z->map, (size_t)z->mapped);
  memset(z, 0, sizeof *z);
  z->entry = -1;
}

void mla_zone_lock(mla_zone *z, int locked) {
  if (!z->map || z->margin) return;
  mprotect(z->at, (size_t)z->bytes,
           locked ? PROT_READ : PROT_READ | PROT_WRITE);
}

void *mla_lazy_take(uint64_t bytes) {
  if (bytes > SIZE_MAX / 2) return NULL;
  void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void mla_lazy_give(void *memory, uint64_t bytes) {
  if (memory) munmap(memory, (size_t)bytes);
}

/* -------------------------------------------------------------- listening */

static void (*listener)(const mla_touch *touch);

/* Tells, and lets the access happen again: then it kills. */
static void on_fault(int number, siginfo_t *info, void *context) {
  mla_touch touch;
  (void)context;
  signal(number, SIG_DFL);
  if (info->si_code <= 0) { /* sent by somebody: it will not come again */
    raise(number);
    return;
  }
  if (listener && find_touched(info->si_addr, &touch)) listener(&touch);
}

void mla_guard_listen(void (*told)(const mla_touch *touch)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  listener = told;
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
}

#else

int mla_guard_is_possible(void) {
  return 0;
}

mla_status mla_zone_take(uint64_t size, uint64_t unit, int closed, mla_zone *z,
                         mla_error *err) {
  uint64_t whole = unit > 4096 ? unit : 4096;
  (void)closed;
  memset(z, 0, sizeof *z);
  z->entry = -1;
  z->margin = whole;
  if (size > SIZE_MAX / 4 || unit > SIZE_MAX / 16) return no_memory(size, err);
  z->bytes = z->mapped = round_up(size ? size : 1, whole) + 2 * whole;
  z->map = aligned_alloc((size_t)whole, (size_t)z->bytes);
  z->at = z->map;
  return z->map ? MLA_OK : no_memory(size, err);
}

void mla_zone_give(mla_zone *z) {
  free(z->map);
  memset(z, 0, sizeof *z);
}

void mla_zone_lock(mla_zone *z, int locked) {
  (void)z;
  (void)locked;
}

void *mla_lazy_take(uint64_t bytes) {
  return bytes > SIZE_MAX / 2 ? NULL : calloc((size_t)bytes, 1);
}

void mla_lazy_give(void *memory, uint64_t bytes) {
  (void)bytes;
  free(memory);
}

void mla_guard_listen(void (*told)(const mla_touch *touch)) {
  (void)told;
}

#endif
