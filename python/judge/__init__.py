"""Calls the program `judge` on rows that are in memory: lists of dicts, data frames of pandas and polars, tables of pyarrow.

    import judge

    rows = [{"instruction": "What is 7 + 5?", "response": "It is 12.", "rubric": "Is the answer right?"}]
    judge.score(rows, model="path/to/model")

`judge.run` calls any command over rows; `score`, `rag`, `rerank` and `decide` are short for the commands of these names. Keyword arguments
are the options of the command, with `_` for `-`: `True` is an option without a value, a list gives it once for each, `None` and `False` leave
it out. `judge COMMAND --help` has them. What a command notes on stderr becomes a warning, and what it refuses a `JudgeError`.

Each call starts the program, which loads the model: give it all rows at once. For more rows than fit into memory, use the program itself,
which resumes.
"""

from __future__ import annotations

import decimal
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import uuid
import warnings
from pathlib import Path
from typing import Any

__all__ = ["JudgeError", "decide", "program", "rag", "rerank", "run", "score"]

#: The field by which an output row tells which row of a frame it is of.
_ROW = "_row_of_frame"

#: What commands write that read rows and write none; some have a former name too.
_NO_ROWS = {
    "states": "a table of hidden states",
    "hidden_states": "a table of hidden states",
    "probe train": "probes",
    "inspector_train": "probes",
    "tune": "a model",
    "finetune": "a model",
    "try": "a folder",
    "report": "a page",
}


class JudgeError(RuntimeError):
    """The program ended with an error; the text is what it wrote on stderr."""

    def __init__(self, message: str, code: int):
        super().__init__(message)
        #: The exit code: 1 failed or nothing scored, 2 wrong options, 3 a bar that is missed.
        self.code = code


def program() -> str:
    """The path of the program: `JUDGE_PROGRAM` of the environment, the one that was installed with this module, or that on the path."""
    name = "judge" + (sysconfig.get_config_var("EXE") or "")
    if named := os.environ.get("JUDGE_PROGRAM"):
        return named
    scripts = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))]
    for folder in scripts:
        if folder and (path := Path(folder) / name).is_file():
            return str(path)
    if found := shutil.which(name):
        return found
    raise FileNotFoundError(f"expected the program {name} in {scripts[0]} or on the path, found none: install it, or name it by JUDGE_PROGRAM")


def run(command: str, rows: Any, *, model: str | os.PathLike | None = None, **options: Any) -> Any:
    """Runs a command over rows and returns its output: a list of dicts, or a data frame where the rows are one of pandas.

    There is an output row for each row, in their order unless the command has another, each under its own index in a frame; a row that
    could not be scored says why under `unscored`. What is missing in a frame is null, times are ISO 8601, decimals and UUIDs are texts.
    Without an `id` or `idx`, rows are numbered from 0. Without a model the embedded one reads, which judges nothing but its own exercises.
    A command that writes no rows, such as `probe train`, is refused.
    """
    command = " ".join(command.split())
    written = "a count" if options.get("dry_run") or options.get("dry-run") else _NO_ROWS.get(command)
    if written:
        raise ValueError(f"`judge {command}` writes {written} here and no rows: call the program itself")
    for name in ("input", "output"):
        if name in options:
            raise TypeError(f"{name}: rows are given to this function and returned by it; call the program itself for files")
    options.pop("quiet", None)  # it is
    if "carry" in options:
        options["carry"] = _joined(options["carry"])
    given, is_frame = _rows(rows)
    if is_frame:
        given = [{**row, _ROW: at} for at, row in enumerate(given)]
        carry = options.get("carry")
        if carry is not None and "all" not in carry.split(","):
            options["carry"] = _ROW if carry == "none" else f"{carry},{_ROW}"
    lines = "".join(_line(at, row) for at, row in enumerate(given))
    columns = [_joined(options.pop("columns", None))]
    # These show no progress, and read their rows as they are.
    is_plain = command == "calibrate" or bool(options.get("import"))
    has_ids = any(row.get(name) is not None for row in given for name in ("id", "idx"))
    if not has_ids and not is_plain and "id=" not in str(columns[0]):
        columns.append("id=")
    options["columns"] = ",".join(filter(None, columns)) or None
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        output = Path(folder) / "output.jsonl"
        arguments = ["--input", "-", "--output", str(output), *([] if is_plain else ["--quiet"])]
        for name, value in {"model": model, **options}.items():
            arguments += _option(name, value)
        called = subprocess.run([program(), *command.split(), *arguments], input=lines.encode(), capture_output=True)
        told = called.stderr.decode(errors="replace").strip()
        # Rows without a score are an answer, also where no other stands beside them.
        if called.returncode and not (called.returncode == 1 and "no row was scored" in told and output.exists()):
            raise JudgeError(told, called.returncode)
        if told:
            warnings.warn(told, stacklevel=2)
        with output.open(encoding="utf-8") as written:
            found = [json.loads(line) for line in written]
    return _frame(rows, found) if is_frame else found


def score(rows: Any, **options: Any) -> Any:
    """Grades responses: rows of `instruction`, `response` and, if there is one, `rubric` (`judge score`)."""
    return run("score", rows, **options)


def rag(rows: Any, **options: Any) -> Any:
    """Measures answers from retrieved contexts: rows of `question`, `answer` and `contexts` (`judge rag`)."""
    return run("rag", rows, **options)


def rerank(rows: Any, **options: Any) -> Any:
    """Puts documents in the order of their relevance: rows of `query` and `documents` (`judge rerank`)."""
    return run("rerank", rows, **options)


def decide(rows: Any, **options: Any) -> Any:
    """Asks typed questions about states, with a probability for every option (`judge decide`)."""
    return run("decide", rows, **options)


def _rows(rows: Any) -> tuple[list[dict], bool]:
    """The rows as dicts, and whether they are a frame of pandas, as which they come back."""
    for name in ("to_dicts", "to_pylist"):  # of polars, of pyarrow
        if hasattr(rows, name):
            return _dicts(_known(getattr(rows, name)())), False
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        # Not by to_json, which rounds numbers to ten digits.
        return _known(rows.astype(object).where(rows.notna(), None).to_dict("records")), True
    return _dicts(rows), False


def _dicts(rows: Any) -> list[dict]:
    if isinstance(rows, (str, bytes, dict)) or not hasattr(rows, "__iter__"):
        raise TypeError(f"expected a list of dicts, or a data frame, found {type(rows).__name__}")
    rows = list(rows)
    if odd := [row for row in rows if not isinstance(row, dict)]:
        raise TypeError(f"expected a list of dicts, or a data frame, found {type(odd[0]).__name__} in the list")
    return rows


def _frame(rows: Any, found: list[dict]) -> Any:
    """The output as a frame of the same kind, under the index of the rows that it is of. Whole numbers keep their digits."""
    places = [row.pop(_ROW, None) for row in found]
    index = rows.index if len(found) == len(rows) else None
    if all(isinstance(place, int) for place in places):
        index = rows.index.take(places)
    kind = type(rows)
    frame = kind(found, index=index)
    for name in frame.columns:
        values = [row.get(name) for row in found]
        numbers = [value for value in values if value is not None]
        # In a column with gaps, which would be one of floats.
        if 0 < len(numbers) < len(values) and all(type(value) is int for value in numbers):
            fit = all(-(2**63) <= value < 2**63 for value in numbers)
            frame[name] = kind({name: values}, dtype="Int64" if fit else object)[name].array
    return frame


def _is_missing(value: Any) -> bool:
    """Whether a value is NaN, or what pandas has for it in columns of other types."""
    return (isinstance(value, float) and value != value) or type(value).__name__ in ("NaTType", "NAType")


def _known(value: Any) -> Any:
    """A cell of a frame with null for what is missing, also within lists and objects."""
    if isinstance(value, dict):
        return {name: _known(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_known(one) for one in value]
    return None if _is_missing(value) else value


def _line(at: int, row: dict) -> str:
    """A row as a line of JSON, which has no word for a number that is none: in a frame NaN is what is missing, elsewhere it is refused."""
    try:
        return json.dumps(row, allow_nan=False, default=_plain) + "\n"
    except (TypeError, ValueError) as problem:
        kind = ValueError if isinstance(problem, ValueError) else TypeError
        for name, value in row.items():
            try:
                json.dumps(value, allow_nan=False, default=_plain)
            except (TypeError, ValueError) as found:
                raise kind(f"row {at} (from 0), {name!r}: {found}: {value!r:.100}") from None
        raise


def _plain(value: Any) -> Any:
    """What JSON has for a value that it does not know: lists for arrays, ISO 8601 for times, texts for decimals and UUIDs."""
    if _is_missing(value):
        raise ValueError(f"expected what JSON can hold, found {value!r}: write None for what is missing")
    for name in ("tolist", "isoformat"):
        if hasattr(value, name):
            return getattr(value, name)()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    raise TypeError(f"expected what JSON can hold, found {type(value).__name__}")


def _joined(value: Any) -> str | None:
    """A list of an option that takes one value, with commas between; a dict of columns by field is a list of `FIELD=COLUMN`."""
    if isinstance(value, dict):
        value = [f"{field}={'|'.join(names) if isinstance(names, (list, tuple)) else names or ''}" for field, names in value.items()]
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _option(name: str, value: Any) -> list[str]:
    option = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    if isinstance(value, (list, tuple)):
        return [word for one in value for word in _option(name, one)]
    # Joined, so that a value may begin with a dash.
    return [f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}"]
