//! The mean score that people would give to all rows, of which they have graded some.

use judge_metrics::comparison::{ComparedItem, Statistic};
use judge_metrics::means::{CalibratedMean, PredictionPoweredMean, clustered_mean, sample_mean};

use crate::pairs::Unlabelled;

/// The mean of the rows that people graded, and that of all rows with the judge's help, its scores as they are and on people's scale: names of the results.
pub const MEANS: [&str; 3] = ["human_mean", "human_mean_prediction_powered", "human_mean_calibrated"];

/// The means, where scores are numbers; those of all rows where at least two rows have a score of the judge's alone.
pub fn means(items: &[ComparedItem], unlabelled: &[Unlabelled], level: f64) -> Vec<(String, Statistic)> {
    let both: Option<Vec<(f64, f64)>> =
        items.iter().map(|item| Some((item.mean_human()?, item.predicted.number()?))).collect();
    let Some(both) = both else { return Vec::new() };
    let (human, judge): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    let others: Vec<f64> = unlabelled.iter().map(|row| row.predicted).collect();
    let clusters: Option<Vec<&str>> = items.iter().map(|item| item.cluster.as_deref()).collect();
    let of_others: Option<Vec<&str>> = unlabelled.iter().map(|row| row.cluster.as_deref()).collect();
    let graded = match &clusters {
        Some(clusters) => clustered_mean(&human, clusters),
        None => sample_mean(&human),
    };
    let mut found = vec![(MEANS[0].to_owned(), Statistic::estimated(graded, level))];
    if others.len() > 1 {
        let (powered, calibrated) = (PredictionPoweredMean::default(), CalibratedMean::default());
        let of_all = match (&clusters, &of_others) {
            (None, _) => [
                Ok(powered.estimate(&human, &judge, &others).map(|found| found.mean)),
                Ok(calibrated.estimate(&human, &judge, &others).map(|found| found.mean)),
            ],
            (Some(clusters), Some(of_others)) => [
                Ok(powered.clustered(&human, &judge, clusters, &others, of_others).map(|found| found.mean)),
                Ok(calibrated.clustered(&human, &judge, clusters, &others, of_others).map(|found| found.mean)),
            ],
            (Some(_), None) => ["a row without a human score names no cluster"; 2].map(Err),
        };
        found.extend(MEANS[1..].iter().zip(of_all).map(|(name, mean)| {
            let statistic = match mean {
                Ok(mean) => Statistic::estimated(mean, level),
                Err(reason) => Statistic::Undefined { reason: reason.to_owned() },
            };
            ((*name).to_owned(), statistic)
        }));
    }
    // That a mean is 0 is nobody's hypothesis.
    for (_, statistic) in &mut found {
        if let Statistic::Defined(known) = statistic {
            known.p = None;
        }
    }
    found
}
