//! The files of a model folder: their names, and one table that says what becomes of each.
//!
//! Readers name a file by a constant of this module, some of which are those of `judge-text` and `judge-weights`. What else is done with
//! files asks [`FILES`]: the hub's client (`hub/fetch.rs`) which to fetch, `merge.rs` and full tuning which to copy. So a file
//! that a reader asks for cannot be left behind by a writer: a test looks for every constant in the table.
//!
//! Not in the table, because no fixed name has them: shards, which their index names; `*.gguf`; and the adapter's folder that
//! `decision.json` or `judge_config.json` names (`decision/files.rs`).

pub(crate) use judge_text::file::{
    ADDED_TOKENS, CHAT_TEMPLATE, CHAT_TEMPLATE_JSON, CONFIG, DEFAULT_CHAT_TEMPLATE, OF_SENTENCEPIECE, SENTENCEPIECE,
    SENTENCEPIECE_DEBERTA, SENTENCEPIECE_XLM_R, SPECIAL_TOKENS_MAP, TOKENIZER, TOKENIZER_CONFIG,
};
pub(crate) use judge_weights::file::{
    ADAPTER_CONFIG, ADAPTER_PICKLE, ADAPTER_WEIGHTS, PICKLE, PICKLE_INDEX, WEIGHTS, WEIGHTS_INDEX,
};

/// Defaults of generation, of which only the end tokens are read.
pub(crate) const GENERATION_CONFIG: &str = "generation_config.json";
/// The files of which one says that a folder has weights by itself, but for GGUF.
pub(crate) const OF_WEIGHTS: [&str; 4] = [WEIGHTS, WEIGHTS_INDEX, PICKLE, PICKLE_INDEX];
/// LLaMA-Factory's reward head, beside the weights of a model or of an adapter.
pub(crate) const VALUE_HEAD: &str = "value_head.safetensors";
/// The same as torch.save writes it.
pub(crate) const VALUE_HEAD_PICKLE: &str = "value_head.bin";
/// Settings of any decision model: labels, temperatures, adapter.
pub(crate) const DECISION: &str = "decision.json";
/// The template of its prompt.
pub(crate) const DECISION_TEMPLATE: &str = "decision_template.jinja";
/// JEV: labels, offsets, soft cap, adapter.
pub(crate) const JEV: &str = "judge_config.json";
/// JEV: temperatures.
pub(crate) const JEV_CALIBRATION: &str = "calibration.json";
/// JEV: the head.
pub(crate) const JEV_HEAD: &str = "head.safetensors";
/// Codes: labels and temperature.
pub(crate) const CODES: &str = "decision_config.json";
/// Codes: the head.
pub(crate) const CODES_HEAD: &str = "readout.safetensors";
/// The files of which one says that a folder has something to say of decisions.
pub(crate) const OF_DECISIONS: [&str; 4] = [DECISION, DECISION_TEMPLATE, JEV, CODES];

/// The template that its judge was made for; folders without it are judged with a built-in one. No file of Hugging Face's.
pub const JUDGE_TEMPLATE: &str = "judge_template.json";

/// The modules of a model of sentence-transformers, in their order.
pub(crate) const MODULES: &str = "modules.json";
/// Its kind, its activation and its prompts.
pub(crate) const SENTENCE_TRANSFORMERS: &str = "config_sentence_transformers.json";
/// How it is tokenised.
pub(crate) const SENTENCE_BERT: &str = "sentence_bert_config.json";
/// The labels whose logits a reranker is read by.
pub(crate) const LOGIT_SCORE: &str = "1_LogitScore/config.json";
/// The files of which one says that a folder has something to say of reranking.
pub(crate) const OF_RERANKERS: [&str; 4] = [MODULES, SENTENCE_TRANSFORMERS, SENTENCE_BERT, LOGIT_SCORE];

/// What becomes of a file of a model folder.
pub(crate) struct FileRole {
    /// Its name in the folder.
    pub(crate) name: &'static str,
    /// Who reads it.
    pub(crate) reader: Reader,
    /// When the hub's client fetches it.
    pub(crate) fetched: Fetched,
    /// What a merge and full tuning do with it.
    pub(crate) written: Written,
}

/// Who reads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// `Model::load`: configuration, tokenizer, weights, value head.
    Model,
    /// The reader of adapters, and `base.rs`.
    Adapter,
    /// `decision/folder.rs`.
    Decisions,
    /// `rerank/folder.rs`.
    Rerankers,
    /// The program's commands.
    Program,
    /// Other programs alone.
    Others,
}

/// When the hub's client fetches a file that a repository offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// Always.
    Always,
    /// Unless the repository has this other file, which is read in its place.
    Without(&'static str),
    /// If the repository has this other file, which names it.
    With(&'static str),
    /// As one of the forms of weights, of which one is fetched.
    AsWeights,
    /// Never.
    Never,
}

impl Fetched {
    /// Whether the file is fetched for itself, from a folder of which `has` says what it has.
    pub(crate) fn applies(self, has: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Always => true,
            Self::Without(other) => !has(other),
            Self::With(other) => has(other),
            Self::AsWeights | Self::Never => false,
        }
    }
}

/// What a merge and full tuning do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is copied as it is.
    Copied,
    /// It is copied; if the adapter that it names is among those merged, it names none any more.
    WithoutMergedAdapter,
    /// The writer makes its own.
    Anew,
    /// It is left out.
    Never,
}

impl FileRole {
    const fn new(name: &'static str, reader: Reader, fetched: Fetched, written: Written) -> Self {
        Self { name, reader, fetched, written }
    }
}

/// Every file of a model folder that has a fixed name. The hub's client fetches in this order.
pub(crate) const FILES: [FileRole; 39] = [
    FileRole::new(CONFIG, Reader::Model, Fetched::Always, Written::Anew),
    FileRole::new(GENERATION_CONFIG, Reader::Model, Fetched::Always, Written::Copied),
    FileRole::new(TOKENIZER, Reader::Model, Fetched::Always, Written::Copied),
    FileRole::new(TOKENIZER_CONFIG, Reader::Model, Fetched::Always, Written::Copied),
    FileRole::new(SPECIAL_TOKENS_MAP, Reader::Model, Fetched::Always, Written::Copied),
    FileRole::new(CHAT_TEMPLATE, Reader::Model, Fetched::Always, Written::Copied),
    FileRole::new(DEFAULT_CHAT_TEMPLATE, Reader::Model, Fetched::Always, Written::Copied),
    FileRole::new(CHAT_TEMPLATE_JSON, Reader::Others, Fetched::Always, Written::Copied),
    FileRole::new(SENTENCEPIECE, Reader::Model, Fetched::Without(TOKENIZER), Written::Copied),
    FileRole::new(SENTENCEPIECE_XLM_R, Reader::Model, Fetched::Without(TOKENIZER), Written::Copied),
    FileRole::new(SENTENCEPIECE_DEBERTA, Reader::Model, Fetched::Without(TOKENIZER), Written::Copied),
    FileRole::new(ADDED_TOKENS, Reader::Model, Fetched::Always, Written::Copied),
    // So that `Folder::open` can say that what has the model's name is an adapter.
    FileRole::new(ADAPTER_CONFIG, Reader::Adapter, Fetched::Always, Written::Never),
    FileRole::new(ADAPTER_WEIGHTS, Reader::Adapter, Fetched::Never, Written::Never),
    FileRole::new(ADAPTER_PICKLE, Reader::Adapter, Fetched::Never, Written::Never),
    FileRole::new(VALUE_HEAD, Reader::Model, Fetched::Always, Written::Anew),
    FileRole::new(VALUE_HEAD_PICKLE, Reader::Model, Fetched::Without(VALUE_HEAD), Written::Anew),
    FileRole::new(DECISION, Reader::Decisions, Fetched::Always, Written::WithoutMergedAdapter),
    FileRole::new(DECISION_TEMPLATE, Reader::Decisions, Fetched::Always, Written::Copied),
    FileRole::new(JEV, Reader::Decisions, Fetched::Always, Written::WithoutMergedAdapter),
    FileRole::new(JEV_CALIBRATION, Reader::Decisions, Fetched::With(JEV), Written::Copied),
    FileRole::new(JEV_HEAD, Reader::Decisions, Fetched::With(JEV), Written::Copied),
    FileRole::new(CODES, Reader::Decisions, Fetched::Always, Written::Copied),
    FileRole::new(CODES_HEAD, Reader::Decisions, Fetched::With(CODES), Written::Copied),
    FileRole::new(JUDGE_TEMPLATE, Reader::Program, Fetched::Always, Written::Copied),
    FileRole::new(MODULES, Reader::Rerankers, Fetched::Always, Written::Copied),
    FileRole::new(SENTENCE_TRANSFORMERS, Reader::Rerankers, Fetched::Always, Written::Copied),
    FileRole::new(SENTENCE_BERT, Reader::Rerankers, Fetched::Always, Written::Copied),
    FileRole::new(LOGIT_SCORE, Reader::Rerankers, Fetched::With(MODULES), Written::Copied),
    FileRole::new(WEIGHTS, Reader::Model, Fetched::AsWeights, Written::Anew),
    FileRole::new(WEIGHTS_INDEX, Reader::Model, Fetched::AsWeights, Written::Anew),
    FileRole::new(PICKLE, Reader::Model, Fetched::AsWeights, Written::Never),
    FileRole::new(PICKLE_INDEX, Reader::Model, Fetched::AsWeights, Written::Never),
    FileRole::new("merges.txt", Reader::Others, Fetched::Never, Written::Copied),
    FileRole::new("vocab.json", Reader::Others, Fetched::Never, Written::Copied),
    FileRole::new("vocab.txt", Reader::Others, Fetched::Never, Written::Copied),
    FileRole::new("LICENSE", Reader::Others, Fetched::Never, Written::Copied),
    FileRole::new("LICENSE.md", Reader::Others, Fetched::Never, Written::Copied),
    FileRole::new("LICENSE.txt", Reader::Others, Fetched::Never, Written::Copied),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every name that a reader can ask for is in the table: readers know names by the constants of this file alone.
    #[test]
    fn every_name_that_a_reader_asks_for_is_in_the_table() {
        let in_table: BTreeSet<&str> = FILES.iter().map(|role| role.name).collect();
        assert_eq!(in_table.len(), FILES.len(), "a name has one row");
        let of_texts = include_str!("../../../judge-text/src/file.rs");
        let source = [include_str!("file.rs"), of_texts, include_str!("../../../judge-weights/src/file.rs")].concat();
        let constants = source.lines().filter_map(|line| {
            let (_, value) = line.split_once("const ")?.1.split_once(": &str = \"")?;
            value.strip_suffix("\";")
        });
        let constants: Vec<&str> = constants.collect();
        assert!(constants.len() >= 27, "{constants:?}");
        for name in constants {
            assert!(in_table.contains(name), "{name}");
        }
    }

    /// What the model reads is fetched and written, one way or another; so is what says how it decides.
    #[test]
    fn what_the_model_reads_is_fetched_and_written() {
        for FileRole { name, reader, fetched, written } in &FILES {
            let (is_fetched, is_written) = (*fetched != Fetched::Never, *written != Written::Never);
            match reader {
                // The weights of torch.save are written as safetensors.
                Reader::Model => assert!(is_fetched && (is_written || [PICKLE, PICKLE_INDEX].contains(name)), "{name}"),
                Reader::Decisions | Reader::Rerankers | Reader::Program => {
                    assert!(is_fetched && is_written, "{name}");
                }
                Reader::Adapter => assert!(!is_written, "{name}"),
                Reader::Others => assert!(is_written, "{name}"),
            }
        }
    }

    /// No reader has a name of its own for a file of a folder.
    #[test]
    fn readers_name_files_by_these_constants() {
        const OF_NAMES: [&str; 3] = ["folder/file.rs", "judge-text/src/file.rs", "judge-weights/src/file.rs"];
        fn sources(at: &std::path::Path, all: &mut Vec<std::path::PathBuf>) {
            for entry in std::fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    sources(&path, all);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    all.push(path);
                }
            }
        }
        let mut all = Vec::new();
        let others = ["judge-arch", "judge-text", "judge-weights", "judge-cli", "judge-grade", "judge-serve", "judge"];
        for sources_of in others.map(|name| format!("../{name}/src")).into_iter().chain(["src".to_owned()]) {
            sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(sources_of), &mut all);
        }
        assert!(all.len() > 200, "{}", all.len());
        for path in all {
            let is_test = path.iter().any(|part| part.to_str().is_some_and(|part| part.contains("test")));
            if is_test || OF_NAMES.iter().any(|names| path.ends_with(names)) {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]").next().unwrap_or_default();
            // Messages name `config.json` where fields of it are read.
            for role in FILES.iter().filter(|role| role.reader != Reader::Others && role.name != CONFIG) {
                let named = format!("\"{}\"", role.name);
                assert!(!code.contains(&named), "{} names {named}", path.display());
            }
        }
    }
}
