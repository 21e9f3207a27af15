# numpy==2.4.6 scikit-learn==1.9.1 pytrec-eval-terrier==0.5.11
"""Writes the fixture of rankings of documents: trec_eval's nDCG, reciprocal rank, recall and average precision, and scikit-learn's nDCG.

    python scripts/metrics/retrieval_fixtures.py

retrieval.json   queries: `ranked`, the relevance of each document in the order of the ranking, and the statistics by trec_eval's names;
                 nDCG of both agree, or the script fails
trec.json        the text of a file of relevance and of two runs, and the mean of each statistic that trec_eval gives each run: with equal
                 scores, relevance below 0, relevant documents that a run leaves out, and queries of one file alone
"""

import json
import random

import numpy as np
import pytrec_eval
from sklearn.metrics import ndcg_score

from common import OUT

MEASURES = {"ndcg", "ndcg_cut.3,10", "recip_rank", "recall.5,10", "map"}


def main():
    draw = random.Random(7)
    rows = []
    for _ in range(40):
        documents = draw.randint(2, 25)
        ranked = [draw.choice([0, 0, 0, 1, 2, 3]) for _ in range(documents)]
        if not any(ranked):
            ranked[draw.randrange(documents)] = 1
        judged = {f"d{place}": relevance for place, relevance in enumerate(ranked)}
        run = {name: float(documents - place) for place, name in enumerate(judged)}
        found = pytrec_eval.RelevanceEvaluator({"q": judged}, MEASURES).evaluate({"q": run})["q"]
        scores = np.array([list(run.values())])
        for k, name in ((3, "ndcg_cut_3"), (10, "ndcg_cut_10"), (None, "ndcg")):
            assert abs(ndcg_score(np.array([ranked]), scores, k=k) - found[name]) < 1e-12, (ranked, name)
        rows.append({"ranked": ranked} | {name.replace("_cut", ""): value for name, value in sorted(found.items())})
    (OUT / "retrieval.json").write_text(json.dumps(rows) + "\n")
    (OUT / "trec.json").write_text(json.dumps(trec(draw)) + "\n")


def trec(draw):
    """Files as trec_eval reads them, and what it says of them."""
    qrels, runs = {}, [{}, {}]
    for query in range(12):
        documents = [f"d{place}" for place in range(30)]
        judged = {name: draw.choice([-1, 0, 0, 1, 2]) for name in draw.sample(documents, 15)}
        judged["d0"] = 2
        qrels[f"q{query}"] = judged
        for run in runs:
            run[f"q{query}"] = {name: draw.randint(0, 12) / 4 for name in draw.sample(documents, 20)}
    for run in runs:
        run["nobody judged it"] = {"d1": 1.0}
    lines = [f"{query} 0 {name} {relevance}" for query, judged in qrels.items() for name, relevance in judged.items()]
    written = {"qrels": "\n".join(lines) + "\n", "runs": [], "expected": []}
    for number, run in enumerate(runs):
        run = {query.replace(" ", "-"): found for query, found in run.items()}
        lines = [f"{query} Q0 {name} {rank} {score} run{number}" for query, found in run.items() for rank, (name, score) in enumerate(found.items())]
        written["runs"].append("\n".join(lines) + "\n")
        found = list(pytrec_eval.RelevanceEvaluator(qrels, MEASURES).evaluate(run).values())
        written["expected"].append({name.replace("_cut", ""): sum(of[name] for of in found) / len(found) for name in found[0]})
    return written


if __name__ == "__main__":
    main()
