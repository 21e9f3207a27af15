//! Labels and errors of a judge, its calibration error without bias, and the size of a panel.

use judge_metrics::aggregation::PanelSize;
use judge_metrics::agreement::{Average, ConfusionMatrix, ZeroDivision};
use judge_metrics::calibration::{Binning, ReliabilityCurve};
use judge_metrics::prediction::root_mean_squared_error;
use judge_metrics::{Error, Estimate};

use crate::agreement::three_labels;
use crate::draw::Draw;
use crate::simulations::{LEVEL, Simulation, holds, simulation};

pub(crate) fn labels(n: usize) -> Vec<Simulation> {
    // Three labels as likely, of which 70 % are found, and no other more often than another.
    type Of = fn(&ConfusionMatrix<usize>) -> Result<Estimate, Error>;
    let of_labels = |truth: f64, of: Of| {
        move |draw: &mut Draw, n: usize| {
            let (right, found) = three_labels(draw, n);
            Ok(holds(of(&ConfusionMatrix::new(vec![0, 1, 2], &right, &found)?)?.interval(LEVEL)?, truth))
        }
    };
    let macro_f1: Of = |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.f1);
    vec![
        simulation("macro F1 of .7, delta method", n, of_labels(0.7, macro_f1)),
        simulation("balanced accuracy of .7, delta method", n, of_labels(0.7, ConfusionMatrix::balanced_accuracy)),
        simulation("Matthews' correlation of .55, delta method", n, of_labels(0.55, ConfusionMatrix::matthews)),
        simulation("root mean squared error of normal errors, logarithm", n, |draw, n| {
            let errors: Vec<f64> = (0..n).map(|_| draw.normal()).collect();
            Ok(holds(root_mean_squared_error(&vec![0.0; n], &errors)?.interval(LEVEL)?, 1.0))
        }),
        simulation("effective size of a panel of 3, errors of correlation .5", n, |draw, n| {
            let panel: Vec<[f64; 3]> = (0..n)
                .map(|_| {
                    let shared = draw.normal();
                    std::array::from_fn(|_| shared + draw.normal())
                })
                .collect();
            Ok(holds(PanelSize::of_scores(&vec![0.0; n], &panel)?.effective.interval(LEVEL)?, 1.5))
        }),
    ]
}

/// Of a judge that is right less often than it says, in ten bins of equal mass: the truth is that of the confidences drawn.
pub(crate) fn calibration_error(n: usize) -> Vec<Simulation> {
    vec![simulation("squared calibration error of an overconfident judge, debiased", n, |draw, n| {
        let confidence: Vec<f64> = (0..n).map(|_| 0.5 + 0.5 * draw.uniform()).collect();
        let chance = |confidence: f64| 0.5 + 0.6 * (confidence - 0.5);
        let outcomes: Vec<bool> = confidence.iter().map(|&confidence| draw.chance(chance(confidence))).collect();
        let curve = ReliabilityCurve::new(&outcomes, &confidence, Binning::EqualMass { bins: 10 })?;
        // A bin's gap is linear in its mean confidence.
        let gap = |confidence: f64| (chance(confidence) - confidence).powi(2);
        let truth = curve.bins.iter().map(|bin| bin.count as f64 * gap(bin.confidence)).sum::<f64>() / n as f64;
        Ok(holds(curve.debiased_squared_error()?.interval(LEVEL)?, truth))
    })]
}
