//! Mean squares of ratings without gaps, and the intervals that follow from them (McGraw and Wong, 1996, table 7).

use crate::distribution::{f_quantile, f_sf};
use crate::{Error, Interval};

pub(super) const STATISTIC: &str = "the intraclass correlation";

/// Of k raters who each rated all of n subjects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MeanSquares {
    pub(super) n: f64,
    pub(super) k: f64,
    /// Between subjects, n − 1 degrees of freedom.
    pub(super) subjects: f64,
    /// Between raters, k − 1.
    pub(super) raters: f64,
    /// What is left within subjects and raters, (n − 1)(k − 1).
    pub(super) rest: f64,
    /// Within subjects, n(k − 1).
    pub(super) within: f64,
}

/// Which intraclass correlation, of one rater.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntraclassForm {
    /// ICC(1): raters are told apart by nothing.
    OneWay,
    /// ICC(A,1): raters are a sample of all raters, and where they differ in level they do not agree.
    Agreement,
    /// ICC(C,1): raters may differ in level, as long as they do so always.
    Consistency,
}

/// What the interval of one intraclass correlation is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct McGrawWong {
    pub(super) form: IntraclassForm,
    pub(super) of_mean: bool,
    pub(super) squares: MeanSquares,
}

impl MeanSquares {
    pub(super) fn single_agreement(&self) -> Result<f64, Error> {
        let Self { n, k, subjects, raters, rest, .. } = *self;
        ratio(less(subjects, rest), subjects + (k - 1.0) * rest + k * (raters - rest) / n)
    }

    /// Of the F test that subjects do not differ; `None` where raters agree exactly, so that the ratio is infinite.
    pub(super) fn p_value(&self, form: IntraclassForm) -> Option<f64> {
        let (error, above, below) = self.error_of(form);
        (error != 0.0).then(|| f_sf(self.subjects / error, above, below))
    }

    /// The mean square that subjects are compared with, and the degrees of freedom of both.
    fn error_of(&self, form: IntraclassForm) -> (f64, f64, f64) {
        let Self { n, k, rest, within, .. } = *self;
        match form {
            IntraclassForm::OneWay => (within, n - 1.0, n * (k - 1.0)),
            IntraclassForm::Agreement | IntraclassForm::Consistency => (rest, n - 1.0, (n - 1.0) * (k - 1.0)),
        }
    }
}

impl McGrawWong {
    pub(crate) fn interval(&self, level: f64) -> Result<Interval, Error> {
        let MeanSquares { n, k, subjects, raters, rest, .. } = self.squares;
        let (error, above, below) = self.squares.error_of(self.form);
        let upper = (1.0 + level) / 2.0;
        let (low, high) = if self.form == IntraclassForm::Agreement {
            // Of a single rater, whichever was asked for.
            let icc = self.squares.single_agreement()?;
            let of_raters = raters / rest;
            let share = n * (1.0 + (k - 1.0) * icc) - k * icc;
            let dof = below * (k * icc * of_raters + share).powi(2)
                / ((n - 1.0) * (k * icc * of_raters).powi(2) + share * share);
            // Where raters disagree just as subjects do, the formula's two parts cancel and leave no distribution.
            if dof.is_nan() || dof < 1e-6 {
                return Err(Error::Undefined {
                    statistic: "the interval of an intraclass correlation",
                    reason: "its degrees of freedom (Satterthwaite) vanish",
                });
            }
            let (f_low, f_high) = (f_quantile(upper, n - 1.0, dof), f_quantile(upper, dof, n - 1.0));
            let noise = k * raters + (k * n - k - n) * rest;
            // Divided by the quantile, which overflows where the degrees of freedom vanish: a correlation below what is possible.
            let low = n * (subjects / f_low - rest) / (noise + n * subjects / f_low);
            let high = n * (f_high * subjects - rest) / (noise + n * f_high * subjects);
            if self.of_mean {
                // Spearman and Brown's formula has a pole at -1 / (k - 1), below which no mean of raters corresponds to a single one.
                let of_mean = |icc: f64| match 1.0 + (k - 1.0) * icc {
                    below if below > 0.0 => Ok(k * icc / below),
                    _ => Err(Error::Undefined {
                        statistic: "the interval of an intraclass correlation of means",
                        reason: "that of a single rater reaches below -1 / (k - 1)",
                    }),
                };
                (of_mean(low)?, of_mean(high)?)
            } else {
                (low, high)
            }
        } else {
            let ratio = subjects / error;
            let (low, high) = (ratio / f_quantile(upper, above, below), ratio * f_quantile(upper, below, above));
            let icc = |f: f64| if self.of_mean { 1.0 - 1.0 / f } else { (f - 1.0) / (f + k - 1.0) };
            (icc(low), icc(high))
        };
        // Beside raters who differ by far more than subjects do, a correlation is its least value whatever the subjects.
        if high - low <= 1e-14 * low.abs().max(high.abs()) {
            return Err(Error::Undefined {
                statistic: "the interval of an intraclass correlation",
                reason: "subjects differ by so much less than raters that rounding alone is left of it",
            });
        }
        Ok(Interval { low, high, level })
    }
}

/// The difference of two mean squares; 0 where rounding alone parts them, as beside a constant rater.
pub(super) fn less(a: f64, b: f64) -> f64 {
    if (a - b).abs() <= 1e-14 * (a + b) { 0.0 } else { a - b }
}

pub(super) fn ratio(above: f64, below: f64) -> Result<f64, Error> {
    if below == 0.0 {
        return Err(Error::Undefined { statistic: STATISTIC, reason: "subjects do not differ" });
    }
    Ok(above / below)
}
