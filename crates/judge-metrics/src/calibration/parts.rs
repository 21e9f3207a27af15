//! A fitted calibrator as plain numbers, and back: every number that comes in is checked as a fit would have made it.

use super::FittedIsotonicRegression;
use super::calibrator::{FittedCalibrator, Fold, MOST_GRADES};
use super::conformal::conformal_rank;
use super::curves::Curves;
use crate::Error;
use crate::input::{
    check_ascending, check_count, check_each_in, check_finite, check_lengths, check_not_descending, check_range,
};

/// The numbers of a [`FittedCalibrator`], in a form that any file format takes.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibratorParts {
    /// Coverage aimed at.
    pub level: f64,
    /// Lowest and highest score that people can give, where it is known.
    pub range: Option<[f64; 2]>,
    /// The grades, ascending; `None` for isotonic calibration.
    pub grades: Option<Vec<f64>>,
    /// Whether a higher score stands for a higher human score.
    pub increasing: bool,
    /// The fit to all rows.
    pub whole: FoldParts,
    /// Per fold the fit to all rows outside it.
    pub folds: Vec<FoldParts>,
}

/// One fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldParts {
    /// One curve, or one for each grade but the lowest.
    pub curves: Vec<CurveParts>,
    /// The share of each grade among the rows fitted; empty for isotonic calibration.
    pub shares: Vec<f64>,
    /// Weight of these shares in a distribution, in [0, 1]; 0 for isotonic calibration.
    pub mixed: f64,
    /// The errors of the fold's own rows, ascending; empty for the fit to all rows.
    pub errors: Vec<f64>,
}

/// A monotone function: straight between its thresholds, constant beyond.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveParts {
    /// Thresholds, strictly ascending.
    pub x: Vec<f64>,
    /// Its values there.
    pub y: Vec<f64>,
}

impl FittedCalibrator {
    /// Its numbers.
    pub fn parts(&self) -> CalibratorParts {
        let fit = |curves: &Curves, errors: &[f64]| FoldParts {
            curves: curves
                .curves
                .iter()
                .map(|curve| CurveParts { x: curve.x_thresholds().to_vec(), y: curve.y_thresholds().to_vec() })
                .collect(),
            shares: curves.shares.clone(),
            mixed: curves.mixed,
            errors: errors.to_vec(),
        };
        CalibratorParts {
            level: self.level,
            range: self.range,
            grades: self.grades.clone(),
            increasing: self.curves.curves.first().is_none_or(FittedIsotonicRegression::is_increasing),
            whole: fit(&self.curves, &[]),
            folds: self.folds.iter().map(|fold| fit(&fold.curves, &fold.errors)).collect(),
        }
    }

    /// The calibrator with these numbers: of the same bits as the one they came from.
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`], [`Error::TooFewItems`] for fewer errors than the level needs, [`Error::TooManyItems`] for more than 101
    /// grades, [`Error::LengthMismatch`] where curves or shares do not fit the grades, [`Error::NotAscending`], [`Error::NonFinite`],
    /// [`Error::OutOfRange`]; [`Error::Undefined`] where a curve turns round.
    pub fn from_parts(parts: CalibratorParts) -> Result<Self, Error> {
        let CalibratorParts { level, range, grades, increasing, whole, folds } = parts;
        if let Some(range) = &range {
            check_finite("range", range)?;
            check_range("range", Some(0), range[0], [f64::MIN, range[1]])?;
        }
        if let Some(grades) = &grades {
            check_count(1, grades.len())?;
            if grades.len() > MOST_GRADES {
                return Err(Error::TooManyItems { limit: MOST_GRADES, found: grades.len() });
            }
            check_finite("grades", grades)?;
            check_ascending("grades", grades)?;
        }
        let (n_curves, n_shares) = grades.as_ref().map_or((1, 0), |grades| (grades.len() - 1, grades.len()));
        let fit = |FoldParts { curves, shares, mixed, errors }: FoldParts| {
            check_lengths("curves", curves.len(), "the cuts of the scale", n_curves)?;
            check_lengths("shares", shares.len(), "grades", n_shares)?;
            for (argument, values) in [("shares", shares.as_slice()), ("mixed", &[mixed])] {
                check_finite(argument, values)?;
                check_each_in(argument, values, [0.0, 1.0])?;
            }
            check_finite("errors", &errors)?;
            check_not_descending("errors", &errors)?;
            let curves = curves
                .into_iter()
                .map(|CurveParts { x, y }| FittedIsotonicRegression::from_thresholds(x, y, increasing))
                .collect::<Result<_, _>>()?;
            Ok(Fold { curves: Curves { curves, shares, mixed }, errors })
        };
        let whole = fit(whole)?;
        let folds = folds.into_iter().map(fit).collect::<Result<Vec<_>, Error>>()?;
        let rank = conformal_rank(folds.iter().map(|fold| fold.errors.len()).sum(), level)?;
        Ok(Self { level, range, grades, curves: whole.curves, folds, rank })
    }
}
