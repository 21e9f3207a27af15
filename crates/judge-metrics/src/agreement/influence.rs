//! The standard error of a statistic that is, to first order, a mean over subjects: Gwet's way to all chance-corrected agreement
//! coefficients.

use crate::estimate::{Missing, Spread};
use crate::{Error, Estimate};

/// An estimate with the standard error of a mean of the subjects' `influences` (Gwet, 2008): what each adds to the statistic, less the
/// statistic, so that their mean is 0. They are independent and the raters given. The interval is Student's, cut off at 1; one subject has
/// none.
pub(super) fn over_subjects(statistic: &'static str, estimate: f64, influences: &[f64]) -> Result<Estimate, Error> {
    let n = influences.len();
    let found = Estimate::new(statistic, estimate, n)?;
    if n < 2 {
        return Ok(found.without_error(Missing::TooFewItems { required: 2, found: n }));
    }
    let squares: f64 = influences.iter().map(|x| x * x).sum();
    let interval = Spread::StudentT { degrees_of_freedom: (n - 1) as f64, range: [f64::NEG_INFINITY, 1.0] };
    Ok(found.with_error((squares / (n * (n - 1)) as f64).sqrt(), interval))
}
