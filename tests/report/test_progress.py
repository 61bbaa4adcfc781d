"""Progress and colour, on a terminal that is a pseudo-terminal.

    test_progress.py MLACHECK

Exit status: 0 as it should be, 1 not, 77 no pseudo-terminal here.
"""

import os
import re
import subprocess
import sys

try:
    import pty
except ImportError:
    print("skipped: no pseudo-terminals here")
    sys.exit(77)

CASES = [f"merge:f32:n{n},h3,s2" for n in range(1, 12)]
WORDS = ["run", "--backend", "ref", "--case", *CASES]
BAR = re.compile(rb"\r\x1b\[K\[([#-]{20})\] +(\d+)/(\d+)")


def run(mlacheck, out_too, environment):
    """stdout and what went to the terminal."""
    master, slave = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    env.update(environment)
    child = subprocess.Popen([mlacheck, *WORDS], stderr=slave, env=env,
                             stdout=slave if out_too else subprocess.PIPE)
    os.close(slave)
    seen = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    out = child.stdout.read() if child.stdout else b""
    code = child.wait()
    os.close(master)
    return code, out, seen


def main(mlacheck):
    faults = []
    plain = subprocess.run([mlacheck, *WORDS], capture_output=True,
                           check=True)
    if plain.stderr:
        faults.append("progress without a terminal")
    code, out, seen = run(mlacheck, False, {})
    bars = BAR.findall(seen)
    if code or not bars:
        faults.append("no progress bar on a terminal")
    counts = [int(done) for _, done, _ in bars]
    if counts != sorted(counts) or len({n for _, _, n in bars}) != 1:
        faults.append("counts do not grow")
    full = [bar.count(b"#") for bar, _, _ in bars]
    if full != sorted(full) or full and full[0] != 0:
        faults.append("the bar does not grow")
    if not seen.endswith(b"\r\x1b[K"):
        faults.append("the bar stays behind")
    if out != plain.stdout:
        faults.append("the text is another when stderr is a terminal")
    if max((len(line) for line in re.split(rb"\r\x1b\[K", seen)),
           default=0) > 79:
        faults.append("a line of progress is wider than a terminal")
    _, _, both = run(mlacheck, True, {})
    if b"\x1b[32mPASS\x1b[0m" not in both:
        faults.append("no colour on a terminal")
    _, _, grey = run(mlacheck, True, {"NO_COLOR": "1"})
    if b"\x1b[3" in grey:
        faults.append("colour in spite of NO_COLOR")
    print("\n".join(faults) if faults else "all as it should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
