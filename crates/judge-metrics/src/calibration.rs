//! Whether a judge's confidence means what it says, and how to make it: calibration error, isotonic calibration to the
//! human scale, conformal intervals for single scores, and prediction-powered means from few human labels.
//!
//! | question | item |
//! |---|---|
//! | is the judge right as often as it claims? | [`ReliabilityCurve`] |
//! | which human score does this judge's score stand for? | [`IsotonicRegression`] |
//! | between which scores does this item's human score lie? | [`SplitConformal`], [`OrdinalConformal`] |
//! | what would people say on average of all items, having labelled a few? | [`PredictionPoweredMean`] |

mod conformal;
mod isotonic;
mod ordinal;
mod prediction_powered;
mod reliability;

pub use conformal::{FittedNormalizedConformal, FittedSplitConformal, SplitConformal};
pub use isotonic::{Direction, FittedIsotonicRegression, IsotonicRegression};
pub use ordinal::{FittedOrdinalConformal, OrdinalConformal, OrdinalSet};
pub use prediction_powered::{PoweredMean, PredictionPoweredMean, Tuning};
pub use reliability::{Binning, ReliabilityBin, ReliabilityCurve};
