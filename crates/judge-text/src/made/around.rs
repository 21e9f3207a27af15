//! The special tokens around a text and around a pair.

use serde_json::{Map, Value, json};

/// A part of what is around a text, with the type of its tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    /// The text, or one of the two of a pair: `A` or `B`.
    Text(&'static str, u8),
    /// A special token: its number and its text.
    Token(u64, &'a str, u8),
}

/// `post_processor` of a `tokenizer.json`: what one text becomes, and a pair of texts.
pub(crate) fn around(single: &[Part<'_>], pair: &[Part<'_>]) -> Value {
    let mut tokens = Map::new();
    let mut json = |part: &Part<'_>| match *part {
        Part::Text(name, kind) => json!({ "Sequence": { "id": name, "type_id": kind } }),
        Part::Token(id, text, kind) => {
            tokens.insert(text.to_owned(), json!({ "id": text, "ids": [id], "tokens": [text] }));
            json!({ "SpecialToken": { "id": text, "type_id": kind } })
        }
    };
    let [single, pair] = [single, pair].map(|parts| parts.iter().map(&mut json).collect::<Vec<_>>());
    json!({ "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens })
}
