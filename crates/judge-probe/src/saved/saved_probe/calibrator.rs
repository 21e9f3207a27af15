//! The calibrator of a saved probe: its description and its tensors. What its numbers must be like is checked by `judge_metrics`; here only
//! that they are as many as the description says.
//!
//! A calibrator is one fit to all rows and one fit without each fold; each has one curve for isotonic calibration, or one for each grade
//! but the lowest. In the file all fits lie in a few long tensors, because a tensor for each curve would cost more in names than in
//! numbers:
//!
//! | tensor | shape | order |
//! |---|---|---|
//! | `calibrator.x`, `calibrator.y` | `[n_thresholds]` | fit by fit, curve by curve |
//! | `calibrator.errors` | `[n_errors]` | fold by fold; the fit to all rows has none |
//! | `calibrator.shares` | `[n_folds + 1, n_grades]` | fit by fit; only for grades |
//!
//! The description says how they are divided. Its counts are the file's word: each is compared with the length of a tensor before memory
//! is reserved for it.

use judge_metrics::calibration::{CalibratorParts, CurveParts, FittedCalibrator, FoldParts};
use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::SavedProbeError;
use super::tensors::{Numbers, matrix, vector};
use crate::estimators::parameters::check_count;
use crate::{Error, Matrix};

/// Errors of the rows that each fold held out, ascending within a fold.
const ERRORS: &str = "calibrator.errors";
/// The share of each grade among the rows fitted, a column for each grade.
const SHARES: &str = "calibrator.shares";
/// Thresholds of the curves, on the scale of the probe's number, strictly ascending within a curve.
const X: &str = "calibrator.x";
/// The curves' values at the thresholds.
const Y: &str = "calibrator.y";

/// All of it but the long lists, and how these are divided: thresholds and errors of all fits stand one after another in their tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Layout {
    /// Nominal coverage of the intervals, as a share.
    level: f64,
    /// Lowest and highest score that people can give; not written where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 2]>,
    /// Ascending; not there for isotonic calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grades: Option<Vec<f64>>,
    /// Whether a higher number of the probe stands for a higher human score.
    increasing: bool,
    /// The fit to all rows, then that without each fold.
    fits: Vec<Fit>,
    /// How many errors each fold has.
    errors: Vec<usize>,
}

/// How one fit's part of the long lists is divided, and the one number that it has besides.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fit {
    /// Weight of the shares of grades in a distribution, in [0, 1]; 0 for isotonic calibration.
    mixed: f64,
    /// How many thresholds each curve has.
    curves: Vec<usize>,
}

impl Layout {
    /// Of a calibrator that is to be written.
    ///
    /// The long lists are not copied into it; `tensors` writes those.
    pub(super) fn of(calibrator: &FittedCalibrator) -> Self {
        let CalibratorParts { level, range, grades, increasing, whole, folds } = calibrator.parts();
        let errors = folds.iter().map(|fold| fold.errors.len()).collect();
        let fit =
            |fit: FoldParts| Fit { mixed: fit.mixed, curves: fit.curves.iter().map(|curve| curve.x.len()).collect() };
        Self { level, range, grades, increasing, fits: [whole].into_iter().chain(folds).map(fit).collect(), errors }
    }

    /// The names of its tensors.
    ///
    /// All that must be in the file, and all that may be, of the names with this prefix.
    pub(super) fn names(&self) -> Vec<String> {
        let shares = self.grades.is_some().then_some(SHARES);
        [ERRORS].into_iter().chain(shares).chain([X, Y]).map(str::to_owned).collect()
    }

    /// The calibrator, of which the tensors named are in the file.
    ///
    /// The checks come in this order: the number of fits against that of folds, no empty curve, the sums of the counts against the
    /// tensors, and last what the numbers themselves must be. Sums saturate, so that counts near the largest integer cannot wrap round to
    /// a plausible total.
    ///
    /// # Errors
    ///
    /// [`Error::ParameterCount`] for counts that contradict each other, [`SavedProbeError::Content`] for tensors of other lengths,
    /// [`SavedProbeError::Calibrator`] for what `judge_metrics` refuses.
    pub(super) fn read(self, file: &SafeTensors<'_>) -> Result<FittedCalibrator, Error> {
        let Self { level, range, grades, increasing, fits, errors } = self;
        check_count("fits of a calibrator", errors.len().saturating_add(1), fits.len())?;
        // A curve needs a number in the file before there is room made for it in memory.
        if fits.iter().flat_map(|fit| &fit.curves).any(|&n| n == 0) {
            return Err(Error::ParameterCount { name: "thresholds of a curve, at least", expected: 1, found: 0 });
        }
        let total = |counts: &mut dyn Iterator<Item = usize>| counts.fold(0, usize::saturating_add);
        let n_thresholds = total(&mut fits.iter().flat_map(|fit| fit.curves.iter().copied()));
        let (x, y) = (vector(file, X, Some(n_thresholds))?, vector(file, Y, Some(n_thresholds))?);
        let all_errors = vector(file, ERRORS, Some(total(&mut errors.iter().copied())))?;
        let shares = match &grades {
            None => vec![Vec::new(); fits.len()],
            Some(grades) => {
                let shares = matrix(file, SHARES)?;
                check_count("rows of a calibrator's shares", fits.len(), shares.n_rows())?;
                check_count("columns of a calibrator's shares", grades.len(), shares.n_features())?;
                shares.rows().map(<[f64]>::to_vec).collect()
            }
        };
        // As many as all the counts together, so none is asked for more than it has.
        let (mut x, mut y, mut all_errors) = (x.into_iter(), y.into_iter(), all_errors.into_iter());
        let mut parts = Vec::with_capacity(fits.len());
        for ((fit, shares), n_errors) in fits.into_iter().zip(shares).zip([0].into_iter().chain(errors)) {
            let curve = |&n: &usize| CurveParts { x: x.by_ref().take(n).collect(), y: y.by_ref().take(n).collect() };
            let curves = fit.curves.iter().map(curve).collect();
            parts.push(FoldParts {
                curves,
                shares,
                mixed: fit.mixed,
                errors: all_errors.by_ref().take(n_errors).collect(),
            });
        }
        let folds = parts.split_off(1);
        let whole = parts.remove(0);
        let parts = CalibratorParts { level, range, grades, increasing, whole, folds };
        Ok(FittedCalibrator::from_parts(parts).map_err(SavedProbeError::Calibrator)?)
    }
}

/// Its tensors.
///
/// In no particular order: the container sorts all tensors by name.
///
/// # Errors
///
/// Those of [`Matrix::new`] for the shares, which a fitted calibrator does not give.
pub(super) fn tensors(calibrator: &FittedCalibrator) -> Result<Vec<Numbers>, Error> {
    let CalibratorParts { grades, whole, folds, .. } = calibrator.parts();
    let fits: Vec<FoldParts> = [whole].into_iter().chain(folds).collect();
    let thresholds = |of: fn(&CurveParts) -> &[f64]| -> Vec<f64> {
        fits.iter().flat_map(|fit| &fit.curves).flat_map(|curve| of(curve).iter().copied()).collect()
    };
    let list = |of: fn(&FoldParts) -> &[f64]| fits.iter().flat_map(|fit| of(fit).iter().copied()).collect::<Vec<_>>();
    let mut tensors = vec![
        Numbers::vector(ERRORS, &list(|fit| &fit.errors)),
        Numbers::vector(X, &thresholds(|curve| &curve.x)),
        Numbers::vector(Y, &thresholds(|curve| &curve.y)),
    ];
    if let Some(grades) = grades {
        tensors.push(Numbers::matrix(SHARES, &Matrix::new(list(|fit| &fit.shares), grades.len())?));
    }
    Ok(tensors)
}
