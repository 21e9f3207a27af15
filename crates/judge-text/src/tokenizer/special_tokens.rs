//! Special tokens and the chat template, as the small JSON files of a folder tell of them:
//! `tokenizer_config.json`, `special_tokens_map.json`, `added_tokens.json`, `chat_template.jinja` and
//! `additional_chat_templates/default.jinja`.
//!
//! `TextCodec::load` reads a [`SpecialTokens`], adds its tokens to the tokenizer
//! ([`SpecialTokens::add_to`]), and asks what goes around a text ([`Surround::of`]). The
//! template then sees the named tokens. Everything follows transformers 5.23
//! (`PreTrainedTokenizerBase._from_pretrained` and `TokenizersBackend.__init__`), which does the same when
//! it loads a folder. Which tokens are control tokens is decided in `literal.rs`.
//!
//! All fields are optional, and fields of an unexpected kind are passed over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use judge_core::request::TokenId;
use judge_weights::error::Error;
use serde_json::Value;
use tokenizers::{AddedToken, Encoding, Token, Tokenizer};

use crate::file;
use crate::files::Files;

/// The names under which a tokenizer and its template know special tokens.
const NAMES: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// Where tokens are listed by their numbers. A folder without it is of the old kind, with files beside it.
const DECODER: &str = "added_tokens_decoder";

/// Where further special tokens are by name, of any name.
const MODEL_SPECIFIC: &str = "model_specific_special_tokens";

/// Where further special tokens are: a list, or an object of names.
const EXTRA: &str = "extra_special_tokens";

/// The same by its older name, which counts where the newer is not there.
const ADDITIONAL: &str = "additional_special_tokens";

/// What the small JSON files say of special tokens. Empty if there are none.
#[derive(Debug, Default)]
pub(super) struct SpecialTokens {
    /// Text by name, such as `bos_token`: those of [`NAMES`], and further ones. Templates see these.
    named: BTreeMap<String, String>,
    /// The same as tokens: when the name came, and the token with the way it matches.
    tokens: BTreeMap<String, (usize, AddedToken)>,
    /// `added_tokens_decoder`, or else `added_tokens.json`: tokens by their id, with the way they match. They are added in the
    /// order of their ids.
    added: BTreeMap<u64, AddedToken>,
    /// Whether these are of `added_tokens.json`, before which the tokenizer's own tokens of the same ids count.
    is_added_of_old: bool,
    /// Special tokens without a name: those of the lists.
    extra: Vec<AddedToken>,
    /// Whether they are of [`ADDITIONAL`] for want of the newer one.
    is_extra_of_old: bool,
    /// Names that a file gives as null: there is no such token, whatever the class has.
    nulls: BTreeSet<&'static str>,
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

impl Surround {
    /// What the post-processor puts around a text: one that is a single token, with an id that no vocabulary has.
    ///
    /// `add_bos_token` and `add_eos_token` of `tokenizer_config.json` do not count: transformers drops them where there is a
    /// `tokenizer.json`.
    ///
    /// # Errors
    /// Also if the post-processor does not have the text once.
    pub(super) fn of(tokenizer: &Tokenizer) -> tokenizers::Result<Self> {
        const TEXT: TokenId = TokenId::MAX;
        let text = Encoding::from_tokens(vec![Token::new(TEXT, String::new(), (0, 0))], 0);
        let all = tokenizer.post_process(text, None, true)?;
        let parts: Vec<&[TokenId]> = all.get_ids().split(|&id| id == TEXT).collect();
        match parts[..] {
            [before, after] => Ok(Self { before: before.to_vec(), after: after.to_vec() }),
            _ => Err("the post-processor does more than put tokens around a text".into()),
        }
    }
}

/// Whether the post-processor gives the two texts of a pair other types.
///
/// # Errors
/// Those of the post-processor.
pub(super) fn tells_apart(tokenizer: &Tokenizer) -> tokenizers::Result<bool> {
    let text = || Encoding::from_tokens(vec![Token::new(0, String::new(), (0, 0))], 0);
    let both = tokenizer.post_process(text(), Some(text()), true)?;
    Ok(both.get_type_ids().iter().any(|&kind| kind != 0))
}

impl SpecialTokens {
    /// Reads `config`, which is `tokenizer_config.json`, and, where there is none or it is of the old kind without
    /// `added_tokens_decoder`, `special_tokens_map.json`, whose fields win, and `added_tokens.json`.
    ///
    /// # Errors
    /// Only for files that are there and cannot be read, or are no JSON.
    pub(super) fn read(files: &Files, config: &Value) -> Result<Self, Error> {
        let mut special = Self::default();
        let decoder = config.get(DECODER).and_then(Value::as_object);
        let map = match decoder {
            Some(_) => Value::Null,
            None => files.json(file::SPECIAL_TOKENS_MAP)?.unwrap_or_default(),
        };
        for name in NAMES {
            let token = map.get(name).or_else(|| config.get(name));
            if token.is_some_and(Value::is_null) {
                special.nulls.insert(name);
            }
            special.name(name, token);
        }
        // Further names, such as `image_token`. Those that `tokenizer_config.json` has as texts come last, and win.
        let further = |(name, _): &(&String, &Value)| name.ends_with("_token") && !NAMES.contains(&name.as_str());
        let is_token = |token: &Value| token.get("__type").is_some_and(|kind| kind == "AddedToken");
        let objects = fields(config).filter(|(_, token)| is_token(token));
        let texts = fields(config).filter(|(_, token)| token.is_string());
        let has_texts = texts.clone().any(|field| further(&field));
        for (name, token) in objects.chain(fields(&map)).chain(texts).filter(further) {
            special.name(name, Some(token));
        }
        let (newer, older) = match (config.get(EXTRA), config.get(ADDITIONAL)) {
            (newer, Some(older)) if newer.is_none_or(is_empty) => (Some(older), None),
            both => both,
        };
        // transformers drops these where the same file has named ones of another kind.
        let has_names = has_texts || newer.into_iter().chain(older).any(|names| fields(names).next().is_some());
        if let (Some(names), false) = (config.get(MODEL_SPECIFIC), has_names) {
            for (name, token) in fields(names) {
                special.name(name, Some(token));
            }
        }
        let older = map.get(ADDITIONAL).or(older);
        let newer: Vec<&Value> = newer.into_iter().chain(map.get(EXTRA)).collect();
        for (name, token) in newer.iter().flat_map(|names| fields(names)) {
            special.name(name, Some(token));
        }
        // Names in the later file are there in the place of a list in the earlier one.
        let is_listed = newer.last().is_some_and(|last| !last.is_object());
        if is_listed {
            special.extra = newer.into_iter().flat_map(listed).collect();
        }
        match decoder {
            Some(tokens) => {
                for (id, token) in tokens {
                    if let (Ok(id), Some(token)) = (id.parse(), added_token(token, false)) {
                        special.added.insert(id, token);
                    }
                }
            }
            None => special.add_of_old(added_tokens(files, config)?.as_ref()),
        }
        if let (Some(older), false) = (older, is_listed) {
            special.extra = listed(older).collect();
            special.is_extra_of_old = true;
            for (name, token) in fields(older) {
                special.name(name, Some(token));
            }
        }
        Ok(special)
    }

    /// Takes the tokens of `added_tokens.json`: special ones are those that have been told of so far.
    fn add_of_old(&mut self, file: Option<&Value>) {
        let named = NAMES.iter().filter_map(|name| self.named.get(*name));
        let special: BTreeSet<&String> = named.chain(self.extra.iter().map(|token| &token.content)).collect();
        let added = file
            .into_iter()
            .flat_map(fields)
            .filter_map(|(text, id)| Some((id.as_u64()?, AddedToken::from(text.as_str(), special.contains(text)))));
        self.added = added.collect();
        self.is_added_of_old = true;
    }

    /// Names tokens, with their texts, unless the folder names another, or says that there is none.
    pub(super) fn default_names(&mut self, names: &[(&str, &str)]) {
        for &(name, text) in names {
            if !self.named.contains_key(name) && !self.nulls.contains(name) {
                self.put(name, AddedToken::from(text, true));
            }
        }
    }

    /// Adds tokens without a name unless the folder has some by the newer name of their list.
    pub(super) fn default_extra(&mut self, tokens: Vec<AddedToken>) {
        if self.extra.is_empty() || self.is_extra_of_old {
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

    /// Adds to the tokenizer what only the small files know, as transformers does: the tokens with ids, then every
    /// named token, which is special from then on, and the ones without a name. A token that the tokenizer knows by then
    /// keeps the way it matches.
    pub(super) fn add_to(&self, tokenizer: &mut Tokenizer) -> tokenizers::Result<()> {
        let own = self.is_added_of_old.then(|| tokenizer.get_added_tokens_decoder());
        let own: BTreeSet<u64> = own.into_iter().flatten().map(|(id, _)| id.into()).collect();
        let added = self.added.iter().filter(|(id, _)| !own.contains(*id)).map(|(_, token)| token.clone());
        tokenizer.add_tokens(added)?;
        let known = tokenizer.get_added_tokens_decoder();
        let known: HashMap<&str, &AddedToken> = known.values().map(|token| (token.content.as_str(), token)).collect();
        let mut others: Vec<_> = self.tokens.iter().filter(|(name, _)| !NAMES.contains(&name.as_str())).collect();
        others.sort_by_key(|(_, (place, _))| *place);
        let others = others.into_iter().map(|(_, named)| named);
        let named = NAMES.iter().filter_map(|name| self.tokens.get(*name)).chain(others);
        let named =
            named.map(|(_, token)| (*known.get(token.content.as_str()).unwrap_or(&token)).clone().special(true));
        let extra = self.extra.iter().filter(|token| !known.contains_key(token.content.as_str())).cloned();
        tokenizer.add_special_tokens(named.chain(extra))?;
        Ok(())
    }

    /// Records a named token, if `token` is one. A later call replaces that of an earlier one.
    fn name(&mut self, name: &str, token: Option<&Value>) {
        if let Some(token) = token.and_then(|token| added_token(token, true)) {
            self.put(name, token);
        }
    }

    /// Records a named token. Its name keeps the place that it has, if it has one.
    fn put(&mut self, name: &str, token: AddedToken) {
        self.named.insert(name.to_owned(), token.content.clone());
        let place = self.tokens.get(name).map_or(self.tokens.len(), |(place, _)| *place);
        self.tokens.insert(name.to_owned(), (place, token));
    }
}

/// `added_tokens.json`, where it is read: tokens by their text, of folders that have no `added_tokens_decoder`. `config` is
/// `tokenizer_config.json`.
///
/// # Errors
/// Only for a file that is there and cannot be read, or is no JSON.
pub fn added_tokens(files: &Files, config: &Value) -> Result<Option<Value>, Error> {
    let is_old = !config.get(DECODER).is_some_and(Value::is_object);
    if is_old { files.json(file::ADDED_TOKENS) } else { Ok(None) }
}

/// The fields of an object; none of anything else.
fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> + Clone {
    value.as_object().into_iter().flatten()
}

/// The special tokens of a list; none of anything else.
fn listed(value: &Value) -> impl Iterator<Item = AddedToken> {
    value.as_array().into_iter().flatten().filter_map(|token| added_token(token, true))
}

/// Whether Python takes a list of tokens for none.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(tokens) => tokens.is_empty(),
        Value::Object(tokens) => tokens.is_empty(),
        other => other.is_null(),
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

/// The chat template and the file it is in: `additional_chat_templates/default.jinja`, else `chat_template.jinja`, else
/// `tokenizer_config.json`. Of several named templates it is the one called `default`. `None` if no file has one, and where
/// `additional_chat_templates` has templates of other names alone: transformers then takes none of `tokenizer_config.json`.
/// A `chat_template.json` belongs to a processor of images and sounds; transformers' tokenizers do not read it.
pub(super) fn template_source(files: &Files) -> Result<Option<(PathBuf, String)>, Error> {
    for name in [file::DEFAULT_CHAT_TEMPLATE, file::CHAT_TEMPLATE] {
        if let Some(source) = files.text(name)? {
            return Ok(Some((files.file(name), source)));
        }
    }
    if beside_the_default(files.folder()).is_some() {
        return Ok(None);
    }
    let source = match files.json(file::TOKENIZER_CONFIG)?.as_ref().and_then(|json| json.get("chat_template")) {
        Some(Value::String(source)) => Some(source.clone()),
        // Of several of one name the last counts.
        Some(named) => templates(named).rfind(|(name, _)| *name == "default").and_then(|(_, source)| source),
        None => None,
    };
    Ok(source.map(|source| (files.file(file::TOKENIZER_CONFIG), source)))
}

/// The chat template that a folder has, as its file has it; `None` if it has none that counts.
///
/// # Errors
/// Those of reading the files.
pub fn chat_template(files: &Files) -> Result<Option<String>, Error> {
    Ok(template_source(files)?.map(|(_, source)| source))
}

/// The templates of `tokenizer_config.json` that have names, with their texts: a list, or an object.
fn templates(named: &Value) -> impl DoubleEndedIterator<Item = (&str, Option<String>)> {
    let text = |template: &Value| template.as_str().map(str::to_owned);
    let listed = named.as_array().into_iter().flatten();
    let listed = listed.filter_map(move |named| Some((named.get("name")?.as_str()?, text(named.get("template")?))));
    listed.chain(named.as_object().into_iter().flatten().map(move |(name, template)| (name.as_str(), text(template))))
}

/// Where there are chat templates of other names than that of the default alone, and these names. `settings` are
/// `tokenizer_config.json`.
pub(super) fn other_templates(files: &Files, settings: &Value) -> Option<(PathBuf, String)> {
    beside_the_default(files.folder()).or_else(|| {
        let named = settings.get("chat_template").into_iter().flat_map(templates);
        let names: Vec<&str> = named.map(|(name, _)| name).collect();
        (!names.is_empty()).then(|| (files.file(file::TOKENIZER_CONFIG), names.join(", ")))
    })
}

/// The folder of several chat templates and the names of its files, if it has any.
fn beside_the_default(folder: &Path) -> Option<(PathBuf, String)> {
    let path = folder.join(file::DEFAULT_CHAT_TEMPLATE).parent()?.to_owned();
    let files = fs::read_dir(&path).ok()?.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = files.filter(|name| name.ends_with(".jinja")).collect();
    names.sort();
    (!names.is_empty()).then(|| (path, names.join(", ")))
}
