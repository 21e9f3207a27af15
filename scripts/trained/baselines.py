"""When does tuning beat reading? A trained model on INSPECTOR's grades and on PandaLM's pairs: read, probed, and tuned on the same rows.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/baselines.py OUTPUT [--quick] [--encoder FOLDER] [--check]

Every arm learns from the same rows and is measured on the same others: a question is on one side, by a hash of its text, a third of
PandaLM's and a fifth of INSPECTOR's held out. INSPECTOR's are without the rows of questions that its authors added (docs/trained.md). Of
PandaLM's pairs those are left out in which neither answer has two of the three annotators; a pair is asked in one order, drawn by its
number.

commonest   always the commonest grade of the measured rows: the best that an answer can do which is always the same
read        the expected grade at the last layer, without any label
weights     layer weights of `judge fit`
tfidf       logistic regression on words; surface: on lengths and the like
probe       `judge probe train` on pooled states of all layers
lora top    `judge probe train --tuned-baseline`: an adapter of the last eight blocks
lora        the same of all blocks
encoder     `judge tune --objective class --method full` of an encoder (--encoder)

--quick takes a quarter of factuality's training rows and an eighth of the pairs, leaves out `lora`, and sees rows twice in place of three
times.
"""

import hashlib
import json
import math
import time

from common import arguments, checked, data, figure, judge, model, read, report, table, write
from inspector import OWN_QUESTIONS

STATISTICS = ["spearman", "accuracy"]
DIFFERENCES = ["spearman", "weighted_f1"]
QUESTION, RESPONSE, END = "\n\nQuestion:\n", "\n\nGenerated response:\n", "\n\nNow evaluate"
PAIR = {"chat": {"messages": [{"role": "user", "content": "Task: {instruction}\n\n{response}\n\nWhich answer is better? Reply with 1 or 2."}],
                 "template_args": {}, "prefill": ""}}


def share(text):
    """A number from 0 to 1 that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


def grades(aspect, every):
    """INSPECTOR's rows of an aspect, every so many of those that are learned from, and the prompt that they share."""
    rows, shared = [], set()
    for row in json.loads(data("inspector", "gsm8k_roscoe5dim_probing.json").read_text())[aspect]:
        if row["id"] >= OWN_QUESTIONS or row["score"] is None:
            continue
        rubric, rest = row["eval_prompt"].split(QUESTION, 1)
        question, rest = rest.split(RESPONSE, 1)
        response, end = rest.rsplit(END, 1)
        shared.add((rubric, END + end))
        rows.append({"id": row["id"], "aspect": aspect, "instruction": question, "response": response, "human": row["score"],
                     "split": "test" if share(question) < 0.2 else "train"})
    [(rubric, end)] = shared
    learned = [row for row in rows if row["split"] == "train"][::every]
    rows = learned + [row for row in rows if row["split"] == "test"]
    literal = lambda text: text.replace("{", "{{").replace("}", "}}")
    return rows, {"raw": f"{literal(rubric)}{QUESTION}{{instruction}}{RESPONSE}{{response}}{literal(end)}"}


def pairs(every):
    """PandaLM's pairs, the two answers as one text, and their prompt."""
    rows = []
    for row in json.loads(data("pandalm", "testset-v1.json").read_text())[::every]:
        votes = [row[f"annotator{i}"] for i in (1, 2, 3)]
        best = max((1, 2), key=votes.count)
        if votes.count(best) < 2:
            continue
        first, second = str(row["response1"]), str(row["response2"])
        if share(f"order {row['idx']}") < 0.5:
            first, second, best = second, first, 3 - best
        question = row["instruction"] + ("\n" + row["input"] if row["input"] else "")
        rows.append({"id": row["idx"], "aspect": "preference", "instruction": question, "response": f"Answer 1: {first}\n\nAnswer 2: {second}",
                     "human": best, "split": "test" if share(row["instruction"]) < 1 / 3 else "train"})
    return rows, PAIR


def commonest(rows):
    """The share of the commonest grade among the measured rows."""
    grades = [row["human"] for row in rows if row["split"] == "test"]
    return {"accuracy": {"estimate": max(map(grades.count, grades)) / len(grades)}}


def spent(work, *arguments):
    start = time.monotonic()
    found = work(*arguments)
    return found, time.monotonic() - start


def of_scores(out, rows, points, template):
    """Figures of the grades that are read, frozen and with layer weights."""
    files = {split: write(out / f"{split}.jsonl", [row for row in rows if row["split"] == split]) for split in ("train", "test")}
    flags = ["--points", points, "--template", template, "--prefill", "", "--quiet", "--overwrite", *model()]
    scores = {split: out / f"{split}.scores.jsonl" for split in files}
    for split, file in files.items():
        judge("score", "--input", file, "--output", scores[split], *flags)
    weights, weighted = out / "weights.json", out / "test.weighted.jsonl"
    judge("fit", "--valid", scores["train"], "--weights-out", weights, "--epochs", "5", "--overwrite")
    judge("score", "--input", files["test"], "--output", weighted, "--weights", weights, *flags)
    return {"read": agree(out, scores["test"], points), "weights": agree(out, weighted, points)}


def agree(out, scores, points):
    """Rank correlation of the expected grade, and the share of grades that are right, the nearest to the expected one being given."""
    rows = [{"id": row["id"], "score": row["score"], "label": min(max(round(row["score"]), 1), points), "human": row["human"]} for row in read(scores)]
    file = write(out / "agree.jsonl", rows)
    ranks = report(out / "agree.json", "agree", "--input", file, "--statistics", "spearman", "--quiet")["statistics"]
    labels = report(out / "agree.json", "agree", "--input", file, "--predicted", "label", "--statistics", "accuracy", "--quiet")["statistics"]
    return ranks | labels


def of_encoder(out, rows, points, folder, epochs):
    files = {split: out / f"{split}.jsonl" for split in ("train", "test")}
    tuned = out / "encoder"
    if not tuned.exists():
        judge("tune", "--objective", "class", "--method", "full", "--points", points, "--input", files["train"], "--model", folder, "--output", tuned,
              "--epochs", epochs, "--lr", "5e-5", "--batch-size", "16", "--micro-batch", "4", "--quiet", "--overwrite")
    rewards = out / "encoder.rewards.jsonl"
    judge("reward", "--input", files["test"], "--model", tuned, "--dtype", "f32", "--output", rewards, "--quiet", "--overwrite")
    human = {row["id"]: row["human"] for row in rows}
    scored = [{"id": row["id"], "human": human[row["id"]], "score": expected(row["rewards"])} for row in read(rewards) if row.get("rewards")]
    return agree(out, write(out / "encoder.scores.jsonl", scored), points)


def expected(scores):
    """The mean class by the probabilities of the head's labels, which are the points of the scale."""
    largest = max(scores)
    weights = [math.exp(score - largest) for score in scores]
    return sum((place + 1) * weight for place, weight in enumerate(weights)) / sum(weights)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--encoder", help="folder of an encoder, such as all-MiniLM-L6-v2")
    parser.add_argument("--check", action="store_true", help="compare the figures with expected/baselines.json (--quick and --encoder)")
    args = parser.parse_args()
    epochs = 2 if args.quick else 3
    aspects = ["factuality"] if args.quick else ["factuality", "informativeness", "semantic_consistency", "logicality", "fluency"]
    arms = {"lora top": ["--tuned-baseline", "--tuned-epochs", epochs, "--tuned-lr", "1e-3", "--tuned-top-blocks", "8"]}
    if not args.quick:
        arms["lora"] = ["--tuned-baseline", "--tuned-epochs", epochs, "--tuned-lr", "1e-3"]
    lines, differences = [], []
    for aspect in [*aspects, "preference"]:
        out = args.output / aspect
        out.mkdir(exist_ok=True)
        rows, form = pairs(8 if args.quick else 1) if aspect == "preference" else grades(aspect, 4 if args.quick else 1)
        points = 2 if aspect == "preference" else 5
        template = out / "template.json"
        template.write_text(json.dumps(form))
        sizes = f"{sum(row['split'] == 'train' for row in rows)} / {sum(row['split'] == 'test' for row in rows)}"
        found, seconds = {"commonest": commonest(rows)}, {}
        of_read, seconds["weights"] = spent(of_scores, out, rows, points, template)
        found |= of_read
        file = write(out / "rows.jsonl", rows)
        for name, flags in {"probe": [], **arms}.items():
            folder = out / name.replace(" ", "-")
            run = lambda: judge("probe", "train", "--input", file, "--output", folder, "--states", out / "states", "--scale", f"1-{points}",
                                "--template", template, *flags, *model(), "--quiet")
            if not (folder / "report.json").exists():
                _, seconds[name] = spent(run)
            test = json.loads((folder / "report.json").read_text())["aspects"][aspect]["splits"]["test"]
            if name == "probe":
                found |= {which: test["predictors"][which] for which in ("tfidf", "surface", "probe")}
            else:
                found[name] = test["predictors"]["tuned"]
                gain = test["gain_over"]["tuned"]
                differences.append([aspect, f"probe less {name}", *(figure(gain.get(what)) for what in DIFFERENCES)])
        if args.encoder:
            found["encoder"], seconds["encoder"] = spent(of_encoder, out, rows, points, args.encoder, 2 if args.quick else 8)
        for name, own in found.items():
            took = f"{seconds[name] / 60:.1f} min" if name in seconds else ""
            lines.append([aspect, sizes, name, *(figure(own.get(what)) for what in STATISTICS), took])
    head = ["aspect", "rows", "judge", *STATISTICS, "time"]
    table(head, lines)
    table(["aspect", "difference", *DIFFERENCES], differences)
    checked(args, "baselines", head, lines)


if __name__ == "__main__":
    main()
