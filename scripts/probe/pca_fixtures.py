# scikit-learn==1.9.1 numpy==2.4.6
"""Writes tests/fixtures/pca.json: what scikit-learn's PCA(svd_solver="full") finds.

    python scripts/probe/pca_fixtures.py

Features as in logistic_regression_fixtures.py, scaled so that the variances along components differ.
"""

from sklearn.decomposition import PCA

from common import require, write
from formula import formula

VERSIONS = require()


def case(name, n_rows, n_features, n_components, *, seed, column_scales=(1.0, 3.0, 0.5, 7.0)):
    data, x, _, unseen = formula(n_rows, n_features, 3, seed, 1.0, column_scales, 1.0, 1)
    pca = PCA(n_components, svd_solver="full").fit(x)
    stride = max(1, pca.components_.size // 300)
    return {
        "name": name, **data, "n_components": n_components, "stride": stride,
        "components": pca.components_.ravel()[::stride].tolist(), "explained_variance": pca.explained_variance_.tolist(),
        "explained_variance_ratio": pca.explained_variance_ratio_.tolist(), "unseen_transformed": pca.transform(unseen).ravel().tolist(),
    }


cases = [
    case("tall", 60, 6, 3, seed=1),
    case("tall, all components", 60, 6, 6, seed=2),
    case("wide", 12, 40, 5, seed=3),
    case("136 rows of 2048 features", 136, 2048, 50, seed=4),
    case("scales 1e6 apart", 50, 8, 8, seed=5, column_scales=(1e-3, 1.0, 30.0, 1e3)),
    case("three rows", 3, 4, 2, seed=6),
]
write("pca.json", VERSIONS, cases)
