"""The operations of docs/spec.md, section 3, in numpy's longest float.

Written from the specification, not from the C: what both compute, they agree
on. Each function returns {output: (value, tolerance)}; tolerance 0 means
exactly. Tolerances are forty units of 2^-53 of what the sums were made of
(docs/reference.md): about 1e-14 of A_d for scores of a few units.
"""

import numpy as np

from cache_formats import FORMATS, entries
from sparse_formulas import index, listed, map_indices
from vector_file import Unknown

LONG = np.longdouble
SMALL = 4e-15

KNOWN_FLAGS = {
    "causal",
    "return_lse",
    "lse_base2",
    "has_sink",
    "separate_v",
    "context",
    "batch_invariant",
    "fused_q",
    "fused_o",
    "scale_pow2",
    "sparse",
    "extra_cache",
    "return_logits",
    "block_scaled",
}
PLAIN = {"f64", "f32", "f16", "bf16"}


def root_sum(x, axis=0):
    return np.sqrt((x * x).sum(axis))


class Keys:
    """What one head of one request may look at."""

    def __init__(self, k, v, wobble=None, nu=None):
        self.k, self.v = k.astype(LONG), v.astype(LONG)
        # Of up-projected keys: root sums of squares of their terms.
        self.wobble, self.nu = wobble, nu


def attention_row(case, q, keys, n, sink):
    """out, lse of a row that sees the first n keys, and tolerances."""
    width = keys.v.shape[1]
    if n <= 0:
        return np.zeros(width), -np.inf, np.zeros(width), 0.0
    k, v = keys.k[:n], keys.v[:n]
    scale = LONG(case.problem["scale"])
    products = k * q
    s = scale * products.sum(1)
    r = scale * root_sum(products, 1)
    if keys.wobble is not None:
        nope = keys.wobble.shape[1]
        r = r + scale * np.sqrt((keys.wobble[:n] ** 2 * q[:nope] ** 2).sum(1))
    cap = LONG(case.size("logits_soft_cap", 0))
    if cap > 0:
        s = cap * np.tanh(s / cap)
    r = r + abs(s)
    largest = s.max()
    e = np.exp(s - largest)
    total = e.sum()
    lse = largest + np.log(total)
    if sink is not None:
        total = total + np.exp(sink - largest)
    p = (e / total)[:, None]
    out = (p * v).sum(0)
    r = r[:, None] + abs(s - largest)[:, None] + 1
    c = root_sum(p * r)
    wide = root_sum(p * r * v) + abs(out) * c + (p * abs(v)).sum(0)
    if keys.nu is not None:
        wide = wide + root_sum(p * keys.nu[:n])
    long = root_sum((e / e.sum())[:, None] * r)[0] + abs(lse) + abs(largest)
    if "lse_base2" in case.flags:
        lse = lse / np.log(LONG(2))
        long = 2 * long
    return out, lse, SMALL * wide, SMALL * (5 * long)


def rows_of_requests(case):
    """(request, first row, query length, sequence length) of each."""
    starts = case.values("query_start_loc")
    lengths = case.values("seq_lens")
    for b, seq in enumerate(lengths):
        first = int(starts[b])
        yield b, first, int(starts[b + 1]) - first, int(seq)


def paged(case, name, request, n):
    """The first n entries of a request in a cache."""
    if case.problem["cache_format"] in FORMATS:
        return paged_scaled(case, name, request, n)
    cache = case.values(name)
    table = case.values("block_table")
    j = np.arange(n)
    size = case.problem["block_size"]
    blocks = table[request, j // size] if n else np.zeros(0, int)
    return cache[blocks, j % size]


def paged_scaled(case, name, request, n):
    """The same of a cache with scales: values rounded as a reader rounds."""
    table = case.values("block_table")
    size = case.problem["block_size"]
    shape = case.tensors[name].shape
    heads = [None] if len(shape) == 3 else range(shape[2])
    places = [
        (int(table[request, j // size]), j % size, head)
        for j in range(n)
        for head in heads
    ]
    rows = entries(case, name, places, case.problem["q_dtype"])
    width = len(rows[0]) if rows else 0
    lead = (n,) if heads == [None] else (n, len(heads))
    return np.array(rows, np.float64).reshape(*lead, width)


def scaled_weights(case, name):
    """Weights; those in e4m3 with a scale for each block of 128 x 128."""
    weights = case.values(name)
    if "block_scaled" not in case.flags:
        return weights
    scales = case.values(name.replace("_proj", "_scale"))
    scales = np.repeat(np.repeat(scales, 128, 0), 128, 1)
    return weights * scales[: weights.shape[0], : weights.shape[1]]


def attention(case, keys_of):
    """All rows, given keys_of(request, head, seq, queries, first row)."""
    q = case.values("q").astype(LONG)
    tokens, heads, _ = q.shape
    width = case.tensors["out"].shape[2]
    out = np.full((tokens, heads, width), np.nan)
    lse = np.full((tokens, heads), np.nan)
    out_room, lse_room = np.zeros(out.shape), np.zeros(lse.shape)
    sinks = case.values("sink").astype(LONG) if case.has("sink") else None
    for b, first, queries, seq in rows_of_requests(case):
        for h in range(heads):
            if not queries:
                continue
            keys = keys_of(b, h, seq, queries, first)
            sink = None if sinks is None else sinks[h]
            for t in range(queries):
                causal = "causal" in case.flags
                n = seq - queries + t + 1 if causal else seq
                at = (first + t, h)
                out[at], lse[at], out_room[at], lse_room[at] = attention_row(
                    case, q[at], keys, n, sink
                )
    results = {"out": (out, out_room)}
    if "return_lse" in case.flags:
        results["lse"] = (lse, lse_room)
    return results


def sparse_decode(case):
    """Every token attends to what its lists name."""
    q = case.values("q").astype(LONG)
    tokens, heads, _ = q.shape
    width = case.tensors["out"].shape[2]
    out, lse = np.zeros((tokens, heads, width)), np.zeros((tokens, heads))
    out_room, lse_room = np.zeros(out.shape), np.zeros(lse.shape)
    sinks = case.values("sink").astype(LONG) if case.has("sink") else None
    for t in range(tokens):
        k = listed(case, t)
        if "extra_cache" in case.flags:
            k = np.concatenate([k, listed(case, t, "extra_")])
        keys = Keys(k, k[:, :width])
        for h in range(heads):
            sink = None if sinks is None else sinks[h]
            at = (t, h)
            out[at], lse[at], out_room[at], lse_room[at] = attention_row(
                case, q[at], keys, len(k), sink
            )
    results = {"out": (out, out_room)}
    if "return_lse" in case.flags:
        results["lse"] = (lse, lse_room)
    return results


def decode(case):
    if "sparse" in case.flags:
        return sparse_decode(case)
    heads = case.problem["num_heads"]
    kv_heads = case.size("num_kv_heads", 1)
    value_width = case.tensors["out"].shape[2]

    def keys_of(request, head, seq, _queries, _first):
        k = paged(case, "cache", request, seq)
        if "separate_v" not in case.flags:
            return Keys(k, k[:, :value_width])
        kv = head // (heads // kv_heads)
        v = paged(case, "v_cache", request, seq)
        return Keys(k[:, kv], v[:, kv])

    return attention(case, keys_of)


def prefill(case):
    latent, nope = case.problem["kv_lora_rank"], case.problem["qk_nope_head_dim"]
    value = case.problem["v_head_dim"]
    heads = case.problem["num_heads"]
    weights = case.values("kv_b_proj").astype(LONG)
    weights = weights.reshape(heads, nope + value, latent)
    new_c, new_pe = case.values("kv_c"), case.values("k_pe")

    def keys_of(request, head, seq, queries, first):
        c, pe = new_c[first : first + queries], new_pe[first : first + queries]
        if "context" in case.flags:
            past = paged(case, "cache", request, seq - queries)
            c = np.concatenate([past[:, :latent], c])
            pe = np.concatenate([past[:, latent:], pe])
        c = c.astype(LONG)
        up = c @ weights[head].T
        wobble = np.sqrt((c * c) @ (weights[head] ** 2).T)
        k = np.concatenate([up[:, :nope], pe], axis=1)
        return Keys(k, up[:, nope:], wobble[:, :nope], wobble[:, nope:])

    return attention(case, keys_of)


def merge(case):
    parts = case.values("parts").astype(LONG)
    lses = case.values("part_lses").astype(LONG)
    base = np.log(LONG(2)) if "lse_base2" in case.flags else LONG(1)
    sinks = case.values("sink").astype(LONG) if case.has("sink") else None
    _, tokens, heads, width = parts.shape
    out, out_room = np.zeros((tokens, heads, width)), np.zeros(parts.shape[1:])
    lse, lse_room = np.zeros((tokens, heads)), np.zeros((tokens, heads))
    for t, h in np.ndindex(tokens, heads):
        live = ~np.isinf(lses[:, t, h])
        if not live.any():
            lse[t, h] = -np.inf
            continue
        x, o = lses[live, t, h] * base, parts[live, t, h]
        largest = x.max()
        e = np.exp(x - largest)
        total = largest + np.log(e.sum())
        gap = LONG(0)
        p = (e / e.sum())[:, None]
        if sinks is not None and not np.isneginf(sinks[h]):
            gap = abs(sinks[h] - total)
            p = p / (1 + np.exp(sinks[h] - total))
        out[t, h] = (p * o).sum(0)
        r = 1 + abs(x - largest)[:, None]
        wide = (p * r * abs(o)).sum(0) + abs(out[t, h]) * (1 + gap)
        out_room[t, h] = SMALL * wide
        lse[t, h] = total / base
        lse_room[t, h] = 3 * SMALL * (1 + abs(total))
    results = {"out": (out, out_room)}
    if "return_lse" in case.flags:
        results["lse"] = (lse, lse_room)
    return results


def product(spec, a, b):
    a, b = a.astype(LONG), b.astype(LONG)
    y = np.einsum(spec, a, b)
    return y, SMALL * np.einsum(spec, abs(a), abs(b))


def q_absorb(case):
    a, b = case.values("q_nope"), case.values("w_uk")
    return {"q_latent": product("nhp,hpl->nhl", a, b)}


def v_expand(case):
    a, b = case.values("o_latent"), case.values("w_uv")
    return {"out": product("nhl,hvl->nhv", a, b)}


def matmul(case):
    return {"out": product("mk,nk->mn", case.values("a"), case.values("b"))}


def absorb(case):
    heads, latent = case.problem["num_heads"], case.problem["kv_lora_rank"]
    nope, value = case.problem["qk_nope_head_dim"], case.problem["v_head_dim"]
    w = scaled_weights(case, "kv_b_proj")
    w = w.reshape(heads, nope + value, latent)
    w_uk, w_uv = w[:, :nope], w[:, nope:]
    exactly = np.zeros(())
    results = {"w_uk": (w_uk, exactly), "w_uv": (w_uv, exactly)}
    if "fused_q" in case.flags:
        rope = case.problem["qk_rope_head_dim"]
        q = scaled_weights(case, "q_b_proj").reshape(heads, nope + rope, -1)
        results["w_q_uk"] = product("hpi,hpl->ihl", q[:, :nope], w_uk)
        results["w_qr"] = (q[:, nope:].transpose(2, 0, 1), exactly)
    if "fused_o" in case.flags:
        o = scaled_weights(case, "o_proj")
        o = o.reshape(o.shape[0], heads, value)
        results["w_uv_o"] = product("ohv,hvl->hlo", o, w_uv)
    return results


FORMULAS = {
    "decode": decode,
    "prefill": prefill,
    "merge": merge,
    "absorb": absorb,
    "q_absorb": q_absorb,
    "v_expand": v_expand,
    "matmul": matmul,
    "index": index,
    "map_indices": map_indices,
}


def check_known(case):
    """Refuses what these formulas would silently ignore."""
    if case.flags - KNOWN_FLAGS:
        raise Unknown(f"flags {sorted(case.flags - KNOWN_FLAGS)}")
    if case.size("window"):
        raise Unknown("a sliding window")
    cache = case.problem.get("cache_format")
    if cache is not None and cache not in PLAIN | set(FORMATS):
        raise Unknown(f"cache format {cache}")
