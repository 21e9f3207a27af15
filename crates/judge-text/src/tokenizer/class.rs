//! Tokenizers that transformers builds from their class.
//!
//! Of `tokenizer.json`, transformers 5 takes only the vocabulary, the merges, the post-processor and the added tokens where the folder's
//! tokenizer has a class with rules of its own: how a text is normalised and cut before the merges is then up to the class, whatever the
//! file says. Three such classes are those of Llama, Gemma and Qwen models. [`class_of_folder`] tells which class it would
//! take, and [`Class::rewrite`] gives the file's JSON that class's rules. Everything else is read as the file says.

use judge_weights::error::Error;
use serde_json::{Value, json};

use crate::file;
use crate::files::Files;
use crate::made::patterns::{QWEN2, QWEN35};
use crate::made::{self, Bpe, SPACE};

/// A class whose rules replace those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// `LlamaTokenizer`.
    Llama,
    /// `GemmaTokenizer`.
    Gemma,
    /// `Qwen2Tokenizer`.
    Qwen2,
    /// `Qwen3_5Tokenizer`.
    Qwen3_5,
}

impl Class {
    /// The class of this name, if it is one of these.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "LlamaTokenizer" => Self::Llama,
            "GemmaTokenizer" => Self::Gemma,
            "Qwen2Tokenizer" => Self::Qwen2,
            "Qwen3_5Tokenizer" => Self::Qwen3_5,
            _ => return None,
        })
    }

    /// Whether the class that a folder names counts: a few model types have one whatever the folder says.
    pub(super) fn is_named(files: &Files, tokenizer: &str) -> bool {
        let named = class_of_folder(files, &json!({"tokenizer_class": "PreTrainedTokenizerFast"}), tokenizer);
        named.and_then(|name| Self::of_name(&name)).is_none()
    }

    /// The special tokens that the class has where the folder names no others.
    pub(super) fn names(self) -> Names {
        names_of(&format!("{self:?}Tokenizer"))
    }

    /// Gives the parsed `tokenizer.json` the rules of this class. A file whose model is no BPE stays as it is.
    pub(super) fn rewrite(self, tokenizer: &mut Value, settings: &Value) {
        let flag = |name: &str| settings.get(name).and_then(Value::as_bool);
        let Some(fields) = tokenizer.as_object_mut() else { return };
        let Some(model) = fields.get_mut("model").and_then(Value::as_object_mut) else { return };
        if model.get("type").and_then(Value::as_str) != Some("BPE") {
            return;
        }
        let is_of_bytes = matches!(self, Self::Llama | Self::Gemma);
        let unknown = (self == Self::Gemma).then(|| token(settings, "unk_token").unwrap_or("<unk>"));
        let rules = Bpe {
            unknown,
            has_empty_affixes: !is_of_bytes,
            fuses_unknown: is_of_bytes,
            falls_back: is_of_bytes,
            ignores_merges: false,
        };
        let (vocab, merges) = (model.remove("vocab"), model.remove("merges"));
        let model = rules.model(vocab.unwrap_or_default(), merges.unwrap_or_default());
        fields.insert("model".to_owned(), model);
        let prefix = flag("add_prefix_space").unwrap_or(self == Self::Llama);
        let (normalizer, pre_tokenizer, decoder) = match self {
            Self::Llama => {
                let is_legacy = settings.get("legacy").is_some_and(|legacy| legacy.as_bool() == Some(true));
                let scheme = if !prefix {
                    "never"
                } else if is_legacy {
                    "always"
                } else {
                    "first"
                };
                (Value::Null, made::metaspace(scheme, false), made::decoder_of_spaces(true, prefix))
            }
            Self::Gemma => {
                let split = json!({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                                   "invert": false});
                (made::replace(" ", SPACE), split, made::decoder_of_spaces(true, false))
            }
            Self::Qwen2 | Self::Qwen3_5 => {
                // The later one takes marks (`\p{M}`) for letters.
                let pattern = if self == Self::Qwen2 { QWEN2 } else { QWEN35 };
                let cuts = [made::split(pattern), made::byte_level(prefix, false)];
                let cuts = json!({"type": "Sequence", "pretokenizers": cuts});
                (json!({"type": "NFC"}), cuts, made::byte_level(true, true))
            }
        };
        fields.insert("normalizer".to_owned(), normalizer);
        fields.insert("pre_tokenizer".to_owned(), pre_tokenizer);
        fields.insert("decoder".to_owned(), decoder);
    }
}

/// Special tokens by name.
type Names = &'static [(&'static str, &'static str)];

/// The special tokens that transformers has where the folder names no others, by its class; none for classes of encoders and those
/// that have none.
pub(super) fn names_of(class: &str) -> Names {
    match class {
        "LlamaTokenizer" => &[("bos_token", "<s>"), ("eos_token", "</s>"), ("unk_token", "<unk>")],
        "GemmaTokenizer" => &[
            ("bos_token", "<bos>"),
            ("eos_token", "<eos>"),
            ("unk_token", "<unk>"),
            ("pad_token", "<pad>"),
            ("mask_token", "<mask>"),
        ],
        "Qwen2Tokenizer" | "Qwen3_5Tokenizer" => {
            &[("eos_token", "<|endoftext|>"), ("unk_token", "<|endoftext|>"), ("pad_token", "<|endoftext|>")]
        }
        "GPT2Tokenizer" => {
            &[("bos_token", "<|endoftext|>"), ("eos_token", "<|endoftext|>"), ("unk_token", "<|endoftext|>")]
        }
        "GPTNeoXTokenizer" => &[
            ("bos_token", "<|endoftext|>"),
            ("eos_token", "<|endoftext|>"),
            ("unk_token", "<|endoftext|>"),
            ("pad_token", "<|padding|>"),
        ],
        "CohereTokenizer" => &[
            ("bos_token", "<BOS_TOKEN>"),
            ("eos_token", "<|END_OF_TURN_TOKEN|>"),
            ("unk_token", "<UNK>"),
            ("sep_token", "<SEP>"),
            ("pad_token", "<PAD>"),
            ("cls_token", "<CLS>"),
            ("mask_token", "<MASK_TOKEN>"),
        ],
        _ => &[],
    }
}

/// Whether transformers 5.24 gives a model the types of tokens (`token_type_ids`) where the folder does not say (`model_input_names`), by
/// its class.
pub(super) fn has_types(class: &str) -> bool {
    const GIVEN: [&str; 11] = [
        "Bert",
        "ConvBert",
        "DPRContextEncoder",
        "DPRQuestionEncoder",
        "Deberta",
        "DebertaV2",
        "Electra",
        "LayoutLM",
        "Lxmert",
        "MobileBert",
        "SqueezeBert",
    ];
    GIVEN.contains(&class.strip_suffix("Tokenizer").unwrap_or(class))
}

/// The name of the class that transformers 5.24 would build a folder's tokenizer from; `None` for one that takes
/// everything from the file.
///
/// A folder names its class in `tokenizer_config.json`, else in `config.json`; a model type has one registered for it. The folder's
/// name counts, but for model types whose folders are known to name a wrong one, and for those whose registered class has no rules.
///
/// `settings` are `tokenizer_config.json`, and `tokenizer` is the text of `tokenizer.json`.
pub(super) fn class_of_folder(files: &Files, settings: &Value, tokenizer: &str) -> Option<String> {
    if files.has_gguf() || settings.get("auto_map").is_some() {
        return None; // a GGUF file names its rules; code of a folder is never run
    }
    let text = |json: &Value, name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    let named = text(settings, "tokenizer_class").or_else(|| text(files.config(), "tokenizer_class"));
    let named = named.as_deref().map(|name| name.strip_suffix("Fast").unwrap_or(name));
    let model_type = text(files.config(), "model_type").unwrap_or_default();
    let (registered, overrides) = registered(&model_type);
    let is_byte_level = named == Some("LlamaTokenizer") && tokenizer.contains("\"ByteLevel\"");
    match (named, registered) {
        _ if is_byte_level && !overrides && registered != Some(Registered::NoRules) => None,
        (_, Some(Registered::Class(class))) if overrides || named.is_none() => Some(format!("{class:?}Tokenizer")),
        (None, Some(Registered::Other(name))) => Some(name.to_owned()),
        (Some(_), Some(Registered::NoRules)) | (None, _) => None,
        (Some(name), _) => Some(name.to_owned()),
    }
}

/// What transformers 5.24 makes the tokenizer of a SentencePiece file by, in a folder without `tokenizer.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// The settings of the file.
    File,
    /// Llama's class or Gemma's.
    Class(Class),
    /// `XLMRobertaTokenizer`.
    XlmRoberta,
    /// `DebertaV2Tokenizer`.
    DebertaV2,
}

impl Maker {
    /// The one for a folder's class, as [`class_of_folder`] tells it.
    ///
    /// # Errors
    /// `WeightsError::Unsupported` for any other class, and for a tokenizer with code of its own.
    pub(super) fn of_folder(files: &Files, settings: &Value) -> Result<Self, Error> {
        let supported = "LlamaTokenizer, GemmaTokenizer, XLMRobertaTokenizer, DebertaV2Tokenizer and TokenizersBackend beside \
            a SentencePiece model without tokenizer.json: load the tokenizer with AutoTokenizer of transformers and save it \
            with save_pretrained, which writes that file";
        let refused =
            |name: &str, field: &str, found: &str| Error::unsupported(files.file(name), field, found, supported);
        if settings.get("auto_map").is_some() {
            return Err(refused(file::TOKENIZER_CONFIG, "auto_map", "code of the folder's own"));
        }
        match class_of_folder(files, settings, "").as_deref() {
            None | Some("TokenizersBackend" | "PreTrainedTokenizer") => Ok(Self::File),
            Some("LlamaTokenizer") => Ok(Self::Class(Class::Llama)),
            Some("GemmaTokenizer") => Ok(Self::Class(Class::Gemma)),
            Some("XLMRobertaTokenizer") => Ok(Self::XlmRoberta),
            Some("DebertaV2Tokenizer") => Ok(Self::DebertaV2),
            Some(other) => {
                for (name, json) in [(file::TOKENIZER_CONFIG, settings), (file::CONFIG, files.config())] {
                    let said = json["tokenizer_class"].as_str();
                    if said.is_some_and(|said| said.strip_suffix("Fast").unwrap_or(said) == other) {
                        return Err(refused(name, "tokenizer_class", other));
                    }
                }
                let model_type = files.config()["model_type"].as_str().unwrap_or_default();
                Err(refused(file::CONFIG, "model_type", &format!("{model_type} ({other})")))
            }
        }
    }
}

/// The class that is registered for a model type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registered {
    /// One that takes its rules from the file.
    NoRules,
    /// One of these.
    Class(Class),
    /// Another one of this name with rules of its own, which are not known here.
    Other(&'static str),
}

/// The registered class, and whether it counts whatever the folder names. Nothing is registered for Llama and Gemma 4.
fn registered(model_type: &str) -> (Option<Registered>, bool) {
    use Registered::{NoRules, Other};
    let gemma = Some(Registered::Class(Class::Gemma));
    let qwen2 = Some(Registered::Class(Class::Qwen2));
    let qwen3_5 = Some(Registered::Class(Class::Qwen3_5));
    match model_type {
        "gemma" | "gemma2" | "gemma3" | "gemma3_text" => (gemma, false),
        "qwen2" => (qwen2, true),
        "qwen2_moe" | "qwen3" | "qwen3_moe" | "qwen3_vl" | "qwen3_vl_moe" | "qwen2_vl" | "qwen2_5_vl" | "internvl" => {
            (qwen2, false)
        }
        "qwen3_5" | "qwen3_5_moe" | "qwen3_5_moe_text" => (qwen3_5, true),
        "qwen3_5_text" => (qwen3_5, false),
        "internlm3" | "phi3" | "ernie4_5" | "smolvlm" | "modernbert" => (Some(NoRules), true),
        "mistral" | "mistral3" | "ministral3" | "mixtral" | "olmo2" | "olmo3" | "granite" | "granitemoehybrid"
        | "glm" | "glm4" | "glm4v" => (Some(NoRules), false),
        "phi" | "gpt2" => (Some(Other("GPT2Tokenizer")), false),
        "olmoe" | "gpt_neox" => (Some(Other("GPTNeoXTokenizer")), false),
        "cohere2" => (Some(Other("CohereTokenizer")), false),
        "bert" => (Some(Other("BertTokenizer")), false),
        "roberta" => (Some(Other("RobertaTokenizer")), false),
        "xlm-roberta" => (Some(Other("XLMRobertaTokenizer")), false),
        "deberta-v2" => (Some(Other("DebertaV2Tokenizer")), false),
        _ => (None, false),
    }
}

/// A token of `tokenizer_config.json`, written as its text or as an object.
fn token<'s>(settings: &'s Value, name: &str) -> Option<&'s str> {
    let token = settings.get(name)?;
    token.as_str().or_else(|| token.get("content")?.as_str())
}
