//! Text to tokens and back: the only place that makes control tokens.

mod guarded;
mod literal;
mod special_tokens;
mod vocabulary;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use judge_core::{BackboneError, LabelInContext, Prompt, Reason, TokenId, Unscored};
use tokenizers::Tokenizer;

use super::chat_template::{ChatTemplate, Date};
use crate::Error;
use crate::folder::{Folder, file, read_text};
use guarded::guarded;
use literal::{Control, PlainText};
use special_tokens::{SpecialTokens, Surround, template_source};
use vocabulary::Spelling;

/// Last pieces that a [`LabelInContext`] shows.
const SHOWN: usize = 4;

/// How text becomes tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// What a chat template sees where it asks for the date.
    pub date: Date,
    /// Which special tokens a rendered chat prompt gets.
    pub chat_tokens: ChatTokens,
}

/// Which special tokens a chat prompt gets beside those that its template writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChatTokens {
    /// None: the template's output is taken as it is.
    #[default]
    AsRendered,
    /// Those that the tokenizer adds to any text, in most cases a second BOS. Wrong, and what the reference program of
    /// LAGER does; for reproducing its numbers only.
    AddedAgain,
}

/// A model folder's tokenizer and chat template.
pub(crate) struct TextCodec {
    path: PathBuf,
    tokenizer: Tokenizer,
    special: SpecialTokens,
    surround: Surround,
    control: Control,
    spelling: Spelling,
    template: Template,
    options: TextOptions,
    /// Needed once a message spells a control token; built then.
    plain: OnceLock<PlainText>,
}

/// A chat template is needed by chat prompts only, so its absence or fault waits for the first of them.
enum Template {
    Ready(Box<ChatTemplate>),
    Absent { folder: PathBuf },
    Broken { path: PathBuf, source: Arc<minijinja::Error> },
}

impl TextCodec {
    /// Reads `tokenizer.json`, `tokenizer_config.json` and the chat template.
    pub(crate) fn load(folder: &Folder, options: &TextOptions) -> Result<Self, Error> {
        let path = folder.file(file::TOKENIZER);
        let fault = |source: tokenizers::Error| Error::Tokenizer { path: path.clone(), source };
        let text = read_text(&path)?;
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|source| Error::Json { path: path.clone(), source })?;
        refuse_dropout(&path, &json)?;
        let mut tokenizer = guarded(|| Tokenizer::from_bytes(text.as_bytes())).map_err(fault)?;
        // Prompts are never cut or filled up here, whatever the file's defaults.
        tokenizer.with_truncation(None).map_err(fault)?;
        tokenizer.with_padding(None);
        let special = SpecialTokens::read(folder)?;
        guarded(|| special.add_to(&mut tokenizer)).map_err(fault)?;
        let surround = guarded(|| special.surround(&tokenizer)).map_err(fault)?;
        let template = match template_source(folder)? {
            None => Template::Absent { folder: folder.path().to_owned() },
            Some((path, source)) => match ChatTemplate::new(&source, options.date) {
                Ok(template) => Template::Ready(Box::new(template)),
                Err(source) => Template::Broken { path, source: Arc::new(source) },
            },
        };
        let control = Control::new(
            &tokenizer,
            match &template {
                Template::Ready(template) => template.source(),
                _ => "",
            },
        );
        let spelling = Spelling::of(&json);
        let options = *options;
        let plain = OnceLock::new();
        Ok(Self { path, tokenizer, special, surround, control, spelling, template, options, plain })
    }

    /// The tokens of a prompt. What the prompt itself is to blame for (no text, no token, a template that refuses it)
    /// is [`Unscored`].
    ///
    /// # Errors
    /// [`Error::NoChatTemplate`] or [`Error::ChatTemplate`] for a chat prompt where there is no template or it does
    /// not compile, [`Error::Tokenizer`] if the tokenizer fails.
    pub(crate) fn encode(&self, prompt: &Prompt) -> Result<Result<Vec<TokenId>, Unscored>, Error> {
        if prompt.is_empty() {
            return Ok(Err(Unscored::new(Reason::EmptyPrompt, "the prompt has no text")));
        }
        let mut ids = match self.open_ended(prompt)? {
            Ok(ids) => ids,
            Err(unscored) => return Ok(Err(unscored)),
        };
        if self.is_surrounded(prompt) {
            ids.extend(&self.surround.after);
        }
        if ids.is_empty() {
            return Ok(Err(Unscored::new(Reason::EmptyPrompt, "the prompt has no token")));
        }
        Ok(Ok(ids))
    }

    /// The vocabulary entry whose bytes are exactly those of `label`: an ordinary entry if there is one, else the
    /// byte-fallback entry of a single byte. Control tokens are no labels.
    pub(crate) fn label(&self, label: &str) -> Result<TokenId, BackboneError> {
        match self.spelling.find(&self.tokenizer, label) {
            Some(id) => Ok(id),
            None => {
                let encoding = guarded(|| self.tokenizer.encode(label, false)).map_err(BackboneError::Model)?;
                Err(BackboneError::Label { label: label.to_owned(), pieces: encoding.get_tokens().to_vec() })
            }
        }
    }

    /// Compares the tokens of prompt and label written together with the prompt's tokens followed by the label's one.
    pub(crate) fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
        let model = |e: Error| BackboneError::Model(Box::new(e));
        let tokens = |prompt: &Prompt| match self.open_ended(prompt) {
            Ok(Ok(ids)) => Ok(ids),
            Ok(Err(unscored)) => Err(model(Error::Prompt { unscored })),
            Err(e) => Err(model(e)),
        };
        let id = self.label(label)?;
        let mut apart = tokens(prompt)?;
        apart.push(id);
        let together = tokens(&prompt.clone().with_prefill(label))?;
        let shown = |ids: &[TokenId]| {
            ids[ids.len().saturating_sub(SHOWN)..]
                .iter()
                .map(|&id| self.tokenizer.id_to_token(id).unwrap_or_default())
                .collect()
        };
        Ok(LabelInContext { apart: shown(&apart), together: shown(&together), agrees: apart == together })
    }

    /// The tokens of each text behind a prompt, at least one each: those that follow the prompt's own where the two are tokenised together and
    /// begin with these, else those of the text tokenised apart, without special tokens. It is what lm-evaluation-harness does. The prompt's own
    /// are those that no tokens of the tokenizer's were put behind. A text that has no token is to blame on the item.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub(crate) fn continuations(
        &self,
        prompt: &Prompt,
        texts: &[String],
    ) -> Result<Result<Vec<Vec<TokenId>>, Unscored>, Error> {
        if texts.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let before = match self.open_ended(prompt)? {
            Ok(ids) => ids,
            Err(unscored) => return Ok(Err(unscored)),
        };
        let mut all = Vec::with_capacity(texts.len());
        for text in texts {
            let together = match self.open_ended(&prompt.clone().with_prefill(text))? {
                Ok(ids) => ids,
                Err(unscored) => return Ok(Err(unscored)),
            };
            let behind = match together.strip_prefix(before.as_slice()) {
                Some(behind) if !behind.is_empty() => behind.to_vec(),
                _ => self.apart(prompt, text)?,
            };
            if behind.is_empty() {
                let detail = format!("the continuation {text:?} has no token");
                return Ok(Err(Unscored::new(Reason::EmptyPrompt, detail)));
            }
            all.push(behind);
        }
        Ok(Ok(all))
    }

    /// The tokens of a text by itself, without special tokens. Behind a chat prompt it is plain text, even if it spells a control token.
    fn apart(&self, prompt: &Prompt, text: &str) -> Result<Vec<TokenId>, Error> {
        let is_literal = matches!(prompt, Prompt::Chat { .. }) && self.control.is_spelt_in(text);
        let found = if is_literal { self.plain()?.encode_text(text) } else { ids(&self.tokenizer, text) };
        found.map_err(|source| Error::Tokenizer { path: self.path.clone(), source })
    }

    /// Text of some new tokens, control tokens left out, and for each token how many bytes of the text are complete
    /// once it is known: not decreasing, always at a character's end. Bytes that are no character yet are counted only
    /// when the character is whole.
    pub(crate) fn decode(&self, ids: &[TokenId]) -> (String, Vec<usize>) {
        // Ids come from this vocabulary; a decoder that fails nevertheless has no text to give.
        let decode = |ids: &[TokenId]| guarded(|| self.tokenizer.decode(ids, true)).unwrap_or_default();
        let text = decode(ids);
        let mut ends = Vec::with_capacity(ids.len());
        // A decoder may treat the first token of a sequence differently (a leading space goes), so the new text of a
        // token is what it adds to the text of a few tokens before it, never its own text.
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

    /// The tokens of a prompt without what the tokenizer would put after it.
    fn open_ended(&self, prompt: &Prompt) -> Result<Result<Vec<TokenId>, Unscored>, Error> {
        let fault = |source| Error::Tokenizer { path: self.path.clone(), source };
        let body = match prompt {
            Prompt::Raw(text) => ids(&self.tokenizer, text).map_err(fault)?,
            Prompt::Chat { messages, template_args, trusted_prefill, prefill } => {
                let template = self.template()?;
                let rendered = self.control.render(messages, prefill, |messages| {
                    Ok(template.render(messages, self.special.named(), template_args)? + trusted_prefill)
                });
                let ids = match rendered {
                    Err(refusal) => Err(refusal),
                    Ok(rendered) if rendered.has_literals() => {
                        self.plain()?.encode(&rendered, &self.control).map_err(fault)?
                    }
                    Ok(rendered) => Ok(ids(&self.tokenizer, rendered.text()).map_err(fault)?),
                };
                match ids {
                    Ok(ids) => ids,
                    Err(refusal) => return Ok(Err(Unscored::new(Reason::Template, refusal.to_string()))),
                }
            }
        };
        if !self.is_surrounded(prompt) {
            return Ok(Ok(body));
        }
        let mut ids = self.surround.before.clone();
        ids.extend(body);
        Ok(Ok(ids))
    }

    fn plain(&self) -> Result<&PlainText, Error> {
        if let Some(plain) = self.plain.get() {
            return Ok(plain);
        }
        let built = guarded(|| PlainText::new(&self.tokenizer, &self.control));
        let built = built.map_err(|source| Error::Tokenizer { path: self.path.clone(), source })?;
        Ok(self.plain.get_or_init(|| built))
    }

    fn is_surrounded(&self, prompt: &Prompt) -> bool {
        matches!(prompt, Prompt::Raw(_)) || self.options.chat_tokens == ChatTokens::AddedAgain
    }

    fn template(&self) -> Result<&ChatTemplate, Error> {
        match &self.template {
            Template::Ready(template) => Ok(template),
            Template::Absent { folder } => Err(Error::NoChatTemplate { folder: folder.clone() }),
            Template::Broken { path, source } => {
                Err(Error::ChatTemplate { path: path.clone(), source: source.clone() })
            }
        }
    }
}

/// Fails if the tokenizer leaves out merges at random, as in training: the same text would have other tokens each time.
fn refuse_dropout(path: &Path, json: &serde_json::Value) -> Result<(), Error> {
    let dropout = json.get("model").and_then(|model| model.get("dropout"));
    match dropout.filter(|dropout| !dropout.is_null() && dropout.as_f64() != Some(0.0)) {
        None => Ok(()),
        Some(found) => Err(Error::Unsupported {
            path: path.to_owned(),
            field: "model.dropout".to_owned(),
            found: found.to_string(),
            supported: "null and 0, with which a text always has the same tokens",
        }),
    }
}

/// Tokens of a text, without any that the post-processor adds.
fn ids(tokenizer: &Tokenizer, text: &str) -> tokenizers::Result<Vec<TokenId>> {
    guarded(|| Ok(tokenizer.encode_fast(text, false)?.get_ids().to_vec()))
}
