//! Text inside a message that spells a control token, and how it stays text.
//!
//! A conversation is rendered as it is. If a message spells a control token, it is rendered once more with a pair of
//! marks around each such spelling: that tells which of the control tokens in the output the template wrote and which
//! came from a message. The marks never reach the tokenizer, and the text that does is the one rendered without them,
//! so templates that trim, split, measure or inspect messages see what was written.

use std::ops::Range;

use judge_core::{Message, TokenId};
use tokenizers::{AddedToken, Tokenizer};

use super::ids;

/// The control tokens: those that mark turns, ends and the like. Special tokens are; so is any other added token with
/// visible text that the chat template writes.
pub(super) struct Control {
    tokens: Vec<(TokenId, AddedToken)>,
}

/// What a template made of a conversation.
pub(super) struct Rendered {
    text: String,
    /// Control tokens in the text, from left to right.
    found: Vec<Found>,
}

/// A control token spelt in a text.
#[derive(Clone, Debug)]
struct Found {
    range: Range<usize>,
    /// Index among the control tokens.
    token: usize,
    /// Whether it is text of a message.
    literal: bool,
}

/// Why a conversation has no tokens.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0:#}")]
    Template(#[from] minijinja::Error),
    #[error("a message spells a control token in a place that the template takes apart")]
    Ambiguous,
    #[error("a message spells {0:?}, which this tokenizer makes from plain text too")]
    Unavoidable(String),
    #[error("the messages use every private-use character of plane 15")]
    NoMarks,
}

impl Control {
    pub(super) fn new(tokenizer: &Tokenizer, template: &str) -> Self {
        let mut tokens: Vec<_> = tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, token)| {
                token.special || (!token.content.trim().is_empty() && template.contains(&token.content))
            })
            .collect();
        // Longest first: where several match at one place, the longest wins.
        tokens.sort_by(|a, b| b.1.content.len().cmp(&a.1.content.len()).then(a.0.cmp(&b.0)));
        Self { tokens }
    }

    /// Renders a conversation, puts `prefill` after it as plain text, and finds the control tokens.
    pub(super) fn render(
        &self,
        messages: &[Message],
        prefill: &str,
        template: impl Fn(&[Message]) -> Result<String, minijinja::Error>,
    ) -> Result<Rendered, Refusal> {
        let mut text = template(messages)?;
        let strings = || messages.iter().flat_map(|m| [&m.role, &m.content]);
        let own = if strings().any(|s| self.is_risky(s)) {
            let mut free = ('\u{f0000}'..='\u{ffffd}').filter(|c| strings().all(|s| !s.contains(*c)));
            let (Some(start), Some(end)) = (free.next(), free.next()) else { return Err(Refusal::NoMarks) };
            let mark = |s: &String| self.mark(s, start, end);
            let marked: Vec<_> = messages.iter().map(|m| Message::new(mark(&m.role), mark(&m.content))).collect();
            let (unmarked, marks) = unmark(&template(&marked)?, start, end);
            let marked = self.find(&unmarked, |range| {
                let wrapped = marks.contains(&(range.start, start)) && marks.contains(&(range.end, end));
                wrapped || marks.iter().any(|(at, _)| range.start < *at && *at < range.end)
            });
            Some(marked)
        } else {
            None
        };
        let end = text.len();
        text.push_str(prefill);
        let mut found = self.find(&text, |range| range.end > end);
        if let Some(own) = own {
            let rendered = found.iter().take_while(|f| f.range.end <= end).count();
            let same = rendered == own.len() && found.iter().zip(&own).all(|(f, o)| f.token == o.token);
            if !same {
                return Err(Refusal::Ambiguous);
            }
            for (found, own) in found.iter_mut().zip(&own) {
                found.literal = own.literal;
            }
        }
        Ok(Rendered { text, found })
    }

    /// Control tokens in a text: from the left, the longest at each place.
    fn find(&self, text: &str, literal: impl Fn(&Range<usize>) -> bool) -> Vec<Found> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            match self.tokens.iter().position(|(_, t)| text.as_bytes()[at..].starts_with(t.content.as_bytes())) {
                Some(token) => {
                    let range = at..at + self.tokens[token].1.content.len();
                    at = range.end;
                    found.push(Found { literal: literal(&range), range, token });
                }
                None => at += 1,
            }
        }
        found
    }

    /// Whether a text spells a control token.
    pub(super) fn is_spelt_in(&self, text: &str) -> bool {
        self.tokens.iter().any(|(_, t)| text.contains(&t.content))
    }

    /// Whether a text spells a control token, or begins or ends with a part of one that what is beside it in the
    /// output could complete.
    fn is_risky(&self, text: &str) -> bool {
        self.is_spelt_in(text) || self.loose_start(text) || self.loose_end(text)
    }

    fn loose_start(&self, text: &str) -> bool {
        let text = text.trim_start();
        self.tokens.iter().any(|(_, t)| parts(&t.content).any(|(_, tail)| text.starts_with(tail)))
    }

    fn loose_end(&self, text: &str) -> bool {
        let text = text.trim_end();
        self.tokens.iter().any(|(_, t)| parts(&t.content).any(|(head, _)| text.ends_with(head)))
    }

    /// Puts marks around each control token, and at an end that is a part of one.
    fn mark(&self, text: &str, start: char, end: char) -> String {
        let mut marked = String::new();
        let mut at = 0;
        for Found { range, .. } in self.find(text, |_| true) {
            marked.push_str(&text[at..range.start]);
            marked.push(start);
            marked.push_str(&text[range.clone()]);
            marked.push(end);
            at = range.end;
        }
        marked.push_str(&text[at..]);
        if self.loose_start(text) {
            marked.insert(marked.len() - marked.trim_start().len(), end);
        }
        if self.loose_end(text) {
            marked.insert(marked.trim_end().len(), start);
        }
        marked
    }
}

impl Rendered {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn has_literals(&self) -> bool {
        self.found.iter().any(|f| f.literal)
    }
}

/// Ways to cut a text in two, neither empty.
fn parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.char_indices().skip(1).map(|(i, _)| text.split_at(i))
}

/// Takes the marks out of a text; returns them with the places in the new text where they were.
fn unmark(text: &str, start: char, end: char) -> (String, Vec<(usize, char)>) {
    let mut unmarked = String::with_capacity(text.len());
    let mut marks = Vec::new();
    for c in text.chars() {
        if c == start || c == end {
            marks.push((unmarked.len(), c));
        } else {
            unmarked.push(c);
        }
    }
    (unmarked, marks)
}

/// The tokenizer without eyes for control tokens.
pub(super) struct PlainText {
    /// For the beginning of a prompt.
    first: Tokenizer,
    /// For text after a control token, which a prefix that only a sequence's beginning gets must not go before.
    later: Tokenizer,
}

impl PlainText {
    pub(super) fn new(tokenizer: &Tokenizer, control: &Control) -> tokenizers::Result<Self> {
        let mut json = serde_json::to_value(tokenizer)?;
        for token in json.get_mut("added_tokens").and_then(|t| t.as_array_mut()).into_iter().flatten() {
            let is_control = control.tokens.iter().any(|(_, t)| token["content"] == t.content.as_str());
            token["special"] = is_control.into();
        }
        let build = |json: &serde_json::Value| -> tokenizers::Result<Tokenizer> {
            let mut tokenizer = Tokenizer::from_bytes(serde_json::to_vec(json)?)?;
            tokenizer.set_encode_special_tokens(true);
            Ok(tokenizer)
        };
        let first = build(&json)?;
        replace_first(&mut json["pre_tokenizer"]);
        Ok(Self { first, later: build(&json)? })
    }

    /// Tokens of a text whose literal control tokens are read as the characters that they are.
    pub(super) fn encode(
        &self,
        rendered: &Rendered,
        control: &Control,
    ) -> tokenizers::Result<Result<Vec<TokenId>, Refusal>> {
        let text = rendered.text();
        let mut all = Vec::new();
        let mut at = 0;
        for Found { range, token, .. } in rendered.found.iter().filter(|f| !f.literal) {
            let (id, token) = &control.tokens[*token];
            let before = &text[at..range.start];
            let before = if token.lstrip { before.trim_end() } else { before };
            self.piece(before, at == 0, &mut all)?;
            all.push(*id);
            let after = &text[range.end..];
            at = if token.rstrip { text.len() - after.trim_start().len() } else { range.end };
        }
        self.piece(&text[at..], at == 0, &mut all)?;
        // A vocabulary may be able to make a control token from its characters.
        let count = |id: TokenId, literal: Option<bool>| match literal {
            None => all.iter().filter(|&&i| i == id).count(),
            Some(literal) => {
                let same = |f: &&Found| control.tokens[f.token].0 == id && f.literal == literal;
                rendered.found.iter().filter(same).count()
            }
        };
        for (id, token) in &control.tokens {
            if count(*id, Some(true)) > 0 && count(*id, None) > count(*id, Some(false)) {
                return Ok(Err(Refusal::Unavoidable(token.content.clone())));
            }
        }
        Ok(Ok(all))
    }

    /// Tokens of a text by itself, none of them a control token.
    pub(super) fn encode_text(&self, text: &str) -> tokenizers::Result<Vec<TokenId>> {
        ids(&self.first, text)
    }

    fn piece(&self, text: &str, is_first: bool, all: &mut Vec<TokenId>) -> tokenizers::Result<()> {
        if !text.is_empty() {
            all.extend(ids(if is_first { &self.first } else { &self.later }, text)?);
        }
        Ok(())
    }
}

/// Turns every `prepend_scheme: first` into `never`.
fn replace_first(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                if name == "prepend_scheme" && value == "first" {
                    *value = "never".into();
                } else {
                    replace_first(value);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(replace_first),
        _ => {}
    }
}
