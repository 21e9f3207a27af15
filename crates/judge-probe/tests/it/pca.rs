//! Equality with scikit-learn 1.9.1 on the fixtures of `scripts/probe/pca_fixtures.py`, and what is refused.

use crate::fixtures::cases;
use crate::formula::Data;
use judge_probe::{Error, FittedTransformer, Matrix, Pca, Transformer};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(flatten)]
    data: Data,
    n_components: usize,
    /// Of the components, one after another, the file has every so manieth entry.
    stride: usize,
    components: Vec<f64>,
    explained_variance: Vec<f64>,
    explained_variance_ratio: Vec<f64>,
    unseen_transformed: Vec<f64>,
}

#[test]
fn it_equals_scikit_learns() {
    for case in cases::<Case>("pca", 6) {
        let (features, unseen) = case.data.features();
        assert_eq!(case.data.labels().len(), features.n_rows());
        let pca = Pca { n_components: case.n_components }.fit(&features).unwrap();
        let close = |name: &str, ours: &[f64], expected: &[f64]| {
            assert_eq!(ours.len(), expected.len(), "{}: {name}", case.name);
            let scale = expected.iter().fold(0.0, |scale: f64, value| scale.max(value.abs()));
            for (i, (ours, expected)) in ours.iter().zip(expected).enumerate() {
                let off = (ours - expected).abs();
                assert!(off <= 1e-9 * scale, "{}: {name}[{i}] is {ours}, expected {expected}", case.name);
            }
        };
        let components: Vec<f64> = pca.components().values().iter().copied().step_by(case.stride).collect();
        close("components", &components, &case.components);
        close("explained variance", pca.explained_variance(), &case.explained_variance);
        close("its ratio", pca.explained_variance_ratio(), &case.explained_variance_ratio);
        close("transformed", pca.transform(&unseen).unwrap().values(), &case.unseen_transformed);
    }
}

#[test]
fn it_refuses_what_it_is_undefined_for() {
    let features = Matrix::from_rows([[1.0, 2.0, 0.0], [3.0, 5.0, 1.0]]).unwrap();
    for n_components in [0, 3] {
        let refused = Pca { n_components }.fit(&features);
        assert_eq!(refused, Err(Error::ComponentCount { n_components, most: 2 }));
    }
    let one_row = Pca { n_components: 1 }.fit(&Matrix::from_rows([[1.0, 2.0]]).unwrap());
    assert_eq!(one_row, Err(Error::ComponentCount { n_components: 1, most: 0 }));
    let said = one_row.unwrap_err().to_string();
    assert_eq!(said, "no components can be found in the features, asked for 1");
    let huge = Pca { n_components: 1 }.fit(&Matrix::from_rows([[1.0, 1e200], [2.0, 0.0]]).unwrap());
    assert_eq!(huge, Err(Error::Overflow { feature: 1 }));

    // Equal rows: no variance, and none of it to share.
    let equal = Pca { n_components: 1 }.fit(&Matrix::from_rows([[1.0, 2.0], [1.0, 2.0]]).unwrap()).unwrap();
    assert_eq!((equal.explained_variance(), equal.explained_variance_ratio()), (&[0.0][..], &[0.0][..]));
    let other = equal.transform(&features);
    assert_eq!(other, Err(Error::FeatureCount { expected: 2, found: 3 }));
}
