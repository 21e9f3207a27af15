# scikit-learn==1.9.1 numpy==2.4.6
"""Writes tests/fixtures/mlp.json: how scikit-learn's MLPClassifier(solver="adam") trains.

    OMP_NUM_THREADS=1 python scripts/probe/mlp_fixtures.py

Features follow from a formula of integers that the test repeats, so that the file holds settings and results alone. scikit-learn stratifies the
rows held out for early stopping where there are two classes; here it is made to for more, too, which is the one change to it.
"""

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, _multilayer_perceptron

from common import require, write
from formula import formula

VERSIONS = require()
warnings.simplefilter("error", ConvergenceWarning)


def stratified(x, y, *, random_state, test_size, stratify):
    """y is a column of two classes, or has a column a class."""
    classes = y.argmax(axis=1) if stratify is None else stratify
    return train_test_split(x, y, random_state=random_state, test_size=test_size, stratify=classes)


_multilayer_perceptron.train_test_split = stratified


def case(name, n_rows, n_features, n_classes, hidden, *, random_state, alpha=1e-4, batch_size=200, learning_rate=1e-2, tol=1e-4, n_iter_no_change=10,
         validation_fraction=None, seed=0, signal=0.5, first_class=1):
    data, x, y, unseen = formula(n_rows, n_features, n_classes, seed, signal, (1.0,), 1.0, first_class)
    model = MLPClassifier(
        hidden, alpha=alpha, batch_size=min(batch_size, n_rows), learning_rate_init=learning_rate, max_iter=1000, tol=tol, random_state=random_state,
        n_iter_no_change=n_iter_no_change, early_stopping=validation_fraction is not None, validation_fraction=validation_fraction or 0.1,
    ).fit(x, y)
    print(f"{name}: {model.n_iter_} passes, loss {model.loss_curve_[0]:.4f} to {model.loss_:.4f}, accuracy {model.score(x, y):.3f}")
    layers = []
    for weights, intercepts in zip(model.coefs_, model.intercepts_):
        stride = max(1, weights.size // 100)
        layers.append({"stride": stride, "weights": weights.T.ravel()[::stride].tolist(), "intercepts": intercepts.tolist()})
    return {
        "name": name, **data, "random_state": random_state, "hidden_layer_sizes": list(hidden), "alpha": alpha, "batch_size": batch_size,
        "learning_rate_init": learning_rate, "tol": tol, "n_iter_no_change": n_iter_no_change, "validation_fraction": validation_fraction,
        "loss_curve": model.loss_curve_, "validation_scores": model.validation_scores_, "layers": layers,
        "unseen_predicted": model.predict(unseen).tolist(), "unseen_probabilities": model.predict_proba(unseen).ravel().tolist(),
    }


cases = [
    case("binary, several batches", 120, 6, 2, (20,), random_state=1, seed=1, batch_size=32, first_class=0),
    case("five classes, two hidden layers", 150, 6, 5, (16, 8), random_state=42, seed=3, batch_size=50, alpha=0.1),
    case("no hidden layer", 80, 5, 3, (), random_state=7, seed=4, batch_size=33, learning_rate=0.05),
    case("one batch of all rows", 60, 4, 2, (12,), random_state=2**32 - 1, seed=5, tol=1e-3),
    case("binary, early stopping", 150, 6, 2, (20,), random_state=3, seed=6, batch_size=32, validation_fraction=0.2, n_iter_no_change=15),
    case("five classes, early stopping", 200, 8, 5, (24, 12), random_state=42, seed=8, batch_size=64, validation_fraction=0.2, n_iter_no_change=15),
    case("136 rows of 2048 features, early stopping", 136, 2048, 2, (200, 100), random_state=42, seed=6, signal=0.05, learning_rate=1e-3,
         validation_fraction=0.1, first_class=0),
]
write("mlp.json", VERSIONS, cases)
