"""Holds a JUnit file to the JSON report of the same run.

    check_junit.py JUNIT.xml REPORT.json...

Every case of the reports is a test once, with the outcome that it must have;
counts are what is there. Exit status: 0 all is well, 1 not.
"""

import json
import sys
import xml.etree.ElementTree as tree


def outcome_of(record):
    if "waived" in record:
        return "skipped"
    if record["verdict"] == "unsupported":
        return "failure" if record["required"] else "skipped"
    return {"pass": "", "fail": "failure"}.get(record["verdict"], "error")


def main(argv):
    faults = []
    root = tree.parse(argv[1]).getroot()
    tests = [(t.get("classname").split(".")[0], t.get("name"),
              "".join(c.tag for c in t)) for t in root.iter("testcase")]
    wanted = []
    for path in argv[2:]:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        backend = report["backend"]["name"]
        wanted += [(backend, r["id"], outcome_of(r)) for r in report["cases"]]
        wanted.append((backend, "verdict",
                       "failure" if report["exit"] else ""))
        for record in report["cases"]:
            text = record.get("text", "")
            if record["verdict"] == "fail" and "rerun" not in text:
                faults.append(f"{record['id']}: no line to type")
    if sorted(tests) != sorted(wanted):
        faults += [f"only in JUnit: {t}" for t in set(tests) - set(wanted)]
        faults += [f"not in JUnit: {t}" for t in set(wanted) - set(tests)]
    for suite in [root, *root.iter("testsuite")]:
        cases = list(suite.iter("testcase"))
        for name, tag in (("failures", "failure"), ("errors", "error"),
                          ("skipped", "skipped")):
            n = sum(c.find(tag) is not None for c in cases)
            if int(suite.get(name)) != n:
                faults.append(f"{suite.get('name')}: {name} is not {n}")
        if int(suite.get("tests")) != len(cases):
            faults.append(f"{suite.get('name')}: tests is not {len(cases)}")
    for element in root.iter():
        if element.tag in ("failure", "error") and \
                element.get("type") != "VERDICT" and not element.text:
            faults.append("a failure without a text")
    print("\n".join(faults[:20]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
