"""Holds the README's table of what is supported to what the tool says.

    check_support.py MLACHECK README.md

Each cell of a column whose backend finds a device here must be what `mlacheck
info --matrix` prints, and ref and cpu must have a column; columns of backends
that find no device are left alone. With --write as a third argument the
table is rewritten instead, those columns kept. Exit status: 0 it holds, 1 not.
"""

import subprocess
import sys

BEGIN = "<!-- by mlacheck info --matrix -->\n"
END = "<!-- end of the table -->\n"


def parse(lines):
    rows = [[c.strip() for c in line.strip().strip("|").split("|")]
            for line in lines if line.startswith("|")]
    head, body = rows[0], rows[2:]
    return head[1:], {row[0]: dict(zip(head[1:], row[1:])) for row in body}


def block_of(text):
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit("the README has no place for the table")
    begin = text.index(BEGIN) + len(BEGIN)
    return begin, text.index(END)


def merged(now, backends, old, old_backends):
    columns = backends + [b for b in old_backends if b not in backends]
    out = ["| operation | " + " | ".join(columns) + " |",
           "| --- |" + " --- |" * len(columns)]
    for name, cells in now.items():
        kept = old.get(name, {})
        row = [cells.get(b, kept.get(b, "-")) for b in columns]
        out.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(out) + "\n"


def main(argv):
    said = subprocess.run([argv[1], "info", "--matrix"], check=True,
                          capture_output=True, text=True).stdout
    backends, now = parse(said.splitlines())
    with open(argv[2], encoding="utf-8") as file:
        text = file.read()
    begin, end = block_of(text)
    lines = text[begin:end].splitlines()
    old_backends, old = parse(lines) if lines else ([], {})
    if argv[3:] == ["--write"]:
        table = merged(now, backends, old, old_backends)
        with open(argv[2], "w", encoding="utf-8") as file:
            file.write(text[:begin] + table + text[end:])
        return 0
    faults = [f"{b} has no column" for b in ("ref", "cpu")
              if b in backends and b not in old_backends]
    if list(now) != list(old):
        faults.append("the rows are not the tool's")
    for name, cells in now.items():
        for b, cell in cells.items():
            if b in old_backends and old.get(name, {}).get(b) != cell:
                faults.append(f"{name}, {b}: the tool says {cell}, the README "
                              f"{old.get(name, {}).get(b)}")
    if not {"ref"} <= set(backends):
        faults.append("the reference is not in the table")
    print("\n".join(faults) if faults else
          f"{len(now)} rows of {', '.join(backends)} agree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
