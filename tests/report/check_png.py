"""Looks at a screenshot, with Python's library alone.

    check_png.py FILE.png MIN_COLOURS [RRGGBB...]

Enough colours for a page that is not blank, and each of the named ones on at
least 100 pixels. Exit status: 0 so it is, 1 not.
"""

import collections
import struct
import sys
import zlib


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def unfilter(kind, line, above, step):
    if kind == 2:
        return bytearray((x + y) & 255 for x, y in zip(line, above))
    for i in range(len(line) if kind else 0):
        left = line[i - step] if i >= step else 0
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + above[i]) // 2
        else:
            guess = paeth(left, above[i], above[i - step] if i >= step else 0)
        line[i] = (line[i] + guess) & 255
    return line


def pixels(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, form = struct.unpack(">IIBB", body[:10])
        if kind == b"IDAT":
            packed += body
        at += 12 + size
    if depth != 8 or form not in (2, 6):
        raise ValueError(f"depth {depth}, form {form}")
    step = 3 if form == 2 else 4
    raw, row = zlib.decompress(packed), width * step
    above = bytearray(row)
    for y in range(height):
        begin = y * (row + 1)
        above = unfilter(raw[begin], bytearray(raw[begin + 1:begin + 1 + row]),
                         above, step)
        for x in range(0, row, step):
            yield bytes(above[x:x + 3])


def main(argv):
    seen = collections.Counter(pixels(argv[1]))
    print(f"{argv[1]}: {len(seen)} colours")
    bad = len(seen) < int(argv[2])
    for colour in argv[3:]:
        n = seen[bytes.fromhex(colour)]
        if n < 100:
            print(f"colour {colour} is on {n} pixels")
            bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
