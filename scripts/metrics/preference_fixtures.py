# scipy==1.17.1 numpy==2.4.6 statsmodels==0.15.0 scikit-learn==1.9.1
"""Writes crates/judge-metrics/tests/fixtures/preference.json and counts verdicts in the real files.

    python scripts/metrics/preference_fixtures.py [FOLDER OF REAL DATA]

The tests of McNemar, the binomial, two proportions and paired differences are SciPy's and statsmodels'. No package has the statistics
of a judge in two orders and of votes: each is written here once more, straight from its published definition and by
brute force where there is one.

Verdicts are strings of 1 (first item), 2 (second item), T (tie) and - (unparsed).

With a folder, the counts on which crates/judge-metrics/tests/it/preference_data.rs rests are printed; nothing of it is written.
"""

import collections
import itertools
import json
import pathlib
import random
import sys

import numpy as np
import sklearn.metrics
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint, proportions_ztest

from common import OUT, require

require()
SWAP = {"1": "2", "2": "1", "T": "T", "-": "-"}
random.seed(20)
rng = np.random.default_rng(20)


def draw(n, letters, weights=None):
    return "".join(random.choices(letters, weights, k=n))


# --- tests -------------------------------------------------------------------------------------------------------------


def mcnemar_cases():
    cases = []
    for b, c in [(1, 0), (0, 7), (6, 1), (5, 5), (10, 11), (76, 155), (121, 55), (300, 290), (4000, 1000), (100000, 100300)]:
        table = [[3, b], [c, 4]]
        row = {"b": b, "c": c}
        for name, kw in [("exact", {"exact": True}), ("chi", {"exact": False, "correction": False}),
                         ("corrected", {"exact": False, "correction": True})]:
            if name == "corrected" and b == c:
                continue
            result = mcnemar(table, **kw)
            row[name] = [float(result.statistic), float(result.pvalue)]
        cases.append(row)
    return cases


def binomial_cases():
    pairs = [(0, 1), (1, 1), (0, 5), (3, 5), (5, 10), (6, 10), (19, 20), (245, 266), (50, 100), (611, 1200), (100900, 200000)]
    return [[k, n, float(stats.binomtest(k, n, 0.5).pvalue)] for k, n in pairs]


def proportion_cases():
    cases = []
    for count, n in [(0, 1), (1, 1), (0, 20), (20, 20), (7, 10), (486, 564), (1, 100000), (99999, 100000)]:
        for level in (0.95, 0.5, 0.999):
            wilson = proportion_confint(count, n, 1 - level, method="wilson")
            exact = stats.binomtest(count, n).proportion_ci(level)
            cases.append([count, n, level, *(float(end) for end in (*wilson, *exact))])
    return cases


def two_proportion_cases():
    cases = []
    for x1, n1, x2, n2 in [(56, 70, 48, 80), (9, 10, 3, 10), (10, 10, 0, 20), (10, 10, 19, 20), (0, 10, 1, 9), (1, 1, 0, 1),
                           (5, 56, 0, 29), (812, 1000, 640, 900), (3, 7, 3, 7)]:
        row = {"own": [x1, n1], "other": [x2, n2]}
        for level in (0.95, 0.9):
            row[str(level)] = [float(v) for v in confint_proportions_2indep(x1, n1, x2, n2, method="newcomb", alpha=1 - level)]
        row["p"] = float(proportions_ztest([x1, x2], [n1, n2])[1])
        cases.append(row)
    return cases


def paired_cases():
    cases = []
    for n, scale, offset, tied in [(2, 1, 0, False), (3, 1, 2, True), (5, 1e-9, 1e6, False), (12, 1, 0, True), (60, 3, 5, True),
                                   (200, 1e8, -1e8, False)]:
        # Whole numbers divided by a power of two: differences are exact, so that the reference does not drown in rounding.
        a = rng.integers(1, 6 if tied else 2**20, n).astype(float)
        b = a + rng.integers(-1, 3 if tied else 2**19, n)
        a, b = a * 2.0 ** round(np.log2(scale)), b * 2.0 ** round(np.log2(scale))
        test = stats.ttest_rel(b, a)
        if not np.isfinite(test.pvalue):
            raise SystemExit("choose other columns")
        d = b - a
        row = {"a": a.tolist(), "b": b.tolist(), "mean": float(d.mean()), "sd": float(d.std(ddof=1)), "p": float(test.pvalue)}
        for level in (0.95, 0.8):
            interval = test.confidence_interval(level)
            row[str(level)] = [float(interval.low), float(interval.high)]
        cases.append(row)
    return cases


# --- both orders -------------------------------------------------------------------------------------------------------


def kept(policy, *verdicts):
    """The verdicts after the policy, None if the item is left out; '-' stands for what stays unparsed."""
    if "-" in verdicts:
        if policy == "dropped":
            return None
        if policy == "tie":
            return tuple("T" if v == "-" else v for v in verdicts)
    return verdicts


def same(policy, a, b):
    return a == b and (a != "-" or policy == "own_label")


def two_order(policy, original, swapped):
    c = collections.Counter()
    for v1, v2 in zip(original, swapped):
        c["unparsed"] += "-" in (v1, v2)
        pair = kept(policy, v1, v2)
        if pair is None:
            continue
        v1, v2 = pair
        c["n"] += 1
        c["consistent"] += same(policy, v1, v2)
        # JudgeLM: a = -win in the order given, b = win in the other, both about the first place shown.
        shown = (v1, SWAP[v2])
        if "-" not in shown:
            win = {"1": 1, "2": -1, "T": 0}
            a, b = -win[shown[0]], win[shown[1]]
            c["before"] += a < b
            c["after"] += a > b
            c["always_first"] += shown == ("1", "1")
            c["always_second"] += shown == ("2", "2")
        elif not same(policy, v1, v2):
            c["undirected"] += 1
    names = ["n", "unparsed", "consistent", "before", "after", "always_first", "always_second", "undirected"]
    return {name: c[name] for name in names}


def fairness(counts):
    """Shi et al. (2024) in their own steps: weigh, then rescale between the extremes that n pairs allow."""
    before, after, n = counts["before"], counts["after"], counts["n"]
    flips = before + after
    raw = after * (after / flips) - before * (before / flips) if flips else 0.0
    return (raw - -n) / (n - -n) * 2 - 1


def two_order_cases():
    cases = []
    for n, weights in [(1, (1, 1, 1, 1)), (7, (1, 1, 1, 1)), (40, (4, 3, 2, 1)), (40, (8, 1, 1, 0)), (200, (5, 4, 2, 1)),
                       (30, (0, 0, 0, 1)), (12, (1, 1, 0, 0))]:
        original, swapped = draw(n, "12T-", weights), draw(n, "12T-", weights)
        case = {"original": original, "swapped": swapped}
        for policy in ("dropped", "tie", "wrong", "own_label"):
            counts = two_order(policy, original, swapped)
            if counts["n"]:
                counts["fairness"] = fairness(counts)
            case[policy] = counts
        cases.append(case)
    return cases


# --- votes -------------------------------------------------------------------------------------------------------------


def comparable(a, b):
    return a["q"] == b["q"] and a["turn"] == b["turn"] and set(a["models"]) == set(b["models"]) and a["who"] != b["who"]


def winner(vote):
    return {"1": vote["models"][0], "2": vote["models"][1], "T": "tie"}[vote["verdict"]]


def agreement(pairs, ties):
    by_question = collections.defaultdict(lambda: [0, 0])
    for a, b in pairs:
        if ties or "tie" not in (winner(a), winner(b)):
            by_question[a["q"]][0] += winner(a) == winner(b)
            by_question[a["q"]][1] += 1
    return dict(sorted(by_question.items()))


def vote_cases():
    draw(132, "1")  # not written: the votes stay as they were drawn
    cases = []
    for questions, models, people, n in [(1, 2, 2, 3), (3, 3, 4, 40), (6, 4, 5, 120)]:
        def votes(count, who):
            out = []
            for _ in range(count):
                out.append({"q": f"q{random.randrange(questions)}", "models": random.sample([f"m{i}" for i in range(models)], 2),
                            "turn": random.randint(1, 2), "who": random.choice(who), "verdict": draw(1, "12T")})
            return out
        human, judge = votes(n, [f"p{i}" for i in range(people)]), votes(n // 2 + 1, ["judge", "p0"])
        between = [(a, b) for a in judge for b in human if comparable(a, b)]
        among = [(a, b) for a, b in itertools.combinations(human, 2) if comparable(a, b)]
        cases.append({"human": human, "judge": judge,
                      "between": {"counted": agreement(between, True), "excluded": agreement(between, False)},
                      "among": {"counted": agreement(among, True), "excluded": agreement(among, False)}})
    return cases


# --- the real files ----------------------------------------------------------------------------------------------------


def real_counts(folder):
    print("\nMT-bench: agreeing comparisons of all, by setup and turn")
    votes = {}
    for name in ("human", "gpt4_pair"):
        with open(folder / f"mtbench/{name}.jsonl") as lines:
            rows = [json.loads(line) for line in lines]
        print(" ", name, len(rows), dict(collections.Counter(row["winner"] for row in rows)))
        votes[name] = collections.defaultdict(list)
        for row in rows:
            verdict = "tie" if "tie" in row["winner"] else row[row["winner"]]
            key = (row["turn"], row["question_id"], frozenset((row["model_a"], row["model_b"])))
            votes[name][key].append((row["judge"], verdict))

    def total(pairs, ties):
        pairs = [(a, b) for a, b in pairs if a[0] != b[0] and (ties or "tie" not in (a[1], b[1]))]
        agreed = sum(a[1] == b[1] for a, b in pairs)
        return f"{agreed}/{len(pairs)} = {agreed / len(pairs):.4f}"

    everybody = ("expert", "author")
    for who in (("expert",), everybody):
        human = {key: [v for v in list_ if v[0].startswith(who)] for key, list_ in votes["human"].items()}
        for turns in ((1,), (2,), (1, 2)):
            keys = [key for key in human if key[0] in turns]
            between = [(a, b) for key in keys for a in votes["gpt4_pair"].get(key, []) for b in human[key]]
            among = [pair for key in keys for pair in itertools.combinations(human[key], 2)]
            print(f"  {'+'.join(who)}, turn {turns}: GPT-4–human S1 {total(between, True)}, S2 {total(between, False)}; "
                  f"human–human S1 {total(among, True)}, S2 {total(among, False)}")

    c, credits = collections.Counter(), []
    for key, judged in votes["gpt4_pair"].items():
        if "gpt-4" not in key[2]:
            continue
        own = {"gpt-4": "own", "tie": "tie"}
        ((_, verdict),) = judged
        for person, preferred in votes["human"].get(key, []):
            if person.startswith("expert"):
                judge, human = own.get(verdict, "other"), own.get(preferred, "other")
                c[human] += 1
                c["picked " + human] += judge == human
                credit = {"own": 1, "tie": 0.5, "other": 0}
                credits.append((credit[judge], credit[human]))
    judge, human = np.array(credits).T
    interval = stats.ttest_rel(judge, human).confidence_interval(0.95)
    print("  GPT-4 on its own answers, beside each expert:", dict(c), len(credits), f"win rates {judge.sum()} {human.sum()}",
          f"difference {(judge - human).mean():.16f} in {interval.low:.16f} to {interval.high:.16f}")

    print("LLMBar: false, true, both, equal, of; first/second both times; kappa of order 1 with gold")
    for path in sorted((folder / "llmbar").rglob("result.json")):
        rows = json.loads(path.read_text())
        c = collections.Counter()
        gold, first = [], []
        for row in rows:
            label = str(row["label"])
            v1, v2 = (row["results"][-1][f"swap = {swap}"]["winner"] for swap in (False, True))
            c["false"] += v1 == label
            c["true"] += v2 == label
            c["both"] += v1 == v2 == label
            c["equal"] += v1 == v2
            c["null"] += None in (v1, v2)
            c["always first"] += (v1, v2) == ("1", "2")
            c["always second"] += (v1, v2) == ("2", "1")
            gold.append(label)
            first.append(str(v1))
        kappa = sklearn.metrics.cohen_kappa_score(gold, first)
        print("  ", path.relative_to(folder).parent, len(rows), dict(c), f"{kappa:.16f}")


if __name__ == "__main__":
    fixture = {"mcnemar": mcnemar_cases(), "binomial": binomial_cases(), "proportion": proportion_cases(), "two_proportions": two_proportion_cases(),
               "paired": paired_cases(), "two_order": two_order_cases(), "votes": vote_cases()}
    path = OUT / "preference.json"
    path.write_text(json.dumps(fixture, separators=(",", ":")) + "\n")
    print(path.name, path.stat().st_size, "bytes")
    if len(sys.argv) > 1:
        real_counts(pathlib.Path(sys.argv[1]))
