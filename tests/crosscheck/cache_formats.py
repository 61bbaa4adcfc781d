"""Scaled cache entries of docs/spec.md, sections 2.2 to 2.4, in numpy.

Codes are read by tables made from the definition of each type, and written by
looking for the nearest of all of them.
"""

import numpy as np

from vector_file import narrow, widen

# format: (codes' type, scales' type, codes a scale serves, bf16 rope beside,
#          scales behind the rows of a block, padding unit)
FORMATS = {
    "fp8_e4m3": ("fp8_e4m3", None, 0, False, False, 1),
    "fp8_e4m3fnuz": ("fp8_e4m3fnuz", None, 0, False, False, 1),
    "fp8_e5m2": ("fp8_e5m2", None, 0, False, False, 1),
    "fp8_ds_mla": ("fp8_e4m3", "f32", 128, True, False, 1),
    "fp8_584": ("fp8_e4m3", "e8m0", 64, True, True, 8),
    "fp8_token": ("fp8_e4m3", "f32", 0, False, False, 16),
    "int8_token": ("i8", "f32", 0, False, False, 16),
    "int4_token": ("i4", "f32", 0, False, False, 16),
    "fp8_index": ("fp8_e4m3", "f32", 0, False, True, 1),
}
LARGEST = {"fp8_e4m3": 448, "i8": 127, "i4": 7}


class Layout:
    """Where the parts of an entry of `width` values lie, in bytes."""

    def __init__(self, case, width):
        spec = FORMATS[case.problem["cache_format"]]
        self.code, self.scale, tile, mixed, self.behind, unit = spec
        rope = case.size("qk_rope_head_dim") if mixed else 0
        self.width, self.codes = width, width - rope
        self.tile = tile or self.codes
        bits = 4 if self.code == "i4" else 8
        self.code_bytes = (self.codes * bits + 7) // 8
        self.scales = self.codes // self.tile if self.scale else 0
        size = {"f32": 4, "e8m0": 1, None: 0}[self.scale] * self.scales
        self.scale_bytes = -(-size // unit) * unit if self.behind else size
        self.rest_at = self.code_bytes + (0 if self.behind else size)
        row = self.rest_at + 2 * rope
        self.row_bytes = row if self.behind else -(-row // unit) * unit


def pieces(layout, cache, memory, block, offset, head=None):
    """Views of an entry's row and of its scales."""
    memory = memory.view(np.uint8)
    at = block * cache.strides_of(0)
    if layout.behind:
        side = at + cache.shape[1] * layout.row_bytes
        side += offset * layout.scale_bytes
        row = at + offset * layout.row_bytes
        return (
            memory[row : row + layout.row_bytes],
            memory[side : side + layout.scale_bytes],
        )
    row = at + offset * cache.strides_of(1)
    if head is not None:
        row += head * cache.strides_of(2)
    row = memory[row : row + layout.row_bytes]
    end = layout.code_bytes + layout.scale_bytes
    return row, row[layout.code_bytes : end]


def read_entry(case, layout, row, scales, one, compute):
    codes = row[: layout.code_bytes]
    if layout.code == "i4":
        codes = np.stack([codes & 15, codes >> 4], 1).reshape(-1)
    codes = widen(codes[: layout.codes], layout.code).astype(np.float32)
    if layout.scale == "f32":
        each = scales[: 4 * layout.scales].copy().view("<f4")
    elif layout.scale == "e8m0":
        each = widen(scales[: layout.scales], "e8m0").astype(np.float32)
    else:
        each = np.array([one], np.float32)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        values = codes * np.repeat(each, layout.tile)[: layout.codes]
    values = widen(narrow(values.astype(np.float64), compute), compute)
    rest = row[layout.rest_at :][: 2 * (layout.width - layout.codes)]
    return np.concatenate([values, widen(rest.copy().view("<u2"), "bf16")])


def entries(case, name, places, compute):
    """The values of (block, offset, head) places in a cache."""
    cache = case.tensors[name]
    is_v = name == "v_cache"
    width = case.problem.get("kv_lora_rank", 0)
    width += case.problem.get("qk_rope_head_dim", 0)
    if case.op in ("decode", "index"):
        width = case.size("head_dim") or width
    if is_v:
        width = case.size("v_dim") or case.problem["kv_lora_rank"]
    layout = Layout(case, width)
    one = case.size("v_scale" if is_v else "k_scale")
    return [
        read_entry(
            case, layout, *pieces(layout, cache, cache.memory, *place), one,
            compute,
        )
        for place in places
    ]


# ---------------------------------------------------------------- writing


def power_of_two(x):
    mantissa, exponent = np.frexp(x)
    return np.ldexp(1.0, int(exponent) - (1 if mantissa == 0.5 else 0))


def scale_of(layout, x, pow2):
    amax = np.abs(x).max(initial=np.float32(0)).astype(np.float32)
    scale = amax / np.float32(LARGEST[layout.code])
    if pow2:
        return np.float32(power_of_two(float(max(scale, np.float32(1e-4)))))
    return max(scale, np.float32(2.0**-126))


def put_codes(layout, row, codes):
    codes = codes.astype(np.uint8)
    if layout.code == "i4":
        codes = np.append(codes, np.zeros(len(codes) % 2, np.uint8))
        codes = codes[0::2] | codes[1::2] << 4
    row[: layout.code_bytes] = codes


def write_entry(case, row, scales, layout, x, rest, pow2):
    row[:] = 0
    scales[:] = 0
    codes, each = [], []
    for tile in np.asarray(x, np.float32).reshape(-1, layout.tile):
        scale = np.float32(case.size("k_scale"))
        if layout.scale:
            scale = scale_of(layout, tile, pow2)
        each.append(scale)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            codes.append(narrow((tile / scale).astype(np.float64), layout.code))
    put_codes(layout, row, np.concatenate(codes))
    if layout.scale == "f32":
        scales[: 4 * layout.scales] = np.array(each, "<f4").view(np.uint8)
    elif layout.scale == "e8m0":
        exponents = [np.frexp(float(s))[1] - 1 + 127 for s in each]
        scales[: layout.scales] = exponents
    end = layout.rest_at + 2 * len(rest)
    row[layout.rest_at : end] = np.asarray(rest, "<u2").view(np.uint8)
