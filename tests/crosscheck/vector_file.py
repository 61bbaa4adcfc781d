"""Reads vectors (golden/FORMAT.md) with numpy alone.

Independent of the C reader on purpose: what both get out of a file, they
agree on.
"""

import json
import struct
from pathlib import Path

import numpy as np

from number_codes import FLOATS, INTEGERS, codes_of, table

# Our name of a type: the file's, and the numpy type of its codes.
TYPES = {
    "f64": ("F64", "<f8"),
    "f32": ("F32", "<f4"),
    "f16": ("F16", "<f2"),
    "bf16": ("BF16", "<u2"),
    "fp8_e4m3": ("F8_E4M3", "u1"),
    "fp8_e4m3fnuz": ("F8_E4M3FNUZ", "u1"),
    "fp8_e5m2": ("F8_E5M2", "u1"),
    "u8": ("U8", "u1"),
    "i32": ("I32", "<i4"),
    "i64": ("I64", "<i8"),
}


class Unknown(Exception):
    """Something in a file that this program has no meaning for."""


def read_safetensors(path):
    """{name: (type in the file, shape, bytes)}"""
    data = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    body = memoryview(data)[8 + length :]
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            arrays[name] = (entry["dtype"], entry["shape"], body[begin:end])
    return arrays


def widen(codes, dtype):
    """Codes of a type as float64, exactly; index types as int64."""
    if dtype in ("i32", "i64", "u8"):
        return codes.astype(np.int64)
    if dtype in FLOATS or dtype in INTEGERS or dtype == "e8m0":
        return table(dtype)[codes].astype(np.float64)
    if dtype == "bf16":
        codes = (codes.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return codes.astype(np.float64)


def narrow(values, dtype):
    """float64 to codes: rounded once, to nearest, ties to even."""
    if dtype in FLOATS or dtype in INTEGERS:
        return codes_of(np.asarray(values), dtype).astype(np.uint8)
    if dtype != "bf16":
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(TYPES[dtype][1])
    # bf16: 8 significant bits, the least exponent of a quantum -133.
    finite = np.where(np.isfinite(values), values, 0)
    exponent = np.maximum(np.frexp(finite)[1] - 8, -133)
    whole = np.rint(np.ldexp(finite, -exponent))
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.ldexp(whole, exponent).astype(np.float32)
    rounded = np.where(np.isfinite(values), rounded, values.astype("f4"))
    codes = (rounded.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
    return np.where(np.isnan(values), np.uint16(0x7FC0), codes)


class Tensor:
    """The memory of an argument, gaps between rows included, and a view."""

    def __init__(self, entry, arrays):
        self.dtype = entry["dtype"]
        if self.dtype not in TYPES:
            raise Unknown(f"element type {self.dtype}")
        self.shape = tuple(entry["shape"])
        file_type, code_type = TYPES[self.dtype]
        self.memory = None
        if "key" not in entry:
            return
        stored, shape, data = arrays[entry["key"]]
        if stored != file_type:
            raise Unknown(f"{entry['key']} is {stored}, not {file_type}")
        self.memory = np.frombuffer(data, code_type).copy()
        self.strides = entry.get("stride")
        if self.strides is None and list(self.shape) != list(shape):
            raise Unknown(f"{entry['key']} has shape {shape}")

    def view(self, memory=None):
        """Codes in the tensor's shape; writing to them writes the memory."""
        memory = self.memory if memory is None else memory
        if self.strides is None:
            return memory.reshape(self.shape)
        strides = [s * memory.itemsize for s in self.strides]
        return np.lib.stride_tricks.as_strided(memory, self.shape, strides)

    def strides_of(self, axis):
        """Elements from one index of an axis to the next."""
        if self.strides is not None:
            return self.strides[axis]
        return int(np.prod(self.shape[axis + 1 :], dtype=np.int64))

    def values(self):
        return widen(self.view(), self.dtype)


class Case:
    """One stored case."""

    def __init__(self, entry, arrays):
        self.id = entry["id"]
        self.problem = entry["problem"]
        self.limits = entry.get("limits", {})
        self.op = self.problem["op"]
        self.flags = set(self.problem.get("flags", []))
        self.tensors = {}
        for name, tensor in entry["tensors"].items():
            if "alias" not in tensor:
                self.tensors[name] = Tensor(tensor, arrays)
        for name, tensor in entry["tensors"].items():
            if "alias" in tensor:
                self.tensors[name] = self.tensors[tensor["alias"]]
        self.expected = {}
        for name, how in entry["expected"].items():
            _, shape, data = arrays[how["key"]]
            kind = how["compare"]
            if kind in ("budget", "bits", "sums", "choice"):
                value = np.frombuffer(data, "<f8").reshape(shape)
            elif kind == "bytes":
                code_type = TYPES[self.tensors[name].dtype][1]
                value = np.frombuffer(data, code_type)
            else:
                raise Unknown(f"compare: {kind}")
            self.expected[name] = (kind, value)

    def size(self, name, default=0):
        return self.problem.get(name, default)

    def values(self, name):
        return self.tensors[name].values()

    def has(self, name):
        return name in self.tensors


def read_vectors(path):
    """(stored cases, {kind: count of the others}) of one JSON file."""
    path = Path(path)
    description = json.loads(path.read_text(encoding="utf-8"))
    if description["format"] != "mla-vectors" or description["version"] != 1:
        raise Unknown("not mla-vectors, version 1")
    arrays = {}
    if "tensors" in description:
        arrays = read_safetensors(path.parent / description["tensors"])
    cases, others = [], {}
    for entry in description["cases"]:
        kind = entry["kind"]
        if kind == "stored":
            cases.append(Case(entry, arrays))
        elif kind in ("seeded", "invalid"):
            others[kind] = others.get(kind, 0) + 1
        else:
            raise Unknown(f"a case of kind {kind}")
    return cases, others
