//! Special tokens and the chat template, as the small JSON files of a folder tell of them:
//! `tokenizer_config.json`, `special_tokens_map.json` and `chat_template.jinja`.
//!
//! `TextCodec::load` reads a [`SpecialTokens`], adds its tokens to the tokenizer
//! ([`SpecialTokens::add_to`]), and asks what goes around a text ([`SpecialTokens::surround`]). The
//! template then sees the named tokens. Everything follows transformers, which does the same when
//! it loads a folder. Which tokens are control tokens is decided in `literal.rs`.
//!
//! All fields are optional, and fields of an unexpected kind are passed over.

use std::collections::BTreeMap;
use std::path::PathBuf;

use judge_core::request::TokenId;
use serde_json::Value;
use tokenizers::{AddedToken, Tokenizer};

use crate::Error;
use crate::folder::{Folder, file};

/// The names under which a tokenizer and its template know special tokens.
const NAMES: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// What `tokenizer_config.json` says of special tokens. Empty if there is no such file.
#[derive(Debug, Default)]
pub(super) struct SpecialTokens {
    /// Text by name, such as `bos_token`: those of [`NAMES`], and further names of
    /// `extra_special_tokens`. Templates see these.
    named: BTreeMap<String, String>,
    /// `added_tokens_decoder`: tokens by their id, with the way they match. They are added in the
    /// order of their ids.
    added: BTreeMap<u64, AddedToken>,
    /// Special tokens without a name: the lists `extra_special_tokens` and
    /// `additional_special_tokens`.
    extra: Vec<AddedToken>,
}

/// The tokens that the tokenizer puts around any text. Mostly one BOS before it and nothing after
/// it, or neither.
#[derive(Debug, Default)]
pub(super) struct Surround {
    /// Tokens before the text, in their order.
    pub(super) before: Vec<TokenId>,
    /// Tokens after the text, in their order.
    pub(super) after: Vec<TokenId>,
}

impl SpecialTokens {
    /// Reads `config`, which is `tokenizer_config.json`, and, where there is none or it is of the old kind without
    /// `added_tokens_decoder`, `special_tokens_map.json`, whose named tokens win.
    ///
    /// # Errors
    /// Only for files that are there and cannot be read, or are no JSON.
    pub(super) fn read(folder: &Folder, config: &Value) -> Result<Self, Error> {
        let mut special = Self::default();
        for name in NAMES {
            special.name(name, config.get(name));
        }
        // Further names, such as `image_token`, are names if they are plain texts.
        for (name, token) in config.as_object().into_iter().flatten() {
            if name.ends_with("_token") && !NAMES.contains(&name.as_str()) && token.is_string() {
                special.name(name, Some(token));
            }
        }
        match config.get("added_tokens_decoder").and_then(Value::as_object) {
            Some(tokens) => {
                for (id, token) in tokens {
                    if let (Ok(id), Some(token)) = (id.parse(), added_token(token, false)) {
                        special.added.insert(id, token);
                    }
                }
            }
            None => {
                let map = folder.json(file::SPECIAL_TOKENS_MAP)?.unwrap_or_default();
                for name in NAMES {
                    special.name(name, map.get(name));
                }
            }
        }
        for list in ["extra_special_tokens", "additional_special_tokens"] {
            match config.get(list) {
                Some(Value::Array(tokens)) => special.extra.extend(tokens.iter().filter_map(|t| added_token(t, true))),
                Some(Value::Object(tokens)) => {
                    for (name, token) in tokens {
                        special.name(name, Some(token));
                    }
                }
                _ => {}
            }
        }
        Ok(special)
    }

    /// Reads the tokens of `added_tokens.json`, which old folders without `tokenizer.json` have where
    /// `tokenizer_config.json` has no `added_tokens_decoder`.
    ///
    /// # Errors
    /// Only for a file that is there and cannot be read, or is no JSON.
    pub(super) fn read_added(&mut self, folder: &Folder) -> Result<(), Error> {
        let json = if self.added.is_empty() { folder.json(file::ADDED_TOKENS)? } else { None };
        for (text, id) in json.iter().filter_map(Value::as_object).flatten() {
            let is_special = self.extra.iter().any(|token| token.content == *text)
                || NAMES.iter().any(|name| self.named.get(*name) == Some(text));
            if let Some(id) = id.as_u64() {
                self.added.insert(id, AddedToken::from(&**text, is_special));
            }
        }
        Ok(())
    }

    /// Names a token unless the folder names another.
    pub(super) fn default_name(&mut self, name: &str, text: &str) {
        self.named.entry(name.to_owned()).or_insert_with(|| text.to_owned());
    }

    /// Adds tokens without a name unless the folder has some.
    pub(super) fn default_extra(&mut self, tokens: Vec<AddedToken>) {
        if self.extra.is_empty() {
            self.extra = tokens;
        }
    }

    /// Makes the tokens of `added_tokens_decoder` match a text as it is given.
    pub(super) fn match_raw_text(&mut self) {
        for token in self.added.values_mut() {
            token.normalized = false;
        }
    }

    /// Texts of the tokens of `added_tokens_decoder` by their number.
    pub(super) fn added_texts(&self) -> BTreeMap<usize, String> {
        let texts =
            self.added.iter().filter_map(|(&id, token)| Some((usize::try_from(id).ok()?, token.content.clone())));
        texts.collect()
    }

    /// Text of the tokens that have a name, by name; what a template gets.
    pub(super) fn named(&self) -> &BTreeMap<String, String> {
        &self.named
    }

    /// Whether one of these tokens is the one for text that the vocabulary does not have.
    pub(super) fn is_unknown(&self, tokens: &[String]) -> bool {
        self.named.get("unk_token").is_some_and(|unknown| tokens.contains(unknown))
    }

    /// Adds to the tokenizer what only `tokenizer_config.json` knows, as transformers does: its
    /// list of tokens, then every named token, which is special from then on, and the ones without
    /// a name. A named token that the tokenizer knows keeps the way it matches.
    pub(super) fn add_to(&self, tokenizer: &mut Tokenizer) -> tokenizers::Result<()> {
        tokenizer.add_tokens(self.added.values().cloned())?;
        let known = tokenizer.get_added_tokens_decoder();
        let others = self.named.iter().filter(|(name, _)| !NAMES.contains(&name.as_str())).map(|(_, text)| text);
        let named = NAMES.iter().filter_map(|name| self.named.get(*name)).chain(others).map(|text| {
            match known.values().find(|token| token.content == *text) {
                Some(token) => token.clone().special(true),
                None => AddedToken::from(text, true),
            }
        });
        tokenizer.add_special_tokens(named.chain(self.extra.iter().cloned()))?;
        Ok(())
    }

    /// What the tokenizer puts around a text.
    ///
    /// The text `a` is tokenised with and without the post-processor, and the difference at both ends is the answer.
    /// `add_bos_token` and `add_eos_token` of `tokenizer_config.json` do not count: transformers drops them where there is a
    /// `tokenizer.json`.
    ///
    /// # Errors
    /// Also if the post-processor changes the tokens of the text itself.
    pub(super) fn surround(&self, tokenizer: &Tokenizer) -> tokenizers::Result<Surround> {
        let bare = tokenizer.encode_fast("a", false)?;
        let full = tokenizer.encode_fast("a", true)?;
        let (bare, full) = (bare.get_ids(), full.get_ids());
        match (0..=full.len() - bare.len().min(full.len())).find(|&i| full[i..].starts_with(bare)) {
            Some(start) => Ok(Surround { before: full[..start].to_vec(), after: full[start + bare.len()..].to_vec() }),
            None => Err("the post-processor does more than put tokens around a text".into()),
        }
    }

    /// Records a named token, if `token` is one. A later call replaces the text of an earlier one.
    fn name(&mut self, name: &str, token: Option<&Value>) {
        if let Some(token) = token.and_then(|token| added_token(token, true)) {
            self.named.insert(name.to_owned(), token.content);
        }
    }
}

/// A token, written as its text or as an object with the way it matches; `None` if it is neither.
/// `special` is the default of the field of that name. Tokens that are not special match normalised
/// text unless `normalized` says otherwise.
fn added_token(value: &Value, special: bool) -> Option<AddedToken> {
    let flag = |name: &str, default: bool| value.get(name).and_then(Value::as_bool).unwrap_or(default);
    let content = value.as_str().or_else(|| value.get("content")?.as_str())?;
    let special = flag("special", special);
    Some(
        AddedToken::from(content, special)
            .single_word(flag("single_word", false))
            .lstrip(flag("lstrip", false))
            .rstrip(flag("rstrip", false))
            .normalized(flag("normalized", !special)),
    )
}

/// The chat template and the file it is in: `chat_template.jinja`, else `tokenizer_config.json`. Of several named templates it is the one
/// called `default`. `None` if no file has one. A `chat_template.json` belongs to a processor of images and sounds; transformers'
/// tokenizers do not read it.
pub(super) fn template_source(folder: &Folder) -> Result<Option<(PathBuf, String)>, Error> {
    if let Some(source) = folder.text(file::CHAT_TEMPLATE)? {
        return Ok(Some((folder.file(file::CHAT_TEMPLATE), source)));
    }
    let json = folder.json(file::TOKENIZER_CONFIG)?;
    let source = match json.as_ref().and_then(|json| json.get("chat_template")) {
        Some(Value::String(source)) => Some(source.as_str()),
        Some(Value::Array(templates)) => templates
            .iter()
            .find(|template| template.get("name").and_then(Value::as_str) == Some("default"))
            .and_then(|template| template.get("template")?.as_str()),
        Some(Value::Object(templates)) => templates.get("default").and_then(Value::as_str),
        _ => None,
    };
    Ok(source.map(|source| (folder.file(file::TOKENIZER_CONFIG), source.to_owned())))
}
