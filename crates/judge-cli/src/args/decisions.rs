//! The options that say how typed questions are put and read.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use judge_core::decision::{
    DecisionFit, DecisionForm, DecisionOrigin, DecisionPrompt, DecisionSettings, DecisionWeights, Labelled,
    QuestionKind, Questions, Readout, Unsettled,
};
use judge_core::{Layer, Lens, settings::settings_from_json};
use judge_data::save_new;
use judge_models::{DecisionFolder, TemplatePrompt, TurnPrompt};
use serde_json::Value;

use crate::args::layers::LENSES;
use crate::args::model_args::ModelArgs;
use crate::args::numbers::{at_least, positive};
use crate::args::one_of;
use crate::terminal::console::{say, tell, usage};

/// What little probability on the labels means, and what to do.
pub const NO_ANSWER: &str = "; what the model considers so little says little: the prompt may not lead it to an answer (see \
                             --decision-prompt and --decision-template)";

/// How typed questions are put.
#[derive(Args, Clone, Debug)]
pub struct DecisionPromptArgs {
    /// A Jinja template of the user's turn, which sees `state` and `question`, in the place of the built-in prompt
    #[arg(long, value_name = "FILE", conflicts_with = "decision_template", help_heading = "Decisions")]
    decision_prompt: Option<PathBuf>,
    /// A Jinja template of the whole prompt, as decision_template.jinja of a decision model [default: the model folder's, if it has one]
    #[arg(long, value_name = "FILE", help_heading = "Decisions")]
    decision_template: Option<PathBuf>,
    /// Labels, temperatures and head from this folder, or from a file like decision.json, not from the model's folder
    #[arg(long, value_name = "DIR|FILE", help_heading = "Decisions")]
    decision_config: Option<PathBuf>,
}

/// How typed questions are put and read.
#[derive(Args, Clone, Debug)]
pub struct DecisionArgs {
    #[command(flatten)]
    prompt: DecisionPromptArgs,
    /// Which layers answer: last, or a layer's number; with `all`, of `judge decide` and `judge rag`, the last one answers, and the label
    /// logits of every layer are written
    #[arg(long, default_value = "last", value_name = "last|N|all", help_heading = "Decisions")]
    layers: AnsweringLayers,
    /// How inner states meet the head: raw, as LAGER does, or normed by the model's final norm first
    #[arg(long, value_parser = one_of(LENSES), default_value = "raw", help_heading = "Decisions")]
    lens: Lens,
    /// Layer weights and temperatures that --fit wrote, for this model, prompt and labels
    #[arg(long, value_name = "FILE", conflicts_with = "layers", help_heading = "Decisions")]
    weights: Option<PathBuf>,
    /// What scores are divided by before the softmax: a number for all kinds of question, or KIND=NUMBER with commas between
    #[arg(long, value_name = "NUMBER|KIND=NUMBER,…", conflicts_with = "weights", help_heading = "Decisions")]
    temperature: Option<Temperature>,
}

/// What is learned from what people answered.
#[derive(Args, Clone, Debug)]
pub struct DecisionFitArgs {
    /// Learn layer weights and a temperature for each kind of question from what people answered, and write them here for --weights; the
    /// label logits of every layer are written to the rows
    #[arg(long, value_name = "FILE", conflicts_with_all = ["weights", "layers"], help_heading = "Fit")]
    pub fit: Option<PathBuf>,
    /// Learn the last layer's temperature alone: the best one, without steps
    #[arg(long, requires = "fit", help_heading = "Fit")]
    fit_temperature: bool,
    /// Steps of the fit
    #[arg(long, default_value_t = DecisionFit::default().steps, value_name = "N", value_parser = at_least::<usize>(1), requires = "fit", conflicts_with = "fit_temperature", help_heading = "Fit")]
    fit_steps: usize,
    /// Learning rate of the fit
    #[arg(long, default_value_t = DecisionFit::default().lr, value_name = "RATE", value_parser = positive, requires = "fit", conflicts_with = "fit_temperature", help_heading = "Fit")]
    fit_lr: f64,
}

impl DecisionFitArgs {
    /// Learns weights, if that is asked for, writes them, and says what they came to. Of finished rows no judge has said yet what weights
    /// belong to, and it is made for that alone.
    ///
    /// # Errors
    /// A usage error where there is nothing to learn from; those of the fit, and of the file.
    pub fn learn(
        &self,
        labelled: &[Labelled],
        origin: Option<DecisionOrigin>,
        of_judge: impl FnOnce() -> Result<DecisionOrigin>,
        overwrite: bool,
    ) -> Result<()> {
        let Some(path) = &self.fit else { return Ok(()) };
        if labelled.is_empty() {
            return Err(usage("--fit: no row has both an answer of the model and one of people"));
        }
        let fit = DecisionFit { layers: !self.fit_temperature, steps: self.fit_steps, lr: self.fit_lr };
        let weights = fit.fit(labelled, &origin.map_or_else(of_judge, Ok)?)?;
        save_new(path, &weights, overwrite)?;
        for kind in QuestionKind::ALL {
            let Some(found) = weights.get(kind) else { continue };
            let [before, after] = found.loss;
            let last = found.layers.as_ref().and_then(|layers| layers.last());
            let last = last.map_or_else(String::new, |last| format!(", {last:.3} of the weight on the last layer"));
            let temperature = match found.temperature {
                large @ 1e6.. => format!("{large:.0e}"),
                number => format!("{number:.3}"),
            };
            say(format_args!(
                "{kind}: cross-entropy {before:.4} -> {after:.4} on {} labels, temperature {temperature}{last}",
                found.n
            ))?;
            if let Some(why) = found.unsettled {
                let more = match why {
                    Unsettled::StillFalling { .. } => format!(": --fit-steps {}", self.fit_steps.saturating_mul(10)),
                    Unsettled::Uniform | Unsettled::AllAgree => String::new(),
                };
                tell(format_args!("note: {kind}: {why}{more}"));
            }
        }
        say(format_args!("weights -> {}", path.display()))
    }
}

/// Which layers answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnsweringLayers {
    Last,
    One(usize),
    All,
}

impl FromStr for AnsweringLayers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "last" => Ok(Self::Last),
            "all" => Ok(Self::All),
            number => number.parse().map(Self::One).map_err(|_| "expected last, all or a layer's number".to_owned()),
        }
    }
}

/// A temperature for some kinds of question.
#[derive(Clone, Debug)]
struct Temperature(Vec<(QuestionKind, f64)>);

impl FromStr for Temperature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let found = text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
            found.ok_or_else(|| format!("expected a number above 0, found {text:?}"))
        };
        if !text.contains('=') {
            let all = number(text)?;
            return Ok(Self(QuestionKind::ALL.map(|kind| (kind, all)).into()));
        }
        let entry = |entry: &str| {
            let (name, value) = entry.split_once('=').ok_or("expected KIND=NUMBER")?;
            let kind = QuestionKind::from_name(name.trim());
            Ok((kind.ok_or_else(|| format!("expected noul, choice or score, found {name:?}"))?, number(value)?))
        };
        let entries = text.split(',').map(entry).collect::<Result<Vec<_>, String>>()?;
        let is_twice = |at: usize| entries[..at].iter().any(|(kind, _)| *kind == entries[at].0);
        match (0..entries.len()).find(|&at| is_twice(at)) {
            Some(at) => Err(format!("expected one number for each kind, found two for {}", entries[at].0)),
            None => Ok(Self(entries)),
        }
    }
}

impl DecisionPromptArgs {
    /// The files that are read.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.decision_prompt, &self.decision_template].into_iter().flatten()
    }

    /// The options that are given, with their files.
    #[must_use]
    pub fn words(&self) -> Vec<(&'static str, &Path)> {
        let all = [
            ("--decision-prompt", &self.decision_prompt),
            ("--decision-template", &self.decision_template),
            ("--decision-config", &self.decision_config),
        ];
        all.into_iter().filter_map(|(name, path)| Some((name, path.as_deref()?))).collect()
    }

    /// The first of these options that is given.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        self.words().first().map(|(name, _)| *name)
    }

    /// How the model is asked and read by what its folder and these options say, and what the folder has for decisions.
    ///
    /// # Errors
    /// Whatever is wrong with a file.
    pub fn settings(&self, model: &ModelArgs) -> Result<(DecisionSettings, DecisionFolder)> {
        let of_config = match &self.decision_config {
            Some(path) if path.is_file() => Some(form(path)?),
            _ => None,
        };
        let folder = match &self.decision_config {
            Some(path) if path.is_dir() => DecisionFolder::open(path)?,
            Some(path) if of_config.is_none() => {
                return Err(usage(format!("--decision-config: there is no {}", path.display())));
            }
            _ => DecisionFolder::open_with(&model.folder()?.path, &model.adapters)?,
        };
        let mut settings = folder.settings(self.prompt()?)?;
        if let Some(form) = of_config {
            settings.form = form;
        }
        Ok((settings, folder))
    }

    fn prompt(&self) -> Result<Option<Arc<dyn DecisionPrompt>>> {
        let wrong = |path: &PathBuf, error| anyhow::anyhow!("{}: {error}", path.display());
        Ok(match (&self.decision_prompt, &self.decision_template) {
            (Some(path), _) => {
                Some(Arc::new(TurnPrompt::new(&judge_data::read_text(path)?).map_err(|error| wrong(path, error))?))
            }
            (None, Some(path)) => {
                Some(Arc::new(TemplatePrompt::new(&judge_data::read_text(path)?).map_err(|error| wrong(path, error))?))
            }
            (None, None) => None,
        })
    }
}

impl DecisionArgs {
    /// Refuses a lens where no inner state is read; `fits` says whether every layer is read all the same.
    ///
    /// # Errors
    /// A usage error.
    pub fn check(&self, fits: bool) -> Result<()> {
        if self.lens != Lens::Raw && !self.is_inner(fits) {
            return Err(usage(
                "--lens has no effect on the last layer, which always meets the final norm; name others with --layers",
            ));
        }
        Ok(())
    }

    /// Whether temperatures are set by hand.
    #[must_use]
    pub fn has_temperature(&self) -> bool {
        self.temperature.is_some()
    }

    /// Whether the label logits of every layer are asked for.
    #[must_use]
    pub fn every_layer(&self) -> bool {
        self.layers == AnsweringLayers::All
    }

    /// The same for a command that fits nothing and writes no label logits.
    ///
    /// # Errors
    /// A usage error, for every layer too.
    pub fn check_without_tables(&self) -> Result<()> {
        if self.every_layer() {
            return Err(usage(
                "--layers all: this command writes no label logits, `judge decide` and `judge rag` do; give last or a layer's number",
            ));
        }
        self.check(false)
    }

    /// The files that are read.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.prompt.inputs().chain(&self.weights)
    }

    /// Whether other layers than the last are read, also for weights that will be fitted.
    fn is_inner(&self, fits: bool) -> bool {
        fits || self.weights.is_some() || self.layers != AnsweringLayers::Last
    }

    /// How the model is asked and read, and the model's options with the adapter that its folder names.
    /// `fits` says that weights will be fitted, which takes the label logits of every layer.
    ///
    /// # Errors
    /// Whatever is wrong with a file; a usage error for layers and weights of a model that answers by a head.
    pub fn settings(
        &self,
        model: &ModelArgs,
        questions: Option<Questions>,
        fits: bool,
    ) -> Result<(DecisionSettings, ModelArgs)> {
        let mut model = model.clone();
        let (mut settings, folder) = self.prompt.settings(&model)?;
        model.adapters.extend(folder.adapter().map(Path::to_owned));
        for (kind, temperature) in self.temperature.iter().flat_map(|Temperature(of)| of) {
            *settings.form.temperature.get_mut(*kind) = *temperature;
        }
        if folder.head().is_some() && self.is_inner(fits) {
            return Err(usage(
                "the model answers by a head of its own, which reads the last layer; layers and weights are of label logits",
            ));
        }
        settings.every_layer = fits || self.every_layer();
        if let AnsweringLayers::One(layer) = self.layers {
            settings.readout = Readout::Layer(Layer(layer));
        }
        if let Some(path) = &self.weights {
            let weights: DecisionWeights = judge_data::load(path)?;
            settings.readout = Readout::Weights(Box::new(weights));
        }
        settings.lens = self.lens;
        settings.questions = questions;
        Ok((settings, model))
    }
}

fn form(path: &Path) -> Result<DecisionForm> {
    let json: Value = settings_from_json(&judge_data::read_text(path)?).with_context(|| path.display().to_string())?;
    DecisionForm::from_json(&json).with_context(|| path.display().to_string())
}

/// Refuses options of prompts that decisions do not have, rather than ignore them.
///
/// # Errors
/// A usage error that names the first.
pub fn refuse_dressing(model: &ModelArgs) -> Result<()> {
    let given = [
        ("--raw-prompt", model.raw_prompt),
        ("--template-arg", !model.template_args.is_empty()),
        ("--prefill-trusted", model.prefill_trusted.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(usage(format!(
            "{option} has no effect on the prompts of decisions; --decision-template has the whole prompt"
        ))),
        None => Ok(()),
    }
}

/// Says which of these kinds of question are read at the last layer because weights have none for them.
pub fn tell_without_weights(settings: &DecisionSettings, kinds: impl IntoIterator<Item = QuestionKind>) {
    let without = kinds.into_iter().filter(|&kind| settings.lacks_weights(kind)).map(QuestionKind::as_str);
    let without = without.collect::<Vec<_>>().join(" and ");
    if !without.is_empty() {
        tell(format_args!(
            "note: the weights have none for {without} questions, which are read at the last layer alone"
        ));
    }
}

/// The questions of a file: a JSON object of questions by name.
///
/// # Errors
/// Whatever is wrong with it.
pub fn questions(path: &Path) -> Result<Questions> {
    settings_from_json(&judge_data::read_text(path)?).with_context(|| path.display().to_string())
}
