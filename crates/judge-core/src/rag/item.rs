use std::borrow::Cow;

use super::{Sentence, sentences};

/// A question, what was retrieved for it, and what was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RagItem {
    /// What was asked.
    pub question: Option<String>,
    /// What was retrieved, in the order of its rank. Empty: nothing.
    pub contexts: Vec<String>,
    /// What was answered.
    pub response: Option<String>,
    /// A right answer.
    pub reference: Option<String>,
    /// The sentences of the response, where they are cut already; `None`: by [`sentences`].
    pub sentences: Option<Vec<Sentence>>,
    /// Why a field that is there cannot be used; it counts as absent, with this reason.
    pub unread: Vec<(RagField, String)>,
}

/// A field of a [`RagItem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // they are those of the item
pub enum RagField {
    Question,
    Contexts,
    Response,
    Reference,
    Sentences,
}

crate::names! { RagField {
    Question: "question",
    Contexts: "contexts",
    Response: "response",
    Reference: "reference",
    Sentences: "sentences",
}}

impl AsRef<Self> for RagItem {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl RagItem {
    /// Why this field cannot be used; `None` if it can. A text without words cannot, nor can contexts of which none has any, nor sentences
    /// that are given and are none.
    #[must_use]
    pub fn lacks(&self, field: RagField) -> Option<String> {
        if let Some((_, why)) = self.unread.iter().find(|(unread, _)| *unread == field) {
            return Some(why.clone());
        }
        let has_words = |text: &String| text.contains(char::is_alphanumeric);
        let text = match field {
            RagField::Contexts if self.contexts.is_empty() => return Some("the row has no contexts".to_owned()),
            RagField::Contexts if self.contexts.iter().any(has_words) => return None,
            RagField::Contexts => return Some("the contexts have no words".to_owned()),
            RagField::Sentences => {
                let is_without = self.sentences.as_ref().is_some_and(Vec::is_empty);
                return is_without.then(|| "the response has no sentences".to_owned());
            }
            RagField::Question => &self.question,
            RagField::Response => &self.response,
            RagField::Reference => &self.reference,
        };
        match text {
            None => Some(format!("the row has no {field}")),
            Some(text) if has_words(text) => None,
            Some(_) => Some(format!("the {field} has no words")),
        }
    }

    /// The sentences of the response.
    #[must_use]
    pub fn response_sentences(&self) -> Cow<'_, [Sentence]> {
        match (&self.sentences, &self.response) {
            (Some(cut), _) => Cow::Borrowed(cut),
            (None, Some(response)) => Cow::Owned(sentences(response)),
            (None, None) => Cow::Borrowed(&[]),
        }
    }
}
