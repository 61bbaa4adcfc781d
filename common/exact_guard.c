/*
 * exact_guard.c - refuses to compile where the reference would not give the
 * same bits as elsewhere. Compiled with the flags of all of common/, so what
 * holds here holds there (docs/building.md, "Flags").
 */
#include <float.h>
#include <limits.h>
#include <stdint.h>

#if FLT_EVAL_METHOD != 0
#error "floats are evaluated in a wider type: -fexcess-precision=fast, or SSE"
#endif
#if defined(__FAST_MATH__)
#error "-ffast-math changes the values that the reference computes"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "-ffinite-math-only breaks every infinity and NaN of the reference"
#endif

_Static_assert(CHAR_BIT == 8, "a byte has 8 bits");
_Static_assert(FLT_RADIX == 2 && FLT_MANT_DIG == 24 && FLT_MIN_EXP == -125,
               "float is binary32");
_Static_assert(DBL_MANT_DIG == 53 && DBL_MIN_EXP == -1021 &&
                   DBL_MAX_EXP == 1024 && sizeof(double) == 8,
               "double is binary64");
_Static_assert((-1 >> 1) == -1 && (int8_t)-1 == -1,
               "signed integers are two's complement, shifted with their sign");
