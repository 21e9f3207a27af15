use super::RagMeasure;

/// What a [`RagJudge`](super::RagJudge) is to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RagSettings {
    /// What is measured of each item, as far as its fields allow.
    pub measures: Vec<RagMeasure>,
    /// Whether sentences that claim nothing ("Sure, here is the answer:") are left out of [`RagMeasure::Faithfulness`], by a decision of
    /// their own about each.
    pub claims_only: bool,
    /// Whether each context is asked about by itself: see [`RagJudge`](super::RagJudge).
    pub by_context: bool,
}

impl Default for RagSettings {
    /// All measures; all sentences; contexts together.
    fn default() -> Self {
        Self { measures: RagMeasure::ALL.into(), claims_only: false, by_context: false }
    }
}
