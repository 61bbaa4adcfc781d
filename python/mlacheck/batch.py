"""A case of batch building: requests, and the steps that follow."""

import json
import os

import numpy as np


class Batch:
    """
    batch.op, batch.id, batch.seed   "batch"; its name; its seed
    batch.given["query_lens"]        of the first step: golden/FORMAT.md, "A
                                     file of batches", has all members
    batch.next[0]["kept"]            of each step that follows in place
    """

    op = "batch"
    ARRAYS = (
        "positions", "slot_mapping", "query_start_loc", "seq_lens",
        "block_table", "row_lens", "order", "row_sources", "token_ids",
        "decodes", "splits", "rank_slots", "rank_lens",
    )

    def __init__(self, folder, entry):
        self.name, self.id, self.seed = entry["name"], entry["id"], entry["seed"]
        self.given, self.next = entry["given"], entry["next"]
        self._path = os.path.join(folder, self.name + ".out.json")

    def __repr__(self):
        return f"<mlacheck.Batch {self.id} seed {self.seed}>"

    def save(self, answer):
        """A list of dicts of arrays, one a step; or (list, leaves_out)."""
        steps, leaves_out = answer if isinstance(answer, tuple) else (answer, {})
        written = [
            {name: _integers(name, step[name]) for name in step}
            for step in steps
        ]
        self._write({"steps": written, "leaves_out": leaves_out})

    def refuse(self, reason):
        self._write({"unsupported": reason})

    def _write(self, value):
        with open(self._path, "w", encoding="utf-8") as file:
            json.dump(value, file)


def _integers(name, value):
    if name not in Batch.ARRAYS:
        raise ValueError(f"{name} is no array of a step: {Batch.ARRAYS}")
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    array = np.asarray(value)
    if array.size and array.dtype.kind not in "iub":
        raise TypeError(f"{name} is {array.dtype}; integers are asked for")
    return [int(x) for x in array.reshape(-1)]
