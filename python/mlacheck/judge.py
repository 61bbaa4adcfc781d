"""Export the cases, call the function, have the answers judged."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import traceback
from collections.abc import Mapping

from .batch import Batch
from .case import Case, Unsupported
from .tensors import save


class Verdict:
    """
    True when satisfied. str() is what mlacheck printed.

    exit_code   0 satisfied, 1 failed, 77 nothing was applicable
    report      the JSON report (golden/schema/report-1.schema.json)
    failures    its cases that failed
    exceptions  {case id: traceback} of calls that raised
    """

    def __init__(self, exit_code, text, report, exceptions):
        self.exit_code, self.report = exit_code, report
        self.exceptions = exceptions
        self.failures = [
            case for case in report["cases"] if case["verdict"] == "fail"
        ]
        raised = "".join(
            f"\n{name} raised\n{trace}"
            for name, trace in list(exceptions.items())[:3]
        )
        self._text = text + raised

    def __bool__(self):
        return self.exit_code == 0

    def __str__(self):
        return self._text


def _find_tool(tool):
    tool = tool or os.environ.get("MLACHECK") or shutil.which("mlacheck")
    if not tool:
        raise FileNotFoundError(
            "mlacheck is not on the PATH: build libmla, and pass tool=... or "
            "set MLACHECK"
        )
    return tool


def _run(words, codes):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in codes:
        message = done.stderr.decode().strip() or done.stdout.decode().strip()
        raise RuntimeError(f"{' '.join(words[:2])}: {message}")
    return done.returncode, done.stdout.decode()


def _many(value):
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _narrowed(ops, only):
    """Patterns of what both name: the longer of two, if it begins so."""
    if not ops or not only:
        return ops or only
    pairs = [sorted((a, b), key=len) for a in ops for b in only]
    both = [longer for shorter, longer in pairs if longer.startswith(shorter)]
    if not both:
        raise ValueError(f"no case is of op {ops} and of only {only}")
    return both


def _outputs(case, result):
    """What the function returned, as it is stored."""
    given = result if isinstance(result, Mapping) else {}
    missing = [name for name in case.outputs if name not in given]
    if missing:
        raise ValueError(
            f"the function returned no {' and no '.join(missing)}: a dict with "
            f"{', '.join(case.outputs)} is asked for"
        )
    return {
        name: (case.stored(name, result[name]), case.dtype(name))
        for name in case.outputs
    }


def _answer_batch(function, batch, exceptions):
    try:
        batch.save(function(batch))
    except (Unsupported, NotImplementedError) as why:
        batch.refuse(str(why) or "no reason is given")
    except Exception:
        exceptions[batch.id] = traceback.format_exc()


def _answer(function, case, folder, metadata, exceptions):
    path = os.path.join(folder, case.name + ".out.safetensors")
    try:
        outputs = _outputs(case, function(case))
    except (Unsupported, NotImplementedError) as why:
        reason = str(why) or "no reason is given"
        save(path, {}, {"mla-unsupported": reason})
    except Exception:
        # No file: the case fails, and the others are still judged.
        exceptions[case.id] = traceback.format_exc()
    else:
        save(path, outputs, metadata)


def _judge_in(folder, function, select, numerics, tool, verbose):
    code, _ = _run([tool, "export", folder] + select, (0, 77))
    with open(os.path.join(folder, "index.json")) as file:
        index = json.load(file)
    metadata = {"mla-numerics": json.dumps(numerics)} if numerics else None
    exceptions = {}
    for entry in index["cases"]:
        if entry["kind"] == "batch":
            _answer_batch(function, Batch(folder, entry), exceptions)
            continue
        case = Case(folder, entry)
        _answer(function, case, folder, metadata, exceptions)
    report = os.path.join(folder, "report.json")
    words = [tool, "verify", folder, "--json", report]
    code, text = _run(words + ["-v"] * verbose, (0, 1, 77))
    with open(report) as file:
        return Verdict(code, text, json.load(file), exceptions)


def _rerun_by_call(text, folder):
    """Lines that name the folder are no use once it is gone."""
    line = rf"mlacheck verify {re.escape(folder)} --case '([^']*)' --seed (\d+) -v"
    call = r"mlacheck.judge(function, cases=['\1'], seed=\2)"
    return re.sub(line, call, text).replace(folder + os.sep, "")


def judge(
    function,
    op=None,
    profile="smoke",
    only=None,
    cases=None,
    seed=None,
    numerics=None,
    tool=None,
    folder=None,
    verbose=False,
):
    """Calls function(case) for each case and has the answers judged.

    op, only    parts of the profile: "decode", ["decode:bf16", "merge"]; of
                both, what both name
    cases       names of cases instead of a profile
    seed        another seed for all data
    numerics    what the function admits to, e.g. {"u_p": 2**-8}: members of
                mla_numerics; what is absent reads as f32 accumulation, and P
                and up-projected values in q's type
    tool        the program mlacheck; default: $MLACHECK, or on the PATH
    folder      keep the files there; default: a temporary one

    The function returns a dict with each output's array, or raises
    Unsupported. Any other exception fails the case. Of profile "batch" it gets
    a Batch, and returns a list of such dicts, one a step.
    """
    tool = _find_tool(tool)
    select = [] if cases else ["--profile", profile]
    for option, values in (
        ("--only", _narrowed(_many(op), _many(only))),
        ("--case", _many(cases)),
        ("--seed", [] if seed is None else [str(seed)]),
    ):
        select += [option] + values if values else []
    if folder:
        os.makedirs(folder, exist_ok=True)
        return _judge_in(folder, function, select, numerics, tool, verbose)
    with tempfile.TemporaryDirectory() as made:
        verdict = _judge_in(made, function, select, numerics, tool, verbose)
        verdict._text = _rerun_by_call(verdict._text, made)
        return verdict
