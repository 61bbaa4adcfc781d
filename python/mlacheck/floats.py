"""Number types that numpy lacks, as the integers that hold their bits.

bf16 is uint16; fp8_e4m3, fp8_e4m3fnuz, fp8_e5m2 and e8m0 are uint8. Rounding
is to nearest even; fp8 saturates at its largest finite number.
"""

import numpy as np

NUMPY = {
    "f64": "<f8",
    "f32": "<f4",
    "f16": "<f2",
    "bf16": "<u2",
    "fp8_e4m3": "u1",
    "fp8_e4m3fnuz": "u1",
    "fp8_e5m2": "u1",
    "e8m0": "u1",
    "i8": "i1",
    "u8": "u1",
    "i32": "<i4",
    "i64": "<i8",
}

# exponent bits, mantissa bits, bias, codes of finite positive numbers, NaN
_FP8 = {
    "fp8_e4m3": (4, 3, 7, 0x7F, 0x7F),
    "fp8_e4m3fnuz": (4, 3, 8, 0x80, 0x80),
    "fp8_e5m2": (5, 2, 15, 0x7C, 0x7E),
}
_tables = {}


def _positive(dtype):
    """Values of the codes from 0 on, ascending, all finite."""
    if dtype not in _tables:
        _, mantissa, bias, count, _ = _FP8[dtype]
        code = np.arange(count)
        exponent, fraction = code >> mantissa, code & ((1 << mantissa) - 1)
        small = fraction * 2.0 ** (1 - bias - mantissa)
        large = (1 + fraction / 2.0**mantissa) * 2.0 ** (exponent - bias)
        _tables[dtype] = np.where(exponent == 0, small, large)
    return _tables[dtype]


def _fp8_to_float(bits, dtype):
    positive, nan = _positive(dtype), _FP8[dtype][4]
    table = np.full(256, np.nan, np.float32)
    table[: len(positive)] = positive
    table[128 : 128 + len(positive)] = -positive
    if dtype == "fp8_e5m2":
        table[0x7C], table[0xFC] = np.inf, -np.inf
    if nan == 0x80:
        table[0x80] = np.nan
    return table[np.asarray(bits, np.uint8)]


def _float_to_fp8(x, dtype):
    positive, nan = _positive(dtype), _FP8[dtype][4]
    size = np.minimum(np.abs(x), positive[-1])
    above = np.clip(np.searchsorted(positive, size), 1, len(positive) - 1)
    low, high = positive[above - 1], positive[above]
    middle = (low + high) / 2
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    code = np.where(up, above, above - 1).astype(np.uint8)
    sign = np.where(np.signbit(x), 0x80, 0).astype(np.uint8)
    if nan == 0x80:  # no negative zero: that code is NaN
        sign = np.where(code == 0, 0, sign).astype(np.uint8)
    return np.where(np.isnan(x), np.uint8(nan), code | sign).astype(np.uint8)


def _float_to_bf16(x):
    """By way of f32 rounded to odd, so that nothing is rounded twice."""
    with np.errstate(over="ignore"):
        f32 = x.astype(np.float32)
    bits = f32.view(np.uint32).astype(np.int64)
    wide = f32.astype(np.float64)
    away = np.isfinite(x) & (np.abs(wide) > np.abs(x))
    inexact = np.isfinite(x) & (wide != x)
    bits = np.where(away, bits - 1, bits)
    bits = np.where(inexact, bits | 1, bits)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


def to_float(array, dtype):
    """The values of an array of `dtype`, as float32 (float64 if f64)."""
    array = np.asarray(array)
    if dtype == "bf16":
        bits = array.view(np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32)
    if dtype in _FP8:
        return _fp8_to_float(array, dtype)
    if dtype == "e8m0":
        with np.errstate(over="ignore"):
            value = np.ldexp(np.float32(1), array.astype(np.int32) - 127)
        return np.where(array == 255, np.float32(np.nan), value)
    return array.astype(np.float64 if dtype == "f64" else np.float32)


def from_float(array, dtype):
    """Numbers rounded once to `dtype`."""
    x = np.asarray(array).astype(np.float64)
    if dtype == "bf16":
        return _float_to_bf16(x)
    if dtype in _FP8:
        return _float_to_fp8(x, dtype)
    if dtype not in ("f64", "f32", "f16"):
        raise ValueError(f"no floating-point numbers are stored as {dtype}")
    with np.errstate(over="ignore"):
        return x.astype(NUMPY[dtype])
