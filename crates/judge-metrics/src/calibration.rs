//! Whether a judge's confidence means what it says, and how to make it: calibration error, isotonic calibration to the
//! human scale, and conformal intervals for single scores. What a judge's scores say of a *mean* is in [`means`](crate::means).
//!
//! | question | item |
//! |---|---|
//! | is the judge right as often as it claims? | [`ReliabilityCurve`] |
//! | are its probabilities too extreme, or too high? | [`LogisticRecalibration`] |
//! | what does this score mean on the human scale, and how sure is that? | [`Calibrator`] |
//! | which human score does this judge's score stand for? | [`IsotonicRegression`] |
//! | between which scores does this item's human score lie? | [`SplitConformal`], [`OrdinalConformal`] |

mod assess;
mod calibrator;
mod conformal;
mod curves;
mod isotonic;
mod ordinal;
mod parts;
mod recalibration;
mod reliability;

pub use assess::CalibrationReport;
pub use calibrator::{CalibratedScore, CalibrationMethod, Calibrator, FittedCalibrator};
pub use conformal::{FittedSplitConformal, SplitConformal};
pub use isotonic::{Direction, FittedIsotonicRegression, IsotonicRegression};
pub use ordinal::{FittedOrdinalConformal, OrdinalConformal, OrdinalSet};
pub use parts::{CalibratorParts, CurveParts, FoldParts};
pub use recalibration::LogisticRecalibration;
pub use reliability::{Binning, ReliabilityBin, ReliabilityCurve};
