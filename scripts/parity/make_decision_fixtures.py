# transformers==5.24.0 torch==2.15.0
"""Makes crates/judge-core/tests/fixtures/decision_answers.json: answers that transformers makes of probabilities.

    pip install transformers==5.24.0 torch==2.15.0
    python scripts/parity/make_decision_fixtures.py
"""

import json
import random
from pathlib import Path

from transformers.decision import DecisionConfig
from transformers.decision.template_utils import Question

ROOT = Path(__file__).resolve().parents[2]


def answers():
    drawn = random.Random(5)
    cases = []

    def case(question, probabilities):
        answer = Question.from_request("q", question, DecisionConfig()).answer(probabilities)
        cases.append({"question": question, "probabilities": probabilities, "answer": answer})

    for options in (1, 2, 3, 5, 9, 26):
        for kind in ("choice", "score"):
            names = [f"option {i}" for i in range(options)]
            question = {"type": kind, "instructions": "Which?", "criteria": names if kind == "score" else dict.fromkeys(names)}
            weights = [drawn.random() ** 3 for _ in names]
            case(question, [w / sum(weights) for w in weights])
            case(question, [1 / options] * options)  # a tie: the first of the likeliest
    case({"type": "choice", "criteria": {"b": {"c": 1}, "a": ["x"]}}, [0.25, 0.75])
    case({"type": "score", "criteria": ["low", {"is": "high"}, ["top"]]}, [0.5, 0.0, 0.5])
    for p in (0.0, 0.3, 1.0):
        case({"type": "noul", "instructions": "Is it?", "criteria": {"true": "yes"}}, [p, 1 - p])
    (ROOT / "crates/judge-core/tests/fixtures/decision_answers.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    answers()
