use crate::Layer;

/// Why documents cannot be scored in this way.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RerankProblem {
    /// A head with several labels, or none.
    #[error("a reranker's head has one label, and this one has {}: {}", found.len(), found.join(", "))]
    HeadLabels {
        /// The labels there are.
        found: Vec<String>,
    },
    /// A layer or weights for a head, which knows its layer.
    #[error(
        "the model scores by a head, which reads one layer of its own; layers and layer weights are of label logits"
    )]
    LayersOfHead,
    /// A layer that the model does not have.
    #[error("the model has no {found}; its layers are 0 to {last}")]
    Layer {
        /// The layer.
        found: Layer,
        /// Number of its blocks.
        last: usize,
    },
    /// Two labels that are one token, whose difference is 0 for every document.
    #[error("both labels are the token {token}: give two that differ")]
    SameLabel {
        /// The token.
        token: u32,
    },
    /// A token that the vocabulary does not have.
    #[error("label token {token}: the vocabulary has {d_vocab}")]
    NoToken {
        /// The token.
        token: u32,
        /// Size of the vocabulary.
        d_vocab: usize,
    },
    /// Weights without any for yes-or-no questions, which a relevance is.
    #[error("these weights have none for yes-or-no questions (`kinds.noul`), which the relevance of a document is")]
    NoWeights,
    /// A template that does not show what is judged.
    #[error("the template does not name {{{field}}}, so a score would not depend on it")]
    Template {
        /// `query` or `document`.
        field: &'static str,
    },
}
