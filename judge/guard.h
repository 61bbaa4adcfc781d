/*
 * guard.h - host memory whose ends are the ends of what may be touched.
 *
 * A zone of whole pages lies between pages that nobody may touch. A tensor is
 * put at one end of its zone, so that the first byte past that end is on such
 * a page: touching it kills the process, and a listener is told before which
 * tensor it was, on which side and how far. For judging in a child process.
 *
 * An open zone has one more page of ordinary memory at either end instead: an
 * overrun lands there and is found by comparing. So does every zone where the
 * system has no mmap (mla_guard_is_possible).
 */
#ifndef MLA_GUARD_H
#define MLA_GUARD_H

#include "mla/mla.h"

typedef struct mla_zone {
  unsigned char *at; /* what may be touched */
  uint64_t bytes;
  uint64_t margin; /* of these at either end, past the tensor; closed: 0 */
  void *map;       /* all of it; to be given back */
  uint64_t mapped;
  int32_t entry; /* in the list of those watched, or -1 */
} mla_zone;

/* Where an access was that killed the process. */
typedef struct mla_touch {
  int32_t slot;  /* mla_slot, or -1: the workspace */
  int32_t side;  /* -1 before the tensor, 1 behind, 0: it was written */
  int64_t bytes; /* how far from it, from 1 on; side 0: which byte */
} mla_touch;

int mla_guard_is_possible(void);

/*
 * Room for a tensor of `size` bytes at a multiple of `unit` (a power of two).
 * Lazily: what is never touched takes no memory. closed: with pages that must
 * not be touched; else, or where that is not possible, open.
 */
mla_status mla_zone_take(uint64_t size, uint64_t unit, int closed,
                         mla_zone *zone, mla_error *err);
void mla_zone_give(mla_zone *zone);
/* The tensor lies here now: what a listener is told. Closed zones only. */
void mla_zone_watch(mla_zone *zone, int32_t slot, const unsigned char *tensor,
                    uint64_t size);
/* Locked, it can be read only. Closed zones only. */
void mla_zone_lock(mla_zone *zone, int locked);

/*
 * From now on `told` is called before an access next to a closed zone, or a
 * write to a locked one, kills the process. In a signal handler: it may do
 * little more than write(). Other faults kill as they always do.
 */
void mla_guard_listen(void (*told)(const mla_touch *touch));

/* Zeroed bytes that take room only where they are touched; NULL: none. */
void *mla_lazy_take(uint64_t bytes);
void mla_lazy_give(void *memory, uint64_t bytes);

/* "memory behind block_table was touched, 1 byte past its end" */
int mla_touch_print(const mla_touch *touch, const char *verb, char *text,
                    size_t size);

#endif
