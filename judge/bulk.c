#include "bulk.h"

#include <string.h>

/* Bytes of a piece, and from how many pieces on threads are worth starting. */
enum { PIECE = 1 << 22, MANY = 16 };

/* from == NULL: the byte all over. */
static void lay(unsigned char *to, const unsigned char *from,
                unsigned char byte, uint64_t bytes) {
  int64_t pieces = (int64_t)((bytes + PIECE - 1) / PIECE);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (pieces >= MANY)
#endif
  for (int64_t i = 0; i < pieces; i++) {
    uint64_t at = (uint64_t)i * PIECE;
    size_t n = (size_t)(bytes - at < PIECE ? bytes - at : PIECE);
    if (from)
      memcpy(to + at, from + at, n);
    else
      memset(to + at, byte, n);
  }
}

void mla_bulk_fill(void *to, unsigned char byte, uint64_t bytes) {
  lay(to, NULL, byte, bytes);
}

void mla_bulk_copy(void *to, const void *from, uint64_t bytes) {
  lay(to, from, 0, bytes);
}
