//! How few tokens a text can have, known from its bytes: what is far too long for a model is not tokenised to find that out.

use serde_json::Value;
use tokenizers::Tokenizer;

use super::vocabulary::{byte_character, kind, parts};

/// The most bytes of text that one token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    bytes: usize,
    /// Whether some tokens take the white space beside them along, however much there is.
    takes_white_space: bool,
}

impl Bound {
    /// That of a tokenizer, whose JSON this is. None where a part of it may drop text or make one token of any number of characters.
    ///
    /// Left are byte-level BPE and BPE with byte fallback, with all bytes in the vocabulary, and normalizers and pre-tokenizers that drop nothing.
    pub(super) fn of(tokenizer: &Tokenizer, json: &Value) -> Option<Self> {
        let model = json.get("model")?;
        let vocabulary = model.get("vocab")?.as_object()?;
        let [normalizer, splitter] = ["normalizer", "pre_tokenizer"].map(|part| json.get(part).unwrap_or(&Value::Null));
        if model.get("type").is_some_and(|kind| kind != "BPE") || !model.get("merges")?.is_array() {
            return None;
        }
        let is_byte_level = has(normalizer, "ByteLevel") || has(splitter, "ByteLevel");
        let falls_back = model.get("byte_fallback") == Some(&Value::Bool(true));
        let has_all_bytes = (0..=u8::MAX).all(|byte| match is_byte_level {
            true => vocabulary.contains_key(&byte_character(byte).to_string()),
            false => falls_back && vocabulary.contains_key(&format!("<0x{byte:02X}>")),
        });
        if !has_all_bytes || !keeps_text(splitter) {
            return None;
        }
        let shrinks = shrinks(normalizer)?;
        let of_entry = |entry: &String| if is_byte_level { entry.chars().count() } else { entry.len() };
        let longest = vocabulary.keys().map(of_entry).max().unwrap_or(0);
        let added = tokenizer.get_added_tokens_decoder();
        let longest_added = added.values().map(|token| token.content.len()).max().unwrap_or(0);
        let takes_white_space = added.values().any(|token| token.lstrip || token.rstrip);
        Some(Self { bytes: shrinks * longest.max(longest_added).max(1), takes_white_space })
    }

    /// The least number of tokens that a text can have.
    pub(super) fn least(self, text: &str) -> usize {
        let bytes = match self.takes_white_space {
            true => text.chars().filter(|c| !c.is_whitespace()).map(char::len_utf8).sum(),
            false => text.len(),
        };
        bytes.div_ceil(self.bytes)
    }
}

fn has(part: &Value, wanted: &str) -> bool {
    parts(part).into_iter().any(|part| kind(part) == wanted)
}

/// Whether a pre-tokenizer keeps all of a text.
fn keeps_text(splitter: &Value) -> bool {
    parts(splitter).into_iter().all(|part| match kind(part) {
        "" => part.is_null(),
        "ByteLevel" | "Metaspace" | "Digits" => true,
        "Split" | "Punctuation" => part.get("behavior").is_some_and(|behavior| behavior != "Removed"),
        _ => false,
    })
}

/// How many times fewer bytes a normalizer may leave; none if any number of times.
fn shrinks(normalizer: &Value) -> Option<usize> {
    parts(normalizer).into_iter().try_fold(1, |all, part| {
        let of_part = match kind(part) {
            "" => part.is_null().then_some(1)?,
            "ByteLevel" | "Prepend" => 1,
            // Three letters of three bytes each become one Hangul syllable.
            "NFC" => 3,
            "Replace" => {
                let pattern = part.pointer("/pattern/String")?.as_str()?;
                (part.get("content")?.as_str()?.len() >= pattern.len()).then_some(1)?
            }
            _ => return None,
        };
        Some(all * of_part)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::{Error, Files, TextCodec, TextOptions};
    use judge_core::{Prompt, Reason};

    const KINDS: [&str; 3] = ["byte-level", "metaspace", "prepend"];

    fn codec(kind: &str, change: impl Fn(&mut Value)) -> TextCodec {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers").join(kind);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.json"), "{}").unwrap();
        fs::copy(fixture.join("tokenizer_config.json"), folder.path().join("tokenizer_config.json")).unwrap();
        let mut json = serde_json::from_slice(&fs::read(fixture.join("tokenizer.json")).unwrap()).unwrap();
        change(&mut json);
        fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
        TextCodec::load(&Files::open(folder.path()).unwrap(), &TextOptions::default()).unwrap()
    }

    #[test]
    fn no_text_has_fewer_tokens_than_is_said() {
        for kind in KINDS {
            let codec = codec(kind, |_| {});
            let bound = codec.bound.unwrap();
            for text in ["a", "the quality of the answer", "ä日本語🙂\u{301}", "   \n\n\t", "</s><s>", "0000000000"]
            {
                for times in [1, 7, 100] {
                    let text = text.repeat(times);
                    let ids = codec.encode(&Prompt::Raw(text.clone())).map_or(0, |ids| ids.len());
                    assert!(bound.least(&text) <= ids, "{kind}, {text:?}: {} and {ids}", bound.least(&text));
                }
            }
            // Long before that it is known to be too long for a small context.
            assert!(bound.least(&"x".repeat(1 << 20)) > 1 << 13, "{kind}: {bound:?}");
        }
    }

    #[test]
    fn where_a_token_may_stand_for_any_number_of_characters_there_is_no_bound() {
        let part = |kind: &str| serde_json::json!({"type": kind});
        for (place, value) in [
            ("normalizer", serde_json::json!({"type": "Strip", "strip_left": true, "strip_right": true})),
            ("normalizer", serde_json::json!({"type": "Sequence", "normalizers": [part("NFC"), part("NFKC")]})),
            ("pre_tokenizer", part("WhitespaceSplit")),
            (
                "pre_tokenizer",
                serde_json::json!({"type": "Sequence", "pretokenizers": [part("BertPreTokenizer"),
                {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true}]}),
            ),
        ] {
            assert_eq!(codec(KINDS[0], |json| json[place] = value.clone()).bound, None, "{value}");
        }
        let composed = codec(KINDS[0], |json| json["normalizer"] = part("NFC"));
        assert_eq!(composed.bound.unwrap().bytes, 3 * codec(KINDS[0], |_| {}).bound.unwrap().bytes);
        let strips = codec(KINDS[0], |json| json["added_tokens"][0]["rstrip"] = true.into());
        assert_eq!(strips.bound.unwrap().least(&" ".repeat(1 << 20)), 0);
    }

    #[test]
    fn what_is_far_too_long_is_not_tokenised() {
        let codec = codec(KINDS[0], |_| {});
        for prompt in [Prompt::user("x".repeat(1 << 20)), Prompt::Raw("x".repeat(1 << 20))] {
            let Err(Error::Prompt { unscored }) = codec.encode_within(&prompt, 512) else { panic!("{prompt:?}") };
            assert_eq!(unscored.reason, Reason::TooLong);
            assert!(unscored.detail.starts_with("at least ") && unscored.detail.ends_with("the context has 512"));
        }
        let short = Prompt::user("x");
        assert_eq!(codec.encode_within(&short, 512).unwrap(), codec.encode(&short).unwrap());
    }
}
