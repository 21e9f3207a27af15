//! Logistic probes on every layer and pooling of made-up hidden states: folds, scaling inside the fold, four values of C. Prints one line
//! of JSON, which `scripts/bench/probe.py` compares with scikit-learn's.
//!
//!     cargo bench -p judge-probe --bench layer_scan -- VIEWS ROWS FEATURES CLASSES

#![allow(clippy::print_stdout, reason = "the result")]

use std::error::Error;
use std::time::Instant;

use judge_probe::{
    ClassWeight, Estimator, FittedEstimator, LogisticRegression, Matrix, Pipeline, StandardScaler, StratifiedKFold,
};
use rayon::prelude::*;

const CS: [f64; 4] = [0.001, 0.01, 0.1, 1.0];
const FACTORS: usize = 64;

/// SplitMix64's outputs as numbers in [-1, 1), as `scripts/probe/formula.py` has them.
fn uniform(seed: usize, counter: usize) -> f64 {
    let mut z = (seed as u64).wrapping_add((counter as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 11) as f64 / 2f64.powi(52) - 1.0
}

struct Shape {
    views: usize,
    rows: usize,
    features: usize,
    classes: i64,
}

/// One view's features: factors of falling weight, the first of which the labels follow, and noise.
fn features(view: usize, shape: &Shape) -> Result<Matrix, judge_probe::Error> {
    let (factor_seed, loading_seed, noise_seed) = (7, 1_000 + view, 2_000 + view);
    let mut values = vec![0.0; shape.rows * shape.features];
    let loadings: Vec<f64> = (0..FACTORS * shape.features).map(|i| uniform(loading_seed, i)).collect();
    for (row, values) in values.chunks_exact_mut(shape.features).enumerate() {
        for (feature, value) in values.iter_mut().enumerate() {
            *value = uniform(noise_seed, row * shape.features + feature);
        }
        for (factor, loadings) in loadings.chunks_exact(shape.features).enumerate() {
            let weight = 8.0 * uniform(factor_seed, row * FACTORS + factor) / (1 + factor) as f64;
            values.iter_mut().zip(loadings).for_each(|(value, loading)| *value += weight * loading);
        }
    }
    Matrix::new(values, shape.features)
}

fn labels(shape: &Shape) -> Vec<i64> {
    let score = |row| {
        let factors: f64 = (0..8).map(|factor| uniform(7, row * FACTORS + factor)).sum();
        let score = factors + 2.0 * uniform(11, row);
        // Seven tenths of the scores lie within 2 of 0.
        ((score + 2.0) / 4.0 * shape.classes as f64).floor() as i64
    };
    (0..shape.rows).map(|row| score(row).clamp(0, shape.classes - 1)).collect()
}

/// What each C predicts of each row from the other folds, and how far the answer took.
fn scan(features: &Matrix, labels: &[i64]) -> Result<Vec<Vec<i64>>, judge_probe::Error> {
    let settings = CS.map(|c| Pipeline {
        transformer: StandardScaler::default(),
        estimator: LogisticRegression { c, class_weight: ClassWeight::Balanced, ..LogisticRegression::default() },
    });
    let mut predicted = vec![vec![0; labels.len()]; CS.len()];
    for split in StratifiedKFold::default().split(labels)? {
        let train = features.select_rows(&split.train)?;
        let test = features.select_rows(&split.test)?;
        let train_labels: Vec<i64> = split.train.iter().map(|&row| labels[row]).collect();
        for (fitted, predicted) in Pipeline::fit_each(&settings, &train, &train_labels).into_iter().zip(&mut predicted)
        {
            for (row, class) in split.test.iter().zip(fitted?.predict(&test)?) {
                predicted[*row] = class;
            }
        }
    }
    Ok(predicted)
}

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds an argument of its own.
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let &[views, rows, features_, classes] = &numbers[..] else {
        return Err("expected VIEWS ROWS FEATURES CLASSES".into());
    };
    let shape = Shape { views, rows, features: features_, classes: classes as i64 };
    let labels = labels(&shape);
    let views: Vec<Matrix> =
        (0..shape.views).into_par_iter().map(|view| features(view, &shape)).collect::<Result<_, _>>()?;

    let start = Instant::now();
    let predicted: Vec<_> = views.par_iter().map(|features| scan(features, &labels)).collect::<Result<_, _>>()?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}",
        serde_json::json!({ "seconds": seconds, "threads": rayon::current_num_threads(), "predicted": predicted })
    );
    Ok(())
}
