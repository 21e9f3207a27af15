"""A judge of pairs that is trained on a skewed order, and what showing both orders does about it.

    cargo build --locked --release -p judge
    python scripts/trained/swap.py OUTPUT [--quick] [--pairs 2000] [--epochs 2] [--check]

Pairs of generated answers to one question (`judge rows --pairs`), with three simulated raters. In three of four training pairs the better
answer stands first, as in preferences that were collected in one order. The test pairs are of other questions, half of them with the
better answer first, and judged in both orders.

apart       the frozen model grades each answer by itself; the difference decides
frozen      the frozen model is asked which answer is better, as all below
none        tuned by `judge tune --objective verdict --swap none`: pairs in the order in which they are
random      --swap random: one order of each pair in each epoch, drawn by its id
both        --swap both: both orders in each epoch
preference  tuned by `judge tune --objective preference`, and graded apart

--quick takes 400 pairs, one epoch, for a look. --check compares the figures with those of expected/swap.json, which are of --quick.
"""

import json
import random

from common import arguments, checked, figure, judge, read, report, table, write

# Pairs of which the better answer is put first.
SKEW = 0.75
COLUMNS = {
    "accuracy_mean": "accuracy, mean of both orders",
    "pair_agreement": "right in both orders",
    "consistency": "consistency",
    "first_share": "shown first wins",
}


def majority(row):
    """What most raters say, A or B; None where neither has more votes."""
    a, b = row["human"].count("A"), row["human"].count("B")
    return None if a == b else "A" if a > b else "B"


def ordered(rows, share, seed):
    """The rows whose majority prefers one answer, of which it stands first in this share."""
    draw, turned = random.Random(seed), []
    for row in rows:
        if (better := majority(row)) is None:
            continue
        if (better == "A") != (draw.random() < share):
            names = {"A": "B", "B": "A"}
            row = row | {"response_a": row["response_b"], "response_b": row["response_a"],
                         "human": [names.get(said, said) for said in row["human"]]}
        turned.append(row)
    return turned


def main():
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    n, epochs = (400, 1) if args.quick else (args.pairs, args.epochs)
    out = args.output
    for split, rows in (("train", n), ("test", 400)):
        judge("rows", "--pairs", "--split", split, "--rows", rows, "--output", out / f"{split}.all.jsonl", "--overwrite")
    train = write(out / "train.jsonl", ordered(read(out / "train.all.jsonl"), SKEW, 0))
    test = write(out / "test.jsonl", ordered(read(out / "test.all.jsonl"), 0.5, 1))
    forced, apart = ["--template", "pair-forced", "--verdict", "logits"], ["--apart", "--verdict", "logits"]
    tuned = {"none": ["verdict", "--swap", "none"], "random": ["verdict", "--swap", "random"],
             "both": ["verdict", "--swap", "both"], "preference": ["preference"]}
    arms = {"apart": apart, "frozen": forced}
    for name, objective in tuned.items():
        adapter = out / f"{name}.{n}.{epochs}.adapter"
        if not adapter.exists():
            judge("tune", "--input", train, "--output", adapter, "--objective", *objective, "--epochs", epochs, "--lr", "1e-3",
                  "--json", out / f"{name}.{n}.{epochs}.tune.json", "--overwrite", "--quiet")
        arms[name] = [*(apart if name == "preference" else forced), "--adapter", adapter]
    rows = []
    for name, flags in arms.items():
        found = report(out / f"{name}.json", "bench", "--benchmark", "pairs", "--data", test, "--output", out / f"{name}.jsonl", *flags, "--quiet")
        seconds = out / f"{name}.{n}.{epochs}.tune.json"
        took = f"{sum(json.loads(seconds.read_text())['seconds_per_step']):.0f} s" if seconds.exists() else ""
        rows.append([name, found["n"], *(figure(found["statistics"].get(key)) for key in COLUMNS), took])
    head = ["judge", "pairs", *COLUMNS.values(), "time"]
    table(head, rows)
    checked(args, "swap", head, rows)


if __name__ == "__main__":
    main()
