//! The names of the files that say how texts become tokens. What is done with each is said by the table of a folder's files in
//! `judge-models` (`folder/file.rs`).

/// The description of the model.
pub const CONFIG: &str = "config.json";
/// The tokenizer, in the format of the crate `tokenizers`.
pub const TOKENIZER: &str = "tokenizer.json";
/// A tokenizer as SentencePiece writes it; read where there is no `tokenizer.json`.
pub const SENTENCEPIECE: &str = "tokenizer.model";
/// The same of XLM-RoBERTa.
pub const SENTENCEPIECE_XLM_R: &str = "sentencepiece.bpe.model";
/// The same of DeBERTa v2.
pub const SENTENCEPIECE_DEBERTA: &str = "spm.model";
/// The files of SentencePiece that are read.
pub const OF_SENTENCEPIECE: [&str; 3] = [SENTENCEPIECE, SENTENCEPIECE_XLM_R, SENTENCEPIECE_DEBERTA];
/// Tokens beside the vocabulary, by their text; read where `tokenizer_config.json` lists none.
pub const ADDED_TOKENS: &str = "added_tokens.json";
/// transformers' settings of the tokenizer; may hold the chat template.
pub const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
/// The chat template as one of several files; wins over the others. Beside it are templates of other names.
pub const DEFAULT_CHAT_TEMPLATE: &str = "additional_chat_templates/default.jinja";
/// The chat template as a file of its own; wins over that of `tokenizer_config.json`.
pub const CHAT_TEMPLATE: &str = "chat_template.jinja";
/// The template of a processor of images and sounds; it is kept beside the others and not read.
pub const CHAT_TEMPLATE_JSON: &str = "chat_template.json";
/// Named special tokens; read where there is no `tokenizer_config.json`, or one of the old kind.
pub const SPECIAL_TOKENS_MAP: &str = "special_tokens_map.json";
