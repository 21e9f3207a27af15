//! How much memory it takes to predict from hidden states in single precision: as a matrix of them all, or as `F32Rows`. Prints one line of
//! JSON with the process's peak; a run measures one way, because a peak never falls.
//!
//!     cargo bench -p judge-probe --bench f32_features -- [matrix|rows [ROWS FEATURES]]

#![allow(clippy::print_stdout, reason = "the result")]

use std::error::Error;
use std::time::Instant;

use judge_probe::{
    DecisionRule, F32Rows, FittedEstimator, FittedProbe, FittedStandardScaler, LinearClassifier, Matrix, Precision,
};

/// A scaler and five functions of made-up numbers: what they are does not change what they cost.
fn probe(n_features: usize) -> Result<FittedProbe, judge_probe::Error> {
    let scaler = FittedStandardScaler::from_parts(vec![0.25; n_features], vec![2.0; n_features])?;
    let coefficients = (0..5 * n_features).map(|i| (i % 101) as f64 / 5_000.0 - 0.01).collect();
    let classifier = LinearClassifier::from_parts(
        DecisionRule::Logistic,
        vec![1, 2, 3, 4, 5],
        Matrix::new(coefficients, n_features)?,
        vec![0.0; 5],
    )?;
    FittedProbe::new(vec![scaler.into()], classifier, Precision::F64)
}

/// The process's largest size in memory so far, MiB; `None` where the system does not say.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1024.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize, default: usize| words.get(at).map_or(Ok(default), |word| word.parse());
    let (n_rows, n_features): (usize, usize) = (number(1, 20_000)?, number(2, 2_048)?);
    let probe = probe(n_features)?;
    let states: Vec<f32> = (0..n_rows * n_features).map(|i| (i * 7919 % 997) as f32 / 331.0 - 1.5).collect();
    let before = peak();
    let started = Instant::now();
    let way = words.first().map_or("rows", String::as_str);
    let predictions = match way {
        "matrix" => probe.predictions(&Matrix::new(states.iter().map(|&state| state.into()).collect(), n_features)?)?,
        "rows" => F32Rows::new(&states, n_features)?.predictions(&probe)?,
        other => return Err(format!("expected `matrix` or `rows`, found {other:?}").into()),
    };
    let seconds = started.elapsed().as_secs_f64();
    let sum: i64 = predictions.labels.iter().sum();
    let result = serde_json::json!({
        "way": way, "rows": n_rows, "features": n_features, "labels": sum, "seconds": seconds,
        "states_mib": (states.len() * 4) as f64 / 1_048_576.0, "peak_before_mib": before, "peak_mib": peak(),
    });
    println!("{result}");
    Ok(())
}
