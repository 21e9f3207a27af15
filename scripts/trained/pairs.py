"""A model as a judge of pairs on PandaLM, LLMBar, JudgeBench and RM-Bench's chat, in both orders and at every layer.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/pairs.py OUTPUT [--model MODEL] [--only LLMBar] [--judges forced] [--results FILE]

longer       the response with more characters
released     verdicts that others have published of the same pairs
likelihood   the response with fewer nats per token, given what was asked: the model as its own reward
grades       each response graded apart, 1 to 5, read at the last layer
forced       both responses in one prompt, in both orders: the log-odds of their labels at each layer, averaged over the orders

`forced` is read once for every layer. The first table has the verdicts of the last layer and the averaged log-odds of the last layer, of
all layers together, of the layer that is best on other questions of the same benchmark, and of the best one, which is too high. The
second has, on every benchmark, the layers that are best on one of them: less the last layer, and *beyond length*, the mean of their
accuracy where the better response is the longer one and where it is the shorter one.
Figures are those of `judge bench`. What is in OUTPUT is not read again; --results adds the figures to a file of results/.
"""

import functools
import json
import sys

from common import arguments, data, figure, judge, keep, model, of_sets, read, report, run_record, some_of, table, write

BENCHMARKS = {
    "PandaLM": ("pandalm", "pandalm", "testset-v1.json"),
    "LLMBar": ("llmbar", "llmbar", "LLMBar"),
    "JudgeBench, GPT-4o": ("judgebench", "judgebench", "gpt-4o-2024-05-13.jsonl"),
    "JudgeBench, Claude 3.5 Sonnet": ("judgebench", "judgebench", "claude-3-5-sonnet-20240620.jsonl"),
    "RM-Bench, chat": ("rmbench", "rmbench", "chat_filtered.json"),
}
JUDGES = ["longer", "released", "likelihood", "grades", "forced"]
# PandaLM's verdicts are numbers in a field; JudgeBench's files are read as they are.
RELEASED = {
    "PandaLM": {"PandaLM-7B": ("pandalm-7b-testset-v1.json", "pandalm_result"), "GPT-3.5": ("gpt-3.5-turbo-testset-v1.json", "gpt_result")},
    "JudgeBench, GPT-4o": {name: (f"verdicts-{name}.jsonl", None) for name in
                           ("Ray2333_GRM-Gemma-2B-rewardmodel-ft", "Skywork_Skywork-Reward-Gemma-2-27B", "o1-mini-2024-09-12")},
}
WORDS = {"0": "tie", "Tie": "tie", "1": "A", "2": "B"}
SWAPPED = {"A": "B", "B": "A"}


def by_lead(ahead):
    """The verdicts in both orders of who has A ahead of B by this much; None is no number."""
    verdict = "" if ahead is None else "A" if ahead > 0 else "B" if ahead < 0 else "tie"
    return verdict, SWAPPED.get(verdict, verdict)


class Benchmark:
    """Pairs, and what `judge bench` says of verdicts on them; files go to a folder of their own."""

    def __init__(self, output, name):
        self.name, (self.kind, *where) = name, BENCHMARKS[name]
        self.path, self.out = data(*where), output / self.kind if self.kind != "judgebench" else output / data(*where).stem
        self.out.mkdir(parents=True, exist_ok=True)
        self.read, self.record = self.out / "forced-layers.jsonl", None

    def command(self):
        return ["bench", "--quiet", "--benchmark", self.kind, "--data", self.path]

    def measured(self, name, verdicts, *flags):
        """The report on verdicts, {pair: (in the given order, swapped)}; "" is none."""
        return report(self.out / f"{name}.json", *self.command(), "--verdicts", self.written(name, verdicts), "--convention", "bare", *flags)

    def written(self, name, verdicts):
        rows = [{"id": pair, "given": given, "swapped": swapped} for pair, (given, swapped) in verdicts.items()]
        return write(self.out / f"{name}.verdicts.jsonl", rows)

    @functools.cached_property
    def pairs(self):
        """What was asked and the two responses of every pair, as the program shows them, with its id."""
        if self.kind == "pandalm":
            return {row["idx"]: (row["instruction"] + ("\n\n" + row["input"] if row["input"] else ""), str(row["response1"]), str(row["response2"]))
                    for row in json.loads(self.path.read_text())}
        if self.kind == "llmbar":
            files = sorted(self.path.rglob("dataset.json"))
            return {f"{file.parent.name}/{n}": (row["input"], row["output_1"], row["output_2"])
                    for file in files for n, row in enumerate(json.loads(file.read_text()))}
        if self.kind == "judgebench":
            return {row["pair_id"]: (row["question"], row["response_A"], row["response_B"]) for row in read(self.path)}
        # The program draws the order of RM-Bench's pairs, and says which response is the better one in pairs that it changes.
        changed = self.out / "changed.jsonl"
        judge("bias", "--benchmark", self.kind, "--data", self.path, "--write-perturbed", changed, "--perturbations", "restated", "--overwrite")
        better = {row["id"].rsplit("#", 1)[0]: row["human"] for row in read(changed)}
        found = {}
        for row in json.loads(self.path.read_text()):
            for i, chosen in enumerate(row["chosen"]):
                for j, rejected in enumerate(row["rejected"]):
                    pair = f"{row['id']}/{i}-{j}"
                    found[pair] = (row["prompt"], *((chosen, rejected) if better[pair] == "A" else (rejected, chosen)))
        return found

    def by_greater(self, name, value):
        """The report on verdicts for the response whose number is greater; None is no number."""
        verdicts = {}
        for pair, (question, *responses) in self.pairs.items():
            a, b = (value(question, response) for response in responses)
            verdicts[pair] = by_lead(None if None in (a, b) else a - b)
        return self.measured(name, verdicts)

    def longer(self, _):
        yield "the longer response", self.by_greater("longer", lambda _, response: len(response))["statistics"]

    def released(self, _):
        for name, (file, field) in RELEASED.get(self.name, {}).items():
            path = data(self.kind, file)
            if field:
                rows = [{"id": row["idx"], "given": WORDS.get(str(row[field]), "")} for row in json.loads(path.read_text())]
                path = write(self.out / f"{name}.verdicts.jsonl", rows)
            flags = ["--convention", "bare"] if field else []
            yield name, report(self.out / f"{name}.json", *self.command(), "--verdicts", path, *flags)["statistics"]

    def likelihood(self, of):
        yield "likelihood", self.alone("likelihood", of, "sft-evaluate", lambda row: None if row.get("nats_per_token") is None else -row["nats_per_token"])

    def grades(self, of):
        yield "grades", self.alone("grades", of, "score", lambda row: row.get("score"), "--points", "5")

    def alone(self, name, of, command, number, *flags):
        """Every response is read once, whatever number of pairs it is in."""
        texts = list(dict.fromkeys((question, text) for question, *both in self.pairs.values() for text in both))
        rows = [{"id": str(n), "instruction": question, "response": text} for n, (question, text) in enumerate(texts)]
        judge(command, "--input", write(self.out / "responses.jsonl", rows), "--output", self.out / f"{name}.jsonl", "--quiet", *flags, *of)
        self.record = run_record(self.out / f"{name}.jsonl")
        found = {texts[int(row["id"])]: number(row) for row in read(self.out / f"{name}.jsonl")}
        return self.by_greater(name, lambda *text: found.get(text))["statistics"]

    def forced(self, of):
        """The report on log-odds of every layer."""
        found = self.read.with_suffix(".json")
        if not found.exists():
            judge(*self.command(), "--output", self.read, "--json", found, "--template", "pair-forced", "--verdict", "layers", *of)
        self.record = run_record(self.read)
        made, asked = self.record["command"], [str(part) for part in (*self.command(), *of)]
        for option in ("--model", "--dtype", "--data"):
            was, now = (command[command.index(option) + 1] for command in (made, asked))
            if was != now:
                sys.exit(f"{self.read} was made with {option} {was}, not {now}: name another folder for files")
        return json.loads(found.read_text())

    @functools.cached_property
    def orders(self):
        """Of each pair people's choice, and by how much A is ahead of B at each layer in either order; None of a pair that could not be
        read. The logits of both orders are by the letters of the given one."""
        found = {}
        for row in read(self.read):
            tables = [order.get("logits") for order in row["orders"]]
            ahead = [[a - b for a, b in zip(of["A"], of["B"])] for of in tables] if len(tables) == 2 and all(tables) else None
            found[row["id"]] = row["human"], ahead
        return found

    def of_layer(self, layer):
        """What the averaged log-odds of one layer choose in each pair."""
        return {pair: by_lead(ahead and sum(order[layer] for order in ahead)) for pair, (_, ahead) in self.orders.items()}

    def layer(self, layer):
        """The report on a layer, less the last one."""
        return self.measured(f"layer{layer}", self.of_layer(layer), "--against", self.written("last-layer", self.of_layer(-1)))

    def beyond_length(self, layer):
        """How often a layer is right, the mean of pairs whose better response is the longer one and of those where it is the shorter one: a
        half for whoever goes by length alone. Without people's ties."""
        chosen, rows = self.of_layer(layer), []
        for pair, (human, _) in self.orders.items():
            question, a, b = self.pairs[pair]
            sides, marked = {"A": len(a) > len(b), "B": len(b) > len(a)}, (human, chosen[pair][0])
            if len(a) != len(b) and all(one in sides for one in marked):
                human, predicted = ("longer" if sides[one] else "shorter" for one in marked)
                rows.append({"id": pair, "human": human, "predicted": predicted, "question": question})
        found = report(self.out / f"layer{layer}.length.json", "agree", "--quiet", "--input", write(self.out / f"layer{layer}.length.jsonl", rows),
                       "--predicted", "predicted", "--labels", "longer,shorter", "--cluster", "question", "--statistics", "balanced_accuracy")
        return found["statistics"]["balanced_accuracy"] | {"n": len(rows)}

    def last_verdicts(self):
        """The report on what the last layer says in each order."""
        said = {}
        for pair, (_, ahead) in self.orders.items():
            given, swapped = ("A" if order[-1] > 0 else "B" for order in ahead) if ahead else ("", "")
            said[pair] = (given, SWAPPED.get(swapped, swapped))
        return self.measured("last-layer-verdicts", said)


def best(found):
    """The layer with the greatest accuracy, the first of equals."""
    return max(found["layers"], key=lambda one: one["accuracy_mean_log_odds"]["estimate"])


def main():
    parser = of_sets(arguments(__doc__))
    parser.add_argument("--judges", default=",".join(JUDGES), help="some of them, with commas between")
    args = parser.parse_args()
    judges, of = args.judges.split(","), model(name=args.model)
    if unknown := set(judges) - set(JUDGES):
        parser.error(f"no judge is called {', '.join(sorted(unknown))}; there are {', '.join(JUDGES)}")
    benchmarks = [Benchmark(args.output, name) for name in some_of(parser, BENCHMARKS, args.only)]
    lines, forced, kept = [], {}, {}
    for benchmark in benchmarks:
        accuracy = {name: own["accuracy"] for name in JUDGES[:-1] if name in judges for name, own in getattr(benchmark, name)(of)}
        if "forced" in judges:
            found = forced[benchmark.name] = benchmark.forced(of)
            verdicts = benchmark.last_verdicts()["statistics"]
            accuracy |= {"commonest answer": found["statistics"]["majority_share"], "forced, verdicts of the last layer": verdicts["accuracy_mean"],
                         "forced, first response named": verdicts["first_share"], "forced, last layer": found["layers"][-1]["accuracy_mean_log_odds"],
                         "forced, mean of all layers": found["statistics"]["accuracy_mean_log_odds"],
                         "forced, layer chosen on other questions": found["statistics"]["accuracy_chosen_layer"],
                         f"forced, best layer ({best(found)['layer']})": best(found)["accuracy_mean_log_odds"]}
        kept[benchmark.name] = {"accuracy": accuracy}
        lines += [[benchmark.name, name, own["n"], figure(own)] for name, own in accuracy.items()]
    table(["pairs", "judge", "n", "accuracy"], lines)
    lines, last = [], max((found["layers"][-1]["layer"] for found in forced.values()), default=0)
    for layer in sorted({best(found)["layer"] for found in forced.values()} | {last}) if forced else []:
        for benchmark in benchmarks:
            own, beyond = benchmark.layer(layer), benchmark.beyond_length(layer)
            accuracy, above = own["statistics"]["accuracy"], own["difference"]["difference_accuracy"] if layer != last else None
            carried = kept[benchmark.name].setdefault("carried", {})
            carried[str(layer)] = {"accuracy": accuracy, "above_last": above, "beyond_length": beyond}
            is_best = best(forced[benchmark.name])["layer"] == layer
            lines.append([f"{layer}, best on this" if is_best else layer, benchmark.name, figure(accuracy), figure(above) if above else "",
                          figure(beyond), beyond["n"]])
    table(["layer", "pairs", "accuracy", "less the last layer's", "beyond length", "of pairs"], lines)
    if args.results:
        for benchmark in benchmarks:
            if benchmark.record is None:
                parser.error("--results keeps what a model has said: name one of likelihood, grades and forced in --judges")
            own = kept[benchmark.name] | {"program": benchmark.record["program"]}
            if benchmark.name in forced:
                own["layers"] = forced[benchmark.name]["layers"]
            keep(args.results, benchmark.record["model"], "pairs", {benchmark.name: own})


if __name__ == "__main__":
    main()
