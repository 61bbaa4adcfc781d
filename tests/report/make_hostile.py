"""Makes a report whose every text is hostile to markup.

    make_hostile.py REPORT.json OUT.json

Every byte that JSON can carry, closing tags, references, a script; invalid
UTF-8 is put in as raw bytes.
"""

import json
import sys

EVERY = "".join(map(chr, range(1, 0x2FF))) + "\ufffe\uffff\U0001F600"
EVIL = ("</pre></textarea>--><script>nosuch()</script>"
        "<img src=x onerror=nosuch()>&lt;&#0;]]>\" onload=\"nosuch()\" '"
        + EVERY)


def spoil(value, key=""):
    if isinstance(value, dict):
        return {k: spoil(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [spoil(v, key) for v in value]
    if isinstance(value, str) and key not in (
            "format", "verdict", "cells", "kind", "compare"):
        return value + EVIL
    return value


def main(argv):
    with open(argv[1], encoding="utf-8") as file:
        report = spoil(json.load(file))
    text = json.dumps(report, ensure_ascii=False)
    data = text.encode("utf-8", "surrogatepass")
    # bytes that begin no character, a surrogate, too long a form, one cut off
    data = data.replace(b"nosuch() '", b"nosuch() \xff\xfe\x80\xed\xa0\x80"
                        b"\xc0\xaf\xf4\x90\x80\x80\xe2\x82 '")
    with open(argv[2], "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main(sys.argv)
