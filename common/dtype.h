/*
 * dtype.h - number types: one element in and out of memory, exactly.
 *
 * Host memory is in the host's byte order. Reading is exact (every type fits
 * in binary64); writing rounds once, to nearest even, straight from binary64,
 * by integer arithmetic: the same bits on every machine. fp8 writes saturate
 * (infinities too); NaN is written as the one code of docs/spec.md section 1.
 */
#ifndef MLA_DTYPE_H
#define MLA_DTYPE_H

#include "mla/mla.h"

/*
 * Element `index` of an array; MLA_I4 counts nibbles. No alignment is needed.
 * Integer types: put rounds to nearest even and clips to the range, which for
 * writers of MLA_I8 and MLA_I4 is +-127 and +-7; NaN becomes 0.
 * MLA_E8M0: what is below 2^-127 becomes 2^-127; a negative scale is NaN.
 */
double mla_get(const void *data, int32_t dtype, int64_t index);
void mla_put(void *data, int32_t dtype, int64_t index, double value);

/* Integer types, exactly; put keeps the low bits of what does not fit. */
int64_t mla_get_int(const void *data, int32_t dtype, int64_t index);
void mla_put_int(void *data, int32_t dtype, int64_t index, int64_t value);

/* What reading back after mla_put would give. */
double mla_round_to(int32_t dtype, double value);

/* Codes of types of at most 32 bits (integers in two's complement). */
uint32_t mla_encode(int32_t dtype, double value);
double mla_decode(int32_t dtype, uint32_t code);

/* Unit roundoff: 2^-53, 2^-24, 2^-11, 2^-8, 2^-4 (e4m3), 2^-3 (e5m2); 0 for
   integer types. */
double mla_unit_roundoff(int32_t dtype);
/* Half the smallest subnormal: the eta of docs/tolerance.md. */
double mla_half_subnormal(int32_t dtype);

/* The element type of a plain cache format; MLA_DTYPE_NONE if packed. */
int32_t mla_format_dtype(int32_t cache_format);

#endif
