/*
 * digest.c - FNV-1a over values rather than memory.
 */
#include "digest.h"

#include "float_bits.h"

uint64_t mla_digest_start(void) {
  return UINT64_C(0xCBF29CE484222325);
}

uint64_t mla_digest_u64(uint64_t digest, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    digest = (digest ^ (value >> shift & 0xFF)) * UINT64_C(0x100000001B3);
  }
  return digest;
}

uint64_t mla_digest_f64(uint64_t digest, double value) {
  uint64_t bits = mla_f64_bits(value);
  uint64_t magnitude = bits & UINT64_C(0x7FFFFFFFFFFFFFFF);
  if (magnitude > UINT64_C(0x7FF0000000000000)) {
    bits = UINT64_C(0x7FF8000000000000);
  }
  return mla_digest_u64(digest, bits);
}
