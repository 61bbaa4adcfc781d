/*
 * digest.h - one number for many results: equal on every machine or a fault.
 *
 *   uint64_t digest = mla_digest_start();
 *   for (...) digest = mla_digest_f64(digest, result[i]);
 *
 * FNV-1a over the eight bytes of each value, lowest first by shifts, so the
 * host's byte order does not matter. All NaNs count as one.
 */
#ifndef MLA_DIGEST_H
#define MLA_DIGEST_H

#include <stdint.h>

uint64_t mla_digest_start(void);
uint64_t mla_digest_u64(uint64_t digest, uint64_t value);
uint64_t mla_digest_f64(uint64_t digest, double value);

#endif
