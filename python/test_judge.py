"""Tests of the module: `JUDGE_PROGRAM=target/debug/judge python3 python/test_judge.py`, or without the variable where the wheel is installed."""

import datetime
import decimal
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

if program := os.environ.get("JUDGE_PROGRAM"):
    sys.path.insert(0, str(Path(__file__).parent))
    os.environ["JUDGE_PROGRAM"] = str(Path(program).resolve())
import judge  # noqa: E402

ROWS = [
    {"instruction": "What is 7 + 5?", "response": "It is 12.", "topic": "sums"},
    {"instruction": "What is 2 + 2?", "response": "It is 5. Déjà vu \u2028 here."},
    {"instruction": "What is 9 - 3?", "response": None},
]


class Rows(unittest.TestCase):
    def test_rows_come_back_in_their_order_and_an_odd_one_costs_itself(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = judge.score(ROWS, embedded=True)
        self.assertEqual([row["id"] for row in found], [0, 1, 2])
        # An id that is null is none.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nameless = judge.score([{"id": None, **row} for row in ROWS], embedded=True)
        self.assertEqual([row["id"] for row in nameless], [0, 1, 2])
        self.assertEqual(found[0]["topic"], "sums")
        self.assertTrue(all(1 <= row["score"] <= 5 for row in found[:2]))
        self.assertIn("unscored", found[2])
        self.assertIn("1 of 3 rows", str(told[0].message))

    def test_ids_and_options_are_those_of_the_caller(self):
        rows = [{"key": f"row-{at}", "query": "Who?", "documents": ["Ann.", "Bob."]} for at in range(2)]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        template = Path(folder.name, "template.jinja")
        template.write_text("{{ query }} {{ document }}")
        given = dict(rerank_template=template, labels="1,2", embedded=True, top=1)
        named = ["row-0", "row-1"]
        for columns, ids in [("id=key", named), ({"id": "key", "query": ["query", "ask"]}, named), ({"id": None}, [0, 1])]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = judge.rerank(rows, columns=columns, **given)
            self.assertEqual([row["id"] for row in found], ids)
            self.assertEqual([len(row["results"]) for row in found], [1, 1])

    def test_ids_and_questions_are_where_the_program_looks_for_them(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = judge.score([{**row, "idx": f"i{at}"} for at, row in enumerate(ROWS)], embedded=True)
            asked = judge.run("knowledge", [{"question": "What is 2 + 2?"}], embedded=True)
        self.assertEqual([row["id"] for row in found], ["i0", "i1", "i2"])
        self.assertEqual((asked[0]["id"], 1 <= asked[0]["score"] <= 5), (0, True))

    def test_commands_without_progress_and_columns_take_rows_too(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        graded = Path(folder.name, "graded.jsonl")
        graded.write_text("".join(f'{{"id":{at},"score":{at % 5},"human":{(at + at // 7 % 2) % 5}}}\n' for at in range(60)))
        found = judge.run("calibrate", [{"score": 3, "topic": "sums"}, {"score": 1}], graded=graded)
        self.assertEqual([set(row) >= {"score", "calibrated"} for row in found], [True, True])
        self.assertEqual(found[0]["topic"], "sums")
        said = [{"completed_by": 7, "result": [{"from_name": "grade", "type": "rating", "value": {"rating": 4}}]}]
        task = {"id": 3, "data": {"response": "It is 12."}, "annotations": said}
        found = judge.run("grade", [task], **{"import": "label-studio"})
        self.assertEqual((found[0]["id"], found[0]["human"], found[0]["response"]), (3, [4], "It is 12."))

    def test_what_the_program_refuses_is_an_error_with_its_words(self):
        with self.assertRaises(judge.JudgeError) as refused:
            judge.score(ROWS, no_such_option=True)
        self.assertEqual(refused.exception.code, 2)
        self.assertIn("--no-such-option", str(refused.exception))
        with self.assertRaises(judge.JudgeError) as refused:
            judge.score(ROWS)
        self.assertIn("--model", str(refused.exception))
        for human, said in [(float("nan"), "row 1 .* 'human': .*nan"), (float("inf"), "row 1 .* 'human': .*inf")]:
            with self.assertRaisesRegex(ValueError, said):
                judge.score([ROWS[0], {**ROWS[1], "human": human}])

    def test_what_is_no_rows_is_refused_before_anything_runs(self):
        for rows in ["rows.jsonl", {"instruction": "?"}, 3, [1, 2], None]:
            with self.assertRaisesRegex(TypeError, "expected a list of dicts"):
                judge.score(rows)
        for command in ["states", "probe  train", "inspector_train", "tune", "try", "report"]:
            with self.assertRaisesRegex(ValueError, "no rows"):
                judge.run(command, ROWS)
        with self.assertRaisesRegex(ValueError, "no rows"):
            judge.run("label", ROWS, dry_run=True)
        with self.assertRaisesRegex(TypeError, "output: "):
            judge.score(ROWS, output="scores.jsonl")

    def test_rows_that_are_all_without_a_score_come_back(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = judge.score([{**ROWS[0], "response": "two " * 100_000}], embedded=True, quiet=True, columns=["id=", "human="])
        self.assertEqual(found[0]["unscored"]["reason"], "too_long")
        self.assertIn("no row was scored", str(told[-1].message))

    def test_frames_go_in_and_come_out(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = judge.score(pandas.DataFrame(ROWS), embedded=True)
        self.assertIsInstance(found, pandas.DataFrame)
        self.assertEqual(list(found["id"]), [0, 1, 2])

    def test_what_frames_hold_comes_back_as_it_was_and_under_its_index(self):
        try:
            import numpy
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = pandas.DataFrame(ROWS)
        frame["share"] = [0.12345678901234566, 1.5e-12, float("nan")]
        frame["made"] = [pandas.Timestamp("2020-01-01"), pandas.NaT, pandas.Timestamp("1999-12-31T23:59:59.5")]
        frame["marks"] = [numpy.array([1.0, float("nan")]), [1, 2], None]
        frame["count"] = pandas.array([2**53 + 1, None, 3], dtype="Int64")
        given = frame[frame.index != 1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = judge.score(given, embedded=True)
        self.assertEqual(list(found.index), [0, 2])
        self.assertEqual(found["share"][0], frame["share"][0])
        self.assertEqual([found["made"][at][:19] for at in (0, 2)], ["2020-01-01T00:00:00", "1999-12-31T23:59:59"])
        self.assertEqual((found["marks"][0], found["count"][0]), ([1.0, None], 2**53 + 1))
        self.assertTrue(pandas.isna(found["share"][2]))
        self.assertEqual(list(given.assign(own=found["id"])["own"]), [0, 1])

    def test_frames_come_back_under_their_index_in_any_order_and_with_all_digits(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        # A program that gives the rows back from behind.
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = Path(folder.name, "program")
        program.write_text(
            "#!" + sys.executable + "\nimport sys\n"
            "rows = sys.stdin.readlines()\nopen(sys.argv[sys.argv.index('--output') + 1], 'w').writelines(rows[::-1])\n"
        )
        program.chmod(0o700)
        frame = pandas.DataFrame({"id": list("abc"), "big": [2**53 + 1, None, 7], "huge": [2**70, 1, None]}, dtype=object, index=[5, 6, 7])
        frame["seen"] = [[pandas.NA, 1], None, [2]]
        before = os.environ.get("JUDGE_PROGRAM")
        os.environ["JUDGE_PROGRAM"] = str(program)
        try:
            found = judge.run("any", frame, carry="none")
        finally:
            os.environ.pop("JUDGE_PROGRAM") if before is None else os.environ.update(JUDGE_PROGRAM=before)
        self.assertEqual((list(found.index), list(found["id"])), ([7, 6, 5], list("cba")))
        self.assertEqual((found["big"][5], found["huge"][5], found["seen"][5]), (2**53 + 1, 2**70, [None, 1]))
        self.assertTrue(pandas.isna(found["big"][6]) and pandas.isna(found["huge"][7]))
        self.assertEqual(list(found.columns), list(frame.columns))

    def test_frames_of_other_libraries_are_read_as_rows(self):
        class Polars:
            columns = []

            def to_dicts(self):
                return [{**ROWS[0], "share": float("nan")}]

            def to_dict(self):
                raise NotImplementedError

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = judge.score(Polars(), embedded=True)
        self.assertEqual((type(found), found[0]["share"]), (list, None))

    def test_values_that_are_not_json_are_texts_or_refused(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = judge.score([{**ROWS[0], "cost": decimal.Decimal("0.10"), "day": datetime.date(2020, 1, 2)}], embedded=True)
        self.assertEqual((found[0]["cost"], found[0]["day"]), ("0.10", "2020-01-02"))
        with self.assertRaisesRegex(TypeError, "row 0 .* 'cost': expected what JSON can hold, found bytes: b'[^:]*$"):
            judge.score([{**ROWS[0], "cost": b"1"}], embedded=True)
        try:
            import pandas
        except ImportError:
            return
        for missing in (pandas.NaT, pandas.NA):
            with self.assertRaisesRegex(ValueError, "write None"):
                judge.score([{**ROWS[0], "made": missing}], embedded=True)

    def test_the_module_is_the_program(self):
        folder = Path(judge.__file__).parents[1]
        of = lambda command: subprocess.run([*command, "--version"], cwd=folder, capture_output=True, text=True).stdout
        self.assertEqual(of([sys.executable, "-m", "judge"]), of([judge.program()]))


if __name__ == "__main__":
    unittest.main()
