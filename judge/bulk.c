#include "bulk.h"

#include <string.h>

/* Bytes of a piece, and from how many pieces on threads are worth starting. */
enum { PIECE = 1 << 22, MANY = 16 };

static int64_t pieces_of(uint64_t bytes) {
  return (int64_t)((bytes + PIECE - 1) / PIECE);
}

static size_t piece_at(uint64_t bytes, uint64_t at) {
  return (size_t)(bytes - at < PIECE ? bytes - at : PIECE);
}

void mla_bulk_fill(void *to, unsigned char byte, uint64_t bytes) {
  int64_t pieces = pieces_of(bytes);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (pieces >= MANY)
#endif
  for (int64_t i = 0; i < pieces; i++) {
    uint64_t at = (uint64_t)i * PIECE;
    memset((unsigned char *)to + at, byte, piece_at(bytes, at));
  }
}

void mla_bulk_copy(void *to, const void *from, uint64_t bytes) {
  int64_t pieces = pieces_of(bytes);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (pieces >= MANY)
#endif
  for (int64_t i = 0; i < pieces; i++) {
    uint64_t at = (uint64_t)i * PIECE;
    memcpy((unsigned char *)to + at, (const unsigned char *)from + at,
           piece_at(bytes, at));
  }
}
