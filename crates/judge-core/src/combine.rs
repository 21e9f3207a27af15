//! Judges made of judges.

mod calibrated;
mod graded_pair;
mod members;
mod panel;
mod repeated;
mod swapped;

pub use calibrated::{Calibrated, Calibrator};
pub use graded_pair::GradedPair;
pub use panel::{Panel, PanelRule};
pub use repeated::Repeated;
pub use swapped::{OrderPolicy, Swapped, SwappedFields};
