"""A trained model on the preference benchmarks of today: JudgeBench's 620 pairs and RM-Bench's 129 chat rows, nine pairs each.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/preferences.py OUTPUT [--every N] [--only RM-Bench]

likelihood   the response with fewer nats per token, given what was asked: the model as its own reward
grades       each response graded apart, 1 to 5, read at the last layer
forced       both responses in one prompt, in both orders, averaged log-odds; every N-th pair of JudgeBench (default 3), none of RM-Bench
longer       the response with more characters, without a model

Every response is read once, whatever number of pairs it is in. Figures are those of `judge bench`.
"""

import json

from common import arguments, data, figure, judge, model, read, report, table, write

FILES = {"JudgeBench, GPT-4o": ("judgebench", "judgebench", "gpt-4o-2024-05-13.jsonl"),
         "JudgeBench, Claude 3.5 Sonnet": ("judgebench", "judgebench", "claude-3-5-sonnet-20240620.jsonl"),
         "RM-Bench, chat": ("rmbench", "rmbench", "chat_filtered.json")}


def pairs(benchmark, path):
    """What was asked and the two responses of every pair, with the id that the program gives it, whichever of the two is better."""
    if benchmark == "judgebench":
        return [(row["pair_id"], row["question"], row["response_A"], row["response_B"]) for row in read(path)]
    rows = json.loads(path.read_text())
    styles = [(i, j) for i in range(3) for j in range(3)]
    return [(f"{row['id']}/{i}-{j}", row["prompt"], row["chosen"][i], row["rejected"][j]) for row in rows for i, j in styles]


def verdicts(path, found, shown):
    """A verdict on each pair by the greater number; `shown` has the two responses in the order of the program."""
    rows = []
    for pair, (question, a, b) in shown.items():
        values = [found.get((question, text)) for text in (a, b)]
        verdict = "" if None in values else "tie" if values[0] == values[1] else "A" if values[0] > values[1] else "B"
        rows.append({"id": pair, "given": verdict, "swapped": {"A": "B", "B": "A"}.get(verdict, verdict)})
    return write(path, rows)


def in_order(out, benchmark, path):
    """The pairs as the program shows them. It draws the order of RM-Bench's, and says which is the better one in pairs that it writes."""
    if benchmark == "judgebench":
        return {pair: texts for pair, *texts in pairs(benchmark, path)}
    judge("bias", "--benchmark", benchmark, "--data", path, "--write-perturbed", out / "shown.jsonl", "--perturbations", "restated",
          "--overwrite")
    better = {row["id"].rsplit("#", 1)[0]: row["human"] for row in read(out / "shown.jsonl")}
    return {pair: (question, chosen, rejected) if better[pair] == "A" else (question, rejected, chosen)
            for pair, question, chosen, rejected in pairs(benchmark, path)}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--every", type=int, default=3, help="take every N-th pair of JudgeBench for the judge that sees both responses")
    parser.add_argument("--only", default="", help="the files whose names have this in them")
    args = parser.parse_args()
    lines, groups = [], []
    for title, (benchmark, *where) in FILES.items():
        if args.only not in title:
            continue
        path = data(*where)
        out = args.output / path.stem
        out.mkdir(parents=True, exist_ok=True)
        shown = in_order(out, benchmark, path)
        texts = list(dict.fromkeys((question, text) for question, a, b in shown.values() for text in (a, b)))
        rows = [{"id": str(n), "instruction": question, "response": text} for n, (question, text) in enumerate(texts)]
        responses = write(out / "responses.jsonl", rows)
        judge("sft-evaluate", "--input", responses, "--output", out / "likelihood.jsonl", "--quiet", *model())
        judge("score", "--input", responses, "--output", out / "grades.jsonl", "--points", "5", "--quiet", *model())
        found = {name: {texts[int(row["id"])]: row for row in read(out / f"{name}.jsonl")} for name in ("likelihood", "grades")}
        of = {"likelihood": {text: -row["nats_per_token"] for text, row in found["likelihood"].items() if row.get("nats_per_token") is not None},
              "grades": {text: row["score"] for text, row in found["grades"].items() if row.get("score") is not None},
              "longer": {text: len(text[1]) for text in texts}}
        bench = ["bench", "--benchmark", benchmark, "--quiet"]
        reports = {}
        for name, found in of.items():
            file = verdicts(out / f"{name}.verdicts.jsonl", found, shown)
            reports[name] = report(out / f"{name}.json", *bench, "--data", path, "--verdicts", file, "--convention", "bare")
        if benchmark == "judgebench":
            some = write(out / "some.jsonl", read(path)[::args.every])
            reports["forced"] = report(out / "forced.json", *bench, "--data", some, "--output", out / "forced.jsonl",
                                       "--template", "pair-forced", "--verdict", "logits", *model())
        for name, found in reports.items():
            own = found["statistics"]
            accuracy = own.get("accuracy_mean_log_odds") if name == "forced" else own["accuracy"]
            first = figure(own["first_share"]) if name == "forced" else ""
            lines.append([title, name, found["n"], found["unparsed"], figure(accuracy), first])
            key = "accuracy_mean_log_odds" if name == "forced" else "accuracy"
            groups += [[title, name, group, figure(of_group.get(key))] for group, of_group in found["groups"].items()]
    table(["pairs", "judge", "n", "without a verdict", "accuracy", "shown first wins"], lines)
    table(["pairs", "judge", "subset", "accuracy"], groups)


if __name__ == "__main__":
    main()
