#!/usr/bin/env python3
"""Batch building, ranks and compositions, by numpy.

    crosscheck_steps.py PROGRAM...

PROGRAM is dump_steps, with an emulator before it if need be. Every array of a
step is made anew from the requests, element by element from docs/spec.md;
compositions are compared with the one operation they stand for. Exit status: 0
all agree, 1 not, 2 usage.
"""

import subprocess
import sys

import numpy as np

LONG = np.longdouble
# Of the largest value in a row: partial results pass through this type, and
# up-projected keys through that of the queries.
ROOM = {"f64": 1e-13, "f32": 1e-5, "bf16": 0.03}


def value(text):
    try:
        return int(text)
    except ValueError:
        return float.fromhex(text) if text != "nan" else float("nan")


def records(text):
    """(kind, {name: values}); "step X" begins names "X.name"."""
    kind, data, prefix = None, {}, ""
    for line in text.splitlines():
        name, *words = line.split()
        if name == "record":
            kind, data, prefix = words[0], {}, ""
        elif name == "end":
            yield kind, data
        elif name == "step":
            prefix = words[0] + "."
        elif name == "dtype":
            data[name] = words[0]
        elif name == "case":
            data.setdefault(name, []).append([int(w) for w in words])
        else:
            data[prefix + name] = [value(w) for w in words]


# ----------------------------------------------------------------- batches


class Request:
    def __init__(self, index, context, rows, ids, tokens, sources):
        self.index, self.context, self.rows = index, context, rows
        self.ids, self.tokens, self.sources = ids, tokens, sources


def expected_step(requests, size, width, pad_requests, pad_tokens):
    step = {name: [] for name in (
        "positions", "slot_mapping", "seq_lens", "block_table", "order",
        "sources", "token_ids")}
    starts = [0]
    for r in requests:
        for t in range(r.rows):
            j = r.context + t
            step["positions"].append(j)
            step["slot_mapping"].append(r.ids[j // size] * size + j % size)
        step["sources"] += r.sources
        step["token_ids"] += r.tokens
        step["seq_lens"].append(r.context + r.rows)
        step["block_table"] += r.ids + [0] * (width - len(r.ids))
        step["order"].append(r.index)
        starts.append(starts[-1] + r.rows)
    for _ in range(pad_requests - len(requests)):
        starts.append(starts[-1])
        step["seq_lens"].append(0)
        step["block_table"] += [0] * width
        step["order"].append(-1)
    filler = {"positions": 0, "slot_mapping": -1, "sources": -1, "token_ids": 0}
    for name, x in filler.items():
        step[name] += [x] * (pad_tokens - starts[-1])
    step["query_start_loc"] = starts
    return step


def requests_of(d):
    requests, first = [], 0
    for b, (context, rows) in enumerate(zip(d["context"], d["rows"])):
        ids = d["ids"][d["starts"][b] : d["starts"][b + 1]]
        sources = list(range(first, first + rows))
        tokens = [d["tokens"][s] for s in sources]
        requests.append(Request(b, context, rows, ids, tokens, sources))
        first += rows
    most = d["threshold"][0]
    if most:
        requests.sort(key=lambda r: r.rows > most)  # stable
    return requests


def advanced(requests, d):
    following, first = [], 0
    for p in range(d["next"][0]):
        r, rows = requests[p], d["next_rows"][p]
        sources = list(range(first, first + rows))
        tokens = d["tokens"][first : first + rows]
        following.append(
            Request(r.index, r.context + d["kept"][p], rows, r.ids, tokens,
                    sources)
        )
        first += rows
    return following


def same_step(d, which, step):
    for name, x in step.items():
        if d[f"{which}.{name}"] != x:
            raise AssertionError(f"{which} step: {name}")
    return sum(len(x) for x in step.values())


def check_ranks(d, requests, size, width, tokens):
    ranks, interleave, count = 3, 2, 0
    for rank in range(ranks):
        slots, lens, table = [], [], []
        for r in requests:
            owned = [
                j for j in range(r.context + r.rows)
                if j // interleave % ranks == rank
            ]
            row = r.ids + [0] * (width - len(r.ids))
            for j in range(r.context, r.context + r.rows):
                lens.append(sum(k <= j for k in owned))
                local = owned.index(j) if j in owned else -1
                slots.append(
                    -1 if local < 0 else row[local // size] * size + local % size
                )
                table += row
        rest = tokens - len(lens)
        got = [d[f"rank{rank}.{n}"] for n in ("slots", "lens", "table")]
        mine = [slots + [-1] * rest, lens + [0] * rest,
                table + [0] * (rest * width)]
        if got != mine:
            raise AssertionError(f"rank {rank}")
        count += sum(map(len, mine))
    return count


def check_batch(d):
    size, width = d["block_size"][0], d["width"][0]
    pads = d["pad_requests"][0], d["pad_tokens"][0]
    requests = requests_of(d)
    count = same_step(d, "first", expected_step(requests, size, width, *pads))
    count += check_ranks(d, requests, size, width, pads[1])
    if d["threshold"][0]:
        few = sum(r.rows <= d["threshold"][0] for r in requests)
        if d["first.decodes"] != [few]:
            raise AssertionError("decodes")
    following = advanced(requests, d)
    return count + same_step(
        d, "second", expected_step(following, size, width, *pads)
    )


def check_splits(d):
    for n, units, got in d["case"]:
        parts = 1
        while parts * 512 < n:
            parts *= 2
        if got != min(parts, 2 * units):
            raise AssertionError(f"splits of {n} keys on {units} units: {got}")
    return len(d["case"])


# ------------------------------------------------------------- compositions


def array(d, name):
    return np.array(d[name], LONG).reshape([int(n) for n in d[f"shape_{name}"]])


def cached(d, request, n):
    cache, page = array(d, "cache"), d["page"][0]
    table = np.array(d["block_table"]).reshape(
        [int(x) for x in d["shape_block_table"]]
    )
    rows = [cache[table[request, j // page], j % page] for j in range(n)]
    return np.array(rows, LONG).reshape(n, cache.shape[2])


def keys_of_decode(d, request, length, rows):
    k = cached(d, request, length)
    return lambda head: (k, k[:, : d["latent"][0]])


def keys_of_prefill(d, request, length, rows):
    """Up-projected: rounded nowhere."""
    latent, nope = d["latent"][0], d["nope"][0]
    weight = array(d, "kv_b_proj")
    first = d["query_start_loc"][request]
    new = slice(first, first + rows)
    fresh = np.hstack([array(d, "kv_c")[new], array(d, "k_pe")[new]])
    entries = np.vstack([cached(d, request, length - rows), fresh])
    heads = array(d, "q").shape[1]

    def head_of(head):
        w = weight.reshape(heads, -1, latent)[head]
        up = entries[:, :latent] @ w.T
        return np.hstack([up[:, :nope], entries[:, latent:]]), up[:, nope:]

    return head_of


def attend(d, q, k, v, sink):
    if len(k) == 0:
        return np.zeros(v.shape[1]), -np.inf
    s = LONG(d["scale"][0]) * (k @ q)
    top = s.max() if sink is None else max(s.max(), sink)
    p = np.exp(s - top)
    total = p.sum()
    below = total if sink is None else total + np.exp(sink - top)
    lse = top + np.log(total)
    return (p @ v) / below, lse / np.log(LONG(2)) if d["base2"][0] else lse


def check_composed(d):
    q, out, lse = array(d, "q"), array(d, "out"), array(d, "lse")
    keys_of = keys_of_prefill if "kv_b_proj" in d else keys_of_decode
    sink = array(d, "sink") if "sink" in d else None
    starts, room, count = d["query_start_loc"], ROOM[d["dtype"]], 0
    for b, length in enumerate(d["seq_lens"]):
        rows = starts[b + 1] - starts[b]
        heads = keys_of(d, b, length, rows) if rows else None
        for t in range(rows):
            n = length - rows + t + 1 if d["causal"][0] else length
            for h in range(q.shape[1]):
                k, v = heads(h)
                n = max(n, 0)
                mine, mine_lse = attend(
                    d, q[starts[b] + t, h], k[:n], v[:n],
                    None if sink is None else sink[h],
                )
                got, got_lse = out[starts[b] + t, h], lse[starts[b] + t, h]
                far = abs(got - mine).max() > room * (abs(v).max() if n else 0)
                if n == 0:
                    far = far or got_lse != -np.inf
                else:
                    far = far or abs(got_lse - mine_lse) > room * (
                        1 + abs(mine_lse)
                    )
                if far:
                    raise AssertionError(f"request {b}, row {t}, head {h}")
                count += v.shape[1] + 1
    return count


def main(program):
    text = subprocess.run(
        program, stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    seen, failures = {}, 0
    for kind, d in records(text):
        check = {"batch": check_batch, "splits": check_splits}.get(
            kind, check_composed
        )
        try:
            seen[kind] = seen.get(kind, 0) + check(d)
        except AssertionError as error:
            print(f"FAIL  {kind}: {error}")
            failures += 1
    for kind, count in seen.items():
        print(f"{kind:14} {count} values agree")
    if len(seen) < 8:
        print(f"FAIL  only {len(seen)} kinds of records")
        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
