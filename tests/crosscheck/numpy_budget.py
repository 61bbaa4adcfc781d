"""The error budget of docs/spec.md, section 4, in numpy.

Written from that page. It also holds what the page leaves to
docs/tolerance.md: a sink has a weight that rounds, and may be the largest
score; a soft cap scales r by its slope; an lse in base 2 has one
more rounding to its stored type; a part of a merge has r = 1 + |lse| + |lse -
largest|, and one term.
"""

import numpy as np

ROUNDOFF = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
ETA = {"f32": 2.0**-150, "f16": 2.0**-25, "bf16": 2.0**-134}
LAMBDA, MU = 6.0, 3.0
NORMAL = 2.0**-126
SMALLEST = {"f64": 0.0, "f32": NORMAL, "f16": 2.0**-14, "bf16": NORMAL}


def underflow(terms, u):
    """Partial sums that are subnormal in f32."""
    return (LAMBDA * np.sqrt(terms) + terms / 8) * u.acc * NORMAL


class Arithmetic:
    def __init__(self, acc, p, mid, rounded_denominator):
        self.acc, self.p, self.mid = acc, p, mid
        self.rounded_denominator = rounded_denominator


class Row:
    """One row: keys k[n,d], values v[n,w], and how they score."""

    def __init__(self, q, k, v, scale, cap=0.0, sink=None):
        self.v, self.n, self.depth = v, len(k), k.shape[1]
        products = q * k
        s = scale * products.sum(1)
        slope = np.full(self.n, scale)
        if cap:
            t = np.tanh(s / cap)
            s, slope = cap * t, scale * (1 - t * t)
        self.slope, self.q, self.k = slope, q, k
        self.softmax(s, sink)
        self.r = slope * np.sqrt((products**2).sum(1)) + abs(s)
        self.up = None

    def softmax(self, s, sink):
        self.s, self.m = s, s.max()
        self.e = np.exp(s - self.m)
        total = self.e.sum()
        self.lse = self.m + np.log(total)
        self.p = self.e / total
        self.keep, self.sink, self.rise = 1.0, 0.0, 0.0
        if sink is not None:
            self.keep = 1 / (1 + np.exp(sink - self.lse))
            self.sink = (1 - self.keep) * (1 + abs(sink) + abs(sink - self.lse))
            self.rise = max(0.0, sink - self.m)
        self.out = self.keep * (self.p @ self.v)
        bins = np.floor((self.m - s) * 2**9)
        self.bin = np.unique(bins, return_inverse=True)[1].reshape(-1)

    def up_project(self, nope, c, w_k, w_v, dtype):
        """c[n,l]; the rows of W that made the first `nope` of k, and v."""
        self.tiny = SMALLEST[dtype]
        latent = c.shape[1]
        k = self.k[:, :nope]
        q2 = self.q[:nope] ** 2
        r1 = self.slope * np.sqrt((q2 * k**2).sum(1))
        kappa = (c**2) @ (w_k**2).T
        r2 = self.slope * np.sqrt(latent) * np.sqrt((q2 * kappa).sum(1))
        nu = np.sqrt(latent) * np.sqrt((c**2) @ (w_v**2).T)
        self.up = (r1, r2, nu)

    def norm(self, x):
        """||x|| over the keys, x[n] or x[n,w]."""
        sums = np.zeros((self.bin.max() + 1,) + x.shape[1:])
        np.add.at(sums, self.bin, x)
        return np.sqrt((x**2).sum(0) + (sums**2).sum(0))

    def out_budget(self, u, dtype):
        p, v, out = self.keep * self.p, self.v, abs(self.out)
        pv = p[:, None] * v
        a = self.norm(pv)
        b = self.norm(pv * self.r[:, None])
        c = self.norm(p * self.r)
        f = abs(((p * self.s)[:, None] * (v - self.out)).sum(0))
        m = abs(pv).sum(0)
        x = LAMBDA * u.acc * np.sqrt(self.depth) * (b + out * c)
        x += self.depth / 8 * u.acc * f + MU * u.p * a
        x += 2 * u.acc * np.sqrt(self.n) * (m + out)
        x += LAMBDA * u.acc * (out * self.sink + self.rise * a)
        if 0 < self.keep < 1:
            x += u.acc / ROUNDOFF["f32"] * NORMAL * m / self.keep
        x += (u.p + ROUNDOFF[dtype] + 4 * u.acc) * out + ETA[dtype]
        x += underflow(self.n, u)
        normal = SMALLEST["f16"] if u.p == ROUNDOFF["f16"] else NORMAL
        light = abs(v[self.e < 2.0**-14]).sum(0)
        x += u.p * normal * self.keep / self.e.sum() * light
        if self.up:
            r1, r2, nu = self.up
            x += MU * u.mid * (self.norm(pv * r1[:, None]) + a)
            x += MU * u.mid * self.tiny
            x += MU * u.mid * out * self.norm(p * r1)
            x += LAMBDA * u.acc * self.norm(pv * r2[:, None])
            x += LAMBDA * u.acc * out * self.norm(p * r2)
            x += LAMBDA * u.acc * self.norm(p[:, None] * nu)
        return x

    def lse_budget(self, u, base2):
        p = self.p
        x = LAMBDA * u.acc * np.sqrt(self.depth) * self.norm(p * self.r)
        x += self.depth / 8 * u.acc * abs((p * self.s).sum())
        x += 2 * u.acc * np.sqrt(self.n)
        x += 4 * u.acc * (1 + abs(self.lse) + abs(self.m))
        if self.up:
            x += MU * u.mid * self.norm(p * self.up[0])
            x += LAMBDA * u.acc * self.norm(p * self.up[1])
        if u.rounded_denominator:
            x += u.p
        stored, lse = ROUNDOFF["f32"], abs(self.lse)
        if base2:
            x, lse = x / np.log(2), lse / np.log(2)
        if base2 or stored > u.acc:
            x += stored * lse + ETA["f32"]
        return x


class MergeRow(Row):
    """Parts are keys, their log-sum-exps (natural) scores."""

    def __init__(self, values, lses):
        self.v, self.n, self.depth = values, len(lses), 1
        self.softmax(lses, None)
        self.r = 1 + abs(lses) + abs(lses - self.m)
        self.up = None


def logit_budget(q, k, w, u):
    """index: q[h,d], keys k[n,d], weights w[h]: logits and budgets [n]."""
    heads, width = q.shape
    products = q[:, None, :] * k[None, :, :]
    s = products.sum(2)
    squares = (products**2).sum(2)
    counts = s > -6 * 2.0**-24 * np.sqrt(width * squares)
    size = w[:, None] * np.maximum(s, 0)
    y = size.sum(0)
    t = np.sqrt((counts * w[:, None] ** 2 * squares).sum(0))
    x = LAMBDA * u.acc * np.sqrt(width) * t
    x += LAMBDA * u.acc * np.sqrt(heads) * np.sqrt((size**2).sum(0))
    x += (width + heads) / 8 * u.acc * abs(y)
    x += (ROUNDOFF["f32"] + 4 * u.acc) * abs(y) + ETA["f32"]
    x += underflow(heads, u) + abs(w).sum() * underflow(width, u)
    return y, x


def product_budget(a, b, u, dtype):
    """y[m,n] = sum_k a[m,k] b[n,k]: values and budgets."""
    depth = a.shape[1]
    y = a @ b.T
    x = 6 * u.acc * np.sqrt(depth) * np.sqrt((a**2) @ (b**2).T)
    x += depth / 8 * u.acc * abs(y) + (ROUNDOFF[dtype] + 4 * u.acc) * abs(y)
    return y, x + ETA[dtype] + underflow(depth, u)
