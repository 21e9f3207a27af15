//! What is risked by keeping only the rows that the judge is surest of (selective prediction; El-Yaniv and Wiener, 2010).
//!
//! Any confidence will do, in any unit, since only its order counts: a label's probability, the negated width of an interval, a second
//! judge's agreement. If it says nothing of the losses, the area under the curve is the mean loss, and the curve is flat.

use super::ComparedItem;
use super::collector::{Collector, of_both};
use crate::Error;
use crate::prediction::{RiskCoveragePoint, area_under_risk_coverage, risk_coverage_curve};

/// What confidences define.
pub(super) const RISK: [&str; 1] = ["area_under_risk_coverage"];

/// What each row costs, and how sure the judge is of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SelectiveRisk {
    /// What the losses are.
    pub loss: Loss,
    /// One a row, at least 0.
    pub losses: Vec<f64>,
    /// One a row, the larger the surer.
    pub confidence: Vec<f64>,
}

/// What a row costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// 1 where people say 0 and the probability is above one half, or they say 1 and it is not: of probabilities of what people say is 0 or
    /// 1.
    WrongDecision,
    /// The distance of the judge's score from the mean of people's: of other numbers.
    AbsoluteError,
    /// The share of the raters who gave another label: of texts.
    OtherLabel,
}

impl SelectiveRisk {
    /// Of rows that all name a confidence. Probabilities of what people say is 0 or 1 need not: there it is the distance from one half.
    /// `None` for other rows.
    pub(super) fn new(items: &[&ComparedItem]) -> Option<Self> {
        let confidence: Option<Vec<f64>> = items.iter().map(|item| item.confidence).collect();
        let both: Option<Vec<(f64, f64)>> =
            items.iter().map(|item| Some((item.predicted.number()?, item.mean_human()?))).collect();
        let Some(both) = both else {
            let other = |item: &&ComparedItem| {
                let wrong = item.ratings().filter(|rating| **rating != item.predicted).count();
                wrong as f64 / item.ratings().count() as f64
            };
            let (loss, losses) = (Loss::OtherLabel, items.iter().map(other).collect());
            return Some(Self { loss, losses, confidence: confidence? });
        };
        if both.iter().all(|(p, human)| (0.0..=1.0).contains(p) && (*human == 0.0 || *human == 1.0)) {
            let wrong = |(p, human): &(f64, f64)| f64::from(u8::from((*p > 0.5) != (*human == 1.0)));
            // Decisions, all 0 or 1, do not say how sure the judge is.
            let decisions = both.iter().all(|(p, _)| *p == 0.0 || *p == 1.0);
            let from_half = || (!decisions).then(|| both.iter().map(|(p, _)| (p - 0.5).abs()).collect());
            let confidence = confidence.or_else(from_half)?;
            return Some(Self { loss: Loss::WrongDecision, losses: both.iter().map(wrong).collect(), confidence });
        }
        let losses = both.iter().map(|(predicted, human)| (predicted - human).abs()).collect();
        Some(Self { loss: Loss::AbsoluteError, losses, confidence: confidence? })
    }

    /// The mean loss of the surest rows at each share of them; see [`risk_coverage_curve`].
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where the losses overflow.
    pub fn curve(&self) -> Result<Vec<RiskCoveragePoint>, Error> {
        risk_coverage_curve(&self.losses, &self.confidence)
    }
}

/// The area under the curve, where there is one. Confidence that says nothing has the mean loss.
pub(super) fn compare(found: &mut Collector<'_>, items: &[&ComparedItem]) {
    let Some(SelectiveRisk { losses, confidence, .. }) = SelectiveRisk::new(items) else { return };
    let [area] = RISK;
    found.resample(area, None, of_both(&losses, &confidence, area_under_risk_coverage), losses.len());
}
