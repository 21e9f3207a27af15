//! Prompts of decision models: a template of its own in the place of the chat template, with marks.
//!
//! ```text
//! template   <s>{{ state }}[decision]:<|mark|>        values {"state": "say </s>"}
//! rendered   <s> │ "say </s>[decision]:" │ <|mark|>    `</s>` is text of the state
//! tokens     <s> say < / s > [ decision ] :            cut before the mark that the prompt ends at
//! ```
//!
//! It is what transformers makes of a `decision_template.jinja`: there the words `<|mark|>` and `<|split|>` are added to the
//! tokenizer as special tokens, so that they split the text they are in, and are then dropped from the ids. A
//! prompt that ends at a mark has the tokens before it. Tokens behind it would not change what a decoder says there.

use std::collections::BTreeMap;

use judge_core::{Message, WholePrompt, request::TokenId};
use serde_json::{Map, Value};
use tokenizers::Tokenizer;

use super::literal::{Control, PlainText, Refusal};
use crate::chat_template::ChatTemplate;

/// Where a prompt can end.
pub const MARK: &str = "<|mark|>";
/// Where a text is cut in two.
pub const SPLIT: &str = "<|split|>";
/// Ids that no vocabulary has.
const MARK_ID: TokenId = TokenId::MAX;
const SPLIT_ID: TokenId = TokenId::MAX - 1;

/// A compiled template of a whole prompt.
pub(super) struct WholeTemplate {
    template: ChatTemplate,
    /// The control tokens, and the two words.
    control: Control,
    /// Tokenizers that match no control token.
    plain: PlainText,
}

impl WholeTemplate {
    /// A template for this tokenizer.
    pub(super) fn new(template: ChatTemplate, tokenizer: &Tokenizer) -> tokenizers::Result<Self> {
        let control = Control::new(tokenizer, template.source())?;
        let plain = PlainText::new(tokenizer, &control)?;
        let control = control.and(&[(MARK_ID, MARK), (SPLIT_ID, SPLIT)])?;
        Ok(Self { template, control, plain })
    }

    /// The template's text.
    pub(super) fn source(&self) -> &str {
        self.template.source()
    }

    /// The tokens of a prompt of this template, up to the mark that it ends at, and those of its prefill.
    pub(super) fn encode(
        &self,
        whole: &WholePrompt,
        special_tokens: &BTreeMap<String, String>,
    ) -> Result<Vec<TokenId>, Refusal> {
        let message = [Message::user("")];
        let mut texts = Vec::new();
        whole.values.values().for_each(|value| collect(value, &mut texts));
        let rendered = self.control.render(&texts, "", |mark| {
            let values = whole.values.iter().map(|(name, value)| (name.clone(), with_texts(value, mark)));
            self.template.render(&message, special_tokens, &values.collect())
        })?;
        let ids = self.plain.encode(&rendered, &self.control)?;
        let marks = ids.iter().filter(|&&id| id == MARK_ID).count().max(1);
        if marks != whole.end.of || whole.end.mark >= marks {
            return Err(Refusal::Marks { expected: whole.end.of, found: marks });
        }
        let pieces = ids.split(|&id| id == MARK_ID).take(whole.end.mark + 1);
        let mut before: Vec<TokenId> = pieces.flatten().copied().filter(|&id| id != SPLIT_ID).collect();
        if !whole.prefill.is_empty() {
            before.extend(self.plain.encode_later(&whole.prefill)?);
        }
        Ok(before)
    }
}

/// The texts in a value, those of an item and of settings alike. Names of fields are among them.
fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                texts.push(name);
                collect(value, texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The value with other texts in the place of all of its texts, names of fields among them.
pub fn with_texts(value: &Value, of: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(of(text)),
        Value::Array(values) => values.iter().map(|value| with_texts(value, of)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (of(name), with_texts(value, of)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}
