use serde_json::{Value, json};

use super::RerankProblem;
use crate::{Error, Message, Prompt, PromptTemplate, Reason, Unscored, reward::closed_conversation};

/// How a query and a document become a prompt.
pub trait RerankPrompt: Send + Sync {
    /// The prompt for one document. A score is read at its end.
    ///
    /// # Errors
    /// Why these texts cannot be put into words.
    fn prompt(&self, query: &str, document: &str) -> Result<Prompt, Unscored>;

    /// What tells this prompt from another, as JSON: part of the judge's settings, and what fitted weights belong to.
    fn settings(&self) -> Value;
}

/// A pair of texts for a cross-encoder, or for any model whose head reads a closed conversation: the query is the first turn, the document
/// the second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairPrompt {
    /// A pair with more tokens is cut, at the end of the longer text first; `None`: only where it exceeds the model.
    pub most_tokens: Option<usize>,
    /// Text before every query.
    pub before_query: String,
}

impl RerankPrompt for PairPrompt {
    fn prompt(&self, query: &str, document: &str) -> Result<Prompt, Unscored> {
        let turns = vec![Message::user(self.before_query.clone() + query), Message::new("assistant", document)];
        Ok(closed_conversation(turns).with_truncation(self.most_tokens))
    }

    fn settings(&self) -> Value {
        json!({"pair": {"most_tokens": self.most_tokens, "before_query": self.before_query}})
    }
}

/// A [`PromptTemplate`] with the placeholders `{query}` and `{document}`.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnPrompt {
    template: PromptTemplate,
}

impl TurnPrompt {
    /// A prompt of this template.
    ///
    /// # Errors
    /// [`RerankProblem::Template`] for one that does not name both.
    pub fn new(template: PromptTemplate) -> Result<Self, Error> {
        let names = template.field_names();
        match ["query", "document"].into_iter().find(|field| !names.contains(field)) {
            Some(field) => Err(RerankProblem::Template { field }.into()),
            None => Ok(Self { template }),
        }
    }
}

impl RerankPrompt for TurnPrompt {
    fn prompt(&self, query: &str, document: &str) -> Result<Prompt, Unscored> {
        let fields = [("query", query), ("document", document)];
        self.template.fill(&fields[..]).map_err(|error| Unscored::new(Reason::Missing, error.to_string()))
    }

    fn settings(&self) -> Value {
        json!({"template": self.template})
    }
}
