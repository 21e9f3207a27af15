//! Text to tokens and back: the only place that makes control tokens.
//!
//! [`TextCodec`] owns a folder's tokenizer, its special tokens and its compiled chat template.
//! `Model` of `judge-models` loads one and asks it for labels; `reading/jobs.rs` there encodes prompts and continuations with it, and
//! `reading/written.rs` decodes what was written.
//!
//! How a prompt becomes tokens:
//!
//! ```text
//!                   Raw(text)                      Chat { messages, trusted_prefill, prefill, … }
//!                      │                              │  ChatTemplate::render, + trusted_prefill
//!                      │                              │  Control::render: + prefill, finds control tokens
//!                      ▼                              ▼
//!                  tokenizer            no control token in item text?  ── yes ─► tokenizer
//!                      │                              └── no ─► PlainText: those stay characters
//!    before + tokens + after                       tokens
//! ```
//!
//! A `Whole` prompt has a template of its own, whose marks end it: `whole.rs`.
//!
//! `before` and `after` are what the tokenizer puts around any text, mostly a BOS ([`Surround`]). A
//! chat prompt gets them only under [`ChatTokens::AddedAgain`].
//!
//! Invariants:
//!
//! - A raw prompt's control tokens are control tokens: its text is the caller's own. In a chat they
//!   come from the template and from `trusted_prefill` alone: messages, `prefill` and continuations
//!   stay text whatever they spell (`literal.rs`).
//! - The same text has the same tokens each time. Dropout is refused, and truncation and padding
//!   are switched off.
//! - What is wrong with a prompt is the item's own fault ([`Unscored`]); what is wrong with the
//!   folder is an [`Error`].
//! - Every call into the crate `tokenizers` that reads text goes through [`guarded()`], because
//!   damaged files make that crate panic.

mod bound;
mod checked;
mod class;
mod cut;
mod guarded;
mod literal;
mod notes;
mod pair;
mod sentencepiece;
mod special_tokens;
mod vocabulary;
mod whole;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use judge_core::{
    Message, Prompt, Reason, Unscored, WholePrompt,
    model::{BackboneError, LabelInContext},
    request::TokenId,
};
use judge_jinja::{Date, TemplateError};
use judge_weights::error::Error as WeightsError;
use tokenizers::Tokenizer;

use crate::chat_template::ChatTemplate;
use crate::error::Error;
use crate::file;
use crate::files::Files;
use bound::Bound;
use class::{Class, class_of_folder, has_types, names_of};
use guarded::{guarded, ids};
use literal::{Control, PlainText, Refusal};
use notes::Rules;
pub use pair::Typed;
use sentencepiece::Made;
use special_tokens::{SpecialTokens, Surround, other_templates, tells_apart, template_source};
pub use special_tokens::{added_tokens, chat_template};
use vocabulary::Spelling;
use whole::WholeTemplate;
pub use whole::{MARK, SPLIT, with_texts};

/// How many of the last pieces a [`LabelInContext`] shows, on either side.
const SHOWN: usize = 4;

/// How text becomes tokens. The default does as transformers' `apply_chat_template`, at a fixed
/// date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// What a chat template sees where it asks for the date. Default: 2025-01-01.
    pub date: Date,
    /// Which special tokens a rendered chat prompt gets. Default: [`ChatTokens::AsRendered`].
    pub chat_tokens: ChatTokens,
}

/// Which special tokens a chat prompt gets beside those that its template writes. Raw prompts
/// always get the tokenizer's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChatTokens {
    /// None: the template's output is taken as it is.
    #[default]
    AsRendered,
    /// Those that the tokenizer adds to any text, in most cases a second BOS. This is wrong, but it
    /// is what the reference program of LAGER does. Use it only to reproduce its numbers.
    AddedAgain,
}

/// A model folder's tokenizer and chat template. It is not changed after loading, so threads share
/// it.
pub struct TextCodec {
    /// The `tokenizer.json` or SentencePiece's file, for errors.
    path: PathBuf,
    /// The tokenizer with all added tokens, without truncation and padding. It matches control
    /// tokens in text.
    tokenizer: Tokenizer,
    /// The special tokens of `tokenizer_config.json`; templates see the named ones.
    special: SpecialTokens,
    /// The tokens around a raw prompt.
    surround: Surround,
    /// The tokens that item text must not become.
    control: Control,
    /// How entries of the vocabulary are spelt, for labels.
    spelling: Spelling,
    /// The most text that a token stands for, where it is known.
    bound: Option<Bound>,
    /// Whether a model of this tokenizer is given the types of tokens, as `model_input_names` of `tokenizer_config.json` says or else
    /// the class.
    has_types: bool,
    /// Where the class counts and not the file; see [`notes`](Self::notes).
    class_notes: Vec<String>,
    /// The chat template, or why there is none.
    template: Template,
    /// As given to [`load`](Self::load); the template has the date already.
    options: TextOptions,
    /// Tokenizers that match no control token. They take time to build, so they wait for the first
    /// message that spells one.
    plain: OnceLock<PlainText>,
    /// The template of the last whole prompt.
    whole: Mutex<Option<Arc<WholeTemplate>>>,
}

/// The state of the chat template. Only chat prompts need one, so its absence or fault is no error
/// before the first of them.
enum Template {
    /// It compiles.
    Ready(Box<ChatTemplate>),
    /// No file has one: [`Error::NoChatTemplate`] for chat prompts, or [`WeightsError::Unsupported`] where there are `others`
    /// with names and none of them is the default.
    Absent { path: PathBuf, others: Option<String>, wanted: &'static str },
    /// The one in `path` does not compile: [`Error::ChatTemplate`] for chat prompts, each time the
    /// same.
    Broken { path: PathBuf, source: Arc<TemplateError> },
}

impl TextCodec {
    /// What is to be said before a run: where the class counts and not the file, and control tokens that the chat template writes
    /// and the tokenizer does not have.
    pub fn notes(&self) -> Vec<String> {
        self.class_notes.iter().cloned().chain(self.template_note()).collect()
    }

    /// Looks for control tokens in what the template makes of short conversations, those that it takes.
    fn template_note(&self) -> Option<String> {
        let Template::Ready(template) = &self.template else { return None };
        let turns = [("system", "a"), ("user", "b")].map(|(role, content)| Message::new(role, content));
        let render = |turns: &[Message]| template.render(turns, self.special.named(), &BTreeMap::new()).ok();
        let rendered: Vec<String> = [&turns[1..], &turns[..]].into_iter().filter_map(render).collect();
        let known = self.tokenizer.get_added_vocabulary().get_vocab();
        notes::of_template(&rendered, |token| known.contains_key(token))
    }

    /// What to do where a template refuses a conversation with a system turn and takes it without one; empty otherwise.
    fn advice(&self, template: &ChatTemplate, messages: &[Message]) -> &'static str {
        let others: Vec<Message> = messages.iter().filter(|message| message.role != "system").cloned().collect();
        let helps =
            others.len() < messages.len() && template.render(&others, self.special.named(), &BTreeMap::new()).is_ok();
        if helps { "; the chat template takes no system turn: put its text into the user's turn" } else { "" }
    }

    /// Reads `tokenizer.json` or SentencePiece's file, `tokenizer_config.json` and the chat template.
    ///
    /// The order matters: special tokens are added to the tokenizer before it is asked what it puts
    /// around a text, and before `Control` lists its added tokens.
    ///
    /// # Errors
    /// [`WeightsError::Read`], [`WeightsError::Encoding`] or [`WeightsError::Json`] for a file that cannot be read;
    /// [`Error::Tokenizer`] for a tokenizer that cannot be built; [`WeightsError::Unsupported`] for one
    /// that drops merges at random or splits control tokens; without a `tokenizer.json`, [`WeightsError::MissingFile`] and
    /// [`Error::SentencePiece`] too. A template that does not compile is no error yet.
    pub fn load(files: &Files, options: &TextOptions) -> Result<Self, Error> {
        let settings = files.json(file::TOKENIZER_CONFIG)?.unwrap_or_default();
        refuse_splitting(files, &settings)?;
        let mut special = SpecialTokens::read(files, &settings)?;
        let made = match files.has(file::TOKENIZER) {
            true => None,
            false => Some(Made::of(files, &settings, &mut special)?),
        };
        let path = made.as_ref().map_or_else(|| files.file(file::TOKENIZER), |made| made.path.clone());
        let fault = |source: tokenizers::Error| Error::Tokenizer { path: path.clone(), source };
        let (text, json, class_note) = match &made {
            Some(made) => (made.json.to_string(), made.json.clone(), None),
            None => as_classes_read(files, &settings, &path, &mut special)?,
        };
        let mut tokenizer = guarded(|| Tokenizer::from_bytes(text.as_bytes())).map_err(fault)?;
        // Prompts are never cut or filled up here, whatever the file's defaults.
        tokenizer.with_truncation(None).map_err(fault)?;
        tokenizer.with_padding(None);
        guarded(|| special.add_to(&mut tokenizer)).map_err(fault)?;
        if let Some(made) = &made {
            made.surround(&mut tokenizer, &special).map_err(fault)?;
        }
        let surround = guarded(|| Surround::of(&tokenizer)).map_err(fault)?;
        let template = match template_source(files)? {
            None => absent(files, &settings),
            Some((path, source)) => match ChatTemplate::new(&source, options.date) {
                Ok(template) => Template::Ready(Box::new(template.with_its_content(special.named()))),
                Err(source) => Template::Broken { path, source: Arc::new(source) },
            },
        };
        let control = Control::new(
            &tokenizer,
            match &template {
                Template::Ready(template) => template.source(),
                _ => "",
            },
        )
        .map_err(fault)?;
        let spelling = Spelling::of(&json);
        let bound = Bound::of(&tokenizer, &json);
        let (has_types, types_note) = types(files, &settings, &tokenizer);
        let options = *options;
        let (plain, whole) = (OnceLock::new(), Mutex::new(None));
        Ok(Self {
            path,
            tokenizer,
            special,
            surround,
            control,
            spelling,
            bound,
            has_types,
            class_notes: class_note.into_iter().chain(types_note).collect(),
            template,
            options,
            plain,
            whole,
        })
    }

    /// As [`encode_within`](Self::encode_within), of any length.
    #[cfg(any(test, fuzzing))]
    pub fn encode(&self, prompt: &Prompt) -> Result<Vec<TokenId>, Error> {
        self.encode_within(prompt, usize::MAX)
    }

    /// The tokens of a prompt as the model is fed them: at least one. There may be more than `most` of
    /// them, but a prompt whose bytes show that there are is not tokenised.
    ///
    /// # Errors
    /// [`Error::Prompt`] for what the prompt itself is to blame for: [`Reason::EmptyPrompt`] says that
    /// it has no text or no token, or that the template renders none of it or of the user's last turn,
    /// [`Reason::Template`] that the template refuses it or that a message spells a control token that
    /// cannot be kept apart, [`Reason::TooLong`] that its bytes show that it has more than `most` tokens.
    /// [`Error::NoChatTemplate`], [`WeightsError::Unsupported`] or [`Error::ChatTemplate`] for a chat prompt where there is no
    /// template, none of its names is the default or it does not compile; [`Error::Tokenizer`] if the tokenizer fails.
    pub fn encode_within(&self, prompt: &Prompt, most: usize) -> Result<Vec<TokenId>, Error> {
        if prompt.is_empty() {
            return Err(Unscored::new(Reason::EmptyPrompt, "the prompt has no text").into());
        }
        let mut ids = self.open_within(prompt, most)?;
        if self.is_surrounded(prompt) {
            ids.extend(&self.surround.after);
        }
        if ids.is_empty() {
            return Err(Unscored::new(Reason::EmptyPrompt, "the prompt has no token").into());
        }
        Ok(ids)
    }

    /// How a token is written in the vocabulary; empty if there is no such token.
    pub fn spelt(&self, token: TokenId) -> String {
        self.tokenizer.id_to_token(token).unwrap_or_default()
    }

    /// The tokens from number `from` on, ascending, with their texts. Of a vocabulary that has no more
    /// than `from` entries the added tokens alone are looked at.
    pub fn tokens_from(&self, from: usize) -> BTreeMap<TokenId, String> {
        let of = |vocabulary: &HashMap<String, TokenId>| {
            let beyond = vocabulary.iter().filter(|(_, id)| **id as usize >= from);
            beyond.map(|(text, &id)| (id, text.clone())).collect()
        };
        match self.tokenizer.get_vocab_size(false) > from {
            true => of(&self.tokenizer.get_vocab(true).into_iter().collect()),
            false => of(&self
                .tokenizer
                .get_added_tokens_decoder()
                .into_iter()
                .map(|(id, token)| (token.content, id))
                .collect()),
        }
    }

    /// The vocabulary entry whose bytes are exactly those of `label`, spaces included: an ordinary
    /// entry if there is one, else the byte-fallback entry of a single byte. Control tokens are no
    /// labels.
    ///
    /// # Errors
    /// [`BackboneError::Label`] with the pieces that the tokenizer makes of it if there is no such
    /// entry.
    pub fn label(&self, label: &str) -> Result<TokenId, BackboneError> {
        match self.spelling.find(&self.tokenizer, label) {
            Some(id) => Ok(id),
            None => {
                let encoding = guarded(|| self.tokenizer.encode(label, false)).map_err(BackboneError::Model)?;
                Err(BackboneError::Label { label: label.to_owned(), pieces: encoding.get_tokens().to_vec() })
            }
        }
    }

    /// The only token of a label as the tokenizer splits it by itself, without special tokens.
    ///
    /// # Errors
    /// [`BackboneError::Label`] with the pieces if it has several, none, or the unknown token.
    pub fn label_alone(&self, label: &str) -> Result<TokenId, BackboneError> {
        let encoding = guarded(|| self.tokenizer.encode(label, false)).map_err(BackboneError::Model)?;
        match encoding.get_ids() {
            [id] if !self.special.is_unknown(encoding.get_tokens()) => Ok(*id),
            _ => Err(BackboneError::Label { label: label.to_owned(), pieces: encoding.get_tokens().to_vec() }),
        }
    }

    /// How many tokens a text has by itself, without special tokens; `None` where the tokenizer fails on it.
    pub fn tokens_in(&self, text: &str) -> Option<usize> {
        guarded(|| self.tokenizer.encode(text, false)).ok().map(|encoding| encoding.len())
    }

    /// Compares two ways to write a label behind a prompt: prompt and label tokenised together, and
    /// the prompt's tokens followed by the label's one, which is `id` ([`label`](Self::label)). They differ where the
    /// tokenizer merges the label's beginning with the prompt's end.
    ///
    /// The tokens that `Surround::after` puts at the end are left out on both sides.
    ///
    /// # Errors
    /// [`Error::Prompt`] for a prompt that the template refuses, and the others of [`encode_within`](Self::encode_within).
    pub fn label_in_context(&self, prompt: &Prompt, label: &str, id: TokenId) -> Result<LabelInContext, Error> {
        let mut apart = self.open_ended(prompt)?;
        apart.push(id);
        let together = self.open_ended(&prompt.clone().with_prefill(label))?;
        let shown = |ids: &[TokenId]| {
            ids[ids.len().saturating_sub(SHOWN)..]
                .iter()
                .map(|&id| self.tokenizer.id_to_token(id).unwrap_or_default())
                .collect()
        };
        Ok(LabelInContext { apart: shown(&apart), together: shown(&together), agrees: apart == together })
    }

    /// The tokens of each of `texts` as it follows the prompt, at least one each, in the order of
    /// the texts.
    ///
    /// The rule is that of lm-evaluation-harness. Prompt and text are tokenised together; if that
    /// begins with the prompt's own tokens, the rest is the continuation. Otherwise the tokenizer
    /// merged across the border, and the text is tokenised apart, without special tokens.
    ///
    /// ```text
    /// prompt "a b", text " c"    [a][ b] and [a][ b][ c]    →  [ c]
    /// prompt "a b", text "c"     [a][ b] and [a][ bc]       →  [c], tokenised apart
    /// ```
    ///
    /// The prompt's own tokens do not include `Surround::after`.
    ///
    /// # Errors
    /// As [`encode_within`](Self::encode_within), and [`Reason::EmptyPrompt`] for a text without a token.
    pub fn continuations(&self, prompt: &Prompt, texts: &[String]) -> Result<Vec<Vec<TokenId>>, Error> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let before = self.open_ended(prompt)?;
        let mut all = Vec::with_capacity(texts.len());
        for text in texts {
            let together = self.open_ended(&prompt.clone().with_prefill(text))?;
            let behind = match together.strip_prefix(before.as_slice()) {
                Some(behind) if !behind.is_empty() => behind.to_vec(),
                _ => self.apart(prompt, text)?,
            };
            if behind.is_empty() {
                let detail = format!("the continuation {text:?} has no token");
                return Err(Unscored::new(Reason::EmptyPrompt, detail).into());
            }
            all.push(behind);
        }
        Ok(all)
    }

    /// The tokens of a text by itself, without special tokens. Behind a chat prompt it is plain
    /// text, even if it spells a control token.
    fn apart(&self, prompt: &Prompt, text: &str) -> Result<Vec<TokenId>, Error> {
        let is_literal = !matches!(prompt, Prompt::Raw(_)) && self.control.is_spelt_in(text);
        let found = if is_literal { self.plain()?.encode_text(text) } else { ids(&self.tokenizer, text) };
        found.map_err(|source| self.refused(source))
    }

    /// The text of some new tokens, and for each token its end: how many bytes of the text are
    /// complete once that token is known.
    ///
    /// Control tokens are left out of the text. The ends `[ids.len()]` do not decrease and are
    /// always at a character's end. A token that ends inside a character has the end of the token
    /// before it; the token that completes the character counts all of its bytes.
    ///
    /// ```text
    /// ids     [Hel] [lo] [byte 1 of ä] [byte 2 of ä]
    /// ends      3     5       5             7           text "Helloä"
    /// ```
    pub fn decode(&self, ids: &[TokenId]) -> (String, Vec<usize>) {
        // Ids come from this vocabulary. A decoder that fails nevertheless has no text to give.
        let decode = |ids: &[TokenId]| guarded(|| self.tokenizer.decode(ids, true)).unwrap_or_default();
        let text = decode(ids);
        let mut ends = Vec::with_capacity(ids.len());
        // A decoder may treat the first token of a sequence differently (a leading space goes). The
        // new text of a token is therefore what it adds to the text of a few tokens before it,
        // never its own text. `context..settled` are those tokens: the last ones whose text was
        // whole, with their end at `end` bytes.
        let (mut context, mut settled, mut end) = (0, 0, 0);
        for i in 0..ids.len() {
            let before = decode(&ids[context..settled]);
            let now = decode(&ids[context..=i]);
            if now.len() >= before.len() && !now.ends_with(char::REPLACEMENT_CHARACTER) {
                end = text.floor_char_boundary(end + now.len() - before.len());
                (context, settled) = (settled, i + 1);
            }
            ends.push(end);
        }
        (text, ends)
    }

    /// The tokens of a prompt without [`Surround::after`], so that text can still follow. May be
    /// empty.
    fn open_ended(&self, prompt: &Prompt) -> Result<Vec<TokenId>, Error> {
        self.open_within(prompt, usize::MAX)
    }

    /// Fails for a text whose bytes show that it has more than `most` tokens.
    pub fn fits(&self, text: &str, most: usize) -> Result<(), Unscored> {
        match self.bound.map(|bound| bound.least(text)) {
            Some(least) if least > most => {
                let detail = format!("at least {least} prompt tokens, the context has {most}");
                Err(Unscored::new(Reason::TooLong, detail))
            }
            _ => Ok(()),
        }
    }

    /// As [`open_ended`](Self::open_ended), within `most` tokens as in [`encode_within`](Self::encode_within).
    fn open_within(&self, prompt: &Prompt, most: usize) -> Result<Vec<TokenId>, Error> {
        let body = match prompt {
            Prompt::Raw(text) => {
                self.fits(text, most)?;
                ids(&self.tokenizer, text).map_err(Refusal::from)
            }
            Prompt::Chat { messages, template_args, trusted_prefill, prefill } => {
                let template = self.template()?;
                let texts: Vec<&str> = messages.iter().flat_map(|m| [m.role.as_str(), m.content.as_str()]).collect();
                let is_blank = Cell::new(false);
                let render = |messages: &[Message]| template.render(messages, self.special.named(), template_args);
                let rendered = self.control.render(&texts, prefill, |mark| {
                    let messages: Vec<_> =
                        messages.iter().map(|m| Message::new(mark(&m.role), mark(&m.content))).collect();
                    let text = render(&messages)?;
                    is_blank.set(text.trim().is_empty());
                    Ok(text + trusted_prefill)
                });
                if is_blank.get() && messages.iter().any(|message| !message.content.trim().is_empty()) {
                    let detail = "the chat template renders nothing of the messages";
                    return Err(Unscored::new(Reason::EmptyPrompt, detail).into());
                }
                let rendered = rendered.map_err(|refusal| match refusal {
                    Refusal::Template(error) => {
                        let detail = error.to_string() + self.advice(template, messages);
                        Error::from(Unscored::new(Reason::Template, detail))
                    }
                    other => self.refused(other),
                })?;
                let whole = |messages: &[Message]| render(messages).map(|text| text + trusted_prefill + prefill);
                if !reads_user(messages, rendered.text(), whole) {
                    let detail = "the chat template renders nothing of the user's turn";
                    return Err(Unscored::new(Reason::EmptyPrompt, detail).into());
                }
                self.fits(rendered.text(), most)?;
                match rendered.has_literals() {
                    true => self.plain()?.encode(&rendered, &self.control),
                    false => ids(&self.tokenizer, rendered.text()).map_err(Refusal::from),
                }
            }
            Prompt::Whole(whole) => self.template_of(whole)?.encode(whole, self.special.named()),
        };
        let body = body.map_err(|refusal| self.refused(refusal))?;
        if !self.is_surrounded(prompt) {
            return Ok(body);
        }
        let mut ids = self.surround.before.clone();
        ids.extend(body);
        Ok(ids)
    }

    /// Why a text has no tokens: the tokenizer fails, or the prompt itself is to blame.
    fn refused(&self, refusal: impl Into<Refusal>) -> Error {
        match refusal.into() {
            Refusal::Tokenizer(source) => Error::Tokenizer { path: self.path.clone(), source },
            other => Unscored::new(Reason::Template, other.to_string()).into(),
        }
    }

    /// The tokenizers for text that spells control tokens, built on the first call. Two threads may
    /// both build them; one result is kept.
    fn plain(&self) -> Result<&PlainText, Error> {
        if let Some(plain) = self.plain.get() {
            return Ok(plain);
        }
        let built = guarded(|| PlainText::new(&self.tokenizer, &self.control));
        let built = built.map_err(|source| self.refused(source))?;
        Ok(self.plain.get_or_init(|| built))
    }

    /// A whole prompt's template, compiled. The last one is kept, since all prompts of a judge have the same.
    fn template_of(&self, whole: &WholePrompt) -> Result<Arc<WholeTemplate>, Error> {
        let mut kept = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = kept.as_ref().filter(|kept| kept.source() == whole.template) {
            return Ok(Arc::clone(template));
        }
        let template = ChatTemplate::new(&whole.template, self.options.date)
            .map_err(|source| Error::PromptTemplate { source: Arc::new(source) })?;
        let built = guarded(|| WholeTemplate::new(template, &self.tokenizer));
        let built = Arc::new(built.map_err(|source| self.refused(source))?);
        *kept = Some(Arc::clone(&built));
        Ok(built)
    }

    /// Whether the tokenizer's own tokens go around this prompt.
    fn is_surrounded(&self, prompt: &Prompt) -> bool {
        match prompt {
            Prompt::Raw(_) => true,
            Prompt::Chat { .. } => self.options.chat_tokens == ChatTokens::AddedAgain,
            Prompt::Whole(_) => false,
        }
    }

    /// The chat template, or the error of a prompt that needs one in vain.
    fn template(&self) -> Result<&ChatTemplate, Error> {
        match &self.template {
            Template::Ready(template) => Ok(template),
            Template::Absent { path, others, wanted } => Err(match others {
                Some(found) => WeightsError::unsupported(path, "chat template", found, wanted).into(),
                None => Error::NoChatTemplate { path: path.clone(), wanted },
            }),
            Template::Broken { path, source } => {
                Err(Error::ChatTemplate { path: path.clone(), source: source.clone() })
            }
        }
    }
}

/// Whether the last of the user's turns that has a text is in `output`, what `render` makes of the conversation: the text itself, or
/// another one makes another output.
fn reads_user(
    messages: &[Message],
    output: &str,
    render: impl FnOnce(&[Message]) -> Result<String, TemplateError>,
) -> bool {
    let is_users = |message: &Message| message.role == "user" && !message.content.trim().is_empty();
    let Some(at) = messages.iter().rposition(is_users) else { return true };
    if output.contains(messages[at].content.trim()) {
        return true;
    }
    let mut others = messages.to_vec();
    others[at].content = format!("b{}b", messages[at].content);
    match render(&others) {
        Ok(other) => other != output,
        Err(_) => true,
    }
}

/// A folder without a chat template, and where one would be read. `settings` are `tokenizer_config.json`.
fn absent(files: &Files, settings: &serde_json::Value) -> Template {
    if let Some((path, others)) = other_templates(files, settings) {
        let wanted = match path.is_dir() {
            true => "default.jinja among them, or chat_template.jinja in the model's folder",
            false => "default among them, or chat_template.jinja in the model's folder",
        };
        return Template::Absent { path, others: Some(others), wanted };
    }
    let (path, wanted) = if files.made(file::TOKENIZER_CONFIG).is_some() {
        (files.file(file::TOKENIZER_CONFIG), "tokenizer.chat_template among its keys, or chat_template.jinja beside it")
    } else if files.has(file::CHAT_TEMPLATE_JSON) {
        let wanted = "chat_template.jinja, or chat_template in tokenizer_config.json; chat_template.json is that of a processor of \
            images and sounds, and transformers' tokenizers do not read it";
        (files.folder().to_owned(), wanted)
    } else {
        (files.folder().to_owned(), "chat_template.jinja, or chat_template in tokenizer_config.json")
    };
    Template::Absent { path, others: None, wanted }
}

/// A folder's `tokenizer.json` with the rules of its class, as text and parsed, and what is to be said where those are not the
/// file's own. `special` gets the tokens that the class has where the folder names no others.
///
/// # Errors
/// Those of reading the file, those of [`checked::check`], and [`WeightsError::Unsupported`] for random merges.
fn as_classes_read(
    files: &Files,
    settings: &serde_json::Value,
    path: &Path,
    special: &mut SpecialTokens,
) -> Result<(String, serde_json::Value, Option<String>), Error> {
    let text = files.text(file::TOKENIZER)?.unwrap_or_default();
    let class = class_of_folder(files, settings, &text).unwrap_or_default();
    special.default_names(names_of(&class));
    let mut json: serde_json::Value =
        serde_json::from_str(&text).map_err(|source| WeightsError::Json { path: path.to_owned(), source })?;
    refuse_dropout(path, &json)?;
    let has_changed = checked::check(path, &mut json)?;
    match Class::of_name(&class) {
        Some(class) => {
            let rules = Rules::of(&json);
            class.rewrite(&mut json, settings);
            let note = notes::of_class(class, Class::is_named(files, &text), &rules, &Rules::of(&json));
            Ok((json.to_string(), json, note))
        }
        None => {
            let note = notes::of_bert(&class, settings, &json);
            Ok((if has_changed { json.to_string() } else { text }, json, note))
        }
    }
}

/// Whether a model of the folder is given the types of tokens, and what is to be said of that.
fn types(files: &Files, settings: &serde_json::Value, tokenizer: &Tokenizer) -> (bool, Option<String>) {
    const FIELD: &str = "token_type_ids";
    if let Some(names) = settings.get("model_input_names").and_then(serde_json::Value::as_array) {
        return (names.iter().any(|name| name == FIELD), None);
    }
    let class = class_of_folder(files, settings, "");
    let has_types = files.has_gguf() || class.as_deref().is_some_and(has_types);
    // This class is the only one that transformers 4 gave them for and 5 does not.
    let is_of_old = class.as_deref() == Some("PreTrainedTokenizer");
    let is_read = files.config()["type_vocab_size"].as_u64().is_some_and(|types| types > 1);
    let is_loss = !has_types && is_of_old && is_read && guarded(|| tells_apart(tokenizer)).unwrap_or(false);
    let note = is_loss.then(|| {
        format!(
            "the tokenizer's class is PreTrainedTokenizerFast, for which transformers 4 gave the model the types of tokens ({FIELD}) and \
             5 gives none: none are given; where the model was trained with them, add \"model_input_names\": [\"input_ids\", \
             \"{FIELD}\", \"attention_mask\"] to tokenizer_config.json"
        )
    });
    (has_types, note)
}

/// Fails if control tokens are to be plain text everywhere (`split_special_tokens` of `tokenizer_config.json`): transformers then
/// takes those that the chat template writes for text too.
fn refuse_splitting(files: &Files, settings: &serde_json::Value) -> Result<(), Error> {
    const FIELD: &str = "split_special_tokens";
    match settings.get(FIELD).and_then(serde_json::Value::as_bool) {
        Some(true) => Err(WeightsError::unsupported(
            files.file(file::TOKENIZER_CONFIG),
            FIELD,
            "true",
            "false: with true even the control tokens of the chat template would be plain text; set it to false, \
                with which what messages spell stays text nevertheless",
        )
        .into()),
        _ => Ok(()),
    }
}

/// Fails if the tokenizer leaves out merges at random, as in training (`model.dropout` of
/// `tokenizer.json`): the same text would have other tokens each time.
fn refuse_dropout(path: &Path, json: &serde_json::Value) -> Result<(), Error> {
    let dropout = json.get("model").and_then(|model| model.get("dropout"));
    match dropout.filter(|dropout| !dropout.is_null() && dropout.as_f64() != Some(0.0)) {
        None => Ok(()),
        Some(found) => {
            let supported = "null and 0, with which a text always has the same tokens";
            Err(WeightsError::unsupported(path, "model.dropout", found.to_string(), supported).into())
        }
    }
}
