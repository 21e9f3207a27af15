# scikit-learn==1.9.1 numpy==2.4.6
"""Writes the fixtures of judge-probe's TF-IDF weights, tfidf.json and tfidf_logistic.json: what scikit-learn's TfidfVectorizer
makes of a few texts, and what its LogisticRegression learns from such weights of others, run to convergence.

    python scripts/probe/tfidf_fixtures.py
"""

import warnings

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

from common import require, write

VERSIONS = require()


TEXTS = [
    "First, 12 apples cost 3 * 12 = 36 dollars. So the answer is 36.",
    "the Answer is: 36!! The the THE",
    "Step_1: x = 4; step_2: y = x**2 = 16, a b c d",
    "",
    "Ça coûte 3,50 € chez l'épicier; e\u0301te\u0301 naïve Straße STRASSE",
    "ΟΔΥΣΣΕΥΣ ΟΔΟΣ και İstanbul ﬁn",
    "東京は大きい 数字 二〇二六 ½ m² x² ²³ Ⅷ٣٤",
    "snake_case __init__ 0x1F 3.14 1e-5 don't",
    "line\nbreak\ttab\u00a0nbsp\u2003em-dash—word\u200bzero\u00adsoft",
    "😀😀 ok ok 👍🏽",
]
UNSEEN = ["the apples and the answer", "nothing known here", "STEP_1 straße 36"]

cases = []
for min_df in (1, 2):
    vectorizer = TfidfVectorizer(min_df=min_df).fit(TEXTS)
    cases.append({
        "min_df": min_df, "words": vectorizer.get_feature_names_out().tolist(), "idf": vectorizer.idf_.tolist(),
        "weights": [[[int(i), float(v)] for i, v in zip(row.indices, row.data)] for row in vectorizer.transform(TEXTS + UNSEEN)],
    })

write("tfidf.json", VERSIONS, cases, texts=TEXTS, unseen=UNSEEN)
print(cases[0]["words"])

# Words of classes that overlap: class k of n has words of its own, and shares most with the others.
N_TEXTS, N_UNSEEN = 120, 100


def text(row):
    """Words by a formula of integers; the class of the row is row * row // 7 % 5."""
    own = row * row // 7 % 5
    common = [f"word{(row * 37 + k * k * 11) % (13 + 9 * (k % 5))}" for k in range(4 + row * 5 % 17)]
    told = [f"tells{(own + (row + k) % 2) % 5}" for k in range(row % 3)]
    return " ".join(common + told + [f"only{row}"] * (row % 2))


def classified(labels, c, balanced):
    learnt, unseen = (vectorizer.transform(part) for part in (texts, texts_unseen))
    weights = np.ones(len(labels))
    if balanced:
        classes, counts = np.unique(labels, return_counts=True)
        weights = (len(labels) / (len(classes) * counts))[np.searchsorted(classes, labels)]
    model = LogisticRegression(C=c, class_weight="balanced" if balanced else None, solver="newton-cg", tol=1e-13, max_iter=100_000)
    with warnings.catch_warnings():  # It warns of line searches that rounding stops; the gradient below tells.
        warnings.simplefilter("ignore")
        model.fit(learnt, labels)
    p = model.predict_proba(learnt) - (np.array(labels)[:, None] == model.classes_)
    p = p[:, 1:] if len(model.classes_) == 2 else p
    residual = weights[:, None] * p
    # Times C, a bound on how far off the coefficients are: the penalty's curvature is the least there is.
    gradient = c * max(abs(learnt.T @ residual + model.coef_.T / c).max(), abs(residual.sum(0)).max())
    if gradient > 1e-6:
        raise SystemExit(f"C {c}: not converged, gradient {gradient}")
    print(f"C {c}, {len(model.classes_)} classes: gradient {gradient:.1e}")
    stride = max(1, model.coef_.size // 150)
    return {
        "c": c, "balanced": balanced, "labels": labels, "stride": stride, "coefficients": model.coef_.ravel()[::stride].tolist(),
        "intercepts": model.intercept_.tolist(), "probabilities": model.predict_proba(unseen[:20]).ravel().tolist(),
        "predicted": model.predict(unseen).tolist(),
    }


texts = [text(row) for row in range(N_TEXTS)]
texts_unseen = [text(row) for row in range(N_TEXTS, N_TEXTS + N_UNSEEN)]
vectorizer = TfidfVectorizer().fit(texts)
five = [row * row // 7 % 5 + 1 for row in range(N_TEXTS)]
two = [int(label > 2) for label in five]
cases = [classified(labels, c, balanced) for labels, balanced in ((five, True), (two, False)) for c in (0.1, 1.0, 10.0, 100.0)]

# The baseline of a training: words learnt in each fold, C chosen by macro F1.
unseen_labels = [row * row // 7 % 5 + 1 for row in range(N_TEXTS, N_TEXTS + N_UNSEEN)]
pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression(class_weight="balanced", solver="newton-cg", tol=1e-10, max_iter=100_000))
grid = {"logisticregression__C": [0.1, 1.0, 10.0, 100.0]}
search = GridSearchCV(pipeline, grid, scoring="f1_macro", cv=StratifiedKFold(5)).fit(texts, five)
predicted = search.predict(texts_unseen)
print(search.best_params_, search.cv_results_["mean_test_score"])
baseline = {
    "labels": five, "unseen_labels": unseen_labels, "weighted_f1": f1_score(unseen_labels, predicted, average="weighted"),
    "macro_f1": f1_score(unseen_labels, predicted, average="macro"), "accuracy": float(np.mean(predicted == unseen_labels)),
}
print(baseline["weighted_f1"], baseline["accuracy"])
about = {"texts": texts, "unseen": texts_unseen, "n_words": len(vectorizer.vocabulary_), "baseline": baseline}
write("tfidf_logistic.json", VERSIONS, cases, **about)
