//! How a vocabulary spells text, and which entry is exactly a given label. It belongs to
//! `TextCodec::label`.
//!
//! A label must be one entry with exactly its bytes. Tokenising the label would not find that out:
//! tokenizers add spaces, normalise, and may split what is an entry of its own.
//!
//! | spelling | found in | `" é"` is spelt |
//! |---|---|---|
//! | [`Spelling::ByteLevel`] | GPT-2, Llama 3, Qwen | `ĠÃ©` |
//! | [`Spelling::Spaces`] | SentencePiece: Llama 2, Gemma | `▁é` |

use judge_core::request::TokenId;
use serde_json::Value;
use tokenizers::{Model, Tokenizer};

/// How a vocabulary writes text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// One printable character for each byte, as in GPT-2; see [`byte_character`].
    ByteLevel,
    /// As it is, but for spaces, which are this character, mostly `▁` (U+2581). Bytes that no entry
    /// covers are entries of the form `<0xXX>`.
    Spaces(char),
}

impl Spelling {
    /// What a `tokenizer.json` says: [`ByteLevel`](Self::ByteLevel) if any part of its normalizer,
    /// pre-tokenizer or decoder is of that type. Otherwise spaces are the replacement of its
    /// `Metaspace`, or `▁` where there is none.
    pub(super) fn of(json: &Value) -> Self {
        let all = ["normalizer", "pre_tokenizer", "decoder"].iter().filter_map(|part| json.get(part));
        let parts: Vec<&Value> = all.flat_map(parts).collect();
        let first = |wanted: &str| parts.iter().find(|part| kind(part) == wanted);
        if first("ByteLevel").is_some() {
            return Self::ByteLevel;
        }
        let replacement =
            first("Metaspace").and_then(|metaspace| metaspace.get("replacement")?.as_str()?.chars().next());
        Self::Spaces(replacement.unwrap_or('▁'))
    }

    /// The entry whose bytes are exactly those of `text`. Tried in this order; special tokens never
    /// count:
    ///
    /// 1. an entry of the model's own vocabulary,
    /// 2. an added token with this text,
    /// 3. for a single byte under [`Spaces`](Self::Spaces), its byte-fallback entry.
    pub(super) fn find(self, tokenizer: &Tokenizer, text: &str) -> Option<TokenId> {
        let model = tokenizer.get_model();
        let entry = match self {
            Self::ByteLevel => Some(text.bytes().map(byte_character).collect::<String>()),
            // Text that has the stand-in for a space itself cannot be told from text with a space.
            Self::Spaces(space) => (!text.contains(space)).then(|| text.replace(' ', &space.to_string())),
        };
        let fallback = match (self, text.as_bytes()) {
            (Self::Spaces(_), [byte]) => Some(format!("<0x{byte:02X}>")),
            _ => None,
        };
        let added = tokenizer.get_added_vocabulary();
        let as_added = added.get_vocab().get(text).copied().filter(|_| !added.is_special_token(text));
        let ordinary = |entry: String| model.token_to_id(&entry).filter(|_| !added.is_special_token(&entry));
        entry.and_then(ordinary).or(as_added).or_else(|| fallback.and_then(ordinary))
    }
}

/// The character that stands for a byte in GPT-2's `bytes_to_unicode`: the byte itself where it is
/// printable and no space, else the next free one from U+0100 on, in the order of the bytes. A
/// space (the 33rd such byte) is `Ġ`, U+0120.
pub(super) fn byte_character(byte: u8) -> char {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return byte.into();
    }
    let number = (0..byte).filter(|&b| !printable(b)).count() as u32;
    // 68 bytes are not printable, so this is at most U+0143.
    char::from_u32(0x100 + number).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The parts of a normalizer, pre-tokenizer or decoder of a `tokenizer.json`: itself, or those of a sequence.
pub(super) fn parts(part: &Value) -> Vec<&Value> {
    let list = ["normalizers", "pretokenizers", "decoders"].iter().find_map(|list| part.get(list)?.as_array());
    list.map_or_else(|| vec![part], |list| list.iter().flat_map(parts).collect())
}

/// The `type` of a part.
pub(super) fn kind(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}
