"""LAGER on a trained model: do inner layers add anything to the last one?

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/lager.py OUTPUT

Scores prometheus-eval's 320 responses to MT-bench's questions and the 430 emotion items, read at the end of the prompt and where a
short reply writes its grade. Layer weights are fitted by `judge fit` on one half of the questions (dialogues) and score the other half,
both ways round, so that every item is scored by weights that have not seen it; so is the best single layer. Every figure is Spearman's
correlation with its interval from `judge agree`, which draws whole questions. Where responses are graded, the correlation of their
length stands beside it, and what is left of a score's once the ranks of length are taken from the ranks of both (Pearson's correlation
of the two remainders).
"""

import json
import math
import random
import statistics

from common import arguments, data, figure, judge, model, of_another_model, ranks, read, report, table, write

CONDITIONS = ["prompt-end", "direct"]
EPOCHS = [5, 50]
SOURCES = {"prometheus": data("prometheus_eval", "mt_bench_eval.json"), "emotion": data("lager", "emotional_data.json")}
COMPARED = "spearman,difference_spearman"
# Of fewer items with a score nothing is said.
FEWEST = 50
# Scores whose correlation is also given beyond that of the response's length with both.
PARTIAL = ["e_score", "lager_w", "lager_wo", "best_layer"]


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return [x / sum(weights) for x in weights]


def expected(share):
    return sum((i + 1) * p for i, p in enumerate(share))


def mode(values):
    return values.index(max(values)) + 1


def combined(rows, weights):
    return [sum(w * row[k] for w, row in zip(weights, rows)) for k in range(len(rows[0]))]


def variants(logits, weights):
    """The ten variants of docs/lager.md, and each layer alone."""
    shares = [softmax(row) for row in logits]
    equal, ones = [1 / len(logits)] * len(logits), [1] * len(logits)
    weighted, mean = combined(logits, weights), combined(logits, equal)
    of_shares, sum_of_shares = combined(shares, weights), combined(shares, ones)
    found = {
        "direct_score": mode(logits[-1]),
        "e_score": expected(shares[-1]),
        "lager_w": expected(softmax(weighted)),
        "lager_wo": expected(softmax(mean)),
        "logits_agg_weighted_max_score": mode(weighted),
        "logits_agg_max_score": mode(mean),
        "prob_weighted_agg_e_score": expected(softmax(of_shares)),
        "prob_agg_e_score": expected(softmax(sum_of_shares)),
        "prob_weighted_agg_max_score": mode(of_shares),
        "prob_agg_max_score": mode(sum_of_shares),
        "prob_mean_e_score": expected(of_shares),
    }
    return found | {f"layer_{layer}": expected(share) for layer, share in enumerate(shares)}


def spearman(a, b):
    try:
        return statistics.correlation(ranks(a), ranks(b))
    except statistics.StatisticsError:  # all values alike
        return 0.0


def beyond(values, known):
    """What is left of the ranks of values once a line through the ranks of what is known is taken away."""
    x, y = ranks(known), ranks(values)
    try:
        line = statistics.linear_regression(x, y)
    except statistics.StatisticsError:
        return [0.0] * len(y)
    return [b - line.slope * a - line.intercept for a, b in zip(x, y)]


def human(row):
    return statistics.fmean(row["human"]) if isinstance(row["human"], list) else row["human"]


def clusters(name, source):
    """Which items belong together: the answers to a question, the feelings in a dialogue."""
    return [row["idx"] if name == "prometheus" else row["dialogue"] for row in source]


def length(name, row):
    """Of the response that is graded; emotions are not of a response."""
    if name != "prometheus":
        return None
    return len(row["instruction"].split("###Response to evaluate:\n")[1].split("\n\n###Reference Answer")[0])


def scored_items(out, name, condition, of):
    """The items that have a score, and how many there are."""
    scores = out / f"{name}.{condition}.jsonl"
    judge("score", "--input", SOURCES[name], "--output", scores, "--condition", condition, "--carry", "none", *of)
    rows = read(scores)
    return [row for row in rows if "logits" in row], len(rows)


def compare(out, name, condition, scored):
    """The items with every score, and what `judge fit` learned."""
    source = json.loads(SOURCES[name].read_text())
    groups = clusters(name, source)
    drawn = sorted(set(groups))
    random.Random(0).shuffle(drawn)
    half = {group: i % 2 for i, group in enumerate(drawn)}
    halves = [[row for row in scored if half[groups[row["id"]]] == side] for side in (0, 1)]
    files = [write(out / f"{name}.{condition}.half{side}.jsonl", rows) for side, rows in enumerate(halves)]
    items, learned = [], []
    for side, rows in enumerate(halves):
        fits = []
        for epochs in EPOCHS:
            path = out / f"{name}.{condition}.fit{side}.{epochs}.json"
            fits.append(report(path, "fit", "--valid", files[1 - side], "--input", files[side], "--epochs", str(epochs)))
        weights = [fit["weights"]["weights"] for fit in fits]
        learned.append(weights)
        of_others = [(variants(row["logits"], weights[0]), human(row)) for row in halves[1 - side]]
        names = [f"layer_{layer}" for layer in range(len(weights[0]))]
        best = max(names, key=lambda one: spearman([found[one] for found, _ in of_others], [score for _, score in of_others]))
        print(f"best layer of the other half: {best}", flush=True)
        found = [variants(row["logits"], weights[0]) for row in rows]
        for variant, theirs in fits[0]["variants"].items():  # what this script computes is what the program computes
            bias = statistics.fmean(one[variant] for one in found) - statistics.fmean(map(human, rows))
            assert abs(bias - theirs["bias"]) < 1e-4, (variant, bias, theirs["bias"])
        # The halves may choose layers of other levels: only the rank within its half is comparable.
        chosen = [rank / len(rows) for rank in ranks([one[best] for one in found])]
        for row, scores_of_row, own_rank in zip(rows, found, chosen):
            longer = variants(row["logits"], weights[1])
            own = {"id": row["id"], "human": row["human"], "cluster": groups[row["id"]], "label_mass": row.get("label_mass")}
            own |= {"best_layer": own_rank, f"lager_w_{EPOCHS[1]}_epochs": longer["lager_w"], "length": length(name, source[row["id"]])}
            items.append(own | scores_of_row)
    if name == "prometheus":
        lengths = [item["length"] for item in items]
        left = {score: beyond([item[score] for item in items], lengths) for score in PARTIAL}
        left["human"] = beyond([human(item) for item in items], lengths)
        for i, item in enumerate(items):
            item |= {f"beyond length: {score}": own[i] for score, own in left.items()}
    return write(out / f"{name}.{condition}.items.jsonl", items), learned


def agreement(out, items, score):
    return report(out / "lager.agree.json", "agree", "--input", items, "--predicted", score, "--second", "e_score", "--cluster", "cluster",
                  "--statistics", COMPARED, "--quiet")["statistics"]


def main():
    parser = of_another_model(arguments(__doc__))
    parser.add_argument("--items", nargs="+", choices=SOURCES, default=list(SOURCES), help="which items")
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS, help="where the grade is read")
    args = parser.parse_args()
    out = args.output
    columns = [(name, condition) for name in args.items for condition in args.conditions]
    found = {}
    for name, condition in list(columns):
        scored, total = scored_items(out, name, condition, model(name=args.model))
        print(f"{name}, {condition}: {len(scored)} of {total} items have a score", flush=True)
        if len(scored) < FEWEST:
            columns.remove((name, condition))
            continue
        items, learned = compare(out, name, condition, scored)
        rows = read(items)
        scores = [key for key in rows[0] if key not in ("id", "human", "cluster", "label_mass") and rows[0][key] is not None]
        found[name, condition] = {score: agreement(out, items, score) for score in scores if not score.startswith("beyond")}
        for score in PARTIAL if name == "prometheus" else []:
            left = report(out / "lager.agree.json", "agree", "--input", items, "--predicted", f"beyond length: {score}",
                          "--human", "beyond length: human", "--cluster", "cluster", "--statistics", "pearson", "--quiet")["statistics"]["pearson"]
            print(f"{name}, {condition}, {score} beyond length: {figure(left)}")
        mass = statistics.median(row["label_mass"] for row in rows)
        print(f"{name}, {condition}: median label mass {mass:.3f}")
        for side, weights in enumerate(learned):
            for epochs, own in zip(EPOCHS, weights):
                print(f"  half {side}, {epochs} epochs: weight of the last layer {own[-1]:.3f}, largest inner {max(own[:-1]):.3f}")
    head = ["score"] + [f"{name}, {condition}" for name, condition in columns]
    names = list(dict.fromkeys(score for column in found.values() for score in column))
    tables = {
        "Spearman": ("spearman", [one for one in names if not one.startswith("layer_")]),
        "less that of e_score": ("difference_spearman", [one for one in names if not one.startswith("layer_") and one != "e_score"]),
        "by layer": ("spearman", [one for one in names if one.startswith("layer_")]),
        "by layer, less that of e_score": ("difference_spearman", [one for one in names if one.startswith("layer_")]),
    }
    for title, (statistic, rows) in tables.items():
        print(f"\n{title}")
        table(head, [[one] + [figure(found[column].get(one, {}).get(statistic)) for column in columns] for one in rows])


if __name__ == "__main__":
    main()
