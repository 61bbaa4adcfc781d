"""Writers and copies of docs/spec.md, sections 3.1 to 3.3, to the bit.

Each function returns {output: memory after the call}, gaps included.
"""

import numpy as np

from cache_formats import FORMATS, Layout, entries, pieces, write_entry
from vector_file import narrow, widen


def convert(codes, from_dtype, to_dtype):
    """One rounding; the very codes when the types agree."""
    if from_dtype == to_dtype:
        return codes
    return narrow(widen(codes, from_dtype), to_dtype)


def write_scaled(case):
    """The tokens of a call into entries of a format with scales."""
    cache = case.tensors["cache"]
    memory = cache.memory.copy()
    latent = case.problem["kv_lora_rank"]
    size = case.problem["block_size"]
    layout = Layout(case, latent + case.size("qk_rope_head_dim"))
    kv_c, k_pe = case.tensors["kv_c"], case.tensors.get("k_pe")
    pow2 = layout.scale == "e8m0" or "scale_pow2" in case.flags
    for row, slot in enumerate(case.values("slot_mapping")):
        if slot < 0:
            continue
        x, rest = widen(kv_c.view()[row], kv_c.dtype), []
        if k_pe is not None:
            rope = k_pe.view()[row]
            x = np.concatenate([x, widen(rope, k_pe.dtype)])[: layout.codes]
        if layout.codes < layout.width:
            rest = convert(rope, k_pe.dtype, "bf16")
        parts = pieces(layout, cache, memory, slot // size, slot % size)
        with np.errstate(over="ignore"):
            x = x.astype(np.float32)
        write_entry(case, *parts, layout, x, rest, pow2)
    return {"cache": memory}


def kv_write(case):
    if case.problem["cache_format"] in FORMATS:
        return write_scaled(case)
    cache = case.tensors["cache"]
    memory = cache.memory.copy()
    entries = cache.view(memory)
    latent = case.problem["kv_lora_rank"]
    size = case.problem["block_size"]
    kv_c, k_pe = case.tensors["kv_c"], case.tensors.get("k_pe")
    for row, slot in enumerate(case.values("slot_mapping")):
        if slot < 0:
            continue
        entry = entries[slot // size, slot % size]
        entry[:latent] = convert(kv_c.view()[row], kv_c.dtype, cache.dtype)
        if k_pe is not None:
            entry[latent:] = convert(k_pe.view()[row], k_pe.dtype, cache.dtype)
    return {"cache": memory}


def kv_read(case):
    dst, cache = case.tensors["dst"], case.tensors["cache"]
    memory = dst.memory.copy()
    rows = dst.view(memory)
    table, ends = case.values("block_table"), case.values("cu_seq_lens")
    starts = np.zeros(len(table), np.int64)
    if case.has("seq_starts"):
        starts = case.values("seq_starts")
    size = case.problem["block_size"]
    for b, start in enumerate(starts):
        for i in range(ends[b + 1] - ends[b]):
            j = start + i
            place = (table[b, j // size], j % size)
            if case.problem["cache_format"] in FORMATS:
                (entry,) = entries(case, "cache", [place], dst.dtype)
                rows[ends[b] + i] = narrow(entry, dst.dtype)
                continue
            entry = cache.view()[place]
            rows[ends[b] + i] = convert(entry, cache.dtype, dst.dtype)
    return {"dst": memory}


def kv_copy(case):
    cache, source = case.tensors["cache"], case.tensors["src_cache"]
    memory = cache.memory if source is cache else cache.memory.copy()
    memory = memory.copy()
    blocks = cache.view(memory)
    # Within one cache a block written by one row may not be another's source.
    before = blocks if source is cache else source.view()
    for s, d in case.values("block_mapping"):
        blocks[d] = before[s]
    return {"cache": memory}


WRITERS = {"kv_write": kv_write, "kv_read": kv_read, "kv_copy": kv_copy}
