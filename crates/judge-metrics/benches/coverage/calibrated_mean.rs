//! Calibrated means: n labelled items, ten times as many that only a judge has scored on a scale of its own, and another set.

use judge_metrics::means::CalibratedMean;

use crate::draw::Draw;
use crate::simulations::{LEVEL, Simulation, holds, power, simulation};

/// Of people, by the symmetry of every design here.
const MEAN: f64 = 3.0;

pub(crate) fn calibrated_means(n: usize) -> Vec<Simulation> {
    vec![
        simulation("calibrated mean, S-shaped relation", n, |draw, n| {
            let ((labels, scores), (_, unlabelled)) = (curved(draw, n, 0.0), curved(draw, 10 * n, 0.0));
            Ok(holds(CalibratedMean::default().estimate(&labels, &scores, &unlabelled)?.mean.interval(LEVEL)?, MEAN))
        }),
        simulation("calibrated mean, five grades by a noisy judge of ten", n, |draw, n| {
            let ((labels, scores), (_, unlabelled)) = (graded(draw, n), graded(draw, 10 * n));
            Ok(holds(CalibratedMean::default().estimate(&labels, &scores, &unlabelled)?.mean.interval(LEVEL)?, MEAN))
        }),
        simulation("calibrated mean of n/4 questions of 4 answers", n, |draw, n| {
            let groups: Vec<usize> = (0..11 * n).map(|row| row / 4).collect();
            let of_question: Vec<f64> = (0..(11 * n).div_ceil(4)).map(|_| draw.normal()).collect();
            let (labels, scores): (Vec<f64>, Vec<f64>) =
                groups.iter().map(|&question| item(draw, 0.6 * of_question[question], 0.8)).unzip();
            // Both start a question: none is shared where n is a multiple of four.
            let ((labels, _), (known, others)) = (labels.split_at(n), scores.split_at(n));
            let (of, of_others) = groups.split_at(n);
            let found = CalibratedMean::default().clustered(labels, known, of, others, of_others)?;
            Ok(holds(found.mean.interval(LEVEL)?, MEAN))
        }),
        simulation("mean of another set, calibration transported", n, |draw, n| {
            // The other set's scores spread less, about the same middle.
            let (labels, scores) = curved(draw, n, 0.0);
            let others: Vec<f64> = (0..10 * n).map(|_| item(draw, 0.0, 0.7).1).collect();
            Ok(holds(CalibratedMean::default().transported(&labels, &scores, &others)?.mean.interval(LEVEL)?, MEAN))
        }),
        simulation("transport check, the calibration holds", n, |draw, n| {
            let ((labels, scores), (target, of_target)) = (curved(draw, n, 0.0), curved(draw, n, 0.3));
            let check = CalibratedMean::default().transport_check(&labels, &scores, &target, &of_target)?;
            Ok(holds(check.residual.interval(LEVEL)?, 0.0))
        }),
        power("transport check, people are .3 stricter with the other set", n, |draw, n| {
            let ((labels, scores), (target, of_target)) = (curved(draw, n, 0.0), curved(draw, n, 0.3));
            let stricter: Vec<f64> = target.iter().map(|label| label - 0.3).collect();
            let check = CalibratedMean::default().transport_check(&labels, &scores, &stricter, &of_target)?;
            Ok(check.residual.p_value()? < 0.05)
        }),
    ]
}

/// A human score about an S-shaped function of quality, which is normal, and the judge's score of quality, from 0 to 100.
fn item(draw: &mut Draw, mean: f64, deviation: f64) -> (f64, f64) {
    let quality = mean + deviation * draw.normal();
    let human = 1.0 + 4.0 / (1.0 + (-2.5 * quality).exp()) + 0.7 * draw.normal();
    (human, 100.0 / (1.0 + (-quality).exp()))
}

fn curved(draw: &mut Draw, n: usize, mean: f64) -> (Vec<f64>, Vec<f64>) {
    (0..n).map(|_| item(draw, mean, 1.0)).unzip()
}

/// Grades from 1 to 5, and those from 1 to 10 of a judge that correlates with them by about .75.
fn graded(draw: &mut Draw, n: usize) -> (Vec<f64>, Vec<f64>) {
    (0..n)
        .map(|_| {
            let quality = draw.normal();
            let human = (3.0 + quality + 0.5 * draw.normal()).round().clamp(1.0, 5.0);
            (human, (5.5 + 2.0 * (quality + 0.7 * draw.normal())).round().clamp(1.0, 10.0))
        })
        .unzip()
}
