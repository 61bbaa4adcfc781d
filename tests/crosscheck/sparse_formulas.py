"""Sparse attention of docs/spec.md, sections 3.6 and 3.9, in numpy."""

import numpy as np

from cache_formats import FORMATS, entries

LONG = np.longdouble
SMALL = 4e-15


class Choice:
    """What the k largest are chosen from: logits and how sure they are."""

    def __init__(self, topk):
        self.topk = topk
        self.rows = {}  # token: (logits, room), of the positions it sees

    def best(self, token):
        """Positions, the largest first, of equal ones the lowest."""
        logits, _ = self.rows[token]
        return np.argsort(-logits, kind="stable")[: self.topk]


def keys_at(case, name, places):
    """Entries [n, width] of (block, offset) places in a cache."""
    if not places:
        width = case.tensors["q"].shape[2]
        return np.zeros((0, width))
    if case.problem["cache_format"] in FORMATS:
        places = [(int(b), int(o), None) for b, o in places]
        return np.array(entries(case, name, places, case.problem["q_dtype"]))
    blocks, offsets = np.array(places).T
    return case.values(name)[blocks, offsets]


def listed(case, token, prefix=""):
    """Keys that one of a token's lists names."""
    slots = case.values(prefix + "indices")[token]
    length = prefix + "topk_len"
    if case.has(length):
        slots = slots[: case.values(length)[token]]
    blocks, size, _ = case.tensors[prefix + "cache"].shape
    slots = slots[(slots >= 0) & (slots < blocks * size)]
    places = [(slot // size, slot % size) for slot in slots]
    return keys_at(case, prefix + "cache", places)


def tokens_of(case):
    """(token, request, positions it sees) of every row."""
    starts = case.values("query_start_loc")
    for b in range(len(starts) - 1):
        count = int(starts[b + 1] - starts[b])
        seq = int(case.values("seq_lens")[b]) if case.has("seq_lens") else 0
        for t in range(count):
            yield int(starts[b]) + t, b, max(seq - count + t + 1, 0)


def index(case):
    q = case.values("q").astype(LONG)
    w = case.values("index_weights").astype(LONG)
    table, size = case.values("block_table"), case.problem["block_size"]
    choice = Choice(case.problem["topk"])
    room_for = case.tensors["logits"].shape[1] if case.has("logits") else 0
    logits = np.full((len(q), room_for), np.nan)
    rooms = np.zeros(logits.shape)
    for token, b, n in tokens_of(case):
        places = [(table[b, j // size], j % size) for j in range(n)]
        k = keys_at(case, "cache", places).astype(LONG)
        s = np.einsum("hd,nd->hn", q[token], k)
        y = (w[token][:, None] * np.maximum(s, 0)).sum(0)
        sizes = np.einsum("hd,nd->hn", abs(q[token]), abs(k))
        room = SMALL * (abs(w[token])[:, None] * sizes).sum(0)
        choice.rows[token] = (y, room)
        logits[token, : min(n, room_for)] = y[:room_for]
        logits[token, n:] = -np.inf
        rooms[token, : min(n, room_for)] = room[:room_for]
    results = {"positions": choice}
    if "return_logits" in case.flags:
        results["logits"] = (logits, rooms)
    return results


def map_indices(case):
    positions, table = case.values("positions"), case.values("block_table")
    size = case.problem["block_size"]
    slots = np.full(positions.shape, np.nan)
    for token, b, _ in tokens_of(case):
        for i, j in enumerate(positions[token]):
            slot = -1
            if 0 <= j < table.shape[1] * size and table[b, j // size] >= 0:
                slot = table[b, j // size] * size + j % size
            slots[token, i] = slot if slot < 2**31 else -1
    return {"indices": (slots, np.zeros(()))}
