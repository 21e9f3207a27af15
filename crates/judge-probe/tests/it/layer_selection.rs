//! Layer selection: scan, ranking, steps and choice equal those of scikit-learn's parts on the fixture of
//! `scripts/probe/layer_selection_fixtures.py`.

use crate::fixtures::{cases, count, list, stir};
use judge_core::{Layer, request::Pooling};
use judge_probe::{
    ClassWeight, Error, FeatureFamily, FittedEstimator, FittedTransformer, LayerSelection, LayerView,
    LogisticRegression, Matrix, Pipeline, Scorer, Scoring, SearchScores, SelectedLayers, Split, StandardScaler,
    StratifiedKFold, Transformer,
};
use serde_json::Value;

const N: u64 = 150;
const D: u64 = 7;

type Probe = Pipeline<StandardScaler, LogisticRegression>;
type Selection = LayerSelection<Pooling, FeatureFamily, Probe>;

fn labels(n_classes: u64) -> Vec<i64> {
    (0..N).map(|row| (stir(row) % n_classes) as i64).collect()
}

/// `states` of the script.
fn states(layer: u64, pooling: u64, n_classes: u64, signal: f64) -> Matrix {
    let value = |(row, column): (u64, u64)| {
        let noise = stir(1_000_003 * (row + 1) + 1009 * layer + 101 * pooling + column) as f64 / 2_f64.powi(31) - 1.0;
        let told = column == layer % D && stir(row) % n_classes == layer % n_classes;
        let strength = signal * (layer as f64 + 1.0 - 0.5 * pooling as f64) / 6.0;
        if told { noise + strength } else { noise }
    };
    let places = (0..N).flat_map(|row| (0..D).map(move |column| (row, column)));
    Matrix::new(places.map(value).collect(), D as usize).unwrap()
}

fn selection(top_k: usize) -> Selection {
    let mut views = Vec::new();
    for layer in 0..6 {
        for reading in [Pooling::Last, Pooling::Mean] {
            for family in [FeatureFamily::State, FeatureFamily::Statistics, FeatureFamily::Pca { n_components: 3 }] {
                views.push(LayerView { layer: Layer(layer), reading, family });
            }
        }
    }
    let probe = |c| Pipeline {
        transformer: StandardScaler::default(),
        estimator: LogisticRegression { c, class_weight: ClassWeight::Balanced, ..LogisticRegression::default() },
    };
    LayerSelection { views, estimators: [0.01, 1.0].map(probe).to_vec(), scoring: Scoring::MacroF1, top_k }
}

/// States of the n-th reading of each layer.
fn source(n_classes: u64, signal: f64) -> impl Fn(Layer, &Pooling) -> Result<Matrix, Error> + Sync {
    move |layer, pooling| Ok(states(layer.0 as u64, u64::from(*pooling != Pooling::Last), n_classes, signal))
}

#[track_caller]
fn assert_equal(ours: &Option<SearchScores>, expected: &Value) {
    let ours = ours.as_ref().unwrap();
    let close = |ours: f64, expected: &Value| (ours - expected.as_f64().unwrap()).abs() < 1e-14;
    for (candidate, scores) in ours.candidates.iter().enumerate() {
        assert!(close(scores.mean().unwrap(), &expected["means"][candidate]));
    }
    assert!(close(ours.best_deviation, &expected["deviation"]));
    assert_eq!(ours.best as u64, expected["best"].as_u64().unwrap());
}

#[test]
fn selections_equal_those_made_of_scikit_learns_parts() {
    for case in cases::<Value>("layer_selection", 3) {
        let (n_classes, signal) = (case["n_classes"].as_u64().unwrap(), case["signal"].as_f64().unwrap());
        let (labels, source) = (labels(n_classes), source(n_classes, signal));
        let shuffle = Some(case["seed"].as_u64().unwrap() as u32);
        let splits = StratifiedKFold { n_splits: 5, shuffle }.split(&labels).unwrap();
        let selection = selection(count(&case["top_k"]));
        let selected = selection.select(&source, &labels, &splits).unwrap();

        assert_eq!(selected.scan.len(), 36);
        for (ours, expected) in selected.scan.iter().zip(case["scan"].as_array().unwrap()) {
            assert_equal(&ours.scores, expected);
        }
        assert_eq!(selected.ranking, list::<usize>(&case["ranking"]));
        let steps = case["steps"].as_array().unwrap();
        assert_eq!(selected.steps.len(), steps.len());
        for (ours, expected) in selected.steps.iter().zip(steps) {
            assert_eq!(ours.views, list::<usize>(&expected["views"]));
            assert_equal(&ours.scores, expected);
            assert_eq!(Some(ours.kept), expected["kept"].as_bool());
        }
        let views: Vec<_> = list::<usize>(&case["chosen"]).into_iter().map(|view| selection.views[view]).collect();
        assert_eq!(selected.chosen, views);
        let last = selected.steps.iter().rev().find(|step| step.kept).unwrap();
        assert_eq!(Some(&selected.scores), last.scores.as_ref());
        assert_eq!(selected.estimator, selection.estimators[count(&case["classifier"])]);

        let probe = selected.fit(&source, &labels).unwrap();
        let features = selected.features(&source).unwrap();
        let right = probe.predict(&features).unwrap().iter().zip(&labels).filter(|(ours, label)| ours == label).count();
        assert!(right as u64 > N / 2);
        let widths: Vec<_> = probe.transformer.blocks().iter().map(FittedTransformer::n_features_out).collect();
        let expected: Vec<_> =
            views.iter().map(|view| if view.family == FeatureFamily::State { D as usize } else { 3 }).collect();
        assert_eq!(widths, expected);

        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(|| selection.select(&source, &labels, &splits)).unwrap(), selected);
    }
}

#[test]
fn a_nested_selection_is_one_for_each_outer_split_by_hand() {
    let labels = labels(3);
    let source = source(3, 1.5);
    let folds = StratifiedKFold { n_splits: 3, shuffle: Some(5) };
    let outer = folds.split(&labels).unwrap();
    let of = |rows: &[usize]| rows.iter().map(|&row| labels[row]).collect::<Vec<_>>();
    let selection = selection(3);
    let nested = selection.nested(&source, &labels, &outer, |rows| folds.split(&of(rows))).unwrap();
    assert_eq!(nested.len(), 3);
    for (split, nested) in outer.iter().zip(nested) {
        let part = |rows: &[usize], layer: Layer, pooling: &Pooling| source(layer, pooling)?.select_rows(rows);
        let train = |layer: Layer, pooling: &Pooling| part(&split.train, layer, pooling);
        let inner = folds.split(&of(&split.train)).unwrap();
        let selected = selection.select(train, &of(&split.train), &inner).unwrap();
        assert_eq!(nested.selected, selected);
        let fitted = selected.fit(train, &of(&split.train)).unwrap();
        let tested = selected.features(|layer, pooling| part(&split.test, layer, pooling)).unwrap();
        assert_eq!(nested.predicted, fitted.predictions(&tested).unwrap());
        assert_eq!(nested.score, Scoring::MacroF1.score(&of(&split.test), &nested.predicted).ok());
        assert!(nested.score < Some(selected.scores.best_mean + 0.2));
    }
    let overlapping = [Split { train: vec![0, 1], test: vec![1] }];
    let refused = selection.nested(&source, &labels, &overlapping, |rows| folds.split(&of(rows)));
    let problem = "both learns from row 1 and tests on it".to_owned();
    assert_eq!(refused, Err(Error::Split { split: 0, problem }));
}

#[test]
fn a_selection_says_what_it_cannot_do() {
    let labels = labels(2);
    let splits = StratifiedKFold::default().split(&labels).unwrap();
    let select = |selection: Selection| -> Result<SelectedLayers<_, _, _>, Error> {
        selection.select(source(2, 1.0), &labels, &splits)
    };
    assert_eq!(select(selection(0)), Err(Error::NoLayers));
    let none = Selection { views: vec![], ..selection(5) };
    assert_eq!(select(none), Err(Error::NoScore { n_candidates: 0, n_splits: 5 }));

    // The source's own errors pass through; those of a probe name the views.
    let unread = |layer: Layer, pooling: &Pooling| {
        if layer.0 == 3 {
            Err(Error::NonFiniteFeature { row: 0, feature: 1, value: f64::NAN })
        } else {
            source(2, 1.0)(layer, pooling)
        }
    };
    assert!(matches!(selection(5).select(unread, &labels, &splits), Err(Error::NonFiniteFeature { .. })));
    let short = |layer: Layer, pooling: &Pooling| -> Result<Matrix, Error> {
        let states = source(2, 1.0)(layer, pooling)?;
        if layer.0 == 2 { states.select_rows(&[0, 1]) } else { Ok(states) }
    };
    let error = selection(5).select(short, &labels, &splits).unwrap_err();
    let cause = Error::RowCount { n_rows: 2, what: "labels", found: 150 };
    assert_eq!(error, Error::InViews { views: vec![12], error: Box::new(cause) });
}

#[test]
fn a_summary_is_mean_deviation_and_maximum() {
    let heads = Matrix::from_rows([[1.0, 2.0, 3.0, 4.0], [0.5, 0.5, 0.5, 0.5]]).unwrap();
    let fitted = FeatureFamily::Summary.fit(&heads).unwrap();
    assert_eq!((fitted.n_features_in(), fitted.n_features_out()), (4, 3));
    assert_eq!(fitted.transform(&heads).unwrap().values(), [2.5, 1.25_f64.sqrt(), 4.0, 0.5, 0.0, 0.5]);
    assert!(fitted.transform(&Matrix::new(vec![1.0; 3], 3).unwrap()).is_err());
}

#[test]
fn statistics_survive_extreme_states() {
    let states =
        Matrix::from_rows([[3.0, 4.0], [0.0, 0.0], [1e200, 1e200], [1e-200, -1e-200], [-900.0, 900.0]]).unwrap();
    let statistics = FeatureFamily::Statistics.fit(&states).unwrap().transform(&states).unwrap();
    let rows: Vec<&[f64]> = statistics.rows().collect();
    let (p, q) = (1.0 / (1.0 + f64::exp(1.0)), 1.0 / (1.0 + f64::exp(-1.0)));
    assert_eq!(rows[0][..2], [5.0, 0.25]);
    assert!((rows[0][2] + p * p.ln() + q * q.ln()).abs() < 1e-15);
    assert_eq!(rows[1], [0.0, 0.0, 2_f64.ln()]);
    assert!((rows[2][0] / 2e200_f64.sqrt() / 1e100 - 1.0).abs() < 1e-15 && rows[2][1] == 0.0);
    assert!((rows[3][0] / 1e-200 - 2_f64.sqrt()).abs() < 1e-15);
    // Of probabilities 1 and e⁻¹⁰⁰.
    assert!((1e-43..1e-40).contains(&rows[4][2]));
}
