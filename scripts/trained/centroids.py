"""Is a nearest-centroid classifier of how a response moves the state a probe worth having? Beside a logistic one, on the same states.

    cargo build --locked --release -p judge
    pip install numpy==2.4.6 scikit-learn==1.9.1
    JUDGE_TEST_DATA=FOLDER python scripts/trained/centroids.py OUTPUT [--model MODEL]

Each row of QAGS (714 sentences, each the response to the request for a summary) and RM-Bench's chat (774 responses) is a conversation that
asks nothing. Its state is read before and after the response, where a turn of the model would begin. The area under the ROC curve is that
of rows in five folds by article or question, at four layers that are fixed beforehand.
"""

import json

import numpy
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from common import arguments, judge, model, number, of_another_model, read, table, write
from readings import qags, rmbench

SETS = {"QAGS": (qags, lambda row: row["article"]), "RM-Bench, chat": (rmbench, lambda row: row["id"].split("/")[0])}


def states(rows, path, named):
    """The states of all rows before and after the response, `[rows, 2, layers, width]`."""
    turns = [{"id": f"{row['id']} {place}", "messages": [
        {"role": role, "content": row[field]} for role, field in (("user", "instruction"), ("assistant", "response"))[:place]]}
        for row in rows for place in (1, 2)]
    judge("states", "--input", write(path.with_suffix(".turns.jsonl"), turns), "--output", path, "--quiet", *model(name=named))
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    about = json.loads(content[8:begin])["states"]
    found = numpy.frombuffer(content[begin:][slice(*about["data_offsets"])], "<f4")
    return found.reshape(len(rows), 2, *about["shape"][1:]).astype(float)


def nearest(known, labels, asked):
    """How much nearer the centroid of good rows is than that of the others."""
    good, other = (known[labels == label].mean(axis=0) for label in (1, 0))
    return ((asked - other) ** 2).sum(axis=1) - ((asked - good) ** 2).sum(axis=1)


def logistic(known, labels, asked):
    return LogisticRegression(C=0.01, max_iter=1000).fit(known, labels).decision_function(asked)


def out_of_fold(fit, features, labels, groups):
    found = numpy.zeros(len(labels))
    for known, asked in GroupKFold(5).split(features, labels, groups):
        scaler = StandardScaler().fit(features[known])
        found[asked] = fit(scaler.transform(features[known]), labels[known], scaler.transform(features[asked]))
    return roc_auc_score(labels, found)


def main():
    args = of_another_model(arguments(__doc__)).parse_args()
    for name, (make, group) in SETS.items():
        stem = name.split(",")[0].lower()
        rows = read(make(args.output))
        labels, groups = numpy.array([row["human"] for row in rows]), [group(row) for row in rows]
        before, after = numpy.moveaxis(states(rows, args.output / f"{stem}.safetensors", args.model), 1, 0)
        last = after.shape[1] - 1
        layers = [last // 3, last // 2, 2 * last // 3, last]
        print(f"{name}, {len(rows)} rows, area under the ROC curve\n")
        table(["state", "classifier", *(f"layer {layer} of {last}" for layer in layers)], [
            [of, kind, *(number(out_of_fold(fit, features[:, layer], labels, groups)) for layer in layers)]
            for of, features in (("after the response", after), ("after less before", after - before))
            for kind, fit in (("nearest centroid", nearest), ("logistic", logistic))])


if __name__ == "__main__":
    main()
