"""Probes on a trained model: INSPECTOR's published GSM8K probing set, 1,040 graded prompts of five aspects.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/inspector.py OUTPUT

Two protocols, two tasks each. `published`: all rows, split as the published program splits them (seed 731), so that a question may be
on both sides. `clean`: without the 93 rows of questions that are not GSM8K's (ids from 7473 on, which make up nearly all low grades of
fluency), and a question's rows on one side. The states are read once for each protocol; layers and poolings are chosen on training rows
alone.
"""

import json

from common import arguments, data, figure, judge, model, table

OWN_QUESTIONS = 7473
TASKS = {"1 to 5": [], "0 or 1": ["--binary", "--threshold", "4"]}
PROTOCOLS = {"published": ["--ungrouped"], "clean": []}
PREDICTORS = ["probe", "prompted", "surface", "tfidf", "majority"]


def clean(out):
    """The probing file without rows of questions that its authors added."""
    rows = json.loads(data("inspector", "gsm8k_roscoe5dim_probing.json").read_text())
    path = out / "clean.json"
    path.write_text(json.dumps({aspect: [row for row in own if row["id"] < OWN_QUESTIONS] for aspect, own in rows.items()}))
    return path


def main():
    out = arguments(__doc__).parse_args().output
    inputs = {"published": data("inspector", "gsm8k_roscoe5dim_probing.json"), "clean": clean(out)}
    for protocol, split in PROTOCOLS.items():
        for task, flags in TASKS.items():
            folder = out / f"{protocol}-{task.replace(' ', '-')}"
            judge("probe", "train", "--input", inputs[protocol], "--output", folder, "--states", out / f"states-{protocol}",
                  "--pooling", "last,mean,min,max", *split, *flags, *model())
            aspects = json.loads((folder / "report.json").read_text())["aspects"]
            for statistic in ("weighted_f1", "spearman"):
                print(f"\n{protocol}, {task}: {statistic}")
                rows = []
                for aspect, found in aspects.items():
                    test = found["splits"]["test"]
                    layers = ", ".join(f"{one['layer']} {one['pooling']}" for one in found["chosen"])
                    cells = [figure(test["predictors"].get(name, {}).get(statistic)) for name in PREDICTORS]
                    gains = [figure(test["gain_over"].get(name, {}).get(statistic)) for name in PREDICTORS[1:4]]
                    rows.append([aspect, f"{found['n_train']} / {test['n']}", layers, *cells, *gains])
                table(["aspect", "rows", "layers", *PREDICTORS, *(f"probe less {name}" for name in PREDICTORS[1:4])], rows)


if __name__ == "__main__":
    main()
