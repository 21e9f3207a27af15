"""Which reading of a trained model agrees with people: its score, P(yes), layers, weights of layers, and a probe, on five sets of rows.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/readings.py OUTPUT [--model MODEL] [--only QAGS] [--lens normed] [--results FILE]

MT-bench            320 responses, graded by GPT-4 (prometheus-eval)
emotions            430 emotions of characters in dialogues, graded by people (LAGER); asked for scores alone
QAGS                714 sentences of summaries; whether most of three people find them supported by the article
JudgeBench, GPT-4o  350 questions with a right and a wrong response: whether each is right, and which of the two a reading chooses
RM-Bench, chat      129 questions with three good and three worse responses: the same, the best of six

Each set is one `judge try`, whose files stay in OUTPUT. --results keeps the figures of those that were made, so that a model can be put
beside others: please add the file of a model that is missing.
"""

import json

from common import arguments, data, figure, keep, model, of_lens, of_sets, report, some_of, table, with_lens, write

SUPPORTED = "How well does the article support what the response says? 5: all of it, 3: a part, 1: none of it, or the article says otherwise."


def qags(out):
    """Each sentence as a response to the request for a summary."""
    rows = []
    for article, line in enumerate(data("qags", "mturk_cnndm.jsonl").read_text().splitlines()):
        row = json.loads(line)
        for place, sentence in enumerate(row["summary_sentences"]):
            votes = [vote["response"] == "yes" for vote in sentence["responses"]]
            rows.append({"id": f"{article}/{place}", "instruction": f"Summarise this article in a sentence.\n\n{row['article']}",
                         "response": sentence["sentence"], "human": int(2 * sum(votes) > len(votes)), "article": article})
    return write(out / "qags.jsonl", rows)


def judgebench(out):
    """Both responses of each pair by themselves."""
    rows = []
    for pair in map(json.loads, data("judgebench", "gpt-4o-2024-05-13.jsonl").read_text().splitlines()):
        rows += [{"id": f"{pair['pair_id']}/{name}", "instruction": pair["question"], "response": pair[f"response_{name}"],
                  "human": int(pair["label"] == better)} for name, better in (("A", "A>B"), ("B", "B>A"))]
    return write(out / "judgebench.jsonl", rows)


def rmbench(out):
    """Each response by itself."""
    rows = [{"id": f"{row['id']}/{side}{n}", "instruction": row["prompt"], "response": response, "human": int(side == "chosen")}
            for row in json.loads(data("rmbench", "chat_filtered.json").read_text())
            for side in ("chosen", "rejected") for n, response in enumerate(row[side])]
    return write(out / "rm-bench.jsonl", rows)


SETS = {
    "MT-bench": lambda out: (data("prometheus_eval", "mt_bench_eval.json"), []),
    "emotions": lambda out: (data("lager", "emotional_data.json"), []),
    "QAGS": lambda out: (qags(out), ["--rubric", SUPPORTED, "--group", "article",
                                     "--criterion", "The article in the request supports everything that the response says."]),
    "JudgeBench, GPT-4o": lambda out: (judgebench(out), []),
    "RM-Bench, chat": lambda out: (rmbench(out), []),
}


def main():
    parser = of_lens(of_sets(arguments(__doc__)))
    args = parser.parse_args()
    found = {}
    for name in some_of(parser, SETS, args.only):
        of = SETS[name]
        path, more = of(args.output)
        folder = args.output / with_lens(name.split(",")[0].lower(), args.lens)
        found[name] = report(folder.with_suffix(".json"), "try", "--input", path, "--output", folder, "--lens", args.lens, "--quiet", *more,
                             *model(name=args.model))
        lines = [[reading["name"], figure(reading["agreement"]), figure(reading["behind_best"]), (reading["use"] or {}).get("layer") or "",
                  *(f"{point['agreement']:.3f}" if point["agreement"] is not None else "" for point in reading["by_labels"])]
                 for reading in found[name]["readings"]]
        sizes = max((reading["by_labels"] for reading in found[name]["readings"]), key=len)
        print(f"{name}, {found[name]['n']} rows, {found[name]['measure']}; recommended: {found[name]['recommended']}\n")
        table(["reading", "agreement", "behind the best", "layer", *(f"{point['labels']} labels" for point in sizes)], lines)
        if of := found[name].get("best_of"):
            print(f"\nBest of the answers to {of['questions']} questions; drawn at random {of['at_random']:.3f}\n")
            table(["reading", "chosen"], [[reading["name"], figure(reading["best_chosen"])] for reading in found[name]["readings"]])
    if args.results:
        for name, of in found.items():
            for reading in of["readings"]:
                reading["layer"] = (reading.pop("use") or {}).get("layer")
            kept = ("n", "groups", "measure", "level", "best_of", "readings", "recommended", "program")
            keep(args.results, of["model"], "readings", {with_lens(name, args.lens): {key: of[key] for key in kept if key in of}})


if __name__ == "__main__":
    main()
