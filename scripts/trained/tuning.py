"""When does tuning beat reading? Labels against agreement with people, for a frozen model that is read and for one that is tuned.

    cargo build --locked --release -p judge
    python scripts/trained/tuning.py OUTPUT [--quick] [--labels 32,128,512] [--draws 3] [--check]

Rows of topics that the embedded model was not trained on (`judge rows --split shifted`), with three simulated raters. Of each number of
labels a few sets are drawn, disjoint from the 300 rows that all are measured on, whose questions occur in no training set.

read        the expected mark at the last layer, without any label
weights     layer weights of `judge fit`
probe       `judge probe train` on pooled states of all layers, with the prompt for factuality
lora        `judge tune` of all blocks, 12 epochs
top blocks  the same of the last two blocks

Every figure is Spearman's correlation with the mean of the raters; a range is that of the draws. --quick takes 32 and 128 labels, one draw.
"""

import statistics
import time

from common import arguments, checked, judge, number, read, report, table, write

TEST = 300
EPOCHS = "12"
# The prompt that probes read.
ASPECT = "factuality"


def spearman(out, name, scores):
    found = report(out / f"{name}.agree.json", "agree", "--input", scores)
    return found["statistics"]["spearman"]["estimate"]


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main():
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--labels", default="32,128,512", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--draws", default=3, type=int)
    parser.add_argument("--check", action="store_true", help="compare the figures with expected/tuning.json (--quick)")
    args = parser.parse_args()
    labels, draws = ([32, 128], 1) if args.quick else (args.labels, args.draws)
    out = args.output
    judge("rows", "--split", "shifted", "--rows", "6000", "--output", out / "all.jsonl", "--overwrite")
    rows = read(out / "all.jsonl")
    test, questions = rows[:TEST], {row["instruction"] for row in rows[:TEST]}
    pool = [row for row in rows[TEST:] if row["instruction"] not in questions]
    assert len(pool) >= max(labels) * draws, f"{len(pool)} rows are left for training"
    held_out = write(out / "test.jsonl", [row | {"aspect": ASPECT, "split": "test"} for row in test])
    frozen = out / "test.scores.jsonl"
    judge("score", "--input", held_out, "--output", frozen, "--quiet")
    lines = [["0", "read", number(spearman(out, "read", frozen)), ""]]
    for n in labels:
        found, seconds = {}, {}
        for draw in range(draws):
            name = f"{n}.{draw}"
            drawn = [row | {"aspect": ASPECT, "split": "train"} for row in pool[draw * max(labels):][:n]]
            train = write(out / f"{name}.train.jsonl", drawn)

            def note(what, work, scores):
                seconds.setdefault(what, []).append(timed(work))
                found.setdefault(what, []).append(spearman(out, f"{name}.{what}".replace(" ", "-"), scores))

            weights = out / f"{name}.weights.json"
            weighted = out / f"{name}.weights.scores.jsonl"

            def fit():
                judge("score", "--input", train, "--output", out / f"{name}.train.scores.jsonl", "--quiet")
                judge("fit", "--valid", out / f"{name}.train.scores.jsonl", "--weights-out", weights, "--overwrite")
                judge("score", "--input", held_out, "--weights", weights, "--output", weighted, "--quiet")

            note("weights", fit, weighted)
            both = write(out / f"{name}.both.jsonl", drawn + read(held_out))
            probed = out / f"{name}.probe.jsonl"

            def probe():
                judge("probe", "train", "--input", both, "--output", out / f"{name}.probes", "--folds", "4", "--quiet")
                judge("probe", "evaluate", "--probes", out / f"{name}.probes", "--input", held_out, "--output", out / f"{name}.judged.jsonl", "--quiet")

            probe_seconds = timed(probe)
            people = {row["id"]: row["scores"] for row in test}
            judged = [{"id": row["id"], "score": row["expected_total"], "human": people[row["id"]]}
                      for row in read(out / f"{name}.judged.jsonl")]
            note("probe", lambda: write(probed, judged), probed)
            seconds["probe"][-1] += probe_seconds
            for what, more in (("lora", []), ("top blocks", ["--top-blocks", "2"])):
                adapter = out / f"{name}.{what.replace(' ', '-')}"
                scores = out / f"{name}.{what.replace(' ', '-')}.jsonl"

                def tune():
                    if not adapter.exists():
                        judge("tune", "--input", train, "--output", adapter, "--epochs", EPOCHS, "--lr", "1e-3", "--quiet", "--overwrite", *more)
                    judge("score", "--input", held_out, "--adapter", adapter, "--output", scores, "--quiet")

                note(what, tune, scores)
        for what, values in found.items():
            spread = f" ({number(min(values))} to {number(max(values))})" if draws > 1 else ""
            lines.append([str(n), what, number(statistics.fmean(values)) + spread, f"{statistics.fmean(seconds[what]):.0f} s"])
    head = ["labels", "judge", "Spearman", "time"]
    table(head, lines)
    checked(args, "tuning", head, lines)


if __name__ == "__main__":
    main()
