//! What sways a judge besides the quality it should measure: where an answer stands, whose it is, how it is dressed.
//!
//! Verdicts are [`Preference`](crate::preference::Preference)s about the two *items* of a pair, after mapping back from
//! the order in which they were shown.

mod equal_opportunity;

pub mod length_controlled;
pub mod position;
pub mod robustness;
pub mod scale_use;
pub mod self_preference;
pub mod verbosity;

pub use equal_opportunity::EqualOpportunity;
