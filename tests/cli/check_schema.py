"""Holds JSON files to a JSON schema, with Python's library alone.

    check_schema.py SCHEMA FILE...

Knows the keywords that the schemas of golden/schema use, and refuses others.
Exit status: 0 all hold, 1 not, 2 usage.
"""

import json
import re
import sys

TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool,
    "number": (int, float), "integer": int, "null": type(None),
}
SILENT = {"$schema", "$defs", "title", "description"}


def is_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[name])


def same(a, b):
    return type(a) is type(b) and a == b


class Schema:
    def __init__(self, root):
        self.root = root

    def faults(self, value, schema, at):
        """Sentences for what does not hold."""
        for keyword, wanted in schema.items():
            if keyword in SILENT:
                continue
            rule = getattr(self, "rule_" + keyword.lstrip("$"), None)
            if rule is None:
                raise ValueError("schema keyword " + keyword + " is unknown")
            yield from rule(value, wanted, at, schema)

    def rule_ref(self, value, wanted, at, _):
        part = self.root
        for name in wanted.lstrip("#/").split("/"):
            part = part[name]
        yield from self.faults(value, part, at)

    def rule_type(self, value, wanted, at, _):
        names = wanted if isinstance(wanted, list) else [wanted]
        if not any(is_type(value, name) for name in names):
            yield f"{at}: no {' or '.join(names)}"

    def rule_const(self, value, wanted, at, _):
        if not same(value, wanted):
            yield f"{at}: {value!r} is not {wanted!r}"

    def rule_enum(self, value, wanted, at, _):
        if not any(same(value, one) for one in wanted):
            yield f"{at}: {value!r} is none of {wanted}"

    def rule_pattern(self, value, wanted, at, _):
        if isinstance(value, str) and not re.search(wanted, value):
            yield f"{at}: {value!r} does not match {wanted}"

    def rule_minimum(self, value, wanted, at, _):
        if isinstance(value, (int, float)) and value < wanted:
            yield f"{at}: {value} is below {wanted}"

    def rule_maximum(self, value, wanted, at, _):
        if isinstance(value, (int, float)) and value > wanted:
            yield f"{at}: {value} is above {wanted}"

    def rule_minItems(self, value, wanted, at, _):
        if isinstance(value, list) and len(value) < wanted:
            yield f"{at}: fewer than {wanted}"

    def rule_maxItems(self, value, wanted, at, _):
        if isinstance(value, list) and len(value) > wanted:
            yield f"{at}: more than {wanted}"

    def rule_minProperties(self, value, wanted, at, _):
        if isinstance(value, dict) and len(value) < wanted:
            yield f"{at}: fewer than {wanted}"

    def rule_maxProperties(self, value, wanted, at, _):
        if isinstance(value, dict) and len(value) > wanted:
            yield f"{at}: more than {wanted}"

    def rule_required(self, value, wanted, at, _):
        if isinstance(value, dict):
            for name in wanted:
                if name not in value:
                    yield f"{at}: {name} is absent"

    def rule_properties(self, value, wanted, at, _):
        if isinstance(value, dict):
            for name, part in wanted.items():
                if name in value:
                    yield from self.faults(value[name], part, f"{at}.{name}")

    def rule_additionalProperties(self, value, wanted, at, schema):
        if not isinstance(value, dict):
            return
        for name in value:
            if name in schema.get("properties", {}):
                continue
            if wanted is False:
                yield f"{at}: {name} is no member"
            elif isinstance(wanted, dict):
                yield from self.faults(value[name], wanted, f"{at}.{name}")

    def rule_items(self, value, wanted, at, _):
        if isinstance(value, list):
            for i, item in enumerate(value):
                yield from self.faults(item, wanted, f"{at}[{i}]")

    def rule_anyOf(self, value, wanted, at, _):
        tries = [list(self.faults(value, part, at)) for part in wanted]
        if all(tries):
            yield f"{at}: none of {len(wanted)} forms: " + "; ".join(
                min(tries, key=len)[:3])

    def rule_oneOf(self, value, wanted, at, _):
        tries = [list(self.faults(value, part, at)) for part in wanted]
        if sum(not faults for faults in tries) != 1:
            yield f"{at}: not one of {len(wanted)} forms: " + "; ".join(
                min(tries, key=len)[:3])


def main(argv):
    if len(argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    bad = 0
    for path in argv[2:]:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
        for fault in Schema(schema).faults(value, schema, "file"):
            print(f"{path}: {fault}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
