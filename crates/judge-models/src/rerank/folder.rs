//! What a folder has for reranking.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use judge_arch::Architecture;
use judge_core::rerank::{Activation, Label, Relevance};
use judge_text::Files;
use serde_json::Value;

use super::RerankFormProblem;
use crate::base::Based;
use crate::checked::open_adapters;
use crate::folder::{Folder, file};
use crate::{Error, HubOptions};

/// What a model's folder says of how documents are scored.
#[derive(Clone, Debug, PartialEq)]
pub struct RerankFolder {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// The layers that have a head of labels, if there is one.
    pub(super) head_layers: RangeInclusive<usize>,
    pub(super) activation: Option<Activation>,
    /// What goes before every query, or is the system's turn.
    pub(super) instruction: Option<String>,
    /// Further variables of the chat template.
    pub(super) template_args: BTreeMap<String, Value>,
    /// Most tokens of a prompt.
    pub(super) most_tokens: Option<usize>,
}

/// What a model is, as far as its files tell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// An encoder with a head of labels, which reads pairs.
    Pairs,
    /// A decoder with a head of labels; sentence-transformers has saved it if `roles`, and asks it by turns.
    Head { roles: bool },
    /// A decoder with a head of labels at several layers, whose prompt no file states.
    LayerHeads,
    /// A decoder whose label logits are read.
    Labels(Relevance),
    /// Anything else, and what is wrong where it is asked for nevertheless.
    Unsaid(RerankFormProblem),
}

/// What says in `modules.json` that label logits are read: the class of today, and that of the time before.
const LOGIT_SCORES: [&str; 2] = ["LogitScore", "CausalScoreHead"];
/// A tokenizer without a limit states a number beyond any.
const NO_LIMIT: f64 = 1e9;

impl RerankFolder {
    /// Reads what a folder, or the folder of a GGUF file or of an adapter, says.
    ///
    /// # Errors
    /// [`Error::Rerank`] for a file that is not of its form; those of reading the files and adapters, and of finding an adapter's base.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &[])
    }

    /// The same of a model that adapters are merged into, any of which may bring a head of labels. The files of sentence-transformers are
    /// those of the last adapter's folder that has any, else the model's.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, adapters: &[PathBuf]) -> Result<Self, Error> {
        let given = path.as_ref();
        let based = Based::of(given, adapters, &HubOptions::from_env())?;
        let beside = Files::new(based.home(&file::OF_RERANKERS), Value::Null);
        let Based { model, adapters } = based;
        let folder = Folder::open(model.path)?;
        let found = Found { folder: &folder, beside: &beside };
        let modules = beside.json(file::MODULES)?;
        let sentence = beside.json(file::SENTENCE_TRANSFORMERS)?;
        let transformer = beside.json(file::SENTENCE_BERT)?.unwrap_or_default();
        let config = folder.config();
        let class = config["architectures"][0].as_str().unwrap_or("no class").to_owned();
        let mut architecture = Architecture::from_json(config).ok();
        let is_encoder = matches!(architecture, Some(Architecture::Encoder(_)));
        let inner = architecture.as_ref().and_then(Architecture::labels).and_then(|head| head.inner.clone());
        let last = architecture.as_ref().map_or(0, |spec| spec.dimensions().n_layers);
        let first = inner.as_ref().and_then(|inner| inner.first()).map_or(last, |(layer, _)| *layer);
        let brings_head = match &mut architecture {
            Some(spec) => !open_adapters(&folder, spec, &adapters)?.1.is_empty(),
            None => false,
        };
        let has_value_head = |name| folder.has(name) || adapters.iter().any(|adapter| adapter.join(name).is_file());
        let has_head = class.ends_with("ForSequenceClassification")
            || has_value_head(file::VALUE_HEAD)
            || has_value_head(file::VALUE_HEAD_PICKLE)
            || brings_head;
        // Before version 5.4 sentence-transformers said in `config.json` alone that it has saved a decoder.
        let of_config = ["sentence_transformers", "sbert_ce_default_activation_function"];
        let is_cross_encoder = sentence.as_ref().is_some_and(|config| config["model_type"] == "CrossEncoder")
            || of_config.into_iter().any(|field| !config[field].is_null());
        let kind = match found.logit_score(modules.as_ref())? {
            Some(relevance) => Kind::Labels(relevance),
            None if inner.is_some() => Kind::LayerHeads,
            None if has_head && is_encoder => Kind::Pairs,
            None if has_head => Kind::Head { roles: is_cross_encoder || modules.is_some() },
            None => Kind::Unsaid(match folder.unread_head() {
                Some(tensor) => RerankFormProblem::HeadOfGguf { tensor },
                None if is_encoder => RerankFormProblem::EncoderWithoutHead { class: class.clone() },
                None => RerankFormProblem::NotSaid { class: class.clone() },
            }),
        };
        let activation = found.activation(sentence.as_ref(), config)?;
        // sentence-transformers puts a sigmoid over the one number of a model unless a file says otherwise.
        let default = match &kind {
            Kind::Pairs | Kind::Head { roles: true } | Kind::Labels(_) => Some(Activation::Sigmoid),
            Kind::Head { roles: false } | Kind::LayerHeads => Some(Activation::Identity),
            Kind::Unsaid(_) => None,
        };
        let sentence = sentence.unwrap_or_default();
        let name = sentence["default_prompt_name"].as_str();
        let instruction = name.and_then(|name| sentence["prompts"][name].as_str()).filter(|text| !text.is_empty());
        let args = &transformer["processing_kwargs"]["chat_template"];
        let args: BTreeMap<String, Value> =
            args.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok(Self {
            path: given.to_owned(),
            kind,
            head_layers: first..=last,
            activation: activation.or(default),
            instruction: instruction.map(str::to_owned),
            template_args: args.into_iter().filter(|(name, _)| name != "restore_suffix").collect(),
            most_tokens: found.most_tokens(&transformer)?,
        })
    }

    /// Whether any file says that the model scores documents: it has a head of labels, or is a reranker of sentence-transformers.
    #[must_use]
    pub fn is_said(&self) -> bool {
        !matches!(self.kind, Kind::Unsaid(_))
    }

    pub(super) fn fault(&self, problem: RerankFormProblem) -> Error {
        Error::Rerank { path: Some(self.path.clone()), problem }
    }
}

/// A folder that is read.
struct Found<'f> {
    folder: &'f Folder,
    /// Where the files of sentence-transformers are: the same folder, or an adapter's.
    beside: &'f Files,
}

impl Found<'_> {
    fn wrong(&self, name: &str, setting: &str, expected: &'static str, found: &Value) -> Error {
        let problem = RerankFormProblem::Setting { setting: setting.to_owned(), expected, found: found.to_string() };
        let path = if name == file::CONFIG { self.folder.file(name) } else { self.beside.file(name) };
        Error::Rerank { path: Some(path), problem }
    }

    /// The labels whose logits are read, if `modules.json` says that some are.
    fn logit_score(&self, modules: Option<&Value>) -> Result<Option<Relevance>, Error> {
        let Some(modules) = modules else { return Ok(None) };
        let Some(listed) = modules.as_array() else {
            return Err(self.wrong(file::MODULES, "modules", "a list of modules", modules));
        };
        let is_score = |module: &&Value| {
            let class = module["type"].as_str().and_then(|name| name.rsplit('.').next());
            class.is_some_and(|class| LOGIT_SCORES.contains(&class))
        };
        let Some(module) = listed.iter().find(is_score) else { return Ok(None) };
        let name = module["path"].as_str().unwrap_or_default();
        if format!("{name}/{}", file::CONFIG) != file::LOGIT_SCORE {
            return Err(self.wrong(file::MODULES, "path", "1_LogitScore, the folder of the labels", &module["path"]));
        }
        let Some(config) = self.beside.json(file::LOGIT_SCORE)? else {
            let folder = self.beside.folder().to_owned();
            let found = crate::folder::names(&folder).unwrap_or_default();
            return Err(Error::missing_file(folder, file::LOGIT_SCORE, found));
        };
        let token = |field: &str| match &config[field] {
            Value::Null => Ok(None),
            found => match found.as_u64().and_then(|token| u32::try_from(token).ok()) {
                Some(token) => Ok(Some(Label::Token(token))),
                None => Err(self.wrong(file::LOGIT_SCORE, field, "the number of a token, or null", found)),
            },
        };
        match (token("true_token_id")?, token("false_token_id")?) {
            (Some(yes), Some(no)) => Ok(Some(Relevance::Difference { yes, no })),
            (Some(yes), None) => Ok(Some(Relevance::Logit { yes })),
            (None, _) => Err(self.wrong(file::LOGIT_SCORE, "true_token_id", "the number of a token", &Value::Null)),
        }
    }

    /// What goes over a score, where a file says so: `config_sentence_transformers.json`, then `config.json` in its new and its old form.
    fn activation(&self, sentence: Option<&Value>, config: &Value) -> Result<Option<Activation>, Error> {
        let stated = [
            (file::SENTENCE_TRANSFORMERS, "activation_fn", sentence.map(|config| &config["activation_fn"])),
            (
                file::CONFIG,
                "sentence_transformers.activation_fn",
                Some(&config["sentence_transformers"]["activation_fn"]),
            ),
            (
                file::CONFIG,
                "sbert_ce_default_activation_function",
                Some(&config["sbert_ce_default_activation_function"]),
            ),
        ];
        let stated = stated.into_iter().filter_map(|(name, field, found)| Some((name, field, found?)));
        let Some((name, field, found)) = stated.into_iter().find(|(.., found)| !found.is_null()) else {
            return Ok(None);
        };
        match found.as_str().and_then(|name| name.rsplit('.').next()) {
            Some("Sigmoid") => Ok(Some(Activation::Sigmoid)),
            Some("Identity") => Ok(Some(Activation::Identity)),
            _ => Err(self.wrong(name, field, "the class Sigmoid or Identity of torch.nn", found)),
        }
    }

    /// The limit of the tokenizer, or that of sentence-transformers, which has the tokenizer's beside an adapter too.
    fn most_tokens(&self, transformer: &Value) -> Result<Option<usize>, Error> {
        let limit = |of: Option<Value>| of.unwrap_or_default()["model_max_length"].clone();
        let stated = [
            &transformer["processor_kwargs"]["model_max_length"],
            &transformer["max_seq_length"],
            &limit(self.beside.json(file::TOKENIZER_CONFIG)?),
            &limit(self.folder.json(file::TOKENIZER_CONFIG)?),
        ];
        let most = stated.into_iter().find(|found| !found.is_null()).and_then(Value::as_f64);
        Ok(most.filter(|most| (1.0..NO_LIMIT).contains(most)).map(|most| most as usize))
    }
}
