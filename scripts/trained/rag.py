"""A trained model on answers from contexts: can it tell which sentence the source supports, and which summary is faithful?

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/rag.py OUTPUT [--model MODEL] [--parts qags probe faithbench] [--fit]

qags        QAGS, CNN/DailyMail: 235 summaries, 714 sentences, three people each: does the article support the sentence? By sentence, with
            articles as clusters; by row Pearson's correlation with the share of sentences that most people call supported, which is how
            the field reports it (QAGS .545, ROUGE-2 .459, G-Eval with GPT-4 .685).
faithbench  FaithBench: 750 summaries with the spans that people marked, and what seven released detectors said of them. A summary is
            unfaithful whose worst mark is Unwanted. Rows on which all detectors agree were left out by the authors, so all are hard.

Beside the model: the share of the sentence's words that the source has, the cosine of TF-IDF vectors, the length, detectors, and always
saying the same. Every layer is read. --fit also learns layer weights on the first half of QAGS' articles and measures on the others.
"""

import collections
import json
import math
import re

from common import arguments, data, figure, judge, model, number, of_another_model, read, report, table, write

DETECTORS = ["hhemv1", "hhem-2.1", "hhem-2.1-english", "trueteacher", "true_nli", "gpt-3.5-turbo", "gpt-4-turbo", "gpt_4o"]

FOLDS = 5


def words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def qags():
    rows = []
    for line in data("qags", "mturk_cnndm.jsonl").read_text().splitlines():
        row = json.loads(line)
        response, sentences = "", []
        for one in row["summary_sentences"]:
            start = len(response) + (1 if response else 0)
            response = f"{response} {one['sentence']}" if response else one["sentence"]
            human = [int(given["response"] == "yes") for given in one["responses"]]
            sentences.append({"start": start, "end": len(response), "human": human})
        rows.append({"id": len(rows), "contexts": [row["article"]], "response": response, "sentences": sentences})
    return rows


def faithbench():
    rows = []
    for path in sorted(data("faithbench").glob("batch_*.json")):
        for row in json.loads(path.read_text())["samples"]:
            labels = {label for mark in row["annotations"] for label in mark["label"]}
            faithful = int(not any(label.startswith("Unwanted") for label in labels))
            said = {name: row["metadata"][name] for name in DETECTORS if name in row["metadata"]}
            rows.append({"id": f"{path.stem}/{row['sample_id']}", "contexts": [row["source"]], "response": row["summary"].strip(), "human": faithful, "said": said})
    return rows


def frequencies(rows):
    """In how many sources each word is."""
    sources = {row["contexts"][0] for row in rows}
    return collections.Counter(word for source in sources for word in set(words(source))), len(sources)


def baselines(text, source, of_words):
    """What needs no model."""
    found, has = words(text), set(words(source))
    documents, n = of_words
    weights = lambda text: {word: count * math.log((1 + n) / (1 + documents[word])) + count for word, count in collections.Counter(words(text)).items()}
    one, other = weights(text), weights(source)
    dot = sum(weight * other.get(word, 0.0) for word, weight in one.items())
    norm = math.sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
    return {"word overlap": sum(word in has for word in found) / max(len(found), 1), "TF-IDF": dot / norm if norm else 0.0, "length": -len(text)}


def agreement(out, name, rows, scores):
    """What `judge agree` says of these fields of rows, each as a score."""
    found = {}
    for score in scores:
        known = [dict(row, score=row[score]) for row in rows if row.get(score) is not None]
        path = write(out / f"{name}.{re.sub('[^a-z0-9]+', '-', score.lower())}.scores.jsonl", [{key: row[key] for key in ("id", "score", "human", "cluster")} for row in known])
        found[score] = report(path.with_suffix(".json"), "agree", "--input", path, "--cluster", "cluster")["statistics"]
    return found


def balanced(marked, threshold):
    """The mean of the shares of both kinds of sentence that lie on the right side of a threshold."""
    sides = [[(score >= threshold) == is_supported for score, is_supported in marked if is_supported == kind] for kind in (True, False)]
    return sum(sum(side) / len(side) for side in sides) / 2


def thresholds(rows, scored):
    """What a threshold comes to that the other half of the articles chose: both, for the second half and for the first."""
    marked = []
    for row, found in zip(rows, scored):
        votes = [one["human"] for one in row["sentences"]]
        marked.append([(one["supported"], 2 * sum(given) > len(given)) for one, given in zip(found["sentences"], votes)])
    half = len(marked) // 2
    first, second = sum(marked[:half], []), sum(marked[half:], [])
    for chosen_on, others in ((first, second), (second, first)):
        threshold = max(sorted({score for score, _ in chosen_on}), key=lambda at: balanced(chosen_on, at))
        yield threshold, balanced(others, threshold)


def lines(found, statistics):
    return [[name, *(figure(of.get(statistic)) for statistic in statistics)] for name, of in found.items()]


def read_qags(out, of, fit):
    rows = qags()
    source = write(out / "qags.jsonl", rows)
    measured = report(out / "qags.report.json", "rag", "--input", source, "--output", out / "qags.measured.jsonl", *of, "--layers", "all")
    of_words, sentences = frequencies(rows), []
    scored_rows = read(out / "qags.measured.jsonl")
    for row, scored in zip(rows, scored_rows):
        for at, one in enumerate(scored["sentences"]):
            votes = row["sentences"][at]["human"]
            sentences.append({"id": f"{row['id']}/{at}", "human": int(2 * sum(votes) > len(votes)), "cluster": row["id"],
                              **baselines(one["text"], row["contexts"][0], of_words)})
    statistics = measured["statistics"]
    lone = agreement(out, "qags", sentences, ["word overlap", "TF-IDF", "length"])
    print(f"QAGS: {len(rows)} rows, {len(sentences)} sentences, of which people support {figure(statistics['sentence_supported_share'])}; "
          f"the model's mean probability {figure(statistics['faithfulness'])}")
    table(["sentences", "AUROC", "balanced accuracy at .5"],
          [["last layer", figure(statistics["sentence_auroc"]), figure(statistics["sentence_balanced_accuracy"])], *lines(lone, ["auroc"])])
    print(f"rows: Pearson {figure(statistics['faithfulness_pearson'])}, Spearman {figure(statistics['faithfulness_spearman'])}\n")
    for threshold, found in thresholds(rows, scored_rows):
        print(f"a threshold of {number(threshold)}, chosen on the other half of the articles: balanced accuracy {number(found)}")
    table(["layer", "AUROC", "balanced accuracy at .5"],
          [[layer["layer"], figure(layer["sentence_auroc"]), figure(layer["sentence_balanced_accuracy"])] for layer in measured["layers"]])
    if fit:
        half = len(rows) // 2
        first, second = write(out / "qags.first.jsonl", rows[:half]), write(out / "qags.second.jsonl", rows[half:])
        weights = out / "qags.weights.json"
        judge("rag", "--input", first, "--output", out / "qags.first.measured.jsonl", *of, "--fit", weights, "--overwrite")
        for name, more in (("last layer", []), ("fitted weights", ["--weights", weights])):
            found = report(out / f"qags.second.{name.split()[0]}.json", "rag", "--input", second, "--output", out / f"qags.second.{name.split()[0]}.jsonl", *of, *more)["statistics"]
            print(f"second half, {name}: AUROC {figure(found['sentence_auroc'])}, balanced accuracy {figure(found['sentence_balanced_accuracy'])}")


def faithbench_rows(out, of, name):
    """FaithBench's summaries, with what the model, the detectors and the baselines say of each."""
    rows = faithbench()
    source, measured = write(out / "faithbench.jsonl", [{key: row[key] for key in ("id", "contexts", "response", "human")} for row in rows]), out / f"{name}.measured.jsonl"
    judge("rag", "--input", source, "--output", measured, "--measures", "faithfulness", *of, "--overwrite")
    of_words, judged = frequencies(rows), []
    for row, scored in zip(rows, read(measured)):
        supported = [one["supported"] for one in scored.get("sentences", []) if one["supported"] is not None]
        judged.append({"id": row["id"], "human": row["human"], "cluster": row["contexts"][0], "mean": scored.get("faithfulness", {}).get("mean"),
                       "least": min(supported, default=None), **row["said"], **baselines(row["response"], row["contexts"][0], of_words)})
    return judged


def read_faithbench(out, of):
    judged = faithbench_rows(out, of, "faithbench")
    found = agreement(out, "faithbench", judged, ["mean", "least", "word overlap", "TF-IDF", "length", *DETECTORS])
    faithful = sum(row["human"] for row in judged) / len(judged)
    print(f"FaithBench: {len(judged)} rows, of which {number(faithful)} are faithful")
    table(["rows", "AUROC"], lines(found, ["auroc"]))


def beside_answers(out, told):
    """How much more a probe tells of sentences than the model's own answers, which the part `qags` has read, with the same clusters."""
    if not (out / "qags.measured.jsonl").exists():
        print("without the part `qags` there are no answers to put the probe beside")
        return
    answers = {row["id"]: row["sentences"] for row in read(out / "qags.measured.jsonl")}
    both = [{**one, "score": one["probe"], "answers": answers[one["cluster"]][int(one["id"].rsplit("/", 1)[1])]["supported"]} for one in told]
    path = write(out / "qags.beside.jsonl", both)
    found = report(path.with_suffix(".json"), "agree", "--input", path, "--cluster", "cluster", "--second", "answers")["statistics"]["difference_auroc"]
    print(f"AUROC of the probe less that of the answers: {figure(found)}, p {found['p']}")


def probe_qags(out, of):
    """Probes of the states in which the model is asked about each sentence, in folds by article: each sentence is told by a probe that was
    trained on other articles. The first of them then tells FaithBench's summaries, which are of other articles and other writers."""
    rows, told, layers, beside = qags(), [], [], collections.defaultdict(list)
    for fold in range(FOLDS):
        is_tested = lambda at: at % FOLDS == fold
        name = f"qags.fold{fold}"
        train = write(out / f"{name}.train.jsonl", [dict(row, split="test" if is_tested(at) else "train") for at, row in enumerate(rows)])
        judge("probe", "train", "--rag", "--input", train, "--output", out / name, "--states", out / "qags.states", *of, "--overwrite")
        tested = [row for at, row in enumerate(rows) if is_tested(at)]
        of_probe = json.loads((out / name / "report.json").read_text())["aspects"]["faithfulness"]
        layers.append(", ".join(f"{one['layer']} {one['pooling']}" for one in of_probe["chosen"]))
        assert of_probe["splits"]["test"]["n"] == sum(len(row["sentences"]) for row in tested), "a fold is not the one that was asked for"
        for predictor, found in of_probe["splits"]["test"]["predictors"].items():
            beside[predictor].append(found.get("auroc", {}).get("estimate"))
        source, measured = write(out / f"{name}.test.jsonl", tested), out / f"{name}.measured.jsonl"
        judge("rag", "--input", source, "--output", measured, "--measures", "faithfulness", "--probe", out / name / "faithfulness.safetensors", *of, "--overwrite")
        for row, scored in zip(tested, read(measured)):
            for at, one in enumerate(scored["sentences"]):
                votes = row["sentences"][at]["human"]
                told.append({"id": f"{row['id']}/{at}", "human": int(2 * sum(votes) > len(votes)), "cluster": row["id"], "probe": one["supported"]})
    found = agreement(out, "qags.probe", told, ["probe"])["probe"]
    right = balanced([(one["probe"], one["human"] == 1) for one in told], 0.5)
    print(f"probes of {FOLDS} folds by article ({layers}), {len(told)} sentences: AUROC {figure(found['auroc'])}, balanced accuracy at .5 {number(right)}")
    beside_answers(out, told)
    for predictor, found in beside.items():
        if None not in found:
            print(f"mean of the folds' AUROC, {predictor}: {number(sum(found) / FOLDS)}")
    judged = faithbench_rows(out, [*of, "--probe", out / "qags.fold0/faithfulness.safetensors"], "faithbench.probe")
    print("FaithBench, by the first of them")
    table(["rows", "AUROC"], lines(agreement(out, "faithbench.probe", judged, ["mean", "least"]), ["auroc"]))


def main():
    parser = of_another_model(arguments(__doc__))
    parser.add_argument("--parts", nargs="+", choices=["qags", "probe", "faithbench"], default=["qags", "probe", "faithbench"], help="what to read")
    parser.add_argument("--fit", action="store_true", help="also learn layer weights on half of QAGS")
    args = parser.parse_args()
    out, of = args.output, model(name=args.model)
    if "qags" in args.parts:
        read_qags(out, ["--measures", "faithfulness", *of], args.fit)
    if "probe" in args.parts:
        probe_qags(out, of)
    if "faithbench" in args.parts:
        read_faithbench(out, of)


if __name__ == "__main__":
    main()
