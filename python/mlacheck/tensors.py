"""Safetensors files: 8 bytes of length, a JSON header, then the bytes."""

import json
import struct

import numpy as np

from .floats import NUMPY

# What the format calls our types; those it has no name for are bytes.
NAMES = {
    "f64": "F64",
    "f32": "F32",
    "f16": "F16",
    "bf16": "BF16",
    "fp8_e4m3": "F8_E4M3",
    "fp8_e5m2": "F8_E5M2",
    "fp8_e4m3fnuz": "U8",
    "e8m0": "U8",
    "u8": "U8",
    "i8": "I8",
    "i32": "I32",
    "i64": "I64",
}
_TYPES = {name: dtype for dtype, name in NAMES.items()}
_TYPES["U8"] = "u8"


def load(path):
    """({name: array}, metadata): arrays read-only, bf16 and fp8 as bits."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        dtype = NUMPY[_TYPES[entry["dtype"]]]
        flat = np.frombuffer(data[begin:end], dtype)
        arrays[name] = flat.reshape(entry["shape"])
    return arrays, metadata


def save(path, arrays, metadata=None):
    """arrays: {name: (array, dtype)}, dtype as in `NAMES`."""
    header, blobs, offset = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (array, dtype) in arrays.items():
        blob = np.ascontiguousarray(array, NUMPY[dtype]).tobytes()
        header[name] = {
            "dtype": NAMES[dtype],
            "shape": list(np.shape(array)),
            "data_offsets": [offset, offset + len(blob)],
        }
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
