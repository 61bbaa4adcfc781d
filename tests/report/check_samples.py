"""Holds what pages show of the tool to what it prints.

    check_samples.py MLACHECK PAGE.md...

A sample is a block of indented lines that begins with

    $ mlacheck WORDS...

The others must stand in what that command prints, one below the other; a line
"..." stands for any. Where a page says "A failure looks like (`FAULT`", the
block behind it names a case, and the planted backend must be told the rest,
wherever the page breaks its lines. What a case is shrunk to follows the clock,
and is not compared. Exit status: 0 all do, 1 one does not, or
there is none.
"""

import re
import shlex
import subprocess
import sys

FAILURE = re.compile(r"^A failure looks like \(`([a-z0-9-]+)`.*\):\n\n"
                     r"    FAIL  (\S+).*\n((?:     .*\n)+)", re.M)
MARK = re.compile(r"^    \$ mlacheck (.*)$")


def samples(path):
    """The words of each command, and the lines that are shown."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for at, line in enumerate(lines):
        mark = MARK.match(line)
        if not mark:
            continue
        shown = []
        for below in lines[at + 1:]:
            if not below.startswith("    "):
                break
            shown.append(below[4:])
        yield mark.group(1), shown


def failures(path):
    """The words that ask for each, and what it is said to look like."""
    with open(path, encoding="utf-8") as file:
        for fault_name, case, said in FAILURE.findall(file.read()):
            yield (f"run --backend planted --options fault={fault_name} "
                   f"--case {case}", folded(said.split("smallest")[0]))


def timeless(lines):
    """Without what is shrunk: as far as 10 seconds go, on a busy machine too."""
    return [x for x in lines if not x.startswith(("  smallest", "  rerun"))]


def folded(text):
    return " ".join(text.split())


def stands(shown, printed):
    """Where the lines begin that stand one below the other, or None."""
    return next((i for i in range(len(printed) - len(shown) + 1)
                 if printed[i:i + len(shown)] == shown), None)


def printed_by(tool, words):
    return subprocess.run([tool, *shlex.split(words)], check=False,
                          capture_output=True, text=True).stdout


def fault(tool, words, shown):
    said = printed_by(tool, words)
    if isinstance(shown, str):
        return None if shown in folded(said) else \
            f"\"mlacheck {words}\" does not say\n{shown}\nbut\n{said}"
    said, shown = timeless(said.splitlines()), timeless(shown)
    while shown:
        cut = next((i for i, line in enumerate(shown)
                    if line.strip() == "..."), len(shown))
        at = stands(shown[:cut], said)
        if at is None:
            return f"\"mlacheck {words}\" does not print\n" + \
                "\n".join(shown[:cut]) + "\nbut\n" + "\n".join(said)
        said = said[at + cut:]
        shown = shown[cut + 1:]
    return None


def main(tool, *pages):
    asked = [(page, *sample) for page in pages
             for sample in [*samples(page), *failures(page)]]
    if not asked:
        sys.exit("the pages show nothing")
    wrong = [f"{page}: {what}" for page, words, shown in asked
             if (what := fault(tool, words, shown))]
    print("\n".join(wrong) if wrong else f"{len(asked)} samples agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
