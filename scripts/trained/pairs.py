"""A trained model as a judge of pairs: PandaLM's 999 and LLMBar's 326, in both orders.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/pairs.py OUTPUT [--every N] [--texts N]

Each judge of JUDGES is a run of `judge bench`. `forced, last layer` is read from the logits that `forced, layers` has kept, and the
choice of the longer response needs no model. --every takes every N-th pair of PandaLM's file, --texts the first N pairs of each
benchmark for the judge that writes, which takes longest.
"""

import json

from common import arguments, data, figure, judge, model, read, report, table, write

JUDGES = {
    "forced, layers": ["--template", "pair-forced", "--verdict", "layers"],
    "grades apart, last layer": ["--apart", "--verdict", "logits"],
    "ties allowed, text": ["--verdict", "text", "--max-new-tokens", "256"],
}
WRITE = {"ties allowed, text"}
COLUMNS = {
    "accuracy_mean": "accuracy, mean of both orders",
    "consistency": "consistency",
    "first_share": "shown first wins",
    "accuracy_mean_log_odds": "accuracy of the averaged log-odds",
    "auroc_mean_log_odds": "AUROC of the averaged log-odds",
}


def thinned(out, every):
    """Every so many of PandaLM's pairs."""
    source = data("pandalm", "testset-v1.json")
    if every == 1:
        return source
    path = out / f"pandalm.every{every}.json"
    path.write_text(json.dumps(json.loads(source.read_text())[::every]))
    return path


def texts(name, path):
    """The two responses of every pair, with the id that the program gives it."""
    if name == "pandalm":
        return [(row["idx"], str(row["response1"]), str(row["response2"])) for row in json.loads(path.read_text())]
    files = sorted(path.rglob("dataset.json"))
    rows = [(f"{path.parent.name}/{i}", row) for path in files for i, row in enumerate(json.loads(path.read_text()))]
    return [(pair, row["output_1"], row["output_2"]) for pair, row in rows]


def longer(out, name, path):
    """The verdicts of a judge that counts characters."""
    rows = []
    for pair, a, b in texts(name, path):
        given = "tie" if len(a) == len(b) else "A" if len(a) > len(b) else "B"
        rows.append({"id": pair, "given": given, "swapped": {"A": "B", "B": "A"}.get(given, "tie")})
    return write(out / f"{name}.longer.jsonl", rows)


def last_layer(out, name, bench):
    """The verdicts of the last layer in each order; the logits of both orders are by the letters of the given one."""
    rows = []
    for row in read(out / f"{name}.forced-layers.jsonl"):
        given, swapped = ("A" if order["logits"]["A"][-1] > order["logits"]["B"][-1] else "B" for order in row["orders"])
        rows.append({"id": row["id"], "given": given, "swapped": "B" if swapped == "A" else "A"})
    file = write(out / f"{name}.forced-last-layer.verdicts.jsonl", rows)
    return report(out / f"{name}.forced-last-layer.verdicts.json", *bench, "--verdicts", file, "--convention", "bare")


def of_layer(out, name, layer, bench, path):
    """What one layer's averaged log-odds choose: the report against people, and how often the choice is the longer response."""
    lengths = {pair: (len(a), len(b)) for pair, a, b in texts(name, path)}
    verdicts, beside = [], []
    for row in read(out / f"{name}.forced-layers.jsonl"):
        ahead = sum(order["logits"]["A"][layer] - order["logits"]["B"][layer] for order in row["orders"])
        choice = "A" if ahead > 0 else "B"
        verdicts.append({"id": row["id"], "given": choice, "swapped": "B" if choice == "A" else "A"})
        a, b = lengths[row["id"]]
        if a != b:
            beside.append({"id": row["id"], "predicted": choice, "human": "A" if a > b else "B"})
    file = write(out / f"{name}.layer{layer}.jsonl", verdicts)
    found = report(out / f"{name}.layer{layer}.json", *bench, "--verdicts", file, "--convention", "bare")
    file = write(out / f"{name}.layer{layer}.length.jsonl", beside)
    longer = report(out / "pairs.agree.json", "agree", "--quiet", "--input", file, "--labels", "A,B", "--statistics", "accuracy")
    return found, longer["statistics"]["accuracy"]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--every", type=int, default=1, help="take every N-th pair of PandaLM's")
    parser.add_argument("--texts", type=int, default=50, help="pairs for the judge that writes")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    benchmarks = {"llmbar": data("llmbar", "LLMBar"), "pandalm": thinned(args.output, args.every)}
    by_layer = {}
    for name, path in benchmarks.items():
        bench = ["bench", "--benchmark", name, "--data", path]
        reports = {"the longer response": report(args.output / f"{name}.longer.json", *bench, "--verdicts", longer(args.output, name, path),
                                                 "--convention", "bare")}
        for title, flags in JUDGES.items():
            limited = ["--limit", args.texts] if title in WRITE else []
            verdicts = args.output / f"{name}.{title.replace(', ', '-').replace(' ', '-')}.jsonl"
            # Where no text at all holds a verdict the program says so and makes no report.
            written = ["--output", verdicts, "--json", verdicts.with_suffix(".json")]
            if not judge(*bench, *written, *flags, *limited, *model(), may_fail=title in WRITE):
                print(f"{name}, {title}: no verdict in any of {args.texts} pairs", flush=True)
                continue
            reports[title] = json.loads(verdicts.with_suffix(".json").read_text())
        reports["forced, last layer"] = last_layer(args.output, name, bench)
        print(f"\n{name}")
        head = ["judge", "pairs", "without a verdict", *COLUMNS.values()]
        table(head, [[title, found["n"], found["unparsed"], *(figure(found["statistics"].get(key)) for key in COLUMNS)]
                     for title, found in reports.items()])
        for title, found in reports.items():
            if found.get("groups"):
                table([title, *COLUMNS.values()], [[group, *(figure(own.get(key)) for key in COLUMNS)] for group, own in found["groups"].items()])
            if found.get("layers"):
                by_layer[name] = {one["layer"]: one["accuracy_mean_log_odds"] for one in found["layers"]}
    print("\naccuracy of each layer's averaged log-odds, `forced, layers`")
    table(["layer", *by_layer], [[layer, *(figure(own[layer]) for own in by_layer.values())] for layer in by_layer["llmbar"]])
    rows = []
    best = {name: max(own, key=lambda layer: own[layer]["estimate"]) for name, own in by_layer.items()}
    for chosen_on, layer in best.items():
        for name, path in benchmarks.items():
            found, by_length = of_layer(args.output, name, layer, ["bench", "--benchmark", name, "--data", path], path)
            groups = {name: found["statistics"], **found.get("groups", {})}
            rows += [[f"{layer}, best on {chosen_on}", group, figure(own["accuracy"]), figure(by_length) if group == name else ""]
                     for group, own in groups.items()]
    print("the layers that are best on one of the benchmarks")
    table(["layer", "pairs", "accuracy", "names the longer response"], rows)


if __name__ == "__main__":
    main()
