use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{request::TokenId, reward::RewardHead};

/// How a reading of query and document becomes a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Scoring {
    /// The number that the model brings.
    pub relevance: Relevance,
    /// What goes over it.
    pub activation: Activation,
}

/// The number that a model brings for a document, on no fixed scale.
#[derive(Clone, Debug, PartialEq)]
pub enum Relevance {
    /// The one label of a head of labels.
    Head(Box<RewardHead>),
    /// The logit of a label.
    Logit {
        /// What a relevant document's reply would begin with.
        yes: Label,
    },
    /// The logit of one label less that of another: the log-odds of the two. With [`Activation::Sigmoid`] it is the first one's
    /// probability in the softmax over both.
    Difference {
        /// What a relevant document's reply would begin with.
        yes: Label,
        /// What another's would.
        no: Label,
    },
}

/// A label by its text or its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// An entry of the vocabulary.
    Token(TokenId),
    /// A text that is one token, as the tokenizer splits it by itself
    /// ([`Backbone::label_token`](crate::Backbone::label_token)).
    Text(String),
}

/// What goes over the number of a document. Neither changes the order of documents: [`ranked`](super::ranked) goes by the number itself,
/// since a sigmoid is exactly 1 from 37 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Nothing.
    #[default]
    Identity,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
}

impl Activation {
    /// The value at `x`.
    #[must_use]
    pub fn at(self, x: f64) -> f64 {
        match self {
            Self::Identity => x,
            Self::Sigmoid => 1.0 / (1.0 + libm::exp(-x)),
        }
    }
}

impl Relevance {
    /// Its labels, that of a relevant document first; none of a head.
    pub(super) fn labels(&self) -> Vec<&Label> {
        match self {
            Self::Head(_) => Vec::new(),
            Self::Logit { yes } => vec![yes],
            Self::Difference { yes, no } => vec![yes, no],
        }
    }
}

impl Scoring {
    /// What tells one from another, as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let relevance = match &self.relevance {
            Relevance::Head(head) => json!({"head": head.id(), "labels": head.labels()}),
            Relevance::Logit { yes } => json!({"logit": yes}),
            Relevance::Difference { yes, no } => json!({"difference": [yes, no]}),
        };
        json!({"relevance": relevance, "activation": self.activation})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_in_files_are_texts_or_numbers() {
        let labels: Vec<Label> = serde_json::from_str(r#"["yes", 7]"#).unwrap();
        assert_eq!(labels, [Label::Text("yes".into()), Label::Token(7)]);
        assert_eq!(serde_json::to_string(&labels).unwrap(), r#"["yes",7]"#);
    }

    #[test]
    fn the_sigmoid_is_that_of_large_numbers_too() {
        assert_eq!(Activation::Identity.at(-3.0), -3.0);
        assert_eq!(Activation::Sigmoid.at(0.0), 0.5);
        assert_eq!(Activation::Sigmoid.at(1000.0), 1.0);
        assert_eq!(Activation::Sigmoid.at(-1000.0), 0.0);
        // 1 / (1 + exp(-2)), from a table.
        assert!((Activation::Sigmoid.at(2.0) - 0.880_797_077_977_882_3).abs() < 1e-15);
    }
}
