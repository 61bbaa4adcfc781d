#!/usr/bin/env python3
"""The golden batches, made anew from what is given in them.

    crosscheck_batches.py FILE

Every array of every step is computed from the requests alone, by docs/spec.md,
and must be the file's; then each array is spoilt in one place, case by case,
and that must be found. Exit status: 0 all agree, 1 not, 2 usage.
"""

import copy
import json
import sys

from crosscheck_steps import Request, expected_step


def first_requests(given):
    requests, first = [], 0
    for b, (context, rows) in enumerate(
        zip(given["context_lens"], given["query_lens"])
    ):
        sources = list(range(first, first + rows))
        tokens = [given["token_ids"][s] for s in sources]
        requests.append(
            Request(b, context, rows, list(given["block_ids"][b]), tokens, sources)
        )
        first += rows
    most = given["decode_threshold"]
    if most:
        requests.sort(key=lambda r: r.rows > most)  # stable
    return requests


def following(requests, turn):
    after, first = [], 0
    for place, (kept, rows) in enumerate(zip(turn["kept"], turn["query_lens"])):
        r = requests[place]
        sources = list(range(first, first + rows))
        tokens = turn["token_ids"][first : first + rows]
        ids = r.ids + turn["block_ids"][place]
        after.append(
            Request(r.index, r.context + kept, rows, ids, tokens, sources)
        )
        first += rows
    return after


def splits_of(given, length):
    if given["batch_invariant"]:
        return 1
    parts = 1
    while parts * 512 < length:
        parts *= 2
    return min(parts, 2 * given["compute_units"])


def ranks_of(given, requests, rows):
    """Slots and lengths, a list for each rank: by counting positions."""
    slots, lens = [], []
    ranks, interleave, size = (
        given[n] for n in ("ranks", "interleave", "block_size")
    )
    for rank in range(ranks):
        mine, seen = [], []
        for r in requests:
            length = r.context + r.rows
            owned = [
                j for j in range(length) if j // interleave % ranks == rank
            ]
            for j in range(r.context, length):
                limit = j + 1 if given["causal"] else length
                seen.append(sum(k < limit for k in owned))
                local = owned.index(j) if j in owned else -1
                mine.append(
                    -1
                    if local < 0
                    else r.ids[local // size] * size + local % size
                )
        rest = rows - len(mine)
        slots += mine + [-1] * rest
        lens += seen + [0] * rest
    return slots, lens


def arrays_of(given, requests):
    pads = given["pad_requests"], given["pad_tokens"]
    step = expected_step(
        requests, given["block_size"], given["table_width"], *pads
    )
    step["row_sources"] = step.pop("sources")
    rows = len(step["positions"])
    visible = [
        r.context + t + 1 if given["causal"] else r.context + r.rows
        for r in requests
        for t in range(r.rows)
    ]
    step["row_lens"] = visible + [0] * (rows - len(visible))
    few = 0
    while few < len(requests) and requests[few].rows <= given["decode_threshold"]:
        few += 1
    step["decodes"] = [few, sum(r.rows for r in requests[:few])]
    longest = max([r.context + r.rows for r in requests], default=0)
    step["splits"] = [
        splits_of(given, longest),
        splits_of(given, given["table_width"] * given["block_size"]),
    ]
    if given["ranks"]:
        step["rank_slots"], step["rank_lens"] = ranks_of(given, requests, rows)
    return step


def check(case):
    """How many values agree; AssertionError names the first array that does
    not."""
    given, count = case["given"], 0
    requests = first_requests(given)
    if len(case["expected"]) != 1 + len(case["next"]):
        raise AssertionError("number of steps")
    for number, stored in enumerate(case["expected"]):
        if number:
            requests = following(requests, case["next"][number - 1])
        mine = arrays_of(given, requests)
        if stored.keys() != mine.keys():
            raise AssertionError(f"step {number}: names of arrays")
        for name, values in mine.items():
            if stored[name] != values:
                raise AssertionError(f"step {number}: {name}")
            count += len(values)
    if not (mine["splits"][0] <= mine["splits"][1]):
        raise AssertionError("a step takes more splits than are reserved")
    return count


def spoilt(case):
    """The case with one array wrong in one place, for each array it has."""
    for name, values in case["expected"][-1].items():
        if values:
            wrong = copy.deepcopy(case)
            wrong["expected"][-1][name][len(values) // 2] += 1
            yield name, wrong


def main(path):
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    values = found = failures = 0
    for case in cases:
        try:
            values += check(case)
        except (AssertionError, IndexError, KeyError) as error:
            print(f"FAIL  {case['id']}: {error!r}")
            failures += 1
            continue
        for name, wrong in spoilt(case):
            try:
                check(wrong)
                print(f"FAIL  {case['id']}: a wrong {name} passes")
                failures += 1
            except AssertionError:
                found += 1
    print(f"{len(cases)} batches, {values} values agree; {found} spoilt arrays "
          f"found, {failures} failures")
    return 0 if values and found and not failures else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))
