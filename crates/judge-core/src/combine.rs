//! Judges made of judges.

mod calibrated;
mod confident;
mod each_answer;
mod graded_pair;
mod members;
mod named;
mod panel;
mod place_corrected;
mod renamed;
mod repeated;
mod swapped;
mod tournament;

pub use crate::verdict::{OrderPolicy, PanelRule};
pub use calibrated::{Calibrated, Calibrator};
pub use confident::Confident;
pub use each_answer::EachAnswer;
pub use graded_pair::GradedPair;
pub use named::Named;
pub use panel::Panel;
pub use place_corrected::PlaceCorrected;
pub use renamed::Renamed;
pub use repeated::Repeated;
pub use swapped::Swapped;
pub use tournament::{Compared, Pairing, RoundRobin, Tournament};
