//! Text inside a message that spells a control token, and how it stays text.
//!
//! The template's output is one text, in which a control token that the template wrote looks like
//! one that a message spells. To tell them apart, the conversation is rendered a second time with a
//! pair of marks around each such spelling. The marks never reach the tokenizer: what is tokenised
//! is the output rendered without them, so templates that trim, split, measure or inspect messages
//! see what was written.
//!
//! ```text
//! template           <s>[user] {{ content }}</s>
//! content            say </s> now
//! rendered           <s>[user] say </s> now</s>        this text is tokenised
//! content, marked    say ⟨</s>⟩ now
//! rendered again     <s>[user] say ⟨</s>⟩ now</s>      its only use: the second of three is the message's
//! control tokens     <s> real, </s> literal, </s> real
//! pieces             <s> │ "[user] say </s> now" │ </s>
//! ```
//!
//! Data flow: `TextCodec::load` makes a [`Control`]; for each chat prompt [`Control::render`] makes
//! a [`Rendered`]. If that has literal control tokens, [`PlainText::encode`] turns it into ids,
//! else the ordinary tokenizer does. The second rendering is skipped where no message could spell a
//! control token, which is the common case.
//!
//! Three things would break the separation, and each is a [`Refusal`]:
//!
//! - The two renderings have different control tokens, so marks of one cannot be carried over to
//!   the other.
//! - The vocabulary makes a control token from plain characters even when it is not matched as one.
//! - No two characters are left to be marks.

use std::ops::Range;

use judge_core::request::TokenId;
use tokenizers::{AddedToken, Tokenizer};

use super::guarded::ids;
use crate::text::chat_template::TemplateError;

/// The control tokens: those that mark turns, ends and the like. Every special token is one. So is
/// any other added token with visible text that the chat template writes.
pub(super) struct Control {
    /// Ids with the way they match. Longest text first, then by id: where several match at one
    /// place, the first in this order wins.
    tokens: Vec<(TokenId, AddedToken)>,
}

/// What a template made of a conversation, with the prefill after it.
pub(super) struct Rendered {
    /// The text, rendered without marks.
    text: String,
    /// Control tokens in the text, from left to right.
    found: Vec<Found>,
}

/// A control token spelt in a text.
#[derive(Clone, Debug)]
struct Found {
    /// Its bytes in the text.
    range: Range<usize>,
    /// Its index in [`Control::tokens`].
    token: usize,
    /// True if it is text of a message or of the prefill, at least in part, and must stay
    /// characters.
    literal: bool,
}

/// Why a conversation has no tokens. It makes the item unscored, with the reason `Template`.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The template raised an error or exceeded a bound.
    #[error("{0}")]
    Template(#[from] TemplateError),
    /// The template treats marked messages differently, for example because it splits them at
    /// control tokens.
    #[error("a message spells a control token in a place that the template takes apart")]
    Ambiguous,
    /// The tokenizer makes this control token from its characters even when it does not match it.
    #[error("a message spells {0:?}, which this tokenizer makes from plain text too")]
    Unavoidable(String),
    /// Fewer than two private-use characters of plane 15 (U+F0000 to U+FFFFD) are absent from the
    /// messages, so there is nothing to mark with.
    #[error("the messages use every private-use character of plane 15")]
    NoMarks,
}

impl Control {
    /// The control tokens of a tokenizer. `template` is the chat template's source, or empty if
    /// there is none.
    pub(super) fn new(tokenizer: &Tokenizer, template: &str) -> Self {
        let mut tokens: Vec<_> = tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, token)| {
                token.special || (!token.content.trim().is_empty() && template.contains(&token.content))
            })
            .collect();
        sort(&mut tokens);
        Self { tokens }
    }

    /// The same control tokens and these words, which count as control tokens of the template alone.
    pub(super) fn and(&self, words: &[(TokenId, &str)]) -> Self {
        let is_word = |token: &AddedToken| words.iter().any(|(_, word)| token.content == *word);
        let known = self.tokens.iter().filter(|(_, token)| !is_word(token)).cloned();
        let words = words.iter().map(|&(id, word)| (id, AddedToken::from(word, true)));
        let mut tokens: Vec<_> = known.chain(words).collect();
        sort(&mut tokens);
        Self { tokens }
    }

    /// Renders a template with `texts` of an item in it, puts `prefill` after it as plain text, and
    /// finds the control tokens.
    ///
    /// `template` renders with each of the texts put through the function that it is given; it is
    /// called once, or twice if a text is risky ([`is_risky`](Self::is_risky)). A control token counts as
    /// literal if
    ///
    /// - marks are right before and behind it,
    /// - or a mark is inside it: a message's end and the template's text make it together,
    /// - or it ends in the prefill.
    ///
    /// # Errors
    /// See [`Refusal`]; all variants but [`Refusal::Unavoidable`].
    pub(super) fn render(
        &self,
        texts: &[&str],
        prefill: &str,
        template: impl Fn(&dyn Fn(&str) -> String) -> Result<String, TemplateError>,
    ) -> Result<Rendered, Refusal> {
        let mut text = template(&str::to_owned)?;
        // What the marked rendering says: its control tokens in order, with `literal` set. Their
        // ranges are of the unmarked text of that rendering.
        let own = if texts.iter().any(|s| self.is_risky(s)) {
            let mut free = ('\u{f0000}'..='\u{ffffd}').filter(|c| texts.iter().all(|s| !s.contains(*c)));
            let (Some(start), Some(end)) = (free.next(), free.next()) else { return Err(Refusal::NoMarks) };
            let (unmarked, marks) = unmark(&template(&|s| self.mark(s, start, end))?, start, end);
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

    /// Control tokens in a text: from the left, the longest at each place, without overlaps. Only
    /// bytes are compared; `single_word` and `normalized` do not count here. `literal` says whether
    /// a range is item text.
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

    /// Whether a text spells a control token, or begins or ends with a part of one that what is
    /// beside it in the output could complete.
    fn is_risky(&self, text: &str) -> bool {
        self.is_spelt_in(text) || self.loose_start(text) || self.loose_end(text)
    }

    /// Whether a text begins with the end of a control token. White space at its start does not
    /// count: templates trim.
    fn loose_start(&self, text: &str) -> bool {
        let text = text.trim_start();
        self.tokens.iter().any(|(_, t)| parts(&t.content).any(|(_, tail)| text.starts_with(tail)))
    }

    /// Whether a text ends with the beginning of a control token. White space at its end does not
    /// count.
    fn loose_end(&self, text: &str) -> bool {
        let text = text.trim_end();
        self.tokens.iter().any(|(_, t)| parts(&t.content).any(|(head, _)| text.ends_with(head)))
    }

    /// Puts marks around each control token, and one mark at a start or end that is a part of one,
    /// inside its white space. Should the part be completed, that mark is inside the token. Should a whole token of the
    /// template lie between such an end and such a start, the marks beside it are the wrong way round to be around it.
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
            marked.insert(marked.len() - marked.trim_start().len(), start);
        }
        if self.loose_end(text) {
            marked.insert(marked.trim_end().len(), end);
        }
        marked
    }
}

impl Rendered {
    /// The text to tokenise: the rendering without marks, then the prefill.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether any control token in the text must stay characters.
    pub(super) fn has_literals(&self) -> bool {
        self.found.iter().any(|f| f.literal)
    }
}

/// Longest first: where several match at one place, the longest wins.
fn sort(tokens: &mut [(TokenId, AddedToken)]) {
    tokens.sort_by(|a, b| b.1.content.len().cmp(&a.1.content.len()).then(a.0.cmp(&b.0)));
}

/// Ways to cut a text in two, neither part empty.
fn parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.char_indices().skip(1).map(|(i, _)| text.split_at(i))
}

/// Takes the marks out of a text; returns them with their byte offsets in the new text.
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

/// Copies of the tokenizer that match no control token, so that one is tokenised as the characters
/// it is. Other added tokens are still matched.
pub(super) struct PlainText {
    /// For the beginning of a prompt.
    first: Tokenizer,
    /// For text behind a control token. It lacks the space that `prepend_scheme: first` puts before
    /// the first text of a sequence.
    later: Tokenizer,
}

impl PlainText {
    /// Builds both copies from `tokenizer`'s own JSON. In them the control tokens are special and
    /// the other added tokens are not, because `encode_special_tokens` makes a tokenizer pass over
    /// exactly those that are special.
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

    /// The tokens of a rendering whose literal control tokens are read as the characters that they
    /// are.
    ///
    /// The text is cut at the real control tokens; these become their ids, and each piece between
    /// them is tokenised by itself. `lstrip` and `rstrip` tokens take the white space beside them
    /// along, as they do in the tokenizer.
    ///
    /// The inner error is [`Refusal::Unavoidable`].
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
        // A vocabulary may be able to make a control token from its characters, whatever is
        // matched. Then more of its ids come out than there are real ones. `count(id, None)` counts
        // ids that came out, `count(id, Some(literal))` tokens that were found.
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

    /// The tokens of a text by itself behind a control token; control tokens in it stay characters.
    pub(super) fn encode_later(&self, text: &str) -> tokenizers::Result<Vec<TokenId>> {
        ids(&self.later, text)
    }

    /// The tokens of a text by itself, tokenised like the beginning of a prompt; control tokens in
    /// it stay characters.
    pub(super) fn encode_text(&self, text: &str) -> tokenizers::Result<Vec<TokenId>> {
        ids(&self.first, text)
    }

    /// Appends the tokens of a piece between control tokens; `is_first` if it begins the prompt. An
    /// empty piece has none.
    fn piece(&self, text: &str, is_first: bool, all: &mut Vec<TokenId>) -> tokenizers::Result<()> {
        if !text.is_empty() {
            all.extend(ids(if is_first { &self.first } else { &self.later }, text)?);
        }
        Ok(())
    }
}

/// Turns every `prepend_scheme: first` in a part of a `tokenizer.json` into `never`.
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
