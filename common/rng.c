/*
 * rng.c - SplitMix64 as a function of the index.
 */
#include "rng.h"

#include <string.h>

static uint64_t mix(uint64_t z) {
  z ^= z >> 30;
  z *= UINT64_C(0xBF58476D1CE4E5B9);
  z ^= z >> 27;
  z *= UINT64_C(0x94D049BB133111EB);
  z ^= z >> 31;
  return z;
}

uint64_t mla_fnv1a64(const void *bytes, uint64_t count) {
  const unsigned char *byte = bytes;
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (uint64_t i = 0; i < count; i++) {
    hash = (hash ^ byte[i]) * UINT64_C(0x100000001B3);
  }
  return hash;
}

mla_rng mla_rng_named(uint64_t seed, const char *name) {
  mla_rng rng = {mix(seed ^ mla_fnv1a64(name, strlen(name)))};
  return rng;
}

uint64_t mla_rng_bits(mla_rng rng, uint64_t i) {
  return mix(rng.base + (i + 1) * UINT64_C(0x9E3779B97F4A7C15));
}

double mla_rng_bell(mla_rng rng, uint64_t i) {
  uint64_t x = mla_rng_bits(rng, i);
  int64_t sum = (int64_t)((x & 0xFFFF) + (x >> 16 & 0xFFFF) +
                          (x >> 32 & 0xFFFF) + (x >> 48));
  return (double)(sum - 131070) * (1.0 / 32768);
}

uint32_t mla_rng_below(mla_rng rng, uint64_t i, uint32_t n) {
  return (uint32_t)(((mla_rng_bits(rng, i) >> 32) * n) >> 32);
}
