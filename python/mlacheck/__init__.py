"""Judge a Python function for multi-head latent attention with mlacheck.

    import mlacheck
    verdict = mlacheck.judge(my_decode, op="decode")
    assert verdict, verdict

my_decode(case) gets a Case and returns {"out": ..., "lse": ...}.
"""

from .batch import Batch
from .case import Case, Unsupported
from .floats import from_float, to_float
from .judge import Verdict, judge
from .tensors import load, save

__all__ = [
    "Batch",
    "Case",
    "Unsupported",
    "Verdict",
    "from_float",
    "judge",
    "load",
    "save",
    "to_float",
]
__version__ = "0.1.0"
