#!/usr/bin/env python3
"""That crosscheck.py finds what is wrong in a file.

    crosscheck_selftest.py VECTORS

Copies single files of golden/v1, changes one thing in each copy, and demands
that the check fails; and that it passes what was not changed.
"""

import contextlib
import io
import json
import struct
import sys
import tempfile
from pathlib import Path

import numpy as np

import crosscheck


def verdict(path):
    with contextlib.redirect_stdout(io.StringIO()):
        return crosscheck.main([path])


def load(folder, name):
    description = json.loads((folder / f"{name}.json").read_text("utf-8"))
    data = bytearray((folder / f"{name}.safetensors").read_bytes())
    return description, data


def place(data, key):
    """Where the bytes of a tensor are in the file."""
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(bytes(data[8 : 8 + length]))
    begin, end = header[key]["data_offsets"]
    return 8 + length + begin, 8 + length + end


def stored_cases(description):
    return [case for case in description["cases"] if case["kind"] == "stored"]


def nudge(description, data, output, factor):
    """One expected number, not zero, times the factor."""
    case = stored_cases(description)[-1]
    begin, end = place(data, case["expected"][output]["key"])
    numbers = np.frombuffer(data[begin:end], "<f8")
    at = int(np.argmax(np.isfinite(numbers) & (numbers != 0)))
    value = struct.pack("<d", numbers[at] * factor)
    data[begin + 8 * at : begin + 8 * at + 8] = value


def flip(description, data, output):
    """One bit of expected memory that is no NaN."""
    case = stored_cases(description)[0]
    begin, end = place(data, case["expected"][output]["key"])
    numbers = np.frombuffer(data[begin:end], "<f4")
    at = int(np.argmax(np.isfinite(numbers)))
    data[begin + 4 * at] ^= 1


def flip_byte(description, data, output):
    """One bit of a byte that the call changed."""
    case = stored_cases(description)[0]
    begin, end = place(data, case["expected"][output]["key"])
    before, _ = place(data, case["tensors"][output]["key"])
    at = next(i for i in range(end - begin) if data[before + i] != data[begin + i])
    data[begin + at] ^= 1


def set_member(description, member, value):
    stored_cases(description)[0]["problem"][member] = value


# What is changed, in which file.
FAULTS = {
    "an output off by 1e-10": (
        "decode_bf16",
        lambda d, data: nudge(d, data, "out", 1 + 1e-10),
    ),
    "an lse off by 1e-12": (
        "prefill_f32",
        lambda d, data: nudge(d, data, "lse", 1 + 1e-12),
    ),
    "a merged value off by 1e-10": (
        "merge_f32",
        lambda d, data: nudge(d, data, "out", 1 + 1e-10),
    ),
    "a product off by 1e-12": (
        "matmul_f32",
        lambda d, data: nudge(d, data, "out", 1 + 1e-12),
    ),
    "one bit of a cache": (
        "kv_write_f32",
        lambda d, data: flip(d, data, "cache"),
    ),
    "one bit of a scaled cache": (
        "kv_write_fp8_e4m3",
        lambda d, data: flip_byte(d, data, "cache"),
    ),
    "one bit of a tile's scale or code": (
        "kv_write_fp8_584",
        lambda d, data: flip_byte(d, data, "cache"),
    ),
    "another scale of the cache": (
        "decode_fp8_e4m3",
        lambda d, data: set_member(d, "k_scale", 0.0372),
    ),
    "another dialect of fp8": (
        "decode_fp8_e4m3fnuz",
        lambda d, data: set_member(d, "cache_format", "fp8_e4m3"),
    ),
    "values of scaled weights off by 1e-10": (
        "absorb_bf16",
        lambda d, data: nudge(d, data, "w_uk", 1 + 1e-10),
    ),
    "a logit off by 1e-10": (
        "index_f32",
        lambda d, data: nudge(d, data, "logits", 1 + 1e-10),
    ),
    "another position": (
        "index_f32",
        lambda d, data: nudge(d, data, "positions", 2),
    ),
    "another slot": (
        "map_indices_f32",
        lambda d, data: nudge(d, data, "indices", 2),
    ),
    "one bit of a key's code or scale": (
        "kv_write_fp8_index",
        lambda d, data: flip_byte(d, data, "cache"),
    ),
    "one bit of a gathered row": (
        "kv_read_f32",
        lambda d, data: flip(d, data, "dst"),
    ),
    "another scale": (
        "decode_f32",
        lambda d, data: set_member(d, "scale", 0.126),
    ),
    "an unknown operation": (
        "matmul_f32",
        lambda d, data: set_member(d, "op", "decode_sparse"),
    ),
    "an unknown flag": (
        "decode_f32",
        lambda d, data: set_member(d, "flags", ["causal", "alibi"]),
    ),
    "an unknown cache format": (
        "kv_copy_f32",
        lambda d, data: set_member(d, "cache_format", "fp4"),
    ),
    "no stored case": ("matmul_f32", lambda d, data: d["cases"].clear()),
}


def main(vectors):
    vectors, failures = Path(vectors), 0
    for what, (name, change) in FAULTS.items():
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / f"{name}.json"
            description, data = load(vectors, name)
            for changed in (False, True):
                if changed:
                    change(description, data)
                copy.write_text(json.dumps(description), encoding="utf-8")
                copy.with_suffix(".safetensors").write_bytes(data)
                if (verdict(copy) != 0) != changed:
                    print(f"FAIL  {what}: {'passed' if changed else 'failed'}")
                    failures += 1
    print(f"{len(FAULTS)} faults, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))
