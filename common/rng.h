/*
 * rng.h - deterministic data: element i of tensor NAME under SEED, in any
 * order and on any machine (docs/spec.md, section 7).
 */
#ifndef MLA_RNG_H
#define MLA_RNG_H

#include <stdint.h>

/* The stream of one tensor. */
typedef struct mla_rng {
  uint64_t base;
} mla_rng;

mla_rng mla_rng_named(uint64_t seed, const char *name);
/* x_i: 64 uniform bits. */
uint64_t mla_rng_bits(mla_rng rng, uint64_t i);
/* Sum of the four 16-bit fields, centred: sigma 1.1547, [-4, 4), exact f32. */
double mla_rng_bell(mla_rng rng, uint64_t i);
/* Uniform integer in [0, n), n >= 1 (by multiplication, n < 2^32). */
uint32_t mla_rng_below(mla_rng rng, uint64_t i, uint32_t n);

uint64_t mla_fnv1a64(const void *bytes, uint64_t count);

#endif
