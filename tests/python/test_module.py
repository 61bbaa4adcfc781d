"""The Python module: what is right passes, what is wrong is named."""

import os
import sys
import tempfile
import unittest

import numpy as np

import mlacheck
from mlacheck.tensors import load, save

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "python", "examples"))
from numpy_decode import decode  # noqa: E402

CASES = [
    "decode:bf16:b2,h4,q1,page16,len=40+33,l64,r8",
    "decode:f32:b3,h4,q=1+2+0,page16,len=20+3+9,l64,r8,sink,strides=odd,tail=2",
    "decode:f16:b2,h6,kvh3,q1,page16,len=40+17,d64,dv128,sepv,base2,cap=5",
    "decode:bf16:b4,h8,q1,page16,len=64+16+1+0,l64,r8,dist=exact",
]


class Judging(unittest.TestCase):
    def test_a_right_function_passes(self):
        verdict = mlacheck.judge(decode, cases=CASES, numerics={"u_p": 2**-24})
        self.assertTrue(verdict, str(verdict))
        self.assertEqual(len(verdict.report["cases"]), len(CASES))
        self.assertIn(f"{len(CASES)} of {len(CASES)} cases judged", str(verdict))

    def test_a_scale_off_by_one_percent_is_named(self):
        def wrong(case):
            case.problem["scale"] *= 1.01
            return decode(case)

        verdict = mlacheck.judge(wrong, cases=CASES[:1])
        self.assertFalse(verdict)
        self.assertEqual(verdict.exit_code, 1)
        look = verdict.failures[0]["looks_like"]
        self.assertEqual(look["class"], "YARN")
        self.assertIn("factor 1.01", look["sentence"])
        self.assertIn("factor 1.01", str(verdict))

    def test_a_dropped_key_is_named(self):
        def wrong(case):
            rows = decode(case)
            shorter = np.maximum(case["seq_lens"] - 1, 0)
            case._inputs = dict(case._inputs)
            case._inputs[case._tensors["seq_lens"]["key"]] = shorter
            return {**rows, **decode(case)}

        verdict = mlacheck.judge(wrong, cases=CASES[:1])
        self.assertFalse(verdict)
        self.assertIn("looks_like", verdict.failures[0])

    def test_an_exception_fails_its_case_alone(self):
        def shaky(case):
            if case.id == CASES[1]:
                raise RuntimeError("it fell over")
            return decode(case)

        verdict = mlacheck.judge(shaky, cases=CASES[:3])
        self.assertEqual([f["id"] for f in verdict.failures], [CASES[1]])
        self.assertIn("it fell over", str(verdict))
        self.assertIn("there is no answer", verdict.failures[0]["reason"])

    def test_what_is_not_served_is_counted(self):
        def picky(case):
            raise mlacheck.Unsupported("q_dtype: none")

        verdict = mlacheck.judge(picky, cases=CASES[:1])
        self.assertEqual(verdict.exit_code, 77)
        self.assertFalse(verdict)
        self.assertIn("q_dtype: none", str(verdict))
        required = mlacheck.judge(picky, only="merge:f32", profile="smoke")
        self.assertEqual(required.exit_code, 1)

    def test_types_and_shapes_are_held_to(self):
        def integers(case):
            return {"out": np.zeros(case.shape("out"), int), "lse": 0.0}

        verdict = mlacheck.judge(integers, cases=CASES[:1])
        self.assertFalse(verdict)
        self.assertIn("bf16 is asked for", str(verdict))

    def test_a_missing_output_is_named(self):
        def without_lse(case):
            return {"out": decode(case)["out"]}

        def a_tuple(case):
            return tuple(decode(case).values())

        verdict = mlacheck.judge(without_lse, cases=CASES[:1])
        self.assertIn("returned no lse: a dict with out, lse", str(verdict))
        verdict = mlacheck.judge(a_tuple, cases=CASES[:1])
        self.assertIn("returned no out and no lse", str(verdict))

    def test_op_and_only_narrow_each_other(self):
        seen = set()

        def looked_at(case):
            seen.add(case.id.rsplit(":", 1)[0])
            raise mlacheck.Unsupported("looked at")

        mlacheck.judge(looked_at, op="merge", only=["merge:f32", "decode:f16"])
        self.assertEqual(seen, {"merge:f32"})
        with self.assertRaises(ValueError):
            mlacheck.judge(looked_at, op="merge", only="decode:f16")

    def test_bits_are_taken_as_they_are(self):
        def as_bits(case):
            rows = decode(case)
            rows["out"] = mlacheck.from_float(rows["out"], case.dtype("out"))
            return rows

        self.assertTrue(mlacheck.judge(as_bits, cases=CASES[:1]))

    def test_other_operations(self):
        def write(case):
            cache = np.array(case["cache"])
            page = case.problem["block_size"]
            for token, slot in enumerate(case["slot_mapping"]):
                if slot < 0:
                    continue
                entry = np.concatenate([case["kv_c"][token], case["k_pe"][token]])
                cache[slot // page, slot % page] = entry
            return {"cache": cache}

        verdict = mlacheck.judge(
            write, cases=["kv_write:bf16:n9,page4,nb4,l16,r8,slots=holes,gap=5"]
        )
        self.assertTrue(verdict, str(verdict))

    def test_a_missing_tool_is_said(self):
        with self.assertRaises(RuntimeError) as error:
            mlacheck.judge(decode, cases=["decode:nothing"])
        self.assertIn("case", str(error.exception))


def built(batch, slot_of_padding=-1):
    """The arrays of steps, from the requests alone."""
    g = batch.given
    size, width = g["block_size"], g["table_width"]
    starts = np.cumsum([0] + g["query_lens"])
    live = [
        dict(request=b, context=context, rows=rows, ids=list(ids),
             sources=list(range(starts[b], starts[b + 1])))
        for b, (context, rows, ids) in enumerate(
            zip(g["context_lens"], g["query_lens"], g["block_ids"]))
    ]
    if g["decode_threshold"]:
        live.sort(key=lambda r: r["rows"] > g["decode_threshold"])
    tokens, steps = g["token_ids"], []
    for turn in [None] + batch.next:
        if turn:
            live, tokens = live[: len(turn["kept"])], turn["token_ids"]
            first = np.cumsum([0] + turn["query_lens"])
            for p, r in enumerate(live):
                r["context"] += turn["kept"][p]
                r["rows"] = turn["query_lens"][p]
                r["ids"] += turn["block_ids"][p]
                r["sources"] = list(range(first[p], first[p + 1]))
        steps.append(one_step(g, live, tokens, size, width, slot_of_padding))
    return steps


def one_step(g, live, tokens, size, width, slot_of_padding):
    positions = [r["context"] + t for r in live for t in range(r["rows"])]
    slots = [
        r["ids"][j // size] * size + j % size
        for r in live
        for j in range(r["context"], r["context"] + r["rows"])
    ]
    sources = [s for r in live for s in r["sources"]]
    loc = np.cumsum([0] + [r["rows"] for r in live])
    requests = max(g["pad_requests"], len(live))
    rows = max(g["pad_tokens"], len(positions))
    more, idle = rows - len(positions), requests - len(live)
    table = np.zeros((requests, width), np.int32)
    for p, r in enumerate(live):
        table[p, : len(r["ids"])] = r["ids"]
    return {
        "positions": positions + [0] * more,
        "slot_mapping": np.array(slots + [slot_of_padding] * more, np.int64),
        "query_start_loc": list(loc) + [loc[-1]] * idle,
        "seq_lens": [r["context"] + r["rows"] for r in live] + [0] * idle,
        "block_table": table,
        "order": [r["request"] for r in live] + [-1] * idle,
        "row_sources": sources + [-1] * more,
        "token_ids": [tokens[s] for s in sources] + [0] * more,
    }


LEFT_OUT = {
    name: "not this builder's work"
    for name in ("row_lens", "decodes", "splits", "rank_slots", "rank_lens")
}


class Batches(unittest.TestCase):
    def test_a_right_builder_passes(self):
        verdict = mlacheck.judge(
            lambda batch: (built(batch), LEFT_OUT), profile="batch", verbose=True
        )
        self.assertTrue(verdict, str(verdict))
        self.assertGreater(len(verdict.report["cases"]), 40)
        self.assertIn("not judged, by its own word: row_lens", str(verdict))

    def test_padding_at_slot_0_is_named(self):
        verdict = mlacheck.judge(
            lambda batch: (built(batch, 0), LEFT_OUT), profile="batch"
        )
        self.assertFalse(verdict)
        look = verdict.failures[0]["looks_like"]
        self.assertEqual(look["class"], "SLOT-WRITE")
        self.assertIn("padding rows point at slot 0", look["sentence"])

    def test_nothing_passes_by_absence(self):
        verdict = mlacheck.judge(built, profile="batch")
        self.assertFalse(verdict)
        self.assertIn("has no row_lens", verdict.failures[0]["reason"])

        def picky(batch):
            raise mlacheck.Unsupported("no steps here")

        self.assertFalse(mlacheck.judge(picky, profile="batch"))

    def test_arrays_must_be_integers(self):
        def real(batch):
            return [{"positions": np.zeros(3)}]

        verdict = mlacheck.judge(real, cases=["batch:b1,q3"])
        self.assertIn("integers are asked for", str(verdict))


class Floats(unittest.TestCase):
    def test_every_code_comes_back(self):
        for dtype, bits in (
            ("fp8_e4m3", 8),
            ("fp8_e4m3fnuz", 8),
            ("fp8_e5m2", 8),
            ("bf16", 16),
            ("f16", 16),
        ):
            unsigned = np.arange(1 << bits, dtype=f"u{bits // 8}")
            stored = unsigned.view(np.float16) if dtype == "f16" else unsigned
            value = mlacheck.to_float(stored, dtype)
            finite = np.isfinite(value)
            self.assertGreater(finite.sum(), 200)
            again = mlacheck.from_float(value[finite], dtype)
            same = again.view(unsigned.dtype) == unsigned[finite]
            self.assertTrue(same.all(), dtype)

    def test_rounding_is_to_nearest_even_and_once(self):
        near = 1 + 2.0**-8  # halfway to the next bf16
        values = [near, near + 2.0**-40, near - 2.0**-40, 1 + 3 * 2.0**-8]
        bits = mlacheck.from_float(np.array(values), "bf16")
        self.assertEqual(list(bits), [0x3F80, 0x3F81, 0x3F80, 0x3F82])
        bits = mlacheck.from_float(np.array([1e39, -1e39, np.nan]), "bf16")
        self.assertEqual(list(bits), [0x7F80, 0xFF80, 0x7FC0])

    def test_fp8_saturates(self):
        for dtype, most in (
            ("fp8_e4m3", 448),
            ("fp8_e4m3fnuz", 240),
            ("fp8_e5m2", 57344),
        ):
            bits = mlacheck.from_float(np.array([1e9, -np.inf, np.nan]), dtype)
            value = mlacheck.to_float(bits, dtype)
            self.assertEqual(list(value[:2]), [most, -most])
            self.assertTrue(np.isnan(value[2]))
        ties = mlacheck.from_float(np.array([17.0, 19.0, 2.0**-10]), "fp8_e4m3")
        self.assertEqual(list(mlacheck.to_float(ties, "fp8_e4m3")), [16, 20, 0])


class Files(unittest.TestCase):
    def test_arrays_come_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            a = np.arange(6, dtype=np.float32).reshape(2, 3)
            b = np.array([1, 2], np.uint16)
            save(path, {"a": (a, "f32"), "b": (b, "bf16")}, {"note": "yes"})
            arrays, metadata = load(path)
        self.assertEqual(metadata, {"note": "yes"})
        self.assertTrue((arrays["a"] == a).all() and (arrays["b"] == b).all())


if __name__ == "__main__":
    unittest.main()
