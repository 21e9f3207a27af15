//! Prediction-powered means: n labelled items, and ten times as many that only a judge has scored, of correlation 0.8 with people.

use judge_metrics::Error;
use judge_metrics::means::{PredictionPoweredMean, Stratum, StratumWeights};

use crate::draw::Draw;
use crate::simulations::{LEVEL, Simulation, holds, simulation};

pub(crate) fn prediction_powered(n: usize) -> Vec<Simulation> {
    vec![
        simulation("prediction-powered mean of n/4 questions of 4 answers", n, |draw, n| {
            let answers = |draw: &mut Draw, n: usize| -> (Vec<f64>, Vec<f64>) {
                let of_question: Vec<f64> = (0..n.div_ceil(4)).map(|_| draw.normal()).collect();
                let (labels, noise) = draw.correlated(n, 0.0);
                let labels: Vec<f64> =
                    labels.iter().zip(0..).map(|(x, row): (_, usize)| x + of_question[row / 4]).collect();
                let predictions = labels.iter().zip(noise).map(|(label, noise)| label + noise).collect();
                (labels, predictions)
            };
            let groups: Vec<usize> = (0..11 * n).map(|row| row / 4).collect();
            let (labels, predictions) = answers(draw, n);
            let (_, unlabelled) = answers(draw, 10 * n);
            // Both start a question: none is shared where n is a multiple of four.
            let (of, others) = groups.split_at(n);
            let powered = PredictionPoweredMean::default().clustered(&labels, &predictions, of, &unlabelled, others)?;
            Ok(holds(powered.mean.interval(LEVEL)?, 0.0))
        }),
        simulation("prediction-powered mean of three strata, known weights", n, |draw, n| strata(draw, n, true)),
        simulation("prediction-powered mean of three strata, estimated weights", n, |draw, n| strata(draw, n, false)),
        simulation("prediction-powered difference of two systems", n, |draw, n| {
            let [(first, of_first), (second, of_second)] = [draw.correlated(n, 0.8), draw.correlated(n, 0.8)];
            let [(_, one), (_, other)] = [draw.correlated(10 * n, 0.8), draw.correlated(10 * n, 0.8)];
            let settings = PredictionPoweredMean::default();
            let powered = settings.difference([&first, &second], [&of_first, &of_second], [&one, &other])?;
            Ok(holds(powered.mean.interval(LEVEL)?, 0.0))
        }),
    ]
}

/// Shares of a half, .3 and .2, of which the last has half of the labels; means of −1, 0 and 2.
fn strata(draw: &mut Draw, n: usize, known: bool) -> Result<bool, Error> {
    const SHARES: [f64; 3] = [0.5, 0.3, 0.2];
    let mut sizes = [0; 3];
    (0..10 * n).for_each(|_| sizes[draw.category(&SHARES)] += 1);
    let columns: Vec<[Vec<f64>; 3]> = [(-1.0, n / 4), (0.0, n / 4), (2.0, n / 2)]
        .into_iter()
        .zip(sizes)
        .map(|((mean, n_labels), size)| {
            let (labels, predictions) = draw.correlated(n_labels, 0.8);
            let (_, unlabelled) = draw.correlated(size - n_labels, 0.8);
            [labels, predictions, unlabelled].map(|values| values.iter().map(|value| mean + value).collect())
        })
        .collect();
    let strata: Vec<Stratum<'_>> =
        columns.iter().map(|[labels, predictions, unlabelled]| Stratum { labels, predictions, unlabelled }).collect();
    let weights = if known { StratumWeights::Known(&SHARES) } else { StratumWeights::Estimated };
    let powered = PredictionPoweredMean::default().stratified(&strata, weights)?;
    Ok(holds(powered.mean.interval(LEVEL)?, -0.1))
}
