# numpy==2.4.6 scikit-learn==1.9.1 pytrec-eval-terrier==0.5.11
"""Writes the fixture of rankings of documents: trec_eval's nDCG, reciprocal rank, recall and average precision, and scikit-learn's nDCG.

    python scripts/metrics/retrieval_fixtures.py

retrieval.json   queries: `ranked`, the relevance of each document in the order of the ranking, and the statistics by trec_eval's names;
                 nDCG of both agree, or the script fails
"""

import json
import pathlib
import random

import numpy as np
import pytrec_eval
from sklearn.metrics import ndcg_score

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/judge-metrics/tests/fixtures/retrieval.json"
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
    OUT.write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
