"""Does it matter how a model is asked? The same rows as a score, as yes or no, as five letters and as two, read at every layer.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/formats.py OUTPUT [--model MODEL] [--only QAGS] [--lens normed] [--results FILE]

score      an ordered score of five levels, answered with 1 to 5: its expected level
yes        yes or no: the log-odds of yes
letters    a choice of the same five levels, answered with A to E: its expected level
two        a choice of two, answered with A or B: the log-odds of the better one

MT-bench   320 responses, graded by GPT-4 (prometheus-eval)
emotions   430 emotions of characters in dialogues, graded by people (LAGER)
FaithBench 750 summaries, faithful or not by people
QAGS       235 summaries, by the share of their sentences that most of three people find supported

Each set is one `judge decide --layers all`; a row's state is read once for its four questions. Agreement between formats is the mean of
Spearman's correlations of all six pairs of formats. Its interval, and that of its difference from the last layer's, is a jackknife's over
clusters, of correlations of ranks in the whole set (95 %, normal, not corrected for the number of layers). The layer where it is greatest
is chosen without any label; agreement with people there, and less that of the last layer, is `judge agree`'s. *together* is the mean of
the four formats' ranks; its correlation with the characters of the row says how much of what they share is length.
"""

import collections
import itertools
import json
import math
import statistics

import rag
from common import (arguments, data, figure, judge, keep, model, of_lens, of_sets, ranks, read, report, run_record, some_of, table,
                    with_lens, write)

FORMATS = ["score", "yes", "letters", "two"]
LEVELS = ["not at all", "a little", "in part", "mostly", "fully"]


def mt_bench():
    rows = []
    for n, row in enumerate(json.loads(data("prometheus_eval", "mt_bench_eval.json").read_text())):
        text = row["instruction"]
        between = lambda start, end: text.split(start)[1].split(end)[0].strip()
        state = {"request": between("###The instruction to evaluate:\n", "###Response to evaluate:"),
                 "response": between("###Response to evaluate:\n", "###Reference Answer"),
                 "criterion": between("###Score Rubrics:\n[", "]\n")}
        rows.append({"id": str(n), "state": state, "grade": statistics.fmean(row["gpt4_score"]), "cluster": row["idx"]})
    return rows


def emotions():
    rows = json.loads(data("lager", "emotional_data.json").read_text())
    return [{"id": str(n), "state": {"dialogue": row["dialogue"], "character": row["human"], "emotion": row["emotion"]},
             "grade": float(row["emotion_score"]), "cluster": row["dialogue"]} for n, row in enumerate(rows)]


def faithbench():
    return [{"id": row["id"], "state": {"article": row["contexts"][0], "summary": row["response"]}, "grade": row["human"],
             "cluster": row["contexts"][0]} for row in rag.faithbench()]


def qags():
    rows = []
    for row in rag.qags():
        supported = [2 * sum(one["human"]) > len(one["human"]) for one in row["sentences"]]
        rows.append({"id": str(row["id"]), "state": {"article": row["contexts"][0], "summary": row["response"]},
                     "grade": statistics.fmean(supported), "cluster": row["contexts"][0]})
    return rows


SUMMARY = "the article support everything that the summary says?"
# The rows, the question of degree, and that of yes or no.
SETS = {
    "MT-bench": (mt_bench, "How well does the response satisfy the criterion?", "Does the response satisfy the criterion?"),
    "emotions": (emotions, "How strongly does the character feel the emotion at the end of the dialogue?",
                 "Does the character feel the emotion at the end of the dialogue?"),
    "FaithBench": (faithbench, f"How far does {SUMMARY}", f"Does {SUMMARY}"),
    "QAGS": (qags, f"How far does {SUMMARY}", f"Does {SUMMARY}"),
}


def questions(degree, yes):
    return {"score": {"type": "score", "instructions": degree, "criteria": LEVELS}, "yes": {"type": "noul", "instructions": yes},
            "letters": {"type": "choice", "instructions": degree, "criteria": dict.fromkeys(LEVELS)},
            "two": {"type": "choice", "instructions": yes, "criteria": {"it does": None, "it does not": None}}}


def value(logits):
    """Log-odds of the first of two, the expected level of five."""
    if len(logits) == 2:
        return logits[0] - logits[1]
    top = max(logits)
    weights = [math.exp(one - top) for one in logits]
    return sum(level * weight for level, weight in enumerate(weights)) / sum(weights)


class Sums:
    """What Pearson's correlation needs of points, of all and of each cluster, so that one cluster can be left out at no cost."""

    def __init__(self, x, y, clusters):
        self.of = collections.defaultdict(lambda: [0.0] * 6)
        for a, b, cluster in zip(x, y, clusters):
            self.of[cluster] = [s + t for s, t in zip(self.of[cluster], (1, a, b, a * a, b * b, a * b))]
        self.all = [sum(own) for own in zip(*self.of.values())]

    def correlation(self, without=None):
        n, x, y, xx, yy, xy = (s - t for s, t in zip(self.all, self.of[without])) if without is not None else self.all
        spread = (n * xx - x * x) * (n * yy - y * y)
        return (n * xy - x * y) / math.sqrt(spread) if spread > 0 else 0.0


def jackknife(estimate, left_out):
    n, mean = len(left_out), statistics.fmean(left_out)
    half = 1.96 * math.sqrt((n - 1) / n * sum((one - mean) ** 2 for one in left_out))
    return {"estimate": estimate, "low": estimate - half, "high": estimate + half, "method": "jackknife of clusters"}


def between_formats(ranked, clusters):
    """Of each layer, the mean correlation of two formats, and how much more it is than at the last layer."""
    distinct = list(dict.fromkeys(clusters))
    means = []
    for of_formats in zip(*(ranked[name] for name in FORMATS)):
        pairs = [Sums(a, b, clusters) for a, b in itertools.combinations(of_formats, 2)]
        means.append([statistics.fmean(pair.correlation(without) for pair in pairs) for without in (None, *distinct)])
    last = means[-1]
    return [{"layer": layer, "agreement": jackknife(own[0], own[1:]),
             "above_last": jackknife(own[0] - last[0], [a - b for a, b in zip(own[1:], last[1:])])} for layer, own in enumerate(means)]


def agreement(out, name, items):
    """How the score of each item at the chosen layer, and that of the last, agree with what stands in the place of people's grade."""
    path = write(out / f"{name}.items.jsonl", items)
    agree = lambda to, *more: report(out / f"{name}.{to}.json", "agree", "--quiet", "--input", path, "--cluster", "cluster", "--statistics",
                                     *more)["statistics"]
    at, last = agree("chosen", "spearman,difference_spearman", "--second", "last"), agree("last", "spearman", "--predicted", "last")
    return {"chosen": at.get("spearman"), "last": last.get("spearman"), "above_last": at.get("difference_spearman")}


def measured(out, name, of, lens):
    rows_of, *asked = SETS[name]
    out = out / with_lens(name.lower(), lens)
    out.mkdir(parents=True, exist_ok=True)
    rows, (form, labels) = rows_of(), (out / "questions.json", out / "labels.json")
    form.write_text(json.dumps(questions(*asked)))
    labels.write_text(json.dumps({"labels": {"score": ["1", "2", "3", "4", "5"]}}))
    judge("decide", "--input", write(out / "rows.jsonl", [{key: row[key] for key in ("id", "state")} for row in rows]), "--output", out / "answers.jsonl",
          "--questions", form, "--layers", "all", "--decision-config", labels, "--carry", "none", "--lens", lens, "--quiet", *of)
    answered = {row["id"]: row["tables"] for row in read(out / "answers.jsonl") if row.get("tables")}
    rows = [row for row in rows if row["id"] in answered]
    tables = [answered[row["id"]] for row in rows]
    layers = len(tables[0]["yes"]["layers"])
    ranked = {one: [ranks([value(row[one]["logits"][layer]) for row in tables]) for layer in range(layers)] for one in FORMATS}
    clusters = [row["cluster"] for row in rows]
    found = between_formats(ranked, clusters)
    # Layer 0 has read the prompt's last token alone, which says nothing of the row.
    chosen = max(found[1:], key=lambda one: one["agreement"]["estimate"])["layer"]
    ranked["together"] = [[statistics.fmean(own) for own in zip(*(ranked[one][layer] for one in FORMATS))] for layer in range(layers)]
    people = {}
    for one in (*FORMATS, "together"):
        items = [{"id": row["id"], "human": row["grade"], "cluster": str(row["cluster"]), "score": ranked[one][chosen][n], "last": ranked[one][-1][n]}
                 for n, row in enumerate(rows)]
        people[one] = agreement(out, one, items)
    # The same with the length of the row in the place of people.
    length = agreement(out, "length", [item | {"human": sum(map(len, row["state"].values()))} for item, row in zip(items, rows)])
    run = run_record(out / "answers.jsonl")
    return run, {"n": len(rows), "layers": found, "chosen": chosen, "people": people, "length": length, "program": run["program"]}


def main():
    parser = of_lens(of_sets(arguments(__doc__)))
    args = parser.parse_args()
    found = {}
    for name in some_of(parser, SETS, args.only):
        run, found[name] = measured(args.output, name, model(name=args.model), args.lens)
        if args.results:
            keep(args.results, run["model"], "formats", {with_lens(name, args.lens): found[name]})
    between, people = [], []
    for name, own in found.items():
        last, best = own["layers"][-1], own["layers"][own["chosen"]]
        between.append([name, own["n"], figure(last["agreement"]), own["chosen"], figure(best["agreement"]), figure(best["above_last"]),
                        figure(own["length"]["last"]), figure(own["length"]["chosen"])])
        people += [[name, one, figure(at["last"]), figure(at["chosen"]), figure(at["above_last"])] for one, at in own["people"].items()]
    table(["set", "rows", "between formats, last layer", "layer where it is greatest", "there", "above the last",
           "all formats with length, last layer", "at that layer"], between)
    table(["set", "format", "with people, last layer", "at that layer", "above the last"], people)


if __name__ == "__main__":
    main()
