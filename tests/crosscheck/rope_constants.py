#!/usr/bin/env python3
"""Prints tests/unit/rope_constants.h: what rotary tables should hold.

The formulas of docs/layer.md in decimal arithmetic of 60 digits, written
without a look at common/rope.c.

usage: python3 rope_constants.py > tests/unit/rope_constants.h
"""
from decimal import Decimal as D, getcontext, ROUND_FLOOR, ROUND_CEILING

getcontext().prec = 60
PI = D("3.14159265358979323846264338327950288419716939937510582097494459")

# name, theta, R, factor, beta_fast, beta_slow, mscale, mscale_all_dim,
# original length (factor None: plain)
TABLES = [
    ("plain", "10000", 64, None, 0, 0, 0, 0, 0),
    ("plain_small", "10000", 8, None, 0, 0, 0, 0, 0),
    ("plain_far", "10000000", 64, None, 0, 0, 0, 0, 0),
    ("yarn_v3", "10000", 64, "40", "32", "1", "1", "1", 4096),
    ("yarn_v2", "10000", 64, "40", "32", "1", "0.707", "0.707", 4096),
    ("yarn_short", "10000", 16, "40", "32", "1", "1", "1", 64),
    ("yarn_one_scale", "50000", 64, "32", "1", "1", "1", 0, 4096),
    ("yarn_apart", "1000000", 32, "16", "32", "1", "0.5", "1", 8192),
    ("yarn_half", "10000", 32, "0.5", "32", "1", "1", "1", 4096),
]
POSITIONS = [0, 1, 2011, 1 << 20]


def frequencies(theta, r, factor, fast, slow, original):
    theta = D(theta)
    plain = [(theta.ln() * D(-2 * i) / r).exp() for i in range(r // 2)]
    if factor is None:
        return plain

    def bound(beta):
        turns = (D(original) / (2 * PI * D(beta))).ln()
        return r * turns / (2 * theta.ln())

    low = max(bound(fast).to_integral_value(ROUND_FLOOR), D(0))
    high = min(bound(slow).to_integral_value(ROUND_CEILING), D(r - 1))
    width = max(high - low, D("0.001"))
    out = []
    for i, f in enumerate(plain):
        ramp = min(max((i - low) / width, D(0)), D(1))
        out.append(ramp * f / D(factor) + (1 - ramp) * f)
    return out


def magnitude(factor, x):
    return D(1) if D(factor) <= 1 else D("0.1") * D(x) * D(factor).ln() + 1


def scales(factor, mscale, all_dim):
    if factor is None:
        return D(1), D(1)
    if D(mscale) and D(all_dim):
        on_table = magnitude(factor, mscale) / magnitude(factor, all_dim)
    else:
        on_table = magnitude(factor, 1)
    on_softmax = magnitude(factor, all_dim) ** 2 if D(all_dim) else D(1)
    return on_table, on_softmax


def cosine(x):
    x = x - (x / (2 * PI)).to_integral_value() * 2 * PI
    term, total, k = D(1), D(1), 0
    while abs(term) > D("1e-50"):
        k += 2
        term = -term * x * x / (k * (k - 1))
        total += term
    return total


def sine(x):
    return cosine(x - PI / 2)


def real(x):
    return repr(float(x))


print("""/*
 * rope_constants.h - what rotary tables should hold; made by
 * tests/crosscheck/rope_constants.py.
 */
#ifndef MLA_ROPE_CONSTANTS_H
#define MLA_ROPE_CONSTANTS_H

#include "rope.h"

/* Of the first, a middle and the last pair. */
typedef struct rope_case {
  const char *name;
  mla_rope rope;
  double attention_factor, softmax_factor;
  int pair[3];
  double frequency[3];
  double cosine[4][3], sine[4][3]; /* [position][pair] */
} rope_case;
""")
print("static const int64_t rope_positions[4] = {%s};\n"
      % ", ".join(map(str, POSITIONS)))
print("static const rope_case rope_cases[] = {")
for name, theta, r, factor, fast, slow, mscale, all_dim, original in TABLES:
    f = frequencies(theta, r, factor, fast, slow, original)
    on_table, on_softmax = scales(factor, mscale, all_dim)
    pairs = [0, r // 4 + 1, r // 2 - 1]
    members = [".dim = %d" % r, ".theta = %s" % theta]
    if factor is not None:
        members += [".type = MLA_ROPE_YARN", ".factor = %s" % factor,
                    ".beta_fast = %s" % fast, ".beta_slow = %s" % slow,
                    ".mscale = %s" % mscale, ".mscale_all_dim = %s" % all_dim,
                    ".original_max_position = %d" % original]
    tables = []
    for function in (cosine, sine):
        rows = ["{" + ", ".join(real(on_table * function(p * f[i]))
                                for i in pairs) + "}" for p in POSITIONS]
        tables.append("{" + ", ".join(rows) + "}")
    print('{"%s", {%s}, %s, %s, {%s}, {%s}, %s, %s},' % (
        name, ", ".join(members), real(on_table), real(on_softmax),
        ", ".join(map(str, pairs)), ", ".join(real(f[i]) for i in pairs),
        *tables))
print("""};
#define ROPE_CASES ((int)(sizeof rope_cases / sizeof rope_cases[0]))

/* Query scaling: beta, original length, position, factor. */
static const struct {
  double beta;
  int64_t original, position;
  double factor;
} query_cases[] = {""")
for beta, original, position in [("0", 1, 5), ("0.1", 8192, 8191),
                                 ("0.1", 8192, 8192), ("0.1", 8192, 1 << 20),
                                 ("0.25", 4, 11)]:
    factor = 1 + D(beta) * (1 + D(position // original)).ln()
    print("{%s, %d, %d, %s}," % (beta, original, position, real(factor)))
print("""};
#define QUERY_CASES ((int)(sizeof query_cases / sizeof query_cases[0]))

#endif""")
