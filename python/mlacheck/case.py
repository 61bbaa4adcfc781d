"""One case: its problem, its inputs, and the outputs that are asked for."""

import os

import numpy as np

from .floats import NUMPY, from_float, to_float
from .tensors import load


class Unsupported(Exception):
    """Raised by a function that cannot serve a case; says why."""


class Case:
    """
    case.op, case.id, case.flags     "decode"; its name; {"causal", ...}
    case["q"]                        an input as it is stored: bf16 and fp8 are
                                     integers that hold the bits
    case.float("q")                  its values in float32 (float64 if f64)
    case.torch("q")                  a Torch tensor of its own type
    case.dtype("q")                  "bf16"
    case.problem["scale"]            members of mla_problem that are not 0
    case.size("head_dim")            a size, defaults filled in; else 0
    case.outputs                     ("out", "lse")
    case.shape("out")                (2, 16, 512)
    """

    def __init__(self, folder, entry):
        self.name, self.id, self.seed = entry["name"], entry["id"], entry["seed"]
        self.problem, self.limits = entry["problem"], entry["limits"]
        self.op = self.problem["op"]
        self.flags = frozenset(self.problem.get("flags", ()))
        self.outputs = tuple(entry["outputs"])
        self._sizes, self._tensors = entry["sizes"], entry["tensors"]
        self._path = os.path.join(folder, self.name + ".safetensors")
        self._inputs = None

    def __repr__(self):
        return f"<mlacheck.Case {self.id} seed {self.seed}>"

    def __contains__(self, name):
        return name in self._tensors

    def __getitem__(self, name):
        entry = self._tensors[name]
        if "alias" in entry:
            return self[entry["alias"]]
        if self._inputs is None:
            self._inputs = load(self._path)[0]
        flat = self._inputs[entry["key"]].view(NUMPY[entry["dtype"]])
        if "stride" not in entry:
            return flat.reshape(entry["shape"])
        steps = [s * flat.itemsize for s in entry["stride"]]
        view = np.lib.stride_tricks.as_strided
        return view(flat, entry["shape"], steps, writeable=False)

    def float(self, name):
        return to_float(np.ascontiguousarray(self[name]), self.dtype(name))

    def torch(self, name, device="cpu"):
        import torch

        types = {
            "bf16": (torch.int16, torch.bfloat16),
            "fp8_e4m3": (torch.uint8, getattr(torch, "float8_e4m3fn", None)),
            "fp8_e5m2": (torch.uint8, getattr(torch, "float8_e5m2", None)),
        }
        array = np.array(self[name])
        stored, real = types.get(self.dtype(name), (None, None))
        if stored is torch.int16:
            array = array.view(np.int16)
        tensor = torch.from_numpy(array)
        return (tensor.view(real) if real else tensor).to(device)

    def dtype(self, name):
        return self._tensors[name]["dtype"]

    def shape(self, name):
        return tuple(self._tensors[name]["shape"])

    def size(self, name):
        return self._sizes.get(name, self.problem.get(name, 0))

    def stored(self, name, value):
        """What a function returned for an output, as bits of its type."""
        dtype, value = self.dtype(name), _to_numpy(value)
        bits = np.dtype(NUMPY[dtype])
        if value.dtype.kind == "f" and value.dtype != bits:
            value = from_float(value, dtype)
        if value.dtype != bits:
            raise TypeError(
                f"{name} is {value.dtype}; {dtype} is asked for: floating-point "
                f"numbers, or {bits} that hold its bits"
            )
        if value.shape != self.shape(name):
            raise ValueError(
                f"{name} has shape {value.shape}, not {self.shape(name)}"
            )
        return value


def _to_numpy(value):
    """An array from numpy, JAX (bf16 by way of its bits) or Torch."""
    if hasattr(value, "detach"):
        import torch

        value = value.detach().cpu().contiguous()
        if value.dtype == torch.bfloat16:
            return value.view(torch.int16).numpy().view(np.uint16)
        if str(value.dtype).startswith("torch.float8"):
            return value.view(torch.uint8).numpy()
        return value.numpy()
    value = np.asarray(value)
    if value.dtype.name == "bfloat16":
        return value.view(np.uint16)
    return value.view(np.uint8) if value.dtype.name.startswith("float8") else value
