//! Calibrated scores of new items, and how far probabilities are from calibrated.

use judge_metrics::calibration::{
    CalibrationMethod, Calibrator, LogisticRecalibration, OrdinalConformal, SplitConformal,
};

use crate::draw::Draw;
use crate::simulations::{LEVEL, Simulation, at_least, holds, simulation};

/// Coverage of a new item's score, over calibration sets and items alike.
pub(crate) fn conformal(n: usize) -> Vec<Simulation> {
    const SCALE: usize = 5;
    let distribution = |quality: f64| -> Vec<f64> {
        let weights: Vec<f64> = (0..SCALE).map(|grade| (-(grade as f64 - quality).powi(2)).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    };
    vec![
        at_least("a new score, split conformal", n, |draw, n| {
            let (judge, human) = draw.correlated(n + 1, 0.7);
            let fitted = SplitConformal { level: LEVEL }.fit(&human[..n], &judge[..n])?;
            Ok(holds(fitted.interval(judge[n])?, human[n]))
        }),
        simulation("a new score, calibrated (isotonic)", n, |draw, n| {
            let (judge, human) = draw.correlated(n + 1, 0.7);
            let fitted = Calibrator { level: LEVEL, ..Calibrator::default() }.fit(&judge[..n], &human[..n])?;
            Ok(holds(fitted.calibrate(judge[n])?.interval, human[n]))
        }),
        simulation("a new grade, calibrated (ordinal)", n, |draw, n| {
            let (judge, human) = draw.correlated(n + 1, 0.7);
            let grades: Vec<f64> = human.iter().map(|human| (3.0 + human).round().clamp(1.0, 5.0)).collect();
            let settings = Calibrator { method: CalibrationMethod::Ordinal, level: LEVEL, ..Calibrator::default() };
            Ok(holds(settings.fit(&judge[..n], &grades[..n])?.calibrate(judge[n])?.interval, grades[n]))
        }),
        at_least("a new grade, ordinal conformal", n, move |draw, n| {
            let (mut rows, mut grades) = (Vec::new(), Vec::new());
            for _ in 0..=n {
                let quality = 4.0 * draw.uniform();
                // The judge is surer of itself than it should be.
                let seen = distribution(quality + 0.7 * draw.normal());
                grades.push(draw.category(&seen));
                rows.push(distribution(quality));
            }
            let fitted = OrdinalConformal { level: LEVEL }.fit(&grades[..n], &rows[..n])?;
            Ok(fitted.set(&rows[n])?.contains(grades[n]))
        }),
    ]
}

pub(crate) fn recalibration(n: usize) -> Vec<Simulation> {
    vec![
        simulation("logistic recalibration, slope of .7", n, |draw, n| {
            let (outcomes, probabilities) = overconfident(draw, n);
            Ok(holds(LogisticRecalibration::new(&outcomes, &probabilities)?.slope.interval(LEVEL)?, 0.7))
        }),
        simulation("logistic recalibration, intercept of .3", n, |draw, n| {
            let (outcomes, probabilities) = overconfident(draw, n);
            Ok(holds(LogisticRecalibration::new(&outcomes, &probabilities)?.intercept.interval(LEVEL)?, 0.3))
        }),
    ]
}

/// What came, and probabilities that are too extreme and too low: the log odds of what came are .3 + .7 of theirs.
fn overconfident(draw: &mut Draw, n: usize) -> (Vec<bool>, Vec<f64>) {
    let logistic = |logit: f64| 1.0 / (1.0 + (-logit).exp());
    (0..n)
        .map(|_| {
            let logit = 1.5 * draw.normal();
            (draw.chance(logistic(0.3 + 0.7 * logit)), logistic(logit))
        })
        .unzip()
}
