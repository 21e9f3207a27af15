//! The standard error of a statistic that is, to first order, a mean over subjects: Gwet's way to all chance-corrected agreement coefficients.

use crate::Estimate;
use crate::estimate::{Missing, Spread};

/// How far subjects all alike may seem to differ by rounding.
const ROUNDING: f64 = 1e-14;

/// An estimate with the standard error of a mean of the subjects' `influences` (Gwet, 2008): what each adds to the statistic, less the
/// statistic, so that their mean is 0. They are independent and the raters given. The interval is Student's, cut off at 1; one subject has none.
pub(super) fn over_subjects(statistic: &'static str, estimate: f64, influences: &[f64]) -> Estimate {
    let n = influences.len();
    let found = Estimate::new(statistic, estimate, n);
    if n < 2 {
        return found.without_error(Missing::TooFewItems { required: 2, found: n });
    }
    let clean = |x: f64| if x.abs() <= ROUNDING { 0.0 } else { x };
    let squares: f64 = influences.iter().map(|&x| clean(x).powi(2)).sum();
    let interval = Spread::StudentT { degrees_of_freedom: (n - 1) as f64, range: [f64::NEG_INFINITY, 1.0] };
    found.with_error((squares / (n * (n - 1)) as f64).sqrt(), interval)
}
