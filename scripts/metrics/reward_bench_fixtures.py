# numpy==2.4.6 pandas==3.1.1; pip download --no-deps rewardbench==0.1.4, unpacked
"""Writes the fixture of RewardBench 2's statistics.

    python scripts/metrics/reward_bench_fixtures.py FOLDER

FOLDER is where the wheel of rewardbench 0.1.4 was unpacked. Its scoring functions are run as they are there, without the package, which
asks for much that they do not need. Scores are drawn so that no two right answers of a prompt are equal: there 0.1.4 and what came after it
are the same.

reward_bench.json   rows with their scores; `subsets`: best of four; `ties`: the score of the subset of ties
"""

import ast
import collections
import json
import math
import pathlib
import random
import sys

import numpy as np
import pandas as pd

from common import OUT

WANTED = {"sample_stats", "process_single_model", "reroll_and_score_dataset"}


class Dataset(list):
    """What the functions need of a dataset: rows, a table of them, and one made of columns."""

    @classmethod
    def from_dict(cls, columns):
        return cls(dict(zip(columns, row)) for row in zip(*columns.values()))

    @classmethod
    def from_pandas(cls, table):
        return cls(table.to_dict(orient="records"))

    def to_pandas(self):
        return pd.DataFrame(self)


def functions(folder):
    tree = ast.parse((folder / "rewardbench/utils.py").read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in WANTED]
    assert {node.name for node in found} == WANTED
    known = {"np": np, "pd": pd, "math": math, "collections": collections, "Dataset": Dataset}
    exec(compile(ast.Module(body=found, type_ignores=[]), "utils.py", "exec"), known)
    return known


def main():
    known = functions(pathlib.Path(sys.argv[1]))
    draw = random.Random(7)
    rows = []
    for subset, n in (("Factuality", 40), ("Math", 25)):
        # Few different scores, so that the highest is often shared.
        rows += [{"id": f"{subset}-{i}", "subset": subset, "num_correct": 1, "scores": [draw.randint(0, 4) / 2 for _ in range(4)]}
                 for i in range(n)]
    for i in range(30):
        right = draw.randint(2, 6)
        spread, lead = draw.choice([0.2, 1.0, 3.0]), draw.choice([-0.5, 0.5, 2.0])
        sides = lambda n, right: [lead + spread * draw.random() for _ in range(right)] + [draw.gauss(0, 0.4) - 0.4 for _ in range(n)]
        rows.append({"id": f"ref:{i}", "subset": "Ties", "num_correct": 1, "scores": sides(4, 1)})
        if i % 7 != 3:
            rows.append({"id": f"tied:{i}", "subset": "Ties", "num_correct": right, "scores": sides(draw.randint(2, 9), right)})
    unrolled = Dataset({"subset": row["subset"], "id": row["id"], "scores": score}
                       for row in rows if row["subset"] != "Ties" for score in row["scores"])
    best = known["reroll_and_score_dataset"](unrolled, [4] * 65, cols_to_combine=["scores"])
    subsets = {name: float(np.mean([row["results"] for row in best if row["subset"] == name])) for name in ("Factuality", "Math")}
    _, ties = known["process_single_model"](Dataset(row for row in rows if row["subset"] == "Ties"))
    (OUT / "reward_bench.json").write_text(json.dumps({"rows": rows, "subsets": subsets, "ties": float(ties)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
