//! What is made of a row by each reading.

use judge_core::lager::{LayerTable, TableOrigin};
use judge_core::{Layer, request::Pooling, request::Signal};

/// What probes read of each layer: the state of the prompt's last token, where the rating is predicted.
pub const SIGNAL: Signal = Signal::State(Pooling::Last);

/// A way to read the rows.
#[derive(Debug, Clone)]
pub struct Reading<'a, S> {
    /// What it is called.
    pub name: String,
    /// What it makes a number of.
    pub read_as: ReadAs<'a, S>,
}

impl<'a, S> Reading<'a, S> {
    /// A reading of this name.
    pub fn new(name: impl Into<String>, read_as: ReadAs<'a, S>) -> Self {
        Self { name: name.into(), read_as }
    }
}

/// What a reading makes a number of, for each row.
#[derive(Debug, Clone)]
pub enum ReadAs<'a, S> {
    /// The number itself, which learns nothing of grades. Shape `[rows]`.
    Plain(Vec<f64>),
    /// The same, of what is no judge and has to be beaten, such as the length of the response. It is never recommended.
    Baseline(Vec<f64>),
    /// The numbers of every layer, of which the rows that are learnt from choose one: that which agrees best with people, of equals the
    /// lowest. Shape `[layers][rows]`, `Layer(0)` first.
    ///
    /// Layers differ in their ranges, and folds may choose different ones, so numbers become standard scores by the mean and the standard
    /// deviation of the rows learnt from.
    ChosenLayer(Vec<Vec<f64>>),
    /// The expected score of label logits under learnt layer weights (LAGER). One table for each row.
    Weights {
        /// Logits of every layer.
        tables: Vec<LayerTable>,
        /// What they were read from.
        origin: Box<TableOrigin>,
        /// What weights are fitted to: the grades in units of the origin's scale.
        targets: Vec<f64>,
    },
    /// Ridge regression on the state of the prompt's last token, at the layer and with the penalty that predict people best in folds of the
    /// rows learnt from; the number is the predicted grade less the mean grade of those.
    Probe {
        /// Layers to choose from.
        layers: Vec<Layer>,
        /// Where the states are.
        signals: &'a S,
    },
}

impl<S> ReadAs<'_, S> {
    /// Whether it learns or chooses by grades.
    pub(super) fn learns(&self) -> bool {
        !matches!(self, Self::Plain(_) | Self::Baseline(_))
    }
}
