//! What a model folder has for decisions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use judge_arch::is_decision_model;
use judge_core::decision::{
    ByKind, DecisionForm, DecisionHead, DecisionProblem, DecisionPrompt, DecisionSettings, PlainPrompt, QuestionKind,
    Readout,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::TemplatePrompt;
use super::files::{is_same, unread};
use crate::base::home;
use crate::folder::named_adapter::{adapter_field, adapter_of};
use crate::folder::{Folder, file, names, read_json, read_text};
use crate::weights::{Checkpoint, Tensors, checkpoint};
use crate::{Dtype, Error, TextError, WeightsError};

/// What a model folder has for decisions.
#[derive(Clone)]
pub struct DecisionFolder {
    path: PathBuf,
    form: DecisionForm,
    template: Option<TemplatePrompt>,
    adapter: Option<PathBuf>,
    head: Option<DecisionHead>,
    unread: Vec<String>,
}

impl DecisionFolder {
    /// Reads what a folder says of decisions; of a folder that says nothing it is what any chat model has. Of a GGUF file the folder that
    /// it is in speaks, and of an adapter's folder without such files the base that it names.
    ///
    /// # Errors
    /// [`Error::Decision`] for a file that is not of its form; [`WeightsError::MissingFile`] for a head,
    /// temperatures or an adapter that another file names and that are not there;
    /// [`WeightsError::Unsupported`] for a model that attends to later tokens; those of reading the
    /// files, and of finding an adapter's base.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &[])
    }

    /// The same of a model that adapters are merged into: the files of the last adapter's folder that has any count, else the model's.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, adapters: &[PathBuf]) -> Result<Self, Error> {
        let given = path.as_ref();
        let path = home(given, adapters, &file::OF_DECISIONS)?;
        let plain =
            Self { path, form: DecisionForm::default(), template: None, adapter: None, head: None, unread: Vec::new() };
        if !plain.path.is_dir() {
            return Ok(plain);
        }
        let settings = plain.json(file::DECISION)?;
        let codes = plain.json(file::CODES)?.filter(|codes| codes.get("codes").is_some());
        let found = match (codes, plain.json(file::JEV)?) {
            (Some(codes), _) => plain.of_codes(&codes)?,
            (None, Some(jev)) => plain.of_jev(&jev)?,
            (None, None) => plain.of_settings(settings.as_ref())?,
        };
        let unread = unread(&found.path);
        if !unread.is_empty() {
            let (folder, files) = (found.path.display(), unread.join(", "));
            tracing::warn!(
                "{folder}: nothing reads {files}; decision.json names temperatures, and so do the options of a run"
            );
        }
        let found = Self { unread, ..found };
        // An adapter that is named itself is over its base already.
        let mut merged = adapters.iter().map(PathBuf::as_path).chain([given]);
        let found =
            Self { adapter: found.adapter.filter(|adapter| !merged.any(|merged| is_same(adapter, merged))), ..found };
        let sanitizes = settings.as_ref().and_then(|settings| settings.get("sanitize_control_tokens"));
        found.with_template(sanitizes != Some(&Value::Bool(false)))
    }

    /// Labels, temperatures and the order of options.
    #[must_use]
    pub fn form(&self) -> &DecisionForm {
        &self.form
    }

    /// The folder of the adapter that the model is to be loaded with; `None` where there is none, or it is merged.
    #[must_use]
    pub fn adapter(&self) -> Option<&Path> {
        self.adapter.as_deref()
    }

    /// The model's own head over labels.
    #[must_use]
    pub fn head(&self) -> Option<&DecisionHead> {
        self.head.as_ref()
    }

    /// Files whose names say that they are about decisions, and which nothing reads: temperatures and heads of another program, or without
    /// the file of settings that they belong to. [`open`](Self::open) warns of them.
    #[must_use]
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Whether the folder has a prompt of its own.
    #[must_use]
    pub fn has_template(&self) -> bool {
        self.template.is_some()
    }

    /// The settings of a judge of this model, with a prompt in the place of the folder's. Without any it is this project's own.
    ///
    /// # Errors
    /// [`WeightsError::MissingFile`] for a model with a head and without a template, if no prompt is
    /// given: its head knows one prompt alone.
    pub fn settings(&self, prompt: Option<Arc<dyn DecisionPrompt>>) -> Result<DecisionSettings, Error> {
        let prompt: Arc<dyn DecisionPrompt> = match (prompt, &self.template) {
            (Some(prompt), _) => prompt,
            (None, Some(template)) => Arc::new(template.clone()),
            (None, None) if self.head.is_some() => {
                let wanted = "decision_template.jinja, the prompt that its head was trained with; transformers writes it \
                              (save_pretrained of the decision model)";
                return Err(self.missing(wanted));
            }
            (None, None) => Arc::new(PlainPrompt),
        };
        let readout = self.head.clone().map_or(Readout::LastLayer, |head| Readout::Head(Box::new(head)));
        Ok(DecisionSettings { prompt, form: self.form.clone(), readout, ..DecisionSettings::default() })
    }

    fn json(&self, name: &str) -> Result<Option<Value>, Error> {
        let path = self.path.join(name);
        Ok(if path.is_file() { Some(read_json(&path)?) } else { None })
    }

    fn missing(&self, wanted: &'static str) -> Error {
        Error::missing_file(self.path.clone(), wanted, names(&self.path).unwrap_or_default())
    }

    fn fault(&self, name: &str, problem: DecisionProblem) -> Error {
        Error::Decision { path: self.path.join(name), problem }
    }

    fn wrong(&self, name: &str, setting: &str, expected: &'static str, found: Option<&Value>) -> Error {
        let found = found.map_or_else(|| "nothing".to_owned(), Value::to_string);
        self.fault(name, DecisionProblem::Setting { setting: setting.to_owned(), expected, found })
    }

    /// What a file says of a setting, if it is of its type and as `is` asks.
    fn setting<T: DeserializeOwned>(
        &self,
        name: &str,
        setting: &str,
        expected: &'static str,
        found: Option<&Value>,
        is: impl FnOnce(&T) -> bool,
    ) -> Result<T, Error> {
        let value = found.and_then(|found| serde_json::from_value(found.clone()).ok()).filter(is);
        value.ok_or_else(|| self.wrong(name, setting, expected, found))
    }

    fn with_template(self, sanitizes: bool) -> Result<Self, Error> {
        let path = self.path.join(file::DECISION_TEMPLATE);
        if !path.is_file() {
            return Ok(self);
        }
        let source = read_text(&path)?;
        let template = TemplatePrompt::new(&source).map_err(|error| match error {
            Error::Text(TextError::PromptTemplate { source }) => TextError::ChatTemplate { path, source }.into(),
            error @ Error::PromptWithoutState => TextError::ChatTemplate { path, source: Arc::new(error) }.into(),
            other => other,
        })?;
        let template = if sanitizes { template } else { template.stripping_marks() };
        Ok(Self { template: Some(template), ..self })
    }

    /// A folder with `decision.json` or nothing, and one that transformers saved with a head.
    fn of_settings(self, settings: Option<&Value>) -> Result<Self, Error> {
        let form = settings
            .map(|settings| DecisionForm::from_json(settings).map_err(|problem| self.fault(file::DECISION, problem)));
        let form = form.transpose()?.unwrap_or_default();
        let adapter = settings.map(|settings| self.adapter_folder(file::DECISION, settings)).transpose()?.flatten();
        let config = self.json(file::CONFIG)?.unwrap_or_default();
        let head = if is_decision_model(&config) {
            let mut offsets = ByKind { noul: 0, score: 2, choice: 8 };
            if let Some(given) = config.get("offsets").filter(|given| !given.is_null()) {
                for kind in QuestionKind::ALL {
                    let (setting, expected) = (format!("offsets.{kind}"), "a whole number from 0 on");
                    let given = given.get(kind.as_str());
                    *offsets.get_mut(kind) = self.setting(file::CONFIG, &setting, expected, given, |_| true)?;
                }
            }
            let folder = Folder::open(&self.path)?;
            Some(self.head_of(checkpoint(&folder)?, file::CONFIG, &config, offsets)?)
        } else {
            None
        };
        Ok(Self { form, adapter, head, ..self })
    }

    fn of_jev(self, jev: &Value) -> Result<Self, Error> {
        let given = jev.pointer("/slots/verbalizers");
        let verbalizers: Vec<String> =
            self.setting(file::JEV, "slots.verbalizers", "a list of texts", given, |_| true)?;
        let (mut offsets, mut labels) = (ByKind::of(|_| 0), ByKind::of(|_| Vec::new()));
        for kind in QuestionKind::ALL {
            let given = jev.pointer(&format!("/slots/ranges/{kind}"));
            let expected = "two whole numbers from 0 on: a first and an end among the verbalizers";
            let is_within = |&(first, end): &(usize, usize)| verbalizers.get(first..end).is_some();
            let (first, end): (usize, usize) =
                self.setting(file::JEV, &format!("slots.ranges.{kind}"), expected, given, is_within)?;
            *offsets.get_mut(kind) = first;
            *labels.get_mut(kind) = verbalizers[first..end].to_vec();
        }
        let Some(calibration) = self.json(file::JEV_CALIBRATION)? else {
            return Err(self.missing("calibration.json, the temperatures of its head"));
        };
        let (expected, given) = ("numbers by kind of question", calibration.get("per_kind"));
        let per_kind: Map<String, Value> =
            self.setting(file::JEV_CALIBRATION, "per_kind", expected, given, |_| true)?;
        let mut temperature = ByKind::of(|_| 1.0);
        for (name, found) in &per_kind {
            let (setting, expected) = (format!("per_kind.{name}"), "a number above 0 for noul, choice or score");
            let number: f64 = self.setting(file::JEV_CALIBRATION, &setting, expected, Some(found), is_temperature)?;
            let Some(kind) = QuestionKind::from_name(name) else {
                return Err(self.wrong(file::JEV_CALIBRATION, &setting, expected, Some(found)));
            };
            *temperature.get_mut(kind) = number;
        }
        let adapter = self.adapter_folder(file::JEV, jev)?;
        let path = self.path.join(file::JEV_HEAD);
        if !path.is_file() {
            return Err(self.missing("head.safetensors, which judge_config.json is about"));
        }
        let head = self.head_of(Checkpoint::of_file(path)?, file::JEV, jev, offsets)?;
        let form = DecisionForm { labels, temperature, false_first: true };
        Ok(Self { form, adapter, head: Some(head), ..self })
    }

    fn of_codes(self, config: &Value) -> Result<Self, Error> {
        let is_some = |codes: &Vec<String>| !codes.is_empty();
        let codes: Vec<String> = self.setting(file::CODES, "codes", "a list of texts", config.get("codes"), is_some)?;
        if let Some(found) = config.get("attention_mode").and_then(Value::as_str)
            && found == "noncausal_full_attention"
        {
            let supported = "models whose tokens see those before them";
            return Err(
                WeightsError::unsupported(self.path.join(file::CODES), "attention_mode", found, supported).into()
            );
        }
        let given = config.get("temperature");
        let temperature: f64 = self.setting(file::CODES, "temperature", "a number above 0", given, is_temperature)?;
        let path = self.path.join(file::CODES_HEAD);
        if !path.is_file() {
            return Err(self.missing("readout.safetensors, which decision_config.json is about"));
        }
        let head = self.head_of(Checkpoint::of_file(path)?, file::CODES, &Value::Null, ByKind::of(|_| 0))?;
        let form = DecisionForm {
            labels: ByKind::of(|_| codes.clone()),
            temperature: ByKind::of(|_| temperature),
            false_first: true,
        };
        Ok(Self { form, head: Some(head), ..self })
    }

    /// The folder of the adapter that a file of settings names, which must be there.
    fn adapter_folder(&self, name: &str, settings: &Value) -> Result<Option<PathBuf>, Error> {
        let wrong = |found| {
            let expected = "the name of a folder inside this one, or null";
            Err(self.wrong(name, adapter_field(name), expected, found))
        };
        match adapter_of(name, settings) {
            Err(found) => wrong(Some(found)),
            Ok(None) => Ok(None),
            Ok(Some(adapter)) => match self.path.join(adapter.name) {
                folder if folder.is_dir() => Ok(Some(folder)),
                _ if adapter.is_stated => wrong(settings.get(adapter_field(name))),
                _ => Ok(None),
            },
        }
    }

    /// The head in some tensors: `proj.weight` (or `weight`) `[labels, d_model]` and `proj.bias` (or `bias`) `[labels]`.
    fn head_of(
        &self,
        mut tensors: Checkpoint,
        name: &str,
        config: &Value,
        offsets: ByKind<usize>,
    ) -> Result<DecisionHead, Error> {
        let called = |tensors: &Checkpoint, plain: &'static str, inner: &'static str| match tensors.shape(inner) {
            Some(_) => inner,
            None => plain,
        };
        let weight = called(&tensors, "weight", "proj.weight");
        let bias = called(&tensors, "bias", "proj.bias");
        let shape = tensors.shape(weight).map(<[usize]>::to_vec);
        let (labels, d_model) = match shape.as_deref() {
            Some(&[labels, d_model]) => (labels, d_model),
            _ => return Err(self.wrong(name, "the head", "a matrix proj.weight, a row for each label", None)),
        };
        let weights = tensors.take(weight, &[labels, d_model], Dtype::F32)?;
        let bias = tensors.take(bias, &[labels], Dtype::F32)?;
        let cap = config.get("softcap").filter(|found| !found.is_null());
        let cap = cap.map(|found| self.setting(name, "softcap", "a number above 0", Some(found), |_| true));
        let cap = cap.transpose()?;
        DecisionHead::new(weights, bias, d_model, cap, offsets).map_err(|error| match error {
            judge_core::Error::Decision(problem) => self.fault(name, problem),
            source => Error::Head { source },
        })
    }
}

fn is_temperature(number: &f64) -> bool {
    number.is_finite() && *number > 0.0
}
