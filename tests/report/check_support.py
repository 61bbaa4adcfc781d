"""Holds the README's table of what is supported to what the tool says.

    check_support.py MLACHECK README.md [COLUMN=PLUGIN.so]... [--write]

Each cell of a column whose backend finds a device here must be what `mlacheck
info --matrix` prints, and ref and cpu must have a column; columns of backends
that find no device are left alone. A column may be of several backends ("cuda,
hip"). A plugin speaks for a column: kernels for devices that are not here,
emulated. --write rewrites the table instead. Exit status: 0 it holds, 1 not.
"""

import subprocess
import sys

BEGIN = "<!-- by mlacheck info --matrix -->\n"
END = "<!-- end of the table -->\n"


def parse(lines):
    """Names of columns; for each row a cell by column."""
    rows = [[c.strip() for c in line.strip().strip("|").split("|")]
            for line in lines if line.startswith("|")]
    if not rows:
        return [], {}
    head = rows[0][1:]
    return head, {row[0]: dict(zip(head, row[1:])) for row in rows[2:]}


def ask(tool, *words):
    said = subprocess.run([tool, "info", "--matrix", *words], check=True,
                          capture_output=True, text=True).stdout
    return parse(said.splitlines())


def what_is_said(tool, plugins, columns):
    """The tool's cells by the README's columns, and those columns."""
    backends, now = ask(tool)
    order = []
    for backend in backends:
        column = next((c for c in columns if backend in c.split(", ")), backend)
        order.append(column)
        for cells in now.values():
            cells[column] = cells.pop(backend)
    for column, path in plugins:
        names, emulated = ask(tool, "--plugin", path)
        order.append(column)
        for row, cells in emulated.items():
            now[row][column] = cells[names[0]]
    return list(dict.fromkeys(order)), now


def written(order, now, old_columns, old):
    columns = order + [c for c in old_columns if c not in order]
    out = ["| operation | " + " | ".join(columns) + " |",
           "| --- |" + " --- |" * len(columns)]
    for name, cells in now.items():
        kept = old.get(name, {})
        row = [cells.get(c, kept.get(c, "-")) for c in columns]
        out.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(out) + "\n"


def main(tool, readme, *more):
    plugins = [word.split("=", 1) for word in more if word != "--write"]
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit("the README has no place for the table")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    columns, old = parse(text[begin:end].splitlines())
    order, now = what_is_said(tool, plugins,
                              columns + [c for c, _ in plugins])
    if "--write" in more:
        with open(readme, "w", encoding="utf-8") as file:
            file.write(text[:begin] + written(order, now, columns, old)
                       + text[end:])
        return 0
    faults = [f"{c} has no column" for c in ("ref", "cpu")
              if c in order and c not in columns]
    if list(now) != list(old):
        faults.append("the rows are not the tool's")
    for name, cells in now.items():
        for column, cell in cells.items():
            stands = old.get(name, {}).get(column)
            if column in columns and stands != cell:
                faults.append(f"{name}, {column}: the tool says {cell}, the "
                              f"README {stands}")
    if "ref" not in order:
        faults.append("the reference says nothing")
    print("\n".join(faults) if faults else
          f"{len(now)} rows agree: {'; '.join(order)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
