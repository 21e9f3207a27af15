use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{RagField, RagItem};

/// What is measured of an answer from retrieved contexts.
///
/// Each is made of probabilities `p` of yes. Its [mean](super::RagValue::mean) takes them as they are, its
/// [share](super::RagValue::share) as 1 where they are at least one half and else as 0. They answer what the measures of ragas of the same
/// name answer, and are computed otherwise: there a model writes statements and verdicts, here sentences are cut by rule and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RagMeasure {
    /// Do the contexts support the response? The mean of `p` over its sentences.
    Faithfulness,
    /// Does the response answer the question? `p` itself; contexts are not looked at.
    AnswerRelevancy,
    /// Do the contexts that help stand first? The average precision of the contexts in their order,
    /// `Σ_k precision@k · p_k / Σ_k p_k` with `precision@k = Σ_{j ≤ k} p_j / k`; 0 where none helps. A context helps that is of use for the
    /// reference, or without one, that helps to answer the question.
    ContextPrecision,
    /// Do the contexts have what a right answer needs? The mean of `p` over the sentences of the reference.
    ContextRecall,
    /// Do the contexts help to answer the question? The mean of `p` over contexts.
    ContextRelevance,
    /// Does the response say what the reference says? The harmonic mean of two means: of `p` over the sentences of the response, by the
    /// reference, and of `p` over those of the reference, by the response; 0 where both are.
    Correctness,
}

crate::names! { RagMeasure {
    Faithfulness: "faithfulness",
    AnswerRelevancy: "answer_relevancy",
    ContextPrecision: "context_precision",
    ContextRecall: "context_recall",
    ContextRelevance: "context_relevance",
    Correctness: "correctness",
}}

impl RagMeasure {
    /// The fields that an item must have for it; sentences, where they are given. [`ContextPrecision`](Self::ContextPrecision) needs a
    /// question or a reference besides.
    #[must_use]
    pub fn needs(self) -> &'static [RagField] {
        match self {
            Self::Faithfulness => &[RagField::Contexts, RagField::Response, RagField::Sentences],
            Self::AnswerRelevancy => &[RagField::Question, RagField::Response],
            Self::ContextPrecision => &[RagField::Contexts],
            Self::ContextRecall => &[RagField::Contexts, RagField::Reference],
            Self::ContextRelevance => &[RagField::Contexts, RagField::Question],
            Self::Correctness => &[RagField::Response, RagField::Reference, RagField::Sentences],
        }
    }

    /// Why an item cannot have it; `None` if it can.
    #[must_use]
    pub fn lacks(self, item: &RagItem) -> Option<String> {
        let missing = self.needs().iter().find_map(|&field| item.lacks(field));
        missing.or_else(|| match self {
            Self::ContextPrecision if item.lacks(RagField::Reference).is_some() => item.lacks(RagField::Question),
            _ => None,
        })
    }
}

impl FromStr for RagMeasure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::as_str).join(", ");
        Self::from_name(text.trim()).ok_or_else(|| format!("expected one of {}, found {text:?}", names()))
    }
}
