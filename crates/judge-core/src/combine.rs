//! Judges made of judges.

mod calibrated;
mod members;
mod panel;
mod repeated;
mod swapped;

pub use calibrated::{Calibrated, Calibrator};
pub use panel::{Panel, PanelRule};
pub use repeated::Repeated;
pub use swapped::{OrderPolicy, Swapped, SwappedFields};
