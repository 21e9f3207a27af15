//! A `tokenizer.json` made of parts: for SentencePiece's files, for GGUF files, and for the classes of transformers that have rules of
//! their own.
//!
//! Readers bring a vocabulary, scores, the names of special tokens, and what is done before and after; this module knows how
//! a `tokenizer.json` says it.
//!
//! | file | owns |
//! |---|---|
//! | `around.rs` | the special tokens around a text and around a pair |
//! | `merges.rs` | the merges that entries imply, in three orders |
//! | `patterns.rs` | where families cut a text before merges |
//!
//! The order of fields is part of what is made: a merge writes the JSON of a GGUF file as it is.

mod around;
mod merges;
pub(crate) mod patterns;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use self::around::{Part, around};
pub(crate) use self::merges::{by_order, by_score, by_score_and_number};

/// SentencePiece's space.
pub(crate) const SPACE: &str = "▁";

/// A `tokenizer.json` without special tokens, and with nothing around a text.
pub(crate) fn tokenizer(model: Value, normalizer: Value, pre_tokenizer: Value, decoder: Value) -> Value {
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
        "decoder": decoder, "model": model, "added_tokens": [], "post_processor": null
    })
}

/// What differs between models of BPE, apart from vocabulary and merges.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bpe<'a> {
    /// The token of what has no entry.
    pub(crate) unknown: Option<&'a str>,
    /// Whether the affixes of words are empty, and not absent.
    pub(crate) has_empty_affixes: bool,
    /// Whether characters without an entry that follow each other are one unknown token.
    pub(crate) fuses_unknown: bool,
    /// Whether what has no entry becomes its bytes.
    pub(crate) falls_back: bool,
    /// Whether a piece that is an entry is taken as it is, without merges.
    pub(crate) ignores_merges: bool,
}

impl Bpe<'_> {
    /// `model` of a `tokenizer.json`.
    pub(crate) fn model(self, vocab: Value, merges: Value) -> Value {
        let affix = if self.has_empty_affixes { json!("") } else { Value::Null };
        json!({
            "type": "BPE", "dropout": null, "unk_token": self.unknown, "continuing_subword_prefix": affix,
            "end_of_word_suffix": affix, "fuse_unk": self.fuses_unknown, "byte_fallback": self.falls_back,
            "ignore_merges": self.ignores_merges, "vocab": vocab, "merges": merges
        })
    }
}

/// `vocab` of BPE and of WordPiece: entries by their numbers. Of those that are there twice the last one counts.
pub(crate) fn numbered<T: AsRef<str>>(entries: &[T]) -> Value {
    entries.iter().enumerate().map(|(id, entry)| (entry.as_ref().to_owned(), Value::from(id))).collect()
}

/// `model` of a `tokenizer.json` of unigrams with their scores. `unknown` must be the number of one of them: the crate `tokenizers`
/// would fail on a text otherwise.
pub(crate) fn unigram<T: Serialize>(pieces: &[(T, f64)], unknown: usize, falls_back: bool) -> Value {
    json!({ "type": "Unigram", "unk_id": unknown, "byte_fallback": falls_back, "vocab": pieces })
}

/// A tokenizer of unigrams with XLM-RoBERTa's rules: the file's table of characters, words apart, spaces as `▁` by this scheme.
pub(crate) fn unigram_of_words(model: Value, charsmap: &[u8], scheme: &str) -> Value {
    let cuts = json!({ "type": "Sequence", "pretokenizers": [{ "type": "WhitespaceSplit" }, metaspace(scheme, true)] });
    tokenizer(model, precompiled(charsmap).unwrap_or_default(), cuts, metaspace(scheme, true))
}

/// A tokenizer of WordPiece with the rules of BERT: lower case, no accents, Chinese characters by themselves.
pub(crate) fn word_piece<T: AsRef<str>>(pieces: &[T], unknown: &str) -> Value {
    let model = json!({
        "type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": numbered(pieces)
    });
    let normalizer = json!({
        "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true
    });
    let decoder = json!({ "type": "WordPiece", "prefix": "##", "cleanup": true });
    tokenizer(model, normalizer, json!({ "type": "BertPreTokenizer" }), decoder)
}

/// A text in the place of another.
pub(crate) fn replace(text: &str, by: &str) -> Value {
    json!({ "type": "Replace", "pattern": { "String": text }, "content": by })
}

/// A text in the place of what a regular expression matches.
pub(crate) fn replace_all(pattern: &str, by: &str) -> Value {
    json!({ "type": "Replace", "pattern": { "Regex": pattern }, "content": by })
}

/// Spaces as `▁`, with one before a text or none.
pub(crate) fn metaspace(scheme: &str, split: bool) -> Value {
    json!({ "type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split })
}

/// A cut around all that a regular expression matches.
pub(crate) fn split(pattern: &str) -> Value {
    json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false })
}

/// Bytes as characters, as GPT-2 has them.
pub(crate) fn byte_level(add_prefix_space: bool, use_regex: bool) -> Value {
    json!({ "type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": use_regex })
}

/// The decoder of entries with `▁` for spaces: those of bytes are joined where there are some, and a space that was put before a text is
/// taken off.
pub(crate) fn decoder_of_spaces(falls_back: bool, has_prefix: bool) -> Value {
    let mut decoders = vec![replace(SPACE, " ")];
    if falls_back {
        decoders.push(json!({ "type": "ByteFallback" }));
    }
    if falls_back || has_prefix {
        decoders.push(json!({ "type": "Fuse" }));
    }
    if has_prefix {
        decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    json!({ "type": "Sequence", "decoders": decoders })
}

/// The normaliser of SentencePiece's table of characters; `None` for an empty one.
pub(crate) fn precompiled(charsmap: &[u8]) -> Option<Value> {
    let text = BASE64_STANDARD.encode(charsmap);
    (!charsmap.is_empty()).then(|| json!({ "type": "Precompiled", "precompiled_charsmap": text }))
}
