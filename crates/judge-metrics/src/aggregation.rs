//! Several annotators or judges taken together: the label that their votes speak for, how good each of them is, and how many independent
//! ones the panel is worth.
//!
//! | question | item |
//! |---|---|
//! | which label do most give? | [`MajorityVote`] |
//! | which label is right, if annotators differ in skill, and how good is each? | [`DawidSkene`] |
//! | how many independent raters is a panel worth whose errors correlate? | [`PanelSize`] |
//!
//! How far annotators agree with one another is in [`agreement`](crate::agreement).

mod dawid_skene;
mod expectation;
mod majority;
mod panel;
mod patterns;

pub use dawid_skene::{AggregatedLabels, Annotator, DawidSkene};
pub use expectation::AnnotatorModel;
pub use majority::MajorityVote;
pub use panel::PanelSize;
