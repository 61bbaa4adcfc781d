"""The deterministic data of docs/spec.md, section 7, in numpy."""

import numpy as np

MASK = (1 << 64) - 1


def _mix_int(z):
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def _fnv1a(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


def bits(name, seed, index):
    """x_i of the named tensor for an array of indices."""
    base = np.uint64(_mix_int(seed ^ _fnv1a(name)))
    step = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        z = base + (np.asarray(index).astype(np.uint64) + np.uint64(1)) * step
        z ^= z >> np.uint64(30)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27)
        z *= np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def bell(name, seed, index):
    x = bits(name, seed, index)
    field = np.uint64(0xFFFF)
    total = sum(x >> np.uint64(shift) & field for shift in (0, 16, 32, 48))
    return (total.astype(np.int64) - 131070) / 32768.0


# docs/spec.md's own check values.
CHECK = [-1.08917236328125, -0.859466552734375, -0.9896240234375, -0.16729736328125]
assert bell("hidden_states", 20261129, np.arange(4)).tolist() == CHECK
