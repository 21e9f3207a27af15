//! The tokenizer that a file's keys stand for, as a `tokenizer.json` and a `tokenizer_config.json`.
//!
//! | `tokenizer.ggml.model` | becomes | merges |
//! |---|---|---|
//! | `gpt2` | BPE over bytes, cut as `tokenizer.ggml.pre` says (`pre_tokenizers.rs`) | those of the file |
//! | `llama` | BPE over characters with `▁` for spaces, and bytes for what has no entry | those that the scores imply |
//! | `gemma4` | the same | those of the file |
//! | `bert`, `t5` | WordPiece and unigrams of encoders (`encoder_tokenizers.rs`) | |
//! | `llama` of Gemma | the same; runs of spaces are entries, which the file spells as spaces | those that the order of entries implies |
//!
//! The merges that scores imply, and how a `tokenizer.json` says all this, are known by `made.rs`. transformers
//! has the same merges (`generate_merges`). The space before a text goes before each one that follows a control or user-defined token, as
//! in llama.cpp; transformers has it at the beginning alone, but for the architecture `phi3`.
//!
//! Entries of the type *control* are special tokens, and those that are *user-defined* are matched as a
//! whole in any text. So a file without types, or with too few, is refused: its control tokens would be plain text.
//! Gemma's runs of spaces are user-defined, and are not matched: the vocabulary has them as runs of `▁`, which merges
//! make. A token that the vocabulary lacks would get a number behind its end.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use judge_weights::gguf::file::GgufFile;
use judge_weights::gguf::problem::GgufProblem;
use serde_json::{Map, Value, json};

use super::encoder_tokenizers::{unigram, word_piece, word_pieces};
use super::ends::ends;
use super::pre_tokenizers::PreTokenizer;
use crate::made::{self, Bpe, Part, SPACE};

/// The types of entries that count here: unknown, control, user-defined.
const UNKNOWN: f64 = 2.0;
/// See [`UNKNOWN`].
const CONTROL: f64 = 3.0;
/// See [`UNKNOWN`].
const USER_DEFINED: f64 = 4.0;

/// The special tokens that have a name: theirs in `tokenizer_config.json`, and in a file.
const NAMES: [(&str, &str); 7] = [
    ("cls_token", "cls"),
    ("bos_token", "bos"),
    ("eos_token", "eos"),
    ("unk_token", "unknown"),
    ("sep_token", "seperator"),
    ("pad_token", "padding"),
    ("mask_token", "mask"),
];

/// The texts of a folder that a file has in its keys.
pub struct TextFiles {
    /// `tokenizer.json`.
    pub tokenizer: Value,
    /// `tokenizer_config.json`, with the chat template.
    pub tokenizer_config: Value,
    /// `generation_config.json`, with the tokens that end a text.
    pub generation_config: Value,
}

/// What a file says of its vocabulary.
struct Vocabulary<'a> {
    /// The entries, in the order of their numbers, as the `tokenizer.json` spells them.
    tokens: Vec<Cow<'a, str>>,
    /// Their types, one for each.
    types: Vec<f64>,
}

impl TextFiles {
    /// Makes them of a file.
    ///
    /// # Errors
    /// [`GgufProblem`] for a tokenizer of another kind, or one that lacks something.
    pub fn of(file: &GgufFile) -> Result<Self, GgufProblem> {
        let (header, bytes) = (&file.header, file.bytes());
        let missing = |name: &str, needed_for| GgufProblem::Missing { key: name.to_owned(), needed_for };
        let tokens = header
            .texts("tokenizer.ggml.tokens", bytes)
            .ok_or_else(|| missing("tokenizer.ggml.tokens", "a vocabulary, without a tokenizer.json"))?;
        let types = header.all_numbers("tokenizer.ggml.token_type", bytes).unwrap_or_default();
        if types.len() != tokens.len() {
            return Err(without_types(&tokens, types.len()));
        }
        let kind = header.text("tokenizer.ggml.model");
        let is_gemma = header.text("general.architecture").starts_with("gemma");
        let is_control = |id: usize| types.get(id) == Some(&CONTROL);
        let spelt: Vec<Cow<'_, str>> = match kind {
            "bert" => word_pieces(&tokens, is_control).into_iter().map(Cow::Owned).collect(),
            "llama" if is_gemma => tokens.iter().map(|token| spaces_marked(token)).collect(),
            "gemma4" => tokens.iter().map(|token| spaces_marked(token)).collect(),
            _ => tokens.iter().map(|token| Cow::Borrowed(*token)).collect(),
        };
        let vocabulary = Vocabulary { tokens: spelt, types };
        let flag = |name: &str| header.numbers(&format!("tokenizer.ggml.{name}")).map(|truth| truth == [1.0]);
        let id = |name: &str| header.whole(&format!("tokenizer.ggml.{name}_token_id"));
        let scores = || {
            let scores = header.all_numbers("tokenizer.ggml.scores", bytes);
            let scores = scores.filter(|scores| scores.len() == vocabulary.tokens.len());
            scores.ok_or_else(|| missing("tokenizer.ggml.scores", "the merges or the cuts, one for each entry"))
        };
        let (mut json, adds_bos) = match kind {
            "gpt2" => byte_level(file, &vocabulary)?,
            "llama" => {
                let has_prefix = flag("add_space_prefix").unwrap_or(!is_gemma);
                let ranks = if is_gemma { Ranks::Entries } else { Ranks::Scores(scores()?) };
                (sentence_piece(&vocabulary, ranks, has_prefix, id("unknown")), true)
            }
            // Its template writes the BOS, and transformers adds none, whatever `add_bos_token` says.
            "gemma4" => (sentence_piece(&vocabulary, Ranks::Merges(merges_of(file)?), false, id("unknown")), false),
            "bert" => {
                let unknown = id("unknown").and_then(|id| vocabulary.tokens.get(usize::try_from(id).ok()?));
                let is_control = |id| vocabulary.types.get(id) == Some(&CONTROL);
                (word_piece(&vocabulary.tokens, unknown.map(|token| &**token), is_control)?, true)
            }
            "t5" => {
                let unknown = id("unknown").and_then(|id| usize::try_from(id).ok());
                let unknown = unknown.or_else(|| vocabulary.types.iter().position(|kind| *kind == UNKNOWN));
                let map = header.all_numbers("tokenizer.ggml.precompiled_charsmap", bytes).unwrap_or_default();
                // Bytes, which some files have with a sign.
                let map: Vec<u8> = map.into_iter().map(|byte| byte as i64 as u8).collect();
                let has_prefix = flag("add_space_prefix").unwrap_or(true);
                (unigram(&vocabulary.tokens, &scores()?, unknown, has_prefix, &map)?, true)
            }
            other => {
                return Err(GgufProblem::NotRead {
                    what: format!("the tokenizer {other:?} (tokenizer.ggml.model)"),
                    read: "gpt2, llama, gemma4, bert and t5: put the model's tokenizer.json beside the file",
                });
            }
        };
        json["added_tokens"] = vocabulary.added(&tokens, is_phi3(file)).into();
        let around = |wanted: bool, name: &str| {
            id(name).filter(|_| wanted).and_then(|id| Some((id, &**vocabulary.tokens.get(usize::try_from(id).ok()?)?)))
        };
        let is_encoder = ["bert", "t5"].contains(&kind);
        let says = flag("add_bos_token").filter(|_| kind != "gemma4" && !is_encoder);
        // Files of some releases have BERT's two tokens under other names alone.
        let own = |name: &str| around(kind == "bert", name);
        let before = own("cls").or_else(|| around(says.unwrap_or(adds_bos), "bos"));
        let after = own("seperator").or_else(|| around(is_encoder || flag("add_eos_token").unwrap_or(false), "eos"));
        if is_encoder && (before.is_none() || after.is_none()) {
            let key = format!("tokenizer.ggml.{}_token_id", if before.is_none() { "bos" } else { "eos" });
            return Err(missing(&key, "what goes around a text of an encoder"));
        }
        json["post_processor"] = match is_encoder {
            true => post_processor_of_encoder(kind == "bert", before, after),
            false => post_processor(before, after),
        };
        let mut config = Map::new();
        for (name, key) in NAMES {
            if let Some(text) = around(true, key).map(|(_, text)| text) {
                config.insert(name.to_owned(), text.into());
            }
        }
        if let Some(template) = header.long_text("tokenizer.chat_template", bytes) {
            config.insert("chat_template".to_owned(), template.into());
        }
        let ends = ends(file);
        let generation_config = if ends.is_empty() { json!({}) } else { json!({ "eos_token_id": ends }) };
        Ok(Self { tokenizer: json, tokenizer_config: Value::Object(config), generation_config })
    }
}

/// Whether special tokens take the white space behind them, as Phi-3's do: llama.cpp knows it by the name,
/// since files do not say it.
fn is_phi3(file: &GgufFile) -> bool {
    file.header.text("general.architecture") == "phi3" && file.header.text("tokenizer.ggml.model") == "llama"
}

/// Gemma's runs of spaces, which files have as spaces.
fn spaces_marked(token: &str) -> Cow<'_, str> {
    match !token.is_empty() && token.bytes().all(|byte| byte == b' ') {
        true => SPACE.repeat(token.len()).into(),
        false => token.into(),
    }
}

/// The error of a file that does not say of each entry what it is. It names entries that look as if they were control tokens.
fn without_types(tokens: &[&str], types: usize) -> GgufProblem {
    /// Entries that are named.
    const SHOWN: usize = 3;
    let looks = |token: &&&str| token.len() > 2 && token.starts_with('<') && token.ends_with('>') && !is_byte(token);
    let named: Vec<String> = tokens.iter().filter(looks).take(SHOWN).map(|token| format!("{token:?}")).collect();
    let named = if named.is_empty() { String::new() } else { format!(" (such as {})", named.join(", ")) };
    let count = tokens.len();
    GgufProblem::NotRead {
        what: format!(
            "a vocabulary of {count} entries with {types} types (tokenizer.ggml.token_type), in which control tokens{named} would be \
            plain text,"
        ),
        read: "one with a type for each entry: put the model's tokenizer.json beside the file",
    }
}

/// Whether an entry is the one for a byte, `<0x0A>`.
fn is_byte(token: &str) -> bool {
    token.len() == 6 && token.starts_with("<0x")
}

impl Vocabulary<'_> {
    /// `added_tokens` of a `tokenizer.json`: what is matched as a whole. `file` has the entries as the file spells them; those
    /// that the vocabulary spells otherwise are not among these.
    fn added(&self, file: &[&str], takes_space: bool) -> Vec<Value> {
        let entries = self.tokens.iter().zip(&self.types).enumerate();
        let added = entries.filter(|(id, (token, kind))| {
            !token.is_empty() && *token == file[*id] && [UNKNOWN, CONTROL, USER_DEFINED].contains(kind)
        });
        added
            .map(|(id, (token, kind))| {
                let is_plain = ["<unk>", "<s>", "<|endoftext|>"].contains(&&**token);
                json!({
                    "id": id, "content": token, "single_word": false, "lstrip": false,
                    "rstrip": takes_space && *kind == CONTROL && !is_plain, "normalized": false,
                    "special": *kind != USER_DEFINED
                })
            })
            .collect()
    }
}

/// A tokenizer over bytes, and whether a BOS goes before text where the file does not say.
fn byte_level(file: &GgufFile, vocabulary: &Vocabulary<'_>) -> Result<(Value, bool), GgufProblem> {
    let pre = PreTokenizer::named(file.header.text("tokenizer.ggml.pre"))?;
    let merges = merges_of(file)?;
    let model = Bpe { ignores_merges: pre.ignore_merges, ..Bpe::default() };
    let model = model.model(made::numbered(&vocabulary.tokens), json!(merges));
    let json = made::tokenizer(model, pre.normalizer(), pre.json(), made::byte_level(false, true));
    Ok((json, pre.adds_bos))
}

/// The merges that a file has. Entries have no spaces, so that the first one divides the two halves.
fn merges_of(file: &GgufFile) -> Result<Vec<(&str, &str)>, GgufProblem> {
    let key = "tokenizer.ggml.merges".to_owned();
    let needed_for = "the tokenizer of tokenizer.ggml.model";
    let merges = file.header.texts(&key, file.bytes()).ok_or(GgufProblem::Missing { key, needed_for })?;
    Ok(merges.iter().filter_map(|merge| merge.split_once(' ')).collect())
}

/// What tells which pieces are joined first.
enum Ranks<'a> {
    /// The scores of the entries.
    Scores(Vec<f64>),
    /// Their order.
    Entries,
    /// The merges that the file has.
    Merges(Vec<(&'a str, &'a str)>),
}

/// A tokenizer of SentencePiece's BPE.
fn sentence_piece(vocabulary: &Vocabulary<'_>, ranks: Ranks<'_>, has_prefix: bool, unknown: Option<u64>) -> Value {
    let tokens = &vocabulary.tokens;
    let merges = match ranks {
        Ranks::Scores(scores) => made::by_score(tokens, &scores),
        Ranks::Entries => made::by_score(tokens, &(0..tokens.len()).map(|id| -(id as f64)).collect::<Vec<_>>()),
        Ranks::Merges(merges) => merges,
    };
    let unknown = unknown
        .and_then(|id| tokens.get(usize::try_from(id).ok()?))
        .or_else(|| tokens.iter().find(|token| **token == "<unk>"));
    let mut normalizer = made::replace(" ", SPACE);
    if has_prefix {
        normalizer =
            json!({ "type": "Sequence", "normalizers": [{ "type": "Prepend", "prepend": SPACE }, normalizer] });
    }
    let unknown = unknown.map(|token| &**token);
    let model = Bpe { unknown, fuses_unknown: true, falls_back: true, ..Bpe::default() };
    let model = model.model(made::numbered(tokens), json!(merges));
    made::tokenizer(model, normalizer, Value::Null, made::decoder_of_spaces(true, has_prefix))
}

/// What a special token is as a part of what goes around a text.
type Special<'a> = Option<(u64, &'a str)>;

/// `post_processor` of a `tokenizer.json`: the tokens around any text.
fn post_processor(before: Special<'_>, after: Special<'_>) -> Value {
    if before.is_none() && after.is_none() {
        return Value::Null;
    }
    let text = |name, kind| parts([special(before, kind), Some(Part::Text(name, kind)), special(after, kind)]);
    made::around(&text("A", 0), &[text("A", 0), text("B", 1)].concat())
}

/// The same for an encoder, whose pairs have tokens of their own: BERT's have one token between them and types,
/// XLM-RoBERTa's two and none.
fn post_processor_of_encoder(is_bert: bool, before: Special<'_>, after: Special<'_>) -> Value {
    let second = u8::from(is_bert);
    let between = special(after, 0).filter(|_| !is_bert);
    let single = parts([special(before, 0), Some(Part::Text("A", 0)), special(after, 0)]);
    let rest = parts([between, Some(Part::Text("B", second)), special(after, second)]);
    made::around(&single, &[&single[..], &rest[..]].concat())
}

fn special(token: Special<'_>, kind: u8) -> Option<Part<'_>> {
    token.map(|(id, text)| Part::Token(id, text, kind))
}

fn parts(all: [Option<Part<'_>>; 3]) -> Vec<Part<'_>> {
    all.into_iter().flatten().collect()
}
