//! Shares, means and errors of prediction.

use std::f64::consts::{PI, TAU};

use judge_metrics::Proportion;
use judge_metrics::bias::EqualOpportunity;
use judge_metrics::bias::verbosity::length_preference;
use judge_metrics::means::{PredictionPoweredMean, clustered_mean, corrected_proportion, paired_difference};
use judge_metrics::prediction::{auroc, auroc_difference, bias, brier_score, log_loss, mean_absolute_error};
use judge_metrics::preference::{Preference, Unparsed};

use crate::draw::Draw;
use crate::simulations::{LEVEL, Simulation, at_least, holds, simulation};

pub(crate) fn proportions_and_means(n: usize) -> Vec<Simulation> {
    let proportion = |draw: &mut Draw, n: usize| Proportion { count: (0..n).filter(|_| draw.chance(0.8)).count(), n };
    vec![
        simulation("accuracy of .8, Wilson", n, move |draw, n| Ok(holds(proportion(draw, n).wilson(LEVEL)?, 0.8))),
        at_least("accuracy of .8, Clopper-Pearson", n, move |draw, n| {
            Ok(holds(proportion(draw, n).clopper_pearson(LEVEL)?, 0.8))
        }),
        simulation("mean absolute error, Student t", n, |draw, n| {
            let (x, y) = draw.correlated(n, 0.5);
            // Differences are normal with variance 1: E|d| = sqrt(2 / pi).
            Ok(holds(mean_absolute_error(&y, &x)?.interval(LEVEL)?, (2.0 / PI).sqrt()))
        }),
        simulation("AUROC of .76, DeLong on the logit scale", n, |draw, n| {
            // Two normal populations one standard deviation apart: Phi(1 / sqrt 2).
            let outcomes: Vec<bool> = (0..n).map(|row| row % 2 == 0).collect();
            let scores: Vec<f64> = outcomes.iter().map(|&yes| f64::from(u8::from(yes)) + draw.normal()).collect();
            Ok(holds(auroc(&outcomes, &scores)?.interval(LEVEL)?, 0.760_249_938_906_523_4))
        }),
        simulation("mean from 1,000 judged and n labelled, prediction-powered", n, |draw, n| {
            let sample = |draw: &mut Draw, n: usize| draw.correlated(n, 0.8);
            let (labels, predictions) = sample(draw, n);
            let (_, unlabelled) = sample(draw, 1_000);
            let powered = PredictionPoweredMean::default().estimate(&labels, &predictions, &unlabelled)?;
            Ok(holds(powered.mean.interval(LEVEL)?, 0.0))
        }),
        simulation("share of .3 by a judge of .9 and .8, Lang-Reiczigel", n, |draw, n| {
            let mut verdict = |yes: bool| draw.chance(if yes { 0.9 } else { 0.2 });
            let labels: Vec<bool> = (0..n).map(|row| row % 2 == 0).collect();
            let verdicts: Vec<bool> = labels.iter().map(|&label| verdict(label)).collect();
            let truth: Vec<bool> = (0..1_000).map(|_| draw.chance(0.3)).collect();
            let unlabelled: Vec<bool> = truth.iter().map(|&yes| draw.chance(if yes { 0.9 } else { 0.2 })).collect();
            Ok(holds(corrected_proportion(&labels, &verdicts, &unlabelled)?.share.interval(LEVEL)?, 0.3))
        }),
        simulation("difference of independent shares of .8 and .6, Newcombe", n, |draw, n| {
            // n of either kind.
            let mut share = |p: f64| Proportion { count: (0..n).filter(|_| draw.chance(p)).count(), n };
            let found = EqualOpportunity { favoured: share(0.8), other: share(0.6), unparsed: 0 };
            Ok(holds(found.difference()?.interval(LEVEL)?, 0.2))
        }),
        simulation("difference of paired shares of .6 and .5, Newcombe", n, |draw, n| {
            let (mut human, mut judge) = (Vec::new(), Vec::new());
            let side = |longer: bool| if longer { Preference::First } else { Preference::Second };
            for _ in 0..n {
                let longer = draw.chance(0.5);
                human.push(side(longer));
                judge.push(Some(side(draw.chance(if longer { 0.8 } else { 0.4 }))));
            }
            let found = length_preference(&vec![[2.0, 1.0]; n], &human, &judge, Unparsed::Refused)?;
            Ok(holds(found.excess()?.interval(LEVEL)?, 0.1))
        }),
        simulation("difference of paired means, Student t", n, |draw, n| {
            let (first, second) = draw.correlated(n, 0.8);
            Ok(holds(paired_difference(&first, &second)?.interval(LEVEL)?, 0.0))
        }),
        simulation("bias of a judge, Student t", n, |draw, n| {
            let (people, judge) = draw.correlated(n, 0.5);
            Ok(holds(bias(&people, &judge)?.interval(LEVEL)?, 0.0))
        }),
        simulation("Brier score of calibrated probabilities, Student t", n, |draw, n| {
            let (outcomes, probabilities) = calibrated(draw, n);
            Ok(holds(brier_score(&outcomes, &probabilities)?.interval(LEVEL)?, over_probabilities(|p| p * (1.0 - p))))
        }),
        simulation("log loss of calibrated probabilities, Student t", n, |draw, n| {
            let (outcomes, probabilities) = calibrated(draw, n);
            let entropy = |p: f64| -p * p.ln() - (1.0 - p) * (-p).ln_1p();
            Ok(holds(log_loss(&outcomes, &probabilities, 1e-12)?.interval(LEVEL)?, over_probabilities(entropy)))
        }),
        simulation("difference of AUROCs of .76 and .64, DeLong", n, |draw, n| {
            let outcomes: Vec<bool> = (0..n).map(|row| row % 2 == 0).collect();
            let mut scores = |apart: f64| -> Vec<f64> {
                outcomes.iter().map(|&yes| apart * f64::from(u8::from(yes)) + draw.normal()).collect()
            };
            let (first, second) = (scores(1.0), scores(0.5));
            // Phi(1 / sqrt 2) and Phi(.5 / sqrt 2).
            let truth = 0.760_249_938_906_523_4 - 0.638_163_195_084_118_5;
            Ok(holds(auroc_difference(&outcomes, &first, &second)?.interval(LEVEL)?, truth))
        }),
        simulation("mean of n/4 questions of 4 answers, clustered standard error", n, |draw, n| {
            let questions: Vec<usize> = (0..n).map(|row| row / 4).collect();
            let of_question: Vec<f64> = (0..n.div_ceil(4)).map(|_| draw.normal()).collect();
            let x: Vec<f64> = questions.iter().map(|&question| of_question[question] + draw.normal()).collect();
            Ok(holds(clustered_mean(&x, &questions)?.interval(LEVEL)?, 0.0))
        }),
    ]
}

/// What came with probabilities whose log odds are normal with deviation 1.5.
fn calibrated(draw: &mut Draw, n: usize) -> (Vec<bool>, Vec<f64>) {
    (0..n)
        .map(|_| {
            let p = 1.0 / (1.0 + (-1.5 * draw.normal()).exp());
            (draw.chance(p), p)
        })
        .unzip()
}

/// The mean of a function of such probabilities, by the midpoint rule over ten deviations either way.
fn over_probabilities(of: impl Fn(f64) -> f64) -> f64 {
    const STEPS: usize = 20_000;
    const WIDTH: f64 = 20.0 / STEPS as f64;
    (0..STEPS)
        .map(|step| {
            let z = (step as f64 + 0.5) * WIDTH - 10.0;
            let density = (-z * z / 2.0).exp() / TAU.sqrt();
            WIDTH * density * of(1.0 / (1.0 + (-1.5 * z).exp()))
        })
        .sum()
}
