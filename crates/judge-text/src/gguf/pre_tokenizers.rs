//! How text is cut before merges, by the names that `tokenizer.ggml.pre` has.
//!
//! The table is that of llama.cpp (`llama-vocab.cpp`), as far as families here use it; the patterns are
//! in `made/patterns.rs`. A name that is not in it is refused: cut otherwise, text would have other
//! tokens than the model has learned, without a word.
//!
//! So is a file without a name, and the name `default`. Files that were made before the key came (April 2024) have none, and
//! converters write `default` where they do not know the tokenizer. llama.cpp then cuts by four patterns of its own, and warns;
//! no model was trained so.

use judge_weights::gguf::problem::GgufProblem;
use serde_json::{Value, json};

use crate::made::patterns::{GPT4O, LLAMA3, QWEN2, QWEN35, TEKKEN};
use crate::made::{byte_level, split};

/// How text is cut into what merges do not cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// By GPT-2's pattern, which the crate `tokenizers` knows.
    Gpt2,
    /// Every digit by itself, then as GPT-2.
    Digits,
    /// By this pattern.
    By(&'static str),
}

/// How a tokenizer of byte-level BPE differs from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PreTokenizer {
    /// How text is cut.
    cut: Cut,
    /// Whether a piece that is an entry is taken as it is, without merges.
    pub(super) ignore_merges: bool,
    /// Whether text is put into Unicode's composed form (NFC) first.
    is_composed: bool,
    /// Whether a BOS goes before text where the file does not say.
    pub(super) adds_bos: bool,
}

/// The names that are read, and what to do about others.
const NAMES: &str = "gpt-2, smollm, starcoder, refact, command-r, exaone, exaone4, olmo, llama-bpe (and its like), dbrx, \
    smaug-bpe, glm4, chatglm-bpe, qwen2, deepseek-r1-qwen, qwen35, tekken, gpt-4o, llama4, kanana2 and lfm2: put the model's \
    tokenizer.json beside the file";

impl PreTokenizer {
    /// The pre-tokenizer of a name; the name is empty where the file has none.
    ///
    /// # Errors
    /// [`GgufProblem::NotRead`] for a name that is not read, or says nothing.
    pub(super) fn named(name: &str) -> Result<Self, GgufProblem> {
        let plain = |cut| Self { cut, ignore_merges: false, is_composed: false, adds_bos: false };
        Ok(match name {
            "gpt-2" | "gpt2" | "olmo" | "exaone4" => plain(Cut::Gpt2),
            "smollm" | "starcoder" | "refact" | "exaone" | "codeshell" | "minerva-7b" => plain(Cut::Digits),
            "command-r" => Self { is_composed: true, ..plain(Cut::Digits) },
            "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0" | "lfm2" => {
                Self { ignore_merges: true, adds_bos: true, ..plain(Cut::By(LLAMA3)) }
            }
            "dbrx" | "smaug-bpe" | "glm4" | "chatglm-bpe" => plain(Cut::By(LLAMA3)),
            "qwen2" => Self { is_composed: true, ..plain(Cut::By(QWEN2)) },
            "deepseek-r1-qwen" | "megrez" => plain(Cut::By(QWEN2)),
            "qwen35" => Self { is_composed: true, ..plain(Cut::By(QWEN35)) },
            "tekken" => Self { ignore_merges: true, adds_bos: true, ..plain(Cut::By(TEKKEN)) },
            "gpt-4o" | "llama4" | "kanana2" => plain(Cut::By(GPT4O)),
            "" | "default" => {
                let what = match name {
                    "" => "a vocabulary of bytes without tokenizer.ggml.pre, which says how text is cut,",
                    _ => "the pre-tokenizer \"default\" (tokenizer.ggml.pre), which stands for none that is known,",
                };
                let read = "files that name theirs: put the model's tokenizer.json beside the file";
                return Err(GgufProblem::NotRead { what: what.to_owned(), read });
            }
            _ => {
                let what = format!("the pre-tokenizer {name:?} (tokenizer.ggml.pre)");
                return Err(GgufProblem::NotRead { what, read: NAMES });
            }
        })
    }

    /// `normalizer` of a `tokenizer.json`.
    pub(super) fn normalizer(self) -> Value {
        if self.is_composed { json!({ "type": "NFC" }) } else { Value::Null }
    }

    /// `pre_tokenizer` of a `tokenizer.json`.
    pub(super) fn json(self) -> Value {
        let all = |cuts: [Value; 2]| json!({ "type": "Sequence", "pretokenizers": cuts });
        match self.cut {
            Cut::Gpt2 => byte_level(false, true),
            Cut::Digits => all([json!({ "type": "Digits", "individual_digits": true }), byte_level(false, true)]),
            Cut::By(pattern) => all([split(pattern), byte_level(false, false)]),
        }
    }
}
