use crate::Layer;
use crate::scale::in_digits;

/// Why layer weights cannot be fitted. Items are counted from 0.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitProblem {
    /// A setting is out of its range.
    #[error("setting {setting} is {found}, expected {expected}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        found: f64,
        /// The range.
        expected: &'static str,
    },
    /// There is nothing to fit on.
    #[error("no items")]
    NoItems,
    /// A model without blocks has no layer left once the last is dropped.
    #[error("no layer to weigh")]
    NoLayers,
    /// A table has another number of scores than the scale.
    #[error("item {item} has {found} scores, the scale has {expected}")]
    Scores {
        /// The item.
        item: usize,
        /// Points of the scale.
        expected: usize,
        /// Scores of the table.
        found: usize,
    },
    /// A table lacks a layer.
    #[error("item {item} lacks {layer}")]
    MissingLayer {
        /// The item.
        item: usize,
        /// The layer.
        layer: Layer,
    },
    /// A human score is not finite or outside the range of the scale.
    #[error("item {item} has the human score {}, the scale runs from {low} to {high}", in_digits(*.human))]
    OffScale {
        /// The item.
        item: usize,
        /// The score.
        human: f64,
        /// Smallest value of the scale.
        low: f64,
        /// Largest value of the scale.
        high: f64,
    },
    /// All human scores are the same: any weights that ignore the text would do.
    #[error("all {items} human scores are {}", in_digits(*.human))]
    ConstantTargets {
        /// The score.
        human: f64,
        /// Number of items.
        items: usize,
    },
    /// Logits so large that loss or gradient is not a number.
    #[error("the loss of step {step} is {loss}, or its gradient is not finite")]
    Overflow {
        /// Optimiser step, from 0.
        step: usize,
        /// Its loss.
        loss: f64,
    },
}
