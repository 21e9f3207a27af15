//! Text inside a message that spells a control token, and how it stays text.
//!
//! The template's output is one text, in which a control token that the template wrote looks like
//! one that a message spells. To tell them apart, the conversation is rendered a second time with a
//! pair of marks around each such spelling. The marks never reach the tokenizer: what is tokenised
//! is the output rendered without them, so templates that trim, split, measure or inspect messages
//! see what was written.
//!
//! A template may also make a control token of text that spells none, by lower case or by taking a line break out of it. So in that
//! second rendering the other characters that control tokens begin or end with (`<`, `>`) are replaced: a control token that is then
//! missing was made of them.
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
//! control token or help to make one, which is the common case.
//!
//! Three things would break the separation, and each is a [`Refusal`]:
//!
//! - The two renderings have different control tokens, so marks of one cannot be carried over to
//!   the other.
//! - The vocabulary makes a control token from plain characters even when it is not matched as one.
//! - No two characters are left to be marks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::{Range, RangeInclusive};

use aho_corasick::{AhoCorasick, MatchKind};
use judge_core::request::TokenId;
use judge_jinja::TemplateError;
use tokenizers::{AddedToken, Tokenizer};

use super::guarded::ids;

/// The private-use characters of plane 15, two of which become marks.
const PLANE_15: RangeInclusive<char> = '\u{f0000}'..='\u{ffffd}';

/// What stands for a character that could begin or end a control token, in the marked rendering alone. No control token has it.
const STAND_IN: char = '\u{10fffd}';

/// The control tokens: those that mark turns, ends and the like. Every special token is one. So is
/// any other added token with visible text that the chat template writes.
pub(super) struct Control {
    /// Ids with the way they match. Longest text first, then by id: where several match at one
    /// place, the first in this order wins.
    tokens: Vec<(TokenId, AddedToken)>,
    /// The characters that they begin and end with, but for letters, digits and white space. One of them is in a text of which a
    /// template makes a control token, unless the template encloses the text on both sides.
    edges: Vec<char>,
    /// Finds the texts of [`tokens`](Self::tokens), by their indices: all of them in one pass.
    finder: AhoCorasick,
    /// Their texts.
    forwards: Prefixes,
    /// Their texts backwards, byte by byte.
    backwards: Prefixes,
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

/// Why a prompt has no tokens. All but [`Refusal::Tokenizer`] make the item unscored, with the reason `Template`.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The template raised an error or exceeded a bound.
    #[error("{0}")]
    Template(#[from] TemplateError),
    /// The template treats marked messages differently, for example because it splits them at
    /// control tokens, or makes control tokens of text that spells none.
    #[error(
        "a message spells a control token in a place that the template takes apart, or the template changes its text into one"
    )]
    Ambiguous,
    /// The tokenizer makes this control token from its characters even when it does not match it.
    #[error("a message spells {0:?}, which this tokenizer makes from plain text too")]
    Unavoidable(String),
    /// Fewer than two private-use characters of plane 15 (U+F0000 to U+FFFFD) are absent from the
    /// messages, so there is nothing to mark with.
    #[error("the messages use every private-use character of plane 15")]
    NoMarks,
    /// The template of a whole prompt does not write the marks that there are to be.
    #[error("marks that the template writes: expected {expected}, one for each question of a prompt, found {found}")]
    Marks {
        /// Marks that it is to write.
        expected: usize,
        /// Marks that it writes.
        found: usize,
    },
    /// The tokenizer fails.
    #[error("{0}")]
    Tokenizer(#[from] tokenizers::Error),
}

impl Control {
    /// The control tokens of a tokenizer. `template` is the chat template's source, or empty if
    /// there is none.
    ///
    /// # Errors
    /// If their texts are too many to be looked for at once: some billions of characters.
    pub(super) fn new(tokenizer: &Tokenizer, template: &str) -> tokenizers::Result<Self> {
        let tokens = tokenizer.get_added_tokens_decoder().into_iter();
        let tokens = tokens.filter(|(_, token)| {
            token.special || (!token.content.trim().is_empty() && template.contains(&token.content))
        });
        Self::of(tokens.collect())
    }

    /// The same control tokens and these words, which count as control tokens of the template alone.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub(super) fn and(&self, words: &[(TokenId, &str)]) -> tokenizers::Result<Self> {
        let is_word = |token: &AddedToken| words.iter().any(|(_, word)| token.content == *word);
        let known = self.tokens.iter().filter(|(_, token)| !is_word(token)).cloned();
        let words = words.iter().map(|&(id, word)| (id, AddedToken::from(word, true)));
        Self::of(known.chain(words).collect())
    }

    fn of(mut tokens: Vec<(TokenId, AddedToken)>) -> tokenizers::Result<Self> {
        tokens.retain(|(_, token)| !token.content.is_empty());
        tokens.sort_by(|a, b| b.1.content.len().cmp(&a.1.content.len()).then(a.0.cmp(&b.0)));
        let texts = tokens.iter().map(|(_, token)| &token.content);
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts)?;
        let texts = || tokens.iter().map(|(_, token)| token.content.bytes());
        let forwards = Prefixes::of(texts().map(Iterator::collect));
        let backwards = Prefixes::of(texts().map(|text| text.rev().collect()));
        let edges =
            tokens.iter().flat_map(|(_, token)| [token.content.chars().next(), token.content.chars().next_back()]);
        let edges: BTreeSet<char> = edges.flatten().filter(|c| !c.is_alphanumeric() && !c.is_whitespace()).collect();
        let edges = edges.into_iter().collect();
        Ok(Self { tokens, edges, finder, forwards, backwards })
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
    /// [`Refusal::Template`], [`Refusal::Ambiguous`] and [`Refusal::NoMarks`].
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
            let spelt = texts.iter().flat_map(|s| s.chars().chain(escapes(s).map(|(_, c)| c)));
            let used: HashSet<char> = spelt.filter(|c| PLANE_15.contains(c)).collect();
            let mut free = PLANE_15.filter(|c| !used.contains(c));
            let (Some(start), Some(end)) = (free.next(), free.next()) else { return Err(Refusal::NoMarks) };
            let (unmarked, mut marks) = Marks::taken_out(&template(&|s| self.mark(s, start, end))?, start, end);
            let marked = self.find(&unmarked, |range| marks.make_literal(range, start, end));
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
    /// a range is item text; it is called from left to right.
    fn find(&self, text: &str, mut literal: impl FnMut(&Range<usize>) -> bool) -> Vec<Found> {
        let found = self.finder.find_iter(text).map(|found| {
            let range = found.range();
            Found { literal: literal(&range), range, token: found.pattern().as_usize() }
        });
        found.collect()
    }

    /// Whether a text spells a control token.
    pub(super) fn is_spelt_in(&self, text: &str) -> bool {
        self.finder.is_match(text)
    }

    /// Whether a text spells a control token, begins or ends with a part of one that what is beside it in the output could
    /// complete, or has characters of which a template could make one.
    fn is_risky(&self, text: &str) -> bool {
        text.contains(&self.edges[..])
            || self.is_spelt_in(text)
            || self.loose_start(text).is_some()
            || self.loose_end(text).is_some()
    }

    /// Where the end of a control token ends that a text begins with: the longest. White space at its start does not count:
    /// templates trim.
    fn loose_start(&self, text: &str) -> Option<usize> {
        let trimmed = text.trim_start();
        let mut start: Vec<u8> = trimmed.bytes().take(self.backwards.longest).collect();
        start.reverse();
        let from = (0..start.len()).find(|&from| self.backwards.go_on(&start[from..]))?;
        Some(text.len() - trimmed.len() + start.len() - from)
    }

    /// Where the beginning of a control token begins that a text ends with: the longest. White space at its end does not count.
    fn loose_end(&self, text: &str) -> Option<usize> {
        let text = text.trim_end().as_bytes();
        let len = (1..=text.len().min(self.forwards.longest)).rev();
        len.map(|len| text.len() - len).find(|&from| self.forwards.go_on(&text[from..]))
    }

    /// Puts marks around each control token, and one mark at a start or end that is a part of one,
    /// inside its white space. Should the part be completed, that mark is inside the token. Should a whole token of the
    /// template lie between such an end and such a start, the marks beside it are the wrong way round to be around it.
    /// Elsewhere [`edges`](Self::edges) become [`STAND_IN`].
    fn mark(&self, text: &str, start: char, end: char) -> String {
        let (loose_start, loose_end) = (self.loose_start(text), self.loose_end(text));
        let mut marked = String::new();
        let between = |marked: &mut String, range: Range<usize>| {
            for (at, c) in text[range.clone()].char_indices() {
                let at = range.start + at;
                let is_loose = loose_start.is_some_and(|to| at < to) || loose_end.is_some_and(|from| from <= at);
                marked.push(if !is_loose && self.edges.contains(&c) { STAND_IN } else { c });
            }
        };
        let mut at = 0;
        for Found { range, .. } in self.find(text, |_| true) {
            between(&mut marked, at..range.start);
            marked.push(start);
            marked.push_str(&text[range.clone()]);
            marked.push(end);
            at = range.end;
        }
        between(&mut marked, at..text.len());
        if loose_start.is_some() {
            marked.insert(marked.len() - marked.trim_start().len(), start);
        }
        if loose_end.is_some() {
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

/// Byte strings, among which those that begin in a given way are found without looking at each.
struct Prefixes {
    /// In ascending order.
    texts: Vec<Vec<u8>>,
    /// Bytes of the longest.
    longest: usize,
}

impl Prefixes {
    fn of(texts: impl Iterator<Item = Vec<u8>>) -> Self {
        let mut texts: Vec<_> = texts.collect();
        texts.sort_unstable();
        let longest = texts.iter().map(Vec::len).max().unwrap_or_default();
        Self { texts, longest }
    }

    /// Whether one of them begins with `start` and goes on behind it.
    fn go_on(&self, start: &[u8]) -> bool {
        // The first that is greater: those that begin with `start` come right behind `start` itself.
        let at = self.texts.partition_point(|text| text.as_slice() <= start);
        self.texts.get(at).is_some_and(|text| text.starts_with(start))
    }
}

/// The marks of a text that were taken out of it.
struct Marks {
    /// Where they were, as byte offsets in the text without them, in ascending order.
    marks: Vec<(usize, char)>,
    /// Those before this one lie before all that is still asked for.
    next: usize,
}

impl Marks {
    /// Takes the marks out of a text, also those that the template wrote as escapes.
    fn taken_out(text: &str, start: char, end: char) -> (String, Self) {
        let mut unmarked = String::with_capacity(text.len());
        let mut marks = Vec::new();
        let mut put = |text: &str| {
            for c in text.chars() {
                if c == start || c == end {
                    marks.push((unmarked.len(), c));
                } else {
                    unmarked.push(c);
                }
            }
        };
        let mut at = 0;
        for (range, mark) in escapes(text).filter(|(_, c)| [start, end].contains(c)) {
            put(&text[at..range.start]);
            put(mark.encode_utf8(&mut [0; 4]));
            at = range.end;
        }
        put(&text[at..]);
        (unmarked, Self { marks, next: 0 })
    }

    /// Whether marks are right before and behind a range, or one is inside it. Ranges come from left to right and do not overlap, so
    /// that all of them together take as many looks as there are marks, twice at most.
    fn make_literal(&mut self, range: &Range<usize>, start: char, end: char) -> bool {
        let (mut opens, mut closes, mut is_cut) = (false, false, false);
        for &(at, mark) in &self.marks[self.next..] {
            #[cfg(test)]
            LOOKS.set(LOOKS.get() + 1);
            if at > range.end {
                break;
            }
            self.next += usize::from(at < range.end);
            opens |= at == range.start && mark == start;
            closes |= at == range.end && mark == end;
            is_cut |= range.start < at && at < range.end;
        }
        opens && closes || is_cut
    }
}

/// The characters beyond 16 bits that a text has as escapes, with the bytes of these. Python writes `\U000f0000` in lists, and JSON can
/// have `\udb80\udc00`; what is escaped again has more backslashes.
fn escapes(text: &str) -> impl Iterator<Item = (Range<usize>, char)> {
    let hex = move |at: usize, len: usize| u32::from_str_radix(text.get(at..at + len)?, 16).ok();
    let unit = move |at: usize| u16::try_from(hex(at, 4)?).ok();
    let read = move |at: usize| {
        if text[at..].starts_with('U') {
            return Some((hex(at + 1, 8).and_then(char::from_u32)?, at + 9));
        }
        let rest = text.get(at + 5..)?;
        let low = rest.trim_start_matches('\\').strip_prefix(['u', 'U'])?;
        let low_at = text.len() - low.len();
        let c = char::decode_utf16([unit(at + 1)?, unit(low_at)?]).next()?.ok()?;
        (u32::from(c) > 0xffff).then_some((c, low_at + 4))
    };
    text.match_indices(['u', 'U']).filter_map(move |(at, _)| {
        let from = text[..at].trim_end_matches('\\').len();
        let (c, to) = (from < at).then(|| read(at))??;
        Some((from..to, c))
    })
}

#[cfg(test)]
thread_local! {
    /// How often marks were looked at on this thread.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
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
        let texts: HashSet<&str> = control.tokens.iter().map(|(_, token)| token.content.as_str()).collect();
        for token in json.get_mut("added_tokens").and_then(|t| t.as_array_mut()).into_iter().flatten() {
            let is_control = token["content"].as_str().is_some_and(|text| texts.contains(text));
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
    /// # Errors
    /// [`Refusal::Unavoidable`] and [`Refusal::Tokenizer`].
    pub(super) fn encode(&self, rendered: &Rendered, control: &Control) -> Result<Vec<TokenId>, Refusal> {
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
        // matched. Then more of its ids come out than there are real ones.
        let mut too_many: HashMap<TokenId, isize> = HashMap::new();
        for found in rendered.found.iter().filter(|f| f.literal) {
            too_many.insert(control.tokens[found.token].0, 0);
        }
        let real = rendered.found.iter().filter(|f| !f.literal).map(|f| (control.tokens[f.token].0, -1));
        for (id, count) in all.iter().map(|&id| (id, 1)).chain(real) {
            too_many.entry(id).and_modify(|sum| *sum += count);
        }
        if let Some((_, token)) = control.tokens.iter().find(|(id, _)| too_many.get(id).is_some_and(|&sum| sum > 0)) {
            return Err(Refusal::Unavoidable(token.content.clone()));
        }
        Ok(all)
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
