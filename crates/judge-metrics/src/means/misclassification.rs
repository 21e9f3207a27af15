use crate::estimate::{Missing, Spread};
use crate::input::{check_count, check_lengths};
use crate::{Error, Estimate, Proportion};

/// A proportion that a judge counted, corrected for the judge's sensitivity and specificity.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CorrectedProportion {
    /// The corrected share, in [0, 1], with the interval of Lang and Reiczigel; its `n` counts unlabelled items.
    pub share: Estimate,
    /// Items on which the judge says yes, of all that only it has judged.
    pub judged: Proportion,
    /// The judge says yes, of the labelled items that are yes.
    pub sensitivity: Proportion,
    /// The judge says no, of the labelled items that are no.
    pub specificity: Proportion,
}

/// The share of yes that people would give, from a judge's verdicts and its errors on items that people labelled: (p + specificity − 1) /
/// (sensitivity + specificity − 1), kept within [0, 1] (Rogan and Gladen, 1978; for judges Lee et al., 2025, arXiv 2511.21140).
///
/// `labels`, `verdicts`: what people and the judge say of the labelled items, at least one of them yes and one no; `unlabelled`: the
/// judge's verdicts on the others, at least one. Unlike a [`PredictionPoweredMean`](super::PredictionPoweredMean) it does not need labelled
/// items that are drawn as the others are: as many of either kind as you like, as long as the judge's error rates are the same there. Where
/// the labels are such a draw, the prediction-powered mean uses them better.
///
/// The interval is that of Lang and Reiczigel (2014), which counts the errors of all three shares and stays within [0, 1]. In simulations
/// (`tests/it/corrected_proportion.rs`: true share .3, sensitivity .9, specificity .8, 1,000 unlabelled items) a nominal 95 % covered in 95
/// % with 100 labels and with 1,000, half of them of either kind. There is no standard error that goes with it, and no test.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no unlabelled item; [`Error::Undefined`] where no label is yes or none is no, and
/// where sensitivity + specificity ≤ 1: such a judge says yes to what is no at least as often as to what is yes, and its verdicts tell
/// nothing of the share.
///
/// ```
/// use judge_metrics::means::corrected_proportion;
///
/// // The judge finds nine of ten faults, and sees a fault in every fifth answer that has none.
/// let labels: Vec<bool> = (0..100).map(|i| i < 50).collect();
/// let verdicts: Vec<bool> = (0..100).map(|i| i < 45 || i >= 90).collect();
/// let unlabelled: Vec<bool> = (0..1_000).map(|i| i < 410).collect();
/// let found = corrected_proportion(&labels, &verdicts, &unlabelled)?;
/// assert!((found.share.estimate - 0.3).abs() < 1e-12);
/// let interval = found.share.interval(0.95)?;
/// assert!(interval.low < 0.25 && interval.high > 0.35, "the error rates are known from few labels");
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn corrected_proportion(
    labels: &[bool],
    verdicts: &[bool],
    unlabelled: &[bool],
) -> Result<CorrectedProportion, Error> {
    const STATISTIC: &str = "the corrected share";
    check_lengths("verdicts", verdicts.len(), "labels", labels.len())?;
    check_count(1, unlabelled.len())?;
    let (mut sensitivity, mut specificity, mut judged) =
        (Proportion::default(), Proportion::default(), Proportion::default());
    for (&label, &verdict) in labels.iter().zip(verdicts) {
        if label { sensitivity.add(verdict) } else { specificity.add(!verdict) }
    }
    unlabelled.iter().for_each(|&verdict| judged.add(verdict));
    if sensitivity.n == 0 || specificity.n == 0 {
        let reason = "labels of both kinds are needed, yes and no";
        return Err(Error::Undefined { statistic: STATISTIC, reason });
    }
    // As counts: whether the rates add up to 1 is not a question of rounding.
    let (found, missed) = (sensitivity.count as u128, (specificity.n - specificity.count) as u128);
    if found * specificity.n as u128 <= missed * sensitivity.n as u128 {
        let reason = "the judge says yes to what is no at least as often as to what is yes";
        return Err(Error::Undefined { statistic: STATISTIC, reason });
    }
    let rates = [judged.estimate()?, sensitivity.estimate()?, specificity.estimate()?];
    let share = ((rates[0] + rates[2] - 1.0) / (rates[1] + rates[2] - 1.0)).clamp(0.0, 1.0);
    let missing = Missing::Because("its interval is not symmetric: it has no standard error");
    let spread = Spread::Misclassified { judged, sensitivity, specificity };
    let share = Estimate::new(STATISTIC, share, judged.n)?.without_error(missing).with_interval(spread);
    Ok(CorrectedProportion { share, judged, sensitivity, specificity })
}
