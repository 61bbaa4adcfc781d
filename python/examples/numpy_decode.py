"""Decode in numpy, judged: python3 numpy_decode.py [PATTERN...]

Written to be read: a request and a query row at a time.
"""

import sys

import numpy as np

import mlacheck


def keys_and_values(case, request, count):
    """k[kv_heads, count, D], v[kv_heads, count, Dv] of a request's pages."""
    page = case.problem["block_size"]
    position = np.arange(count)
    block = case["block_table"][request][position // page]
    width = case.size("v_dim")
    k = cached(case, "cache", block, position % page)
    if "separate_v" in case.flags:
        v = cached(case, "v_cache", block, position % page)
        return k.swapaxes(0, 1), v.swapaxes(0, 1)
    return k[None], k[None, :, :width]


def cached(case, name, block, offset):
    """Only the entries that are used: all others hold poison."""
    entries = case[name][block, offset]
    return mlacheck.to_float(np.ascontiguousarray(entries), case.dtype(name))


def attend(q, k, v, scale, cap, sink):
    """One row: out[H, Dv] and the natural lse[H]."""
    heads, groups = len(q), len(q) // len(k)
    k, v = np.repeat(k, groups, 0), np.repeat(v, groups, 0)
    if k.shape[1] == 0:
        return np.zeros((heads, v.shape[2])), np.full(heads, -np.inf)
    score = np.einsum("hd,hnd->hn", q, k) * scale
    if cap:
        score = cap * np.tanh(score / cap)
    largest = score.max(1)
    p = np.exp(score - largest[:, None])
    lse = largest + np.log(p.sum(1))
    out = np.einsum("hn,hnd->hd", p, v) / p.sum(1)[:, None]
    if sink is not None:
        out = out / (1 + np.exp(np.minimum(sink - lse, 80)))[:, None]
    return out, lse


def decode(case):
    if "cache" in case and case.dtype("cache") not in ("f64", "f32", "f16", "bf16"):
        raise mlacheck.Unsupported("cache_format: plain ones only")
    if "block_table" not in case:
        raise mlacheck.Unsupported("flags: no lists of slots")
    q, lens, starts = case.float("q"), case["seq_lens"], case["query_start_loc"]
    sink = case.float("sink") if "sink" in case else None
    scale = q.dtype.type(case.problem["scale"])
    cap = case.problem.get("logits_soft_cap", 0)
    out = np.zeros(case.shape("out"), q.dtype)
    lse = np.zeros(out.shape[:2], q.dtype)
    for request, length in enumerate(lens):
        first, end = starts[request], starts[request + 1]
        k, v = keys_and_values(case, request, length)
        for row in range(first, end):
            seen = length
            if "causal" in case.flags:
                seen = max(length - (end - first) + (row - first) + 1, 0)
            seen_k, seen_v = k[:, :seen], v[:, :seen]
            out[row], lse[row] = attend(q[row], seen_k, seen_v, scale, cap, sink)
    if "lse_base2" in case.flags:
        lse = lse / np.log(lse.dtype.type(2))
    return {"out": out, "lse": lse}


if __name__ == "__main__":
    verdict = mlacheck.judge(decode, op=sys.argv[1:] or "decode")
    print(verdict)
    sys.exit(verdict.exit_code)
