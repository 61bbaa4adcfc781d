"""Healthy kernels, simulated, against the budget: the worst error / budget.

    python3 tests/crosscheck/simulate_kernels.py
        [attention|merge|product|chain|faults]

Accumulation in f32, to nearest or truncated, over data that makes roundings
agree: repeated tokens, few scores, common directions. Prints one line a kernel
for docs/tolerance.md; exits 1 if a kernel within the contract exceeds 1. The
part `chain` shows what is out of it, `faults` how far over 1 wrong kernels are
that make no other error.
"""

import sys

import numpy as np

from numpy_budget import ROUNDOFF, Arithmetic, MergeRow, Row, product_budget

U = 2.0**-24
LOG2E = float(np.float32(1.4426950408889634))
D, LATENT, SCALE = 576, 512, 0.1352


def nearest(x):
    return np.asarray(x, np.float64).astype(np.float32).astype(np.float64)


def truncated(x):
    y = np.asarray(x, np.float64).astype(np.float32)
    inward = np.nextafter(y, np.float32(0))
    return np.where(abs(y.astype(np.float64)) > abs(x), inward, y).astype(
        np.float64)


def to(x, dtype):
    if dtype == "f32":
        return nearest(x)
    if dtype == "f16":
        return np.asarray(x).astype(np.float16).astype(np.float64)
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def product(a, b, mode):
    """a[m,k] b[n,k] in f32: one FMA after another, or 16 terms at once."""
    step = 1 if mode == "sequential" else 16
    total = np.zeros((len(a), len(b)))
    for k in range(0, a.shape[1], step):
        exact = total + a[:, k:k + step] @ b[:, k:k + step].T
        total = truncated(exact) if mode == "truncated" else nearest(exact)
    return total


# ------------------------------------------------------------- attention


def attention_data(kind, heads, n, amplitude, dtype):
    g = np.random.default_rng(n)
    q = g.normal(size=(heads, D)) * amplitude
    k = g.normal(size=(n, D))
    rope = slice(LATENT, D)
    if kind == "offset":
        k[:, :LATENT] += 3
    elif kind in ("aligned", "opposed"):
        u = g.normal(size=D)
        q = 0.1 * q + amplitude * u
        k = 0.3 * k + (u if kind == "aligned" else -u)
    elif kind == "repeated":
        k = g.normal(size=(8, D))[g.integers(0, 8, n)]
    elif kind in ("equal", "four scores"):
        q[:, :LATENT] = 0
        q[:, rope] = amplitude
        k[:, rope] = 1
        if kind == "four scores":
            k[:, rope] += 0.03 * (np.arange(n) % 4)[:, None]
    elif kind == "opposite values":
        q[:, :LATENT] = 0
        q[:, rope] = amplitude
        even = (np.arange(n) % 2 == 0)[:, None]
        k[:, rope] = np.where(even, 1.0, 0.93)
        k[:, :LATENT] = np.where(even, 1, -1) * g.normal(size=LATENT)
    elif kind == "nearly one value":
        k[:, :LATENT] = 1 + 0.001 * k[:, :LATENT]
        q[:, :LATENT] *= 0.01
    return to(q, dtype), to(k, dtype)


def attention_part(s, v, p_type, mode, rounded):
    """One part of the keys: out, lse; the denominator in four chains."""
    m = s.max(1, keepdims=True)
    full = nearest(np.exp(nearest(s - m)))
    p = to(full, p_type)
    summed, lanes = p if rounded else full, np.zeros((len(s), 4))
    for j in range(s.shape[1]):
        lanes[:, j % 4] = nearest(lanes[:, j % 4] + summed[:, j])
    total = nearest(lanes.sum(1))
    out = nearest(product(p, v.T, mode) * nearest(1 / total)[:, None])
    return out, nearest(m[:, 0] + nearest(np.log(total)))


def attention_kernel(q, k, cap, p_type, out_type, mode, parts, rounded):
    s = nearest(product(q, k, mode) * float(np.float32(SCALE)))
    if cap:
        s = nearest(nearest(np.tanh(nearest(s / cap))) * cap)
    n, done = len(k), []
    each = -(-n // parts)
    for a in range(0, n, each):
        done.append(attention_part(s[:, a:a + each], k[a:a + each, :LATENT],
                                   p_type, mode, rounded))
    out, lse = merge_at_once(np.array([x[0] for x in done]),
                             np.array([x[1] for x in done]), False, "exp")
    return to(out, out_type), lse


ATTENTION = {
    "P bf16, out bf16, truncated": ("bf16", "bf16", "truncated", 1, False),
    "the same in 16 parts": ("bf16", "bf16", "truncated", 16, False),
    "the same, sum of rounded P": ("bf16", "bf16", "truncated", 1, True),
    "P f16, out f16, truncated": ("f16", "f16", "truncated", 1, False),
    "P f32, out bf16, nearest": ("f32", "bf16", "nearest", 1, False),
    "P f32, out f32, nearest": ("f32", "f32", "nearest", 1, False),
    "P f32, out f32, FMA after FMA": ("f32", "f32", "sequential", 1, False),
}
KINDS = ("normal", "offset", "aligned", "opposed", "repeated", "equal",
         "four scores", "opposite values", "nearly one value")


def attention(report):
    for name, (p, out, mode, parts, rounded) in ATTENTION.items():
        for cap in (0, 15):
            for kind in KINDS:
                for n in (1, 3, 65, 1024):
                    for amplitude in (0.1, 1, 3):
                        q, k = attention_data(kind, 2, n, amplitude,
                                              "f16" if p == "f16" else "bf16")
                        got = attention_kernel(q, k, cap, p, out, mode, parts,
                                               rounded)
                        u = Arithmetic(U, ROUNDOFF[p], U, rounded)
                        for h in range(2):
                            row = Row(q[h], k, k[:, :LATENT], SCALE, cap)
                            report(name + (", soft cap" if cap else ""), row,
                                   got[0][h], got[1][h], u, out, False,
                                   (kind, n, amplitude))


# ----------------------------------------------------------------- merge


def merge_at_once(parts, lses, base2, form):
    """All parts by their largest lse; lse in f32, as parts are."""
    m = lses.max(0)
    far = nearest(lses - m)
    if base2:
        w = nearest(np.exp2(far))
    elif form == "exp":
        w = nearest(np.exp(far))
    elif form == "fma":
        w = nearest(np.exp2(nearest(lses * LOG2E - nearest(m * LOG2E))))
    else:
        apart = nearest(lses * LOG2E) - nearest(m * LOG2E)
        w = nearest(np.exp2(nearest(apart)))
    total, out = np.zeros_like(m), np.zeros_like(parts[0])
    for weight, part in zip(w, parts):
        total = nearest(total + weight)
        out = nearest(out + weight[:, None] * part)
    log = nearest(np.log2(total) if base2 else np.log(total))
    return nearest(out * nearest(1 / total)[:, None]), nearest(m + log)


def merge_one_by_one(parts, lses, base2, _):
    """A running result takes part after part, its lse in f32 in between."""
    power, log = (np.exp2, np.log2) if base2 else (np.exp, np.log)
    out, lse = parts[0], lses[0]
    for part, other in zip(parts[1:], lses[1:]):
        m = np.maximum(lse, other)
        a = nearest(power(nearest(lse - m)))
        b = nearest(power(nearest(other - m)))
        total = nearest(a + b)
        out = nearest(nearest(out * nearest(a / total)[:, None]) +
                      part * nearest(b / total)[:, None])
        lse = nearest(m + nearest(log(total)))
    return out, lse


MERGES = {
    "merge, e^(lse - max)": (merge_at_once, "exp", 64),
    "merge, 2^(fma(lse, log2 e, -max log2 e))": (merge_at_once, "fma", 64),
    "merge, 2^(lse log2 e - max log2 e)": (merge_at_once, "apart", 64),
    "merge, part after part": (merge_one_by_one, None, 16),
}


def merge_data(count, spread, level, kind, rows=40, width=32):
    g = np.random.default_rng(count)
    parts = g.normal(size=(count, rows, width))
    if kind == "the same":
        parts[:] = parts[:1]
    if kind == "positive":
        parts = abs(parts) + 1
    lses = level + spread * g.normal(size=(count, rows))
    return nearest(parts), nearest(lses)


def merge(report, counts=(1, 2, 3, 16, 64), over=False):
    u = Arithmetic(U, U, U, False)
    for name, (kernel, form, most) in MERGES.items():
        for count in counts:
            if count > most and not over:
                continue
            for spread in (0, 1e-4, 0.3, 3, 30):
                for level in (0, 8, -40, 5000):
                    for kind in ("normal", "the same", "positive"):
                        for base2 in (False, True):
                            parts, lses = merge_data(count, spread, level, kind)
                            got = kernel(parts, lses, base2, form)
                            for r in range(parts.shape[1]):
                                row = MergeRow(parts[:, r],
                                               lses[:, r] * (np.log(2) if base2
                                                             else 1))
                                report(name, row, got[0][r], got[1][r], u,
                                       "f32", base2,
                                       (count, spread, level, kind))


# --------------------------------------------------------------- product


def product_data(kind, depth):
    g = np.random.default_rng(depth)
    a, b = g.normal(size=(24, depth)), g.normal(size=(48, depth))
    if kind == "positive":
        a, b = abs(a), abs(b)
    if kind == "offset":
        a = a + 3
    if kind == "aligned":
        b = 0.1 * b + a[:1]
    if kind == "repeated":
        a[:], b[:] = a[:, :1], b[:, :1]
    return to(a, "bf16"), to(b, "bf16")


def products(note, kinds=("normal", "positive", "offset", "aligned"),
             depths=(1, 8, 64, 128, 512, 1024, 7168)):
    u = Arithmetic(U, U, U, False)
    for mode in ("sequential", "nearest", "truncated"):
        for out in ("f32", "bf16"):
            for depth in depths:
                if mode == "sequential" and depth > 1024:
                    continue
                for kind in kinds:
                    a, b = product_data(kind, depth)
                    y, budget = product_budget(a, b, u, out)
                    error = abs(to(product(a, b, mode), out) - y)
                    note(f"product, {mode}, out {out}", error / budget, None,
                         (kind, depth))


def chain(note, lanes):
    """A denominator of equal or few addends, in one chain and in four."""
    g = np.random.default_rng(5)
    for n in (128, 256, 512, 1024):
        for distinct in (1, 4, n):
            few = np.exp(-g.random((2000, distinct)))
            p = nearest(few[:, np.arange(n) % distinct])
            sums = np.zeros((len(p), lanes))
            for j in range(n):
                sums[:, j % lanes] = nearest(sums[:, j % lanes] + p[:, j])
            error = abs(np.log(nearest(sums.sum(1))) - np.log(p.sum(1)))
            budget = 2 * U * np.sqrt(n) + 4 * U * (1 + np.log(p.sum(1)))
            values = "all different" if distinct == n else f"{distinct} values"
            note(f"sum of {n} P, {lanes} chains, {values}", None,
                 error / budget, n)


def faults(note):
    """Exact rows with one fault, P and out declared bf16, normal data."""
    u = Arithmetic(U, ROUNDOFF["bf16"], U, False)
    for n in (1024, 4096, 16384):
        q, k = attention_data("normal", 1, n, 0.1, "bf16")
        row = Row(q[0], k, k[:, :LATENT], SCALE)
        budgets = row.out_budget(u, "bf16"), row.lse_budget(u, False)
        order = np.argsort(row.p)
        for name, j in (("heaviest", order[-1]), ("median", order[n // 2])):
            p, v = row.p[j], k[j, :LATENT]
            for fault, sign in (("dropped", -1), ("doubled", 1)):
                out = (row.out + sign * p * v) / (1 + sign * p)
                note(f"{n} keys, the {name} {fault}",
                     abs(out - row.out) / budgets[0],
                     abs(np.log1p(sign * p)) / budgets[1], "normal")
        wrong = Row(q[0], k, k[:, :LATENT], SCALE * 1.01)
        note(f"{n} keys, scale 1 % high", abs(wrong.out - row.out) / budgets[0],
             abs(wrong.lse - row.lse) / budgets[1], "normal")


# ----------------------------------------------------------------- report


class Worst:
    def __init__(self):
        self.lines = {}

    def note(self, name, out, lse, where):
        line = self.lines.setdefault(name, {"out": (0, ""), "lse": (0, "")})
        for key, ratio in (("out", out), ("lse", lse)):
            if ratio is not None and np.max(ratio) > line[key][0]:
                line[key] = (float(np.max(ratio)), where)

    def row(self, name, row, out, lse, u, dtype, base2, where):
        value = row.lse / np.log(2) if base2 else row.lse
        self.note(name, abs(out - row.out) / row.out_budget(u, dtype),
                  abs(lse - value) / row.lse_budget(u, base2), where)

    def named(self, suffix):
        return lambda name, *x: self.row(f"{name}, {suffix}", *x)

    def print(self):
        for name, line in self.lines.items():
            shown = [f"{key} {ratio:.3f} at {where}"
                     for key, (ratio, where) in line.items() if ratio]
            print(f"{name:52}", "  ".join(shown))
        return max((x[0] for line in self.lines.values()
                    for x in line.values()), default=0)


def main(what):
    worst, out_of_contract = Worst(), Worst()
    if what in ("all", "attention"):
        attention(worst.row)
    if what in ("all", "merge"):
        merge(worst.row)
    if what in ("all", "product"):
        products(worst.note)
    if what in ("all", "chain"):
        for count in (32, 128, 512):
            merge(out_of_contract.named(f"{count} parts"), (count,), True)
        for depth in (512, 1024):
            products(lambda name, *x, of=depth: out_of_contract.note(
                f"{name}, {of} equal terms", *x), ("repeated",), (depth,))
        chain(out_of_contract.note, 1)
        chain(worst.note, 4)
    if what == "faults":
        faults(out_of_contract.note)
    largest = worst.print()
    if out_of_contract.lines:
        print("wrong, or out of contract:")
        out_of_contract.print()
    if what == "faults":
        shown = [max(x[0] for x in line.values()) > 1
                 for line in out_of_contract.lines.values()]
        return 0 if shown and all(shown) else 1
    return 0 if 0 < largest < 1 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "all"))
