//! The mean score that people would give to all rows, of which they have graded some.

use judge_metrics::comparison::{ComparedItem, Statistic};
use judge_metrics::means::{PredictionPoweredMean, clustered_mean, sample_mean};

use crate::pairs::Unlabelled;

/// The mean of the rows that people graded, and that of all rows with the judge's help: names of the results.
pub const MEANS: [&str; 2] = ["human_mean", "human_mean_prediction_powered"];

/// The two means, where scores are numbers; the second where at least two rows have a score of the judge's alone.
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
        let settings = PredictionPoweredMean::default();
        let powered = match (&clusters, &of_others) {
            (None, _) => settings.estimate(&human, &judge, &others).map(|powered| powered.mean),
            (Some(clusters), Some(of_others)) => {
                settings.clustered(&human, &judge, clusters, &others, of_others).map(|powered| powered.mean)
            }
            (Some(_), None) => {
                let reason = "a row without a human score names no cluster".to_owned();
                found.push((MEANS[1].to_owned(), Statistic::Undefined { reason }));
                return found;
            }
        };
        found.push((MEANS[1].to_owned(), Statistic::estimated(powered, level)));
    }
    // That a mean is 0 is nobody's hypothesis.
    for (_, statistic) in &mut found {
        if let Statistic::Defined(known) = statistic {
            known.p = None;
        }
    }
    found
}
