#!/usr/bin/env python3
"""The reference's error budgets against numpy's (docs/spec.md, section 4).

    crosscheck_budget.py DUMP_BUDGET

Runs the program dump_budget, draws the inputs of its cases by itself, and
compares answers and budgets: every budget to 1e-9 of itself.
Exit status: 0 all agree, 1 not, 2 usage.
"""

import subprocess
import sys

import numpy as np

from bell import bell
from numpy_budget import (
    Arithmetic,
    MergeRow,
    Row,
    logit_budget,
    product_budget,
)
from vector_file import narrow, widen

MOST_KEYS = 65536  # keys of request b are numbered from b * this
AGREEMENT = 1e-9


def draw(name, seed, shape, dtype, offset=0.0, amplitude=1.0):
    x = offset + amplitude * bell(name, seed, np.arange(np.prod(shape)))
    return widen(narrow(x, dtype), dtype).reshape(shape)


class Case:
    def __init__(self, words):
        self.op = words[0]
        self.text = dict(word.split("=", 1) for word in words[1:])
        self.dtype = self.text["dtype"]
        self.seed = int(self.text["seed"])
        self.values = {}
        self.budgets = []  # (arithmetic, output, numbers)

    def integer(self, key):
        return int(self.text.get(key, 0))

    def real(self, key):
        return float.fromhex(self.text[key])

    def draw(self, name, shape, **how):
        return draw(name, self.seed, shape, self.dtype, **how)


def parse(text):
    """Cases of dump_budget's output."""
    cases, arithmetic = [], None
    for line in text.splitlines():
        word, *rest = line.split()
        if word == "case":
            cases.append(Case(rest))
        elif word == "numerics":
            numbers = [float.fromhex(x) for x in rest[:3]]
            arithmetic = Arithmetic(*numbers, rest[3] != "0")
        elif word == "values":
            numbers = np.array([float.fromhex(x) for x in rest[1:]])
            cases[-1].values[rest[0]] = numbers
        else:
            numbers = np.array([float.fromhex(x) for x in rest])
            cases[-1].budgets.append((arithmetic, word, numbers))
    return cases


def cached_keys(case, request, n):
    """Keys of a request's cache, drawn as tests/digest/fixed_case.h says."""
    width = case.integer("width") or (
        case.integer("latent") + case.integer("rope")
    )
    row = np.arange(n)
    if case.integer("repeat"):
        row = row % 8
    index = (request * MOST_KEYS + row)[:, None] * width + np.arange(width)
    x = case.real("kv") * bell("cache", case.seed, index)
    return widen(narrow(x, case.dtype), case.dtype)


class DecodeKeys:
    def __init__(self, case):
        self.case = case
        self.width = case.integer("latent") + case.integer("rope")

    def row(self, request, _head, _first, n, q, options):
        k = cached_keys(self.case, request, n)
        return Row(q, k, k[:, : self.case.integer("latent")], **options)


class PrefillKeys:
    def __init__(self, case):
        latent, value = case.integer("latent"), case.integer("value")
        nope, heads = case.integer("nope"), case.integer("heads")
        tokens = sum(map(int, case.text["queries"].split(",")))
        rope, kv = case.integer("rope"), case.real("kv")
        shape = (heads, nope + value, latent)
        self.w = case.draw("kv_b_proj", shape, amplitude=case.real("w"))
        self.c = case.draw("kv_c", (tokens, latent), amplitude=kv)
        self.pe = case.draw("k_pe", (tokens, rope), amplitude=kv)
        self.nope, self.width = nope, nope + rope
        self.dtype = case.dtype

    def row(self, _request, head, first, n, q, options):
        c, pe = self.c[first : first + n], self.pe[first : first + n]
        w_k, w_v = self.w[head, : self.nope], self.w[head, self.nope :]
        row = Row(q, np.concatenate([c @ w_k.T, pe], 1), c @ w_v.T, **options)
        row.up_project(self.nope, c, w_k, w_v, self.dtype)
        return row


def attention_rows(case):
    """Row of every token and head, in order; None where no key is seen."""
    keys = (DecodeKeys if case.op == "decode" else PrefillKeys)(case)
    queries = list(map(int, case.text["queries"].split(",")))
    lengths = list(map(int, case.text["lengths"].split(",")))
    heads = case.integer("heads")
    shape = (sum(queries), heads, keys.width)
    q = case.draw("q", shape, amplitude=case.real("q"))
    sinks = draw("sink", case.seed, heads, "f32", offset=0.5)
    first = 0
    for request, (count, seq) in enumerate(zip(queries, lengths)):
        for t in range(count):
            for h in range(heads):
                options = {"scale": case.real("scale"), "cap": case.real("cap")}
                if case.integer("sink"):
                    options["sink"] = sinks[h]
                n, at = seq - count + t + 1, q[first + t, h]
                yield keys.row(request, h, first, n, at, options) if n > 0 else None
        first += count


def merge_rows(case):
    base = np.log(2) if case.integer("base2") else 1.0
    parts = case.draw("parts", (6, 5, 2, 7))
    lses = draw("part_lses", case.seed, (6, 5, 2), "f32", 9, 1.25)
    for t in range(5):
        for h in range(2):
            yield MergeRow(parts[:, t, h], lses[:, t, h] * base)


def of_rows(case, rows, value, number):
    """A number for every element; 0 (lse: -infinity) without keys."""
    width = len(case.values["out"]) // len(case.values["lse"])
    empty = {"out": np.zeros(width), "lse": -np.inf}
    return np.concatenate(
        [
            np.atleast_1d(number(row) if row else empty[value])
            for row in rows
        ]
    )


def check(what, got, mine, room):
    """Worst difference as a fraction of the room."""
    if got.shape != mine.shape:
        raise AssertionError(f"{what}: {got.size} numbers, not {mine.size}")
    finite = np.isfinite(mine)
    if (got[~finite] != mine[~finite]).any():
        raise AssertionError(f"{what}: infinities differ")
    room = np.broadcast_to(room, mine.shape)[finite]
    off = abs(got[finite] - mine[finite]) / room
    if not (off <= 1).all():
        raise AssertionError(f"{what}: off by {np.nanmax(off):.3g} of the room")
    return off.max(initial=0)


def check_rows(case, rows):
    base = np.log(2) if case.integer("base2") else 1.0
    values = {"out": lambda r: r.out, "lse": lambda r: r.lse / base}
    for name, number in values.items():
        mine = of_rows(case, rows, name, number)
        size = 1e-12 * (1 + abs(np.nan_to_num(mine, neginf=0)))
        check(f"values {name}", case.values[name], mine, size)
    worst = 0
    for u, name, got in case.budgets:
        budget = {
            "out": lambda r: r.out_budget(u, case.dtype),
            "lse": lambda r: r.lse_budget(u, case.integer("base2")),
        }[name]
        mine = of_rows(case, rows, name, budget)
        mine = np.where(np.isneginf(mine), 0, mine)  # no keys: no error
        room = AGREEMENT * np.where(mine > 0, mine, 1e-300)
        worst = max(worst, check(f"budget of {name}", got, mine, room))
    return worst


def check_product(case):
    a = case.draw("a", (5, 67))
    b = case.draw("b", (9, 67), offset=0.25)
    worst = 0
    for u, _, got in case.budgets:
        y, mine = product_budget(a, b, u, case.dtype)
        check("values out", case.values["out"], y.ravel(), 1e-11)
        mine = mine.ravel()
        worst = max(worst, check("budget of out", got, mine, AGREEMENT * mine))
    return worst


def logit_rows(case, u):
    """(logits, budgets) of every token, -infinity and 0 where not seen."""
    queries = list(map(int, case.text["queries"].split(",")))
    lengths = list(map(int, case.text["lengths"].split(",")))
    heads, width = case.integer("heads"), case.integer("width")
    tokens, room = sum(queries), max(lengths) + 1
    q = case.draw("q", (tokens, heads, width), amplitude=case.real("q"))
    w = draw("index_weights", case.seed, (tokens, heads), "f32", offset=0.1)
    first = 0
    for request, (count, seq) in enumerate(zip(queries, lengths)):
        for t in range(count):
            y, x = np.full(room, -np.inf), np.zeros(room)
            n = max(seq - count + t + 1, 0)
            k = cached_keys(case, request, n)
            y[:n], x[:n] = logit_budget(q[first + t], k, w[first + t], u)
            yield y, x
        first += count


def check_index(case):
    worst = 0
    for u, name, got in case.budgets:
        rows = list(logit_rows(case, u))
        logits = np.concatenate([y for y, _ in rows])
        if name == "positions":
            check_choices(case, [y for y, _ in rows])
            continue
        size = 1e-12 * (1 + abs(np.nan_to_num(logits, neginf=0)))
        check("values logits", case.values["logits"], logits, size)
        mine = np.concatenate([x for _, x in rows])
        room = AGREEMENT * np.where(mine > 0, mine, 1e-300)
        worst = max(worst, check("budget of logits", got, mine, room))
    return worst


def check_choices(case, rows):
    topk = case.integer("topk")
    mine = np.full((len(rows), topk), -1.0)
    for at, logits in enumerate(rows):
        order = np.argsort(-logits, kind="stable")
        chosen = [j for j in order[:topk] if np.isfinite(logits[j])]
        mine[at, : len(chosen)] = chosen
    check("positions", case.values["positions"], mine.ravel(), 0.5)


def check_case(case):
    if case.op == "index":
        return check_index(case)
    if case.op in ("decode", "prefill"):
        return check_rows(case, list(attention_rows(case)))
    if case.op == "merge":
        return check_rows(case, list(merge_rows(case)))
    if case.op == "matmul":
        return check_product(case)
    raise AssertionError(f"unknown operation {case.op}")


def main(program):
    text = subprocess.run(program, check=True, capture_output=True, text=True)
    cases = parse(text.stdout)
    failures, worst, numbers = 0, 0.0, 0
    for case in cases:
        try:
            worst = max(worst, check_case(case))
            numbers += sum(len(got) for _, _, got in case.budgets)
        except AssertionError as error:
            print(f"FAIL  {case.op} {case.text}: {error}")
            failures += 1
    print(
        f"{len(cases)} cases, {numbers} budgets, largest difference "
        f"{worst * AGREEMENT:.2g} of the budget; {failures} failures"
    )
    return 0 if numbers and not failures else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
