"""Types of at most 8 bits, by the definition of each (docs/spec.md 1.4)."""

import numpy as np

# mantissa bits, bias, code of the largest, infinity, NaN as written
FLOATS = {
    "fp8_e4m3": (3, 7, 0x7E, None, 0x7F),
    "fp8_e4m3fnuz": (3, 8, 0x7F, None, 0x80),
    "fp8_e5m2": (2, 15, 0x7B, 0x7C, 0x7E),
}
INTEGERS = {"i8": 127, "i4": 7}


def magnitude(code, mantissa, bias):
    exponent, fraction = code >> mantissa, code & (1 << mantissa) - 1
    if exponent == 0:
        return fraction * 2.0 ** (1 - bias - mantissa)
    return (1 + fraction / (1 << mantissa)) * 2.0 ** (exponent - bias)


def table(dtype):
    """What each of the 256 (i4: 16) codes means."""
    if dtype == "e8m0":
        return np.array([2.0 ** (c - 127) for c in range(255)] + [np.nan])
    if dtype in INTEGERS:
        half = 128 if dtype == "i8" else 8
        return np.array([c - 2 * half * (c >= half) for c in range(2 * half)])
    mantissa, bias, largest, infinity, nan = FLOATS[dtype]
    values = []
    for code in range(256):
        rest = code & 0x7F
        value = magnitude(rest, mantissa, bias)
        if rest > largest:
            value = np.inf if rest == infinity else np.nan
        if code == nan:
            value = np.nan
        values.append(-value if code & 0x80 else value)
    return np.array(values)


def codes_of(values, dtype):
    """The nearest code of each, even between two; fp8 saturates."""
    if dtype in INTEGERS:
        most = INTEGERS[dtype]
        whole = np.clip(np.rint(np.nan_to_num(values)), -most, most)
        return whole.astype(np.int64) & (0xFF if dtype == "i8" else 0xF)
    mantissa, bias, largest, _, nan = FLOATS[dtype]
    ladder = np.array([magnitude(c, mantissa, bias) for c in range(largest + 1)])
    size = np.minimum(np.abs(np.nan_to_num(values, nan=0.0)), ladder[-1])
    above = np.minimum(np.searchsorted(ladder, size), largest)
    below = np.maximum(above - 1, 0)
    up, down = ladder[above] - size, size - ladder[below]
    code = np.where((down < up) | ((down == up) & (below % 2 == 0)), below, above)
    code = np.where(ladder[above] == size, above, code)
    negative = np.signbit(values)
    if nan == 0x80:
        negative = negative & (code > 0)
    code = code | np.where(negative, 0x80, 0)
    return np.where(np.isnan(values), nan, code)
