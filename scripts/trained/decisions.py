"""A trained model's decisions: what a fitted temperature and fitted layer weights are worth on 200 labels.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/decisions.py OUTPUT

Public data as typed questions: which response of LLMBar's 326 pairs is better (a choice of two), the same of every third of PandaLM's
(a choice of three, with the share of its three raters), and how strong an emotion is (a score of nine levels, LAGER's 430 items). Of each,
200 rows are fitted on and the others measured; emotions are split by dialogue. The share of each option in the 200 labels stands beside the
model: it needs none.
"""

import json
import math
import random

from common import arguments, data, judge, model, of_another_model, figure, report, table, write

LABELS = 200
STATISTICS = {"accuracy": "accuracy", "majority_share": "constant", "predicted_mode_share": "commonest answer", "kl": "KL", "brier": "Brier", "ece": "ECE"}


def llmbar():
    rows = []
    for path in sorted(data("llmbar", "LLMBar").rglob("dataset.json")):
        for i, row in enumerate(json.loads(path.read_text())):
            state = {"request": row["input"], "first response": row["output_1"], "second response": row["output_2"]}
            rows.append((f"{path.parent.name}/{i}", state, ["first", "second"][int(row["label"]) - 1]))
    question = {"type": "choice", "instructions": "Which response does what the request asks for?", "criteria": {"first": "the first response", "second": "the second response"}}
    return rows, question


def pandalm():
    rows = []
    for row in json.loads(data("pandalm", "testset-v1.json").read_text())[::3]:
        request = row["instruction"] + ("\n\n" + row["input"] if row["input"] else "")
        state = {"request": request, "first response": str(row["response1"]), "second response": str(row["response2"])}
        votes = [int(row[f"annotator{i}"]) for i in (1, 2, 3)]
        share = {"first": votes.count(1), "second": votes.count(2), "neither": votes.count(0)}
        rows.append((f"{row['idx']}", state, share))
    question = {"type": "choice", "instructions": "Which response is better?",
                "criteria": {"first": "the first response", "second": "the second response", "neither": "they are equally good"}}
    return rows, question


def emotions():
    rows = []
    for i, row in enumerate(json.loads(data("lager", "emotional_data.json").read_text())):
        state = {"dialogue": row["dialogue"], "character": row["human"], "emotion": row["emotion"]}
        rows.append((f"{i}", state, round(float(row["emotion_score"])) - 1))
    question = {"type": "score", "instructions": "How strongly does the character feel the emotion at the end of the dialogue?",
                "criteria": ["not at all", "barely", "weakly", "somewhat", "moderately", "clearly", "strongly", "very strongly", "overwhelmingly"]}
    return rows, question


def halves(rows):
    """The rows that are fitted on and those that are measured; states that share a dialogue stay together."""
    groups = {}
    for row in rows:
        state = row[1]
        groups.setdefault(json.dumps(state.get("dialogue", row[0])), []).append(row)
    drawn = list(groups.values())
    random.Random(0).shuffle(drawn)
    fitted, measured = [], []
    for group in drawn:
        (fitted if len(fitted) < LABELS else measured).extend(group)
    return fitted, measured


def shares(rows, question):
    """The share of each option in the labels, with one vote more for each, so that none has 0."""
    options = list(question["criteria"]) if question["type"] == "choice" else [str(i) for i in range(len(question["criteria"]))]
    sums = dict.fromkeys(options, 1.0)
    for _, _, label in rows:
        label = label if isinstance(label, dict) else {str(label): 1}
        for option, votes in label.items():
            sums[option] += votes / sum(label.values())
    return {option: share / (len(rows) + len(options)) for option, share in sums.items()}


def prior(rows, share):
    """The same figures of an answer that is always the same."""
    best, right, clear, kl, brier = max(share, key=share.get), 0, 0, 0.0, 0.0
    for _, _, label in rows:
        label = label if isinstance(label, dict) else {str(label): 1}
        target = {option: label.get(option, 0) / sum(label.values()) for option in share}
        most = [option for option, t in target.items() if t == max(target.values())]
        # Where people are divided evenly nobody is right.
        clear += len(most) == 1
        right += most == [best]
        kl += sum(t * math.log(t / share[o]) for o, t in target.items() if t > 0)
        brier += sum((share[o] - t) ** 2 for o, t in target.items())
    return [f"{right / clear:.3f}", "", "1.000", f"{kl / len(rows):.3f}", f"{brier / len(rows):.3f}", ""]


def main():
    parser = of_another_model(arguments(__doc__))
    args = parser.parse_args()
    out = args.output
    of = model(name=args.model)
    for name, source in (("llmbar", llmbar), ("pandalm", pandalm), ("emotions", emotions)):
        rows, question = source()
        fitted, measured = halves(rows)
        questions = out / f"{name}.questions.json"
        questions.write_text(json.dumps({"q": question}))
        files = {}
        for part, of_part in (("fit", fitted), ("test", measured)):
            files[part] = write(out / f"{name}.{part}.jsonl", [{"id": i, "state": s, "labels": {"q": a}} for i, s, a in of_part])
        def decide(part, judged, *more):
            return ["decide", "--input", files[part], "--questions", questions, "--output", out / f"{name}.{part}.{judged}.jsonl", *of, *more]
        weights, cold = out / f"{name}.weights.json", out / f"{name}.temperature.json"
        judge(*decide("fit", "weights", "--fit", weights))
        judge(*decide("fit", "temperature", "--fit", cold, "--fit-temperature"))
        found = {
            "last layer": report(out / f"{name}.plain.json", *decide("test", "plain")),
            "last layer, temperature": report(out / f"{name}.cold.json", *decide("test", "cold", "--weights", cold)),
            "all layers, weights and temperature": report(out / f"{name}.fitted.json", *decide("test", "fitted", "--weights", weights)),
        }
        kinds = json.loads(weights.read_text())["content"]["kinds"][question["type"]]
        print(f"{name}: {len(fitted)} labels, {len(measured)} decisions measured; weight of the last layer {kinds['layers'][-1]:.3f}, "
              f"temperature {kinds['temperature']:.2f}; cross-entropy of the labels {kinds['loss'][0]:.3f} -> {kinds['loss'][1]:.3f}")
        lines = [["the share of each option in the labels"] + prior(measured, shares(fitted, question))]
        for judged, report_of in found.items():
            lines.append([judged] + [figure(report_of["all"][statistic]) for statistic in STATISTICS])
        table([name, *STATISTICS.values()], lines)


if __name__ == "__main__":
    main()
