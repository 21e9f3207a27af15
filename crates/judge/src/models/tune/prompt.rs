//! How a judge is asked, by the objective: the prompt and the labels that the command reads with which the tuned judge is used.

use anyhow::{Context, Result, bail};
use judge_cli::args::decisions::questions;
use judge_cli::args::prompt_judge::{Asked, PromptedArgs, suited};
use judge_cli::args::words::Words;
use judge_cli::terminal::console::usage;
use judge_cli::terminal::options::quoted;
use judge_core::decision::DecisionSettings;
use judge_core::lager::{LagerSettings, States};
use judge_core::reward::RewardJudge;
use judge_core::{Fields, PromptTemplate, Scale};
use judge_data::{DatasetFormat, Input};

use super::Cli;
use super::cli::Objective;

/// A prompt at whose end labels of a scale are read, or a score head.
pub(super) struct AtEnd {
    pub(super) template: PromptTemplate,
    pub(super) scale: Scale,
    /// The command that reads it.
    pub(super) reader: String,
    /// Which layers are weighed, how they are read, and with which weights they begin; `None` where the last one is read.
    pub(super) layers: Option<LagerSettings>,
}

impl AtEnd {
    /// Responses by their grades, as `judge score` asks.
    pub(super) fn of_grades(cli: &Cli) -> Result<Self> {
        let lager = cli.lager.lager_settings(DatasetFormat::Graded, &cli.model)?;
        let layers = cli.learn_weights.then(|| lager.clone());
        if cli.learn_weights && lager.states == States::DropLast {
            return Err(usage(
                "--learn-weights needs the last layer, which --states drop-last, or the file of --weights, leaves out",
            ));
        }
        Ok(Self { layers, ..Self::of(&lager, "judge score".to_owned()) })
    }

    /// Whole conversations, as `judge reward` asks; grades are those of the scale.
    pub(super) fn of_conversations(cli: &Cli) -> Result<Self> {
        let template = cli.model.dress_template(RewardJudge::template());
        let scale = Scale::integers(1, cli.lager.asked.points.unwrap_or(5).into())?;
        Ok(Self { template, scale, reader: "judge reward".to_owned(), layers: None })
    }

    /// Pairs by the labels of a family, as `judge compare --verdict logits` asks: the family that is named, else the one that it takes for
    /// these rows.
    pub(super) fn of_pairs(cli: &Cli, input: &Input) -> Result<Self> {
        let template = cli.lager.asked.template.as_ref().map(|path| path.to_string_lossy().into_owned());
        let args = PromptedArgs::of_labels(template.clone(), cli.lager.asked.rubric.clone());
        let suits = match template {
            Some(_) => "pair",
            None => suited(true, all_have_references(cli, input)?, false),
        };
        let asked = args.asked(suits, None, true, &cli.model)?;
        let Asked::Family { family, .. } = asked else { bail!("a verdict is read by a family of prompts") };
        let named = template.unwrap_or_else(|| family.name().to_owned());
        let reader = format!("judge compare --verdict logits --template {}", quoted(&named));
        Ok(Self::of(&family.lager_settings(), reader))
    }

    /// Whether `judge compare --apart --verdict logits` asks the same of each response of these pairs, as it does by the template that a
    /// model's folder brings.
    pub(super) fn is_compared(&self, cli: &Cli, input: &Input) -> Result<bool> {
        let asked = &cli.lager.asked;
        // It has no such options, or reads another kind of template by them.
        if asked.template.is_some() || asked.prefill.is_some() || asked.points.is_some() {
            return Ok(false);
        }
        let args = PromptedArgs { apart: true, ..PromptedArgs::of_labels(None, asked.rubric.clone()) };
        let suits = suited(true, all_have_references(cli, input)?, false);
        Ok(match args.asked(suits, None, true, &cli.model) {
            Ok(Asked::Family { family, .. }) => Self::of(&family.lager_settings(), String::new()).id() == self.id(),
            // What it refuses it does not ask.
            Ok(Asked::Reward { .. }) | Err(_) => false,
        })
    }

    fn of(settings: &LagerSettings, reader: String) -> Self {
        let template = settings.template.clone().with_prefill(&settings.opening);
        Self { template, scale: settings.scale.clone(), reader, layers: None }
    }

    /// What of it decides about examples.
    pub(super) fn id(&self) -> String {
        let labels: Vec<&str> = self.scale.labels().collect();
        let layers = self.layers.as_ref().map(|layers| (layers.states, layers.lens));
        format!("{labels:?} {} {layers:?}", self.template.id())
    }
}

/// Options with those that were given and that the command needs, too, by which a judge of this kind is read.
pub(super) fn words(words: Words, cli: &Cli, objective: Objective) -> Words {
    let (asked, model) = (&cli.lager.asked, &cli.model);
    let words = match objective {
        Objective::Mark | Objective::Preference => words.asked(asked, model),
        // The command has the template.
        Objective::Verdict => words.option_if("--rubric", asked.rubric.clone()).dressed(model),
        Objective::Decision => words.path_if("--questions", cli.questions.as_deref()).decided(&cli.decisions),
        Objective::Reward | Objective::Class | Objective::Ordinal | Objective::Completion => words.dressed(model),
    };
    words.dated(model)
}

/// Typed questions, as `judge decide` puts them.
pub(super) fn of_decisions(cli: &Cli) -> Result<DecisionSettings> {
    let (settings, folder) = cli.decisions.settings(&cli.model)?;
    if folder.head().is_some() {
        return Err(usage("--objective decision trains label logits; this model answers by a head of its own"));
    }
    if let Some(adapter) = folder.adapter() {
        return Err(usage(format!(
            "the model's folder names the adapter {}; `judge merge` merges it into a folder that can be tuned",
            adapter.display()
        )));
    }
    let questions = cli.questions.as_deref().map(questions).transpose().context("--questions")?;
    Ok(DecisionSettings { questions, ..settings })
}

/// Whether each pair that can be read has a reference answer.
fn all_have_references(cli: &Cli, input: &Input) -> Result<bool> {
    let (mut read, mut references) = (0, 0);
    for record in cli.input.records(input, Some(DatasetFormat::Pairs), cli.model.limit)? {
        let record = record?;
        let has = record.field("reference").is_some_and(|text| !text.is_empty());
        (read, references) = (read + usize::from(record.unread().is_none()), references + usize::from(has));
    }
    Ok(read > 0 && references == read)
}
