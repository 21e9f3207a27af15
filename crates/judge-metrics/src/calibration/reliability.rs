use crate::estimate::{SHARE, Spread};
use crate::input::check_range;
use crate::prediction::scoring::check_forecasts;
use crate::sum::sum;
use crate::{Error, Estimate};

/// How confidences are grouped. The calibration error depends on it, so say which was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binning {
    /// Bins of equal width, closed on the right, the first one also on the left: [0, 1/B], (1/B, 2/B], … (Guo et al.,
    /// 2017, which leaves a confidence of exactly 0 out).
    EqualWidth {
        /// B, at least 1; 10 and 15 are usual.
        bins: usize,
    },
    /// Adaptive bins of equal mass (Nguyen and O'Connor, 2015): confidences in ascending order are cut after every n/B
    /// items. Equal confidences stay together, in the earlier bin, so there may be fewer bins than asked for, and
    /// larger ones.
    EqualMass {
        /// B, at least 1.
        bins: usize,
    },
}

impl Default for Binning {
    /// Fifteen bins of equal width.
    fn default() -> Self {
        Self::EqualWidth { bins: 15 }
    }
}

/// One bin: items of similar confidence. Holds at least one.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReliabilityBin {
    /// Lower end: of the bin if bins have equal width, else the smallest confidence in it.
    pub low: f64,
    /// Upper end, likewise.
    pub high: f64,
    /// Items in the bin.
    pub count: usize,
    /// How many of them came true. With `count` it gives the bin's own interval, such as Wilson's.
    pub successes: usize,
    /// Mean confidence of the items, in [0, 1].
    pub confidence: f64,
}

impl ReliabilityBin {
    /// The observed frequency of the event.
    pub fn accuracy(&self) -> f64 {
        self.successes as f64 / self.count as f64
    }

    /// Accuracy less confidence: below 0 where the judge is too sure of itself.
    pub fn gap(&self) -> f64 {
        self.accuracy() - self.confidence
    }
}

/// A reliability diagram (calibration curve): how often the judge is right, by its confidence.
///
/// There is no standard calibration error: it depends on the bins, and even a perfectly calibrated judge has one above
/// 0, the more so the smaller the bins. [`Bootstrap`](crate::resampling::Bootstrap) gives its interval, which inherits
/// that bias upwards. [`debiased_squared_error`](Self::debiased_squared_error) has the bias taken off.
///
/// ```
/// use judge_metrics::calibration::{Binning, ReliabilityCurve};
///
/// let (correct, confidence) = ([true, false, true, true], [0.55, 0.58, 0.9, 0.95]);
/// let curve = ReliabilityCurve::new(&correct, &confidence, Binning::EqualWidth { bins: 10 })?;
/// assert_eq!(curve.bins.len(), 3);
/// assert!((curve.expected_calibration_error() - 0.07).abs() < 1e-15);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "calibration_curve")]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReliabilityCurve {
    /// The bins that hold items, in ascending order of confidence.
    pub bins: Vec<ReliabilityBin>,
    /// Number of items.
    pub n: usize,
}

impl ReliabilityCurve {
    /// Groups n ≥ 1 items.
    ///
    /// `outcomes`: whether the judge was right, or the event came to be; `probabilities`: the confidence it gave, in [0, 1].
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`], [`Error::OutOfRange`], the last also
    /// for 0 bins.
    pub fn new(outcomes: &[bool], probabilities: &[f64], binning: Binning) -> Result<Self, Error> {
        check_forecasts(outcomes, probabilities)?;
        let (Binning::EqualWidth { bins } | Binning::EqualMass { bins }) = binning;
        check_range("bins", None, bins as f64, [1.0, f64::MAX])?;
        let n = outcomes.len();
        // Adding +0 turns -0 into +0, so that the total order agrees with `==` on finite numbers.
        let mut items: Vec<(f64, bool)> =
            probabilities.iter().map(|confidence| confidence + 0.0).zip(outcomes.iter().copied()).collect();
        items.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));

        let bins = match binning {
            Binning::EqualWidth { bins } => {
                let bin_of = |item: &(f64, bool)| equal_width_bin(item.0, bins);
                let edge = |k: usize| k as f64 / bins as f64;
                items
                    .chunk_by(|a, b| bin_of(a) == bin_of(b))
                    .map(|chunk| {
                        let bin = bin_of(&chunk[0]);
                        bin_over(chunk, edge(bin), edge(bin + 1))
                    })
                    .collect()
            }
            Binning::EqualMass { bins } => {
                equal_mass_chunks(&items, bins)
                    .into_iter()
                    // No chunk is empty, and each is in ascending order.
                    .map(|chunk| bin_over(chunk, chunk[0].0, chunk[chunk.len() - 1].0))
                    .collect()
            }
        };
        Ok(Self { bins, n })
    }

    /// Expected calibration error: Σ (count/n) · |accuracy − confidence|, in [0, 1]. Over bins of equal mass it is the
    /// adaptive one.
    pub fn expected_calibration_error(&self) -> f64 {
        let gaps: Vec<f64> = self.bins.iter().map(|bin| bin.gap().abs() * bin.count as f64).collect();
        sum(&gaps) / self.n as f64
    }

    /// Squared calibration error, Σ (count/n) · (accuracy − confidence)², less what chance adds to it:
    /// accuracy · (1 − accuracy) / (count − 1) of each bin (Kumar, Liang and Ma, 2019; `unbiased_square_ce` of the Python package
    /// `uncertainty-calibration` 0.1.4). Bröcker (2012) and Ferro and Fricker (2012) correct the reliability term of the Brier score in the
    /// same way.
    ///
    /// Its mean over samples is the squared error that infinitely many items would have in these bins, so that judges and data sets of
    /// different sizes compare. It may come out below 0, which means that nothing tells the judge from a calibrated one. Where it is
    /// positive its root is the debiased L2 error, in the unit of the confidence; the root itself is no longer without bias. Bins of equal
    /// mass serve it best: each needs two items.
    ///
    /// The standard error takes the gaps of bins as normal: variance Σ (count/n)² (4 g² v + 2 v²), with v what was taken off a bin and g²
    /// what was left of its squared gap, at least 0. The interval is that of the normal distribution, cut off at 0 and 1; of a calibrated
    /// judge it is wider than it need be. [`Bootstrap`](crate::resampling::Bootstrap) would not do: its resamples lie higher by what chance
    /// adds.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where a bin holds a single item. The interval is undefined where each bin has one outcome alone.
    ///
    /// ```
    /// use judge_metrics::calibration::{Binning, ReliabilityCurve};
    ///
    /// let correct = [true, false, true, true, false, true, true, true];
    /// let confidence = [0.55, 0.58, 0.61, 0.7, 0.8, 0.9, 0.95, 0.99];
    /// let curve = ReliabilityCurve::new(&correct, &confidence, Binning::EqualMass { bins: 2 })?;
    /// // Both bins are right in three of four cases: gaps of 0.14 and −0.16, and 1/16 taken off each square.
    /// assert!((curve.debiased_squared_error()?.estimate - (0.022_6 - 0.062_5)).abs() < 1e-12);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn debiased_squared_error(&self) -> Result<Estimate, Error> {
        const STATISTIC: &str = "the debiased squared calibration error";
        let n = self.n as f64;
        let (mut errors, mut variances) = (Vec::new(), Vec::new());
        for bin in &self.bins {
            if bin.count < 2 {
                let reason = "a bin holds a single item: take fewer bins";
                return Err(Error::Undefined { statistic: STATISTIC, reason });
            }
            let (share, accuracy) = (bin.count as f64 / n, bin.accuracy());
            let chance = accuracy * (1.0 - accuracy) / (bin.count - 1) as f64;
            let square = bin.gap().powi(2) - chance;
            errors.push(share * square);
            variances.push(share * share * (4.0 * square.max(0.0) * chance + 2.0 * chance * chance));
        }
        let standard_error = sum(&variances).sqrt();
        let found = Estimate::new(STATISTIC, sum(&errors), self.n)?;
        Ok(found.with_error(standard_error, Spread::Normal { range: SHARE }))
    }

    /// Maximum calibration error: the largest |accuracy − confidence| of a bin, in [0, 1].
    pub fn maximum_calibration_error(&self) -> f64 {
        self.bins.iter().map(|bin| bin.gap().abs()).fold(0.0, f64::max)
    }
}

fn bin_over(items: &[(f64, bool)], low: f64, high: f64) -> ReliabilityBin {
    let confidences: Vec<f64> = items.iter().map(|item| item.0).collect();
    ReliabilityBin {
        low,
        high,
        count: items.len(),
        successes: items.iter().filter(|item| item.1).count(),
        confidence: sum(&confidences) / items.len() as f64,
    }
}

/// The k with k/bins < confidence ≤ (k + 1)/bins, both as rounded to f64, so that 0.3 ends the third of ten bins.
fn equal_width_bin(confidence: f64, bins: usize) -> usize {
    let edge = |k: usize| k as f64 / bins as f64;
    let mut k = ((confidence * bins as f64) as usize).min(bins - 1);
    // The product is rounded: it may name a neighbour.
    while k > 0 && confidence <= edge(k) {
        k -= 1;
    }
    while k + 1 < bins && confidence > edge(k + 1) {
        k += 1;
    }
    k
}

/// Cuts ascending items after every n/bins, moving each cut to the end of a run of equal confidences.
fn equal_mass_chunks(items: &[(f64, bool)], bins: usize) -> Vec<&[(f64, bool)]> {
    let (n, bins) = (items.len() as u128, bins as u128);
    let (mut chunks, mut start, mut end, mut closed) = (Vec::new(), 0, 0, 0);
    for tied in items.chunk_by(|a, b| a.0 == b.0) {
        end += tied.len();
        let reached = end as u128 * bins / n;
        if reached > closed {
            chunks.push(&items[start..end]);
            (start, closed) = (end, reached);
        }
    }
    chunks
}
