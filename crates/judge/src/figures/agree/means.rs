//! The mean score that people would give to all rows, of which they have graded some.

use judge_cli::report::SHARE;
use judge_metrics::Proportion;
use judge_metrics::comparison::{ComparedItem, Labels, Statistic};
use judge_metrics::means::{
    CalibratedMean, PredictionPoweredMean, clustered_mean, clustered_share, sample_mean, weighted_mean,
};

/// A row without a human score.
pub struct Unlabelled {
    pub predicted: f64,
    pub cluster: Option<String>,
}

/// The mean of the rows that people graded, and that of all rows with the judge's help, its scores as they are and on people's scale:
/// names of the results.
pub const MEANS: [&str; 3] = ["human_mean", "human_mean_prediction_powered", "human_mean_calibrated"];

/// The means, where scores are numbers; those of all rows where at least two rows have a score of the judge's alone. `labels` are those that
/// were named.
pub fn means(
    items: &[ComparedItem],
    unlabelled: &[Unlabelled],
    labels: Option<&[String]>,
    level: f64,
) -> Vec<(String, Statistic)> {
    let both: Option<Vec<(f64, f64)>> =
        items.iter().map(|item| Some((item.mean_human()?, item.predicted.number()?))).collect();
    let Some(both) = both else { return Vec::new() };
    let (human, judge): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    let others: Vec<f64> = unlabelled.iter().map(|row| row.predicted).collect();
    let clusters: Option<Vec<&str>> = items.iter().map(|item| item.cluster.as_deref()).collect();
    let of_others: Option<Vec<&str>> = unlabelled.iter().map(|row| row.cluster.as_deref()).collect();
    let probabilities: Option<Vec<f64>> = items.iter().map(|item| item.sampling_probability).collect();
    // Zeros and ones of people, beside a judge on the same scale: their mean is a share. Where one of the two does not occur it may be a
    // grade that everybody gave, unless the labels are named.
    let decision = |&value: &f64| value == 0.0 || value == 1.0;
    let named = labels.is_some_and(|names| Labels::named(names, true).is_ok_and(|labels| labels.are_decisions()));
    let on_scale = judge.iter().all(|value| (0.0..=1.0).contains(value));
    let occurs = |value: f64| human.contains(&value) || on_scale && judge.contains(&value);
    let is_share = human.iter().all(decision) && (named || occurs(0.0) && occurs(1.0));
    let range = if is_share { SHARE } else { [f64::NEG_INFINITY, f64::INFINITY] };
    let passed = || human.iter().map(|&human| human == 1.0).collect::<Vec<_>>();
    // Independent rows are clusters of their own.
    let each: Vec<String> = (0..human.len() + others.len()).map(|row| row.to_string()).collect();
    let each: Vec<&str> = each.iter().map(String::as_str).collect();
    let (of_graded, of_others) = match &clusters {
        Some(clusters) => (clusters.as_slice(), of_others.as_deref()),
        None => (&each[..human.len()], Some(&each[human.len()..])),
    };
    let graded = match (&probabilities, &clusters) {
        (Some(probabilities), _) => weighted_mean(&human, probabilities, of_graded).map(|mean| mean.within(range)),
        (None, Some(clusters)) if is_share => clustered_share(&passed(), clusters),
        (None, Some(clusters)) => clustered_mean(&human, clusters),
        (None, None) if is_share => Proportion::of(&passed()).try_into(),
        (None, None) => sample_mean(&human),
    };
    let plain = human.iter().sum::<f64>() / human.len() as f64;
    let graded = match &clusters {
        Some(_) => Statistic::of_clusters(graded, plain, level),
        None => Statistic::estimated(graded, level),
    };
    let mut found = vec![(MEANS[0].to_owned(), graded)];
    if others.len() > 1 {
        let (powered, calibrated) = (PredictionPoweredMean::default(), CalibratedMean::default());
        let of_all = match (&probabilities, of_others) {
            (_, None) => ["a row without a human score names no cluster"; 2].map(Err),
            (Some(probabilities), Some(of_others)) => {
                let drawn = powered.sampled(&human, &judge, probabilities, of_graded, &others, of_others);
                [Ok(drawn.map(|found| found.mean)), Err("it takes graded rows as drawn with equal probabilities")]
            }
            (None, Some(of_others)) if clusters.is_some() => [
                Ok(powered.clustered(&human, &judge, of_graded, &others, of_others).map(|found| found.mean)),
                Ok(calibrated.clustered(&human, &judge, of_graded, &others, of_others).map(|found| found.mean)),
            ],
            (None, Some(_)) => [
                Ok(powered.estimate(&human, &judge, &others).map(|found| found.mean)),
                Ok(calibrated.estimate(&human, &judge, &others).map(|found| found.mean)),
            ],
        };
        found.extend(MEANS[1..].iter().zip(of_all).map(|(name, mean)| {
            let statistic = match mean {
                Ok(mean) => Statistic::estimated(mean.map(|mean| mean.within(range)), level),
                Err(reason) => Statistic::Undefined { reason: reason.to_owned() },
            };
            ((*name).to_owned(), statistic)
        }));
    }
    let of_what = if clusters.is_some() { "Student t of clusters" } else { "Student t" };
    for (_, statistic) in &mut found {
        if let Statistic::Defined(known) = statistic {
            // That a mean is 0 is nobody's hypothesis.
            known.p = None;
            known.method = known.method.replace("Student t", of_what);
            if probabilities.is_some() && known.interval.is_some() {
                known.method.insert_str(0, "weighted, ");
            }
        }
    }
    found
}
