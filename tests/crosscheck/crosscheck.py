#!/usr/bin/env python3
"""A second opinion on the golden vectors, in numpy alone.

    crosscheck.py PATH...

PATH is a vector file (.json) or a folder that is searched for them. Every
stored case is computed anew from docs/spec.md and compared with the answer
that is stored: numbers to about 1e-13 of A_d, caches bit for bit. Something
unknown in a file is a failure, and so is finding nothing to check.
Exit status: 0 all agree, 1 not, 2 usage.
"""

import json
import sys
from pathlib import Path

import numpy as np

from cache_bytes import WRITERS
from formulas import FORMULAS, check_known
from vector_file import Unknown, read_vectors, widen


class Tally:
    """What was seen of one operation."""

    def __init__(self):
        self.cases = self.values = 0
        self.worst = 0.0


def compare_numbers(name, stored, value, room):
    """(how many were compared, worst difference / tolerance)"""
    value = np.asarray(value, np.longdouble)
    room = np.broadcast_to(np.asarray(room, np.longdouble), value.shape)
    if stored.shape != value.shape:
        raise AssertionError(f"{name}: shape {stored.shape}, not {value.shape}")
    special = ~np.isfinite(value)
    same = (stored == value) | (np.isnan(stored) & np.isnan(value))
    if not same[special].all() or np.isinf(stored[~special]).any():
        raise AssertionError(f"{name}: NaN or infinity in other places")
    difference = abs(stored[~special] - value[~special])
    allowed = room[~special]
    if np.isnan(difference).any() or (difference > allowed).any():
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = np.nanmax(difference / allowed)
        count = int((~(difference <= allowed)).sum())
        raise AssertionError(
            f"{name}: {count} of {value.size} differ, {worst:.3g} times the "
            "tolerance"
        )
    ratio = difference[allowed > 0] / allowed[allowed > 0]
    return value.size, float(ratio.max(initial=0))


def compare_choice(name, stored, choice):
    """The reference's own: by rank, the lowest position of equal ones."""
    worst = 0.0
    for token, (logits, room) in choice.rows.items():
        got, best = stored[token], choice.best(token)
        if (got[len(best) :] != -1).any():
            raise AssertionError(f"{name}: row {token} has no -1 at its end")
        got = got[: len(best)].astype(int)
        if len(set(got)) < len(best) or not set(got) <= set(range(len(logits))):
            raise AssertionError(f"{name}: row {token} is no choice")
        apart = abs(logits[got] - logits[best])
        allowed = room[got] + room[best]
        other = got != best
        if (other & ((apart > allowed) | (apart == 0))).any():
            raise AssertionError(f"{name}: row {token} chooses otherwise")
        if other.any():
            worst = max(worst, float((apart[other] / allowed[other]).max()))
    rest = [t for t in range(len(stored)) if t not in choice.rows]
    if not np.isnan(stored[rest]).all():
        raise AssertionError(f"{name}: rows of no token have values")
    return stored.size, worst


def compare_memory(name, stored, memory, dtype):
    """Bit for bit; any NaN equals any NaN."""
    if stored.shape != memory.shape:
        raise AssertionError(f"{name}: {stored.size} elements of memory")
    nan = np.zeros(memory.shape, bool)
    if dtype not in ("i32", "i64"):
        nan = np.isnan(widen(stored, dtype)) & np.isnan(widen(memory, dtype))
    unsigned = f"<u{memory.itemsize}"
    differ = (stored.view(unsigned) != memory.view(unsigned)) & ~nan
    if differ.any():
        raise AssertionError(f"{name}: {int(differ.sum())} elements differ")
    return memory.size, 0.0


def results_of(case):
    """{output: (kind of comparison, its two sides)} by operation."""
    check_known(case)
    if case.op in FORMULAS:
        return FORMULAS[case.op](case)
    if case.op in WRITERS:
        return WRITERS[case.op](case)
    raise Unknown(f"operation {case.op}")


def check_case(case, tally):
    results = results_of(case)
    if set(results) != set(case.expected):
        raise AssertionError(
            f"outputs {sorted(case.expected)}, not {sorted(results)}"
        )
    for name, (kind, stored) in case.expected.items():
        if (kind == "bytes") != (case.op in WRITERS):
            raise Unknown(f"{name} of {case.op} compared by {kind}")
        if kind == "bytes":
            dtype = case.tensors[name].dtype
            count, worst = compare_memory(name, stored, results[name], dtype)
        elif kind == "choice":
            count, worst = compare_choice(name, stored, results[name])
        else:
            count, worst = compare_numbers(name, stored, *results[name])
        tally.values += count
        tally.worst = max(tally.worst, worst)
    tally.cases += 1


def is_vectors(path):
    description = json.loads(path.read_text(encoding="utf-8"))
    return description.get("format") == "mla-vectors"


def files_of(paths):
    for path in map(Path, paths):
        if path.is_dir():
            yield from filter(is_vectors, sorted(path.rglob("*.json")))
        else:
            yield path


def main(paths):
    tallies, others, failures = {}, {}, 0
    for path in files_of(paths):
        try:
            cases, more = read_vectors(path)
        except (Unknown, KeyError, ValueError, OSError) as error:
            print(f"FAIL  {path}: {error!r}")
            failures += 1
            continue
        for kind, count in more.items():
            others[kind] = others.get(kind, 0) + count
        for case in cases:
            tally = tallies.setdefault(case.op, Tally())
            try:
                check_case(case, tally)
            except (AssertionError, Unknown, KeyError) as error:
                print(f"FAIL  {path.name} {case.id}: {error}")
                failures += 1
    print(f"{'operation':<11} {'cases':>6} {'values':>9}  worst/tolerance")
    for op, tally in sorted(tallies.items()):
        print(f"{op:<11} {tally.cases:>6} {tally.values:>9}  {tally.worst:.3f}")
    for kind, count in sorted(others.items()):
        print(f"not stored, so not checked here: {count} {kind}")
    checked = sum(tally.cases for tally in tallies.values())
    print(f"{checked} cases agree, {failures} failures")
    return 0 if checked and not failures else 1


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    sys.exit(main(sys.argv[1:]))
