//! Tuning a judge on one's own labels.
//!
//! `judge tune --input graded.jsonl --eval held-out.jsonl --model FOLDER --output ADAPTER`
//!
//! ```text
//! cli       what was asked for ─► chosen: with recipes and defaults ─► check: what has no effect
//! prompt    the prompt and the labels, as the command has them that reads the tuned judge
//! examples  rows ─► tokens and targets; each odd row costs itself
//! plan      which examples make which step
//! measure   what held-out rows say, by objective
//! files     what lies beside the folder that is written: the log, checkpoints
//! weights   layer weights that are learned too, and their file
//! course    the steps, with checkpoints, held-out rows, a log, a picture and the folder at the end
//! ```

mod check;
mod cli;
mod course;
mod examples;
mod files;
mod log;
mod measure;
pub(crate) mod plan;
mod plot;
mod prompt;
mod recipes;
mod settings;
mod weights;

use std::path::PathBuf;

use anyhow::{Context, Result};
use judge_cli::args::prompt_judge::PromptedArgs;
use judge_cli::terminal::console::{counted, tell, usage};
use judge_cli::terminal::options::name_of;
use judge_core::decision::DecisionJudge;
use judge_core::lager::LayerWeights;
use judge_core::{Backbone, Scale};
use judge_data::{Input, Outputs, Settings};
use judge_models::train::{
    BradleyTerry, Class, Completion, Decision, Labels, Loss, Mark, Ordinal, ReadFrom, Reward, Trainer, is_checkpoint,
    is_states,
};
use judge_models::{Dtype, Model};
use serde_json::json;

use self::cli::{Objective, PROGRAM, Swap};
use self::course::{Course, Task};
use self::examples::{Examples, Maker};
use self::files::Files;
use self::log::Held;
use self::measure::Figures;
use self::plan::Batches;
use self::prompt::AtEnd;
use self::settings::Chosen;

pub(crate) use self::cli::Cli;

/// Examples of all epochs, whose order is laid out before the first.
const MOST_SEEN: usize = 100_000_000;

/// The centring of rewards on a score head that TRL recommends.
const CENTRING: f64 = 0.01;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let chosen = Chosen::of(cli);
    check::check(cli, &chosen)?;
    let files = Files::of(&cli.output.components().collect::<PathBuf>());
    let outputs = Outputs::new(inputs(cli, chosen.objective)).reports(PROGRAM, cli.json.iter().chain(&cli.plot));
    let outputs = outputs.documents::<LayerWeights>(cli.learn_weights.then_some(&files.weights));
    let outputs = outputs.made([&files.log], log::is_log).made([&files.states], is_states);
    outputs.made(files.checkpoints(), is_checkpoint).overwrite(cli.write.overwrite).check()?;
    // A dry run writes nothing.
    let held = (!cli.dry_run).then(|| Held::take(&files.log)).transpose()?;
    files.check(cli)?;
    let input = cli.input.open()?;
    let held_out = cli.eval.as_deref().map(judge_cli::args::files::open).transpose()?;
    cli.model.admit(&input)?;
    let objective = chosen.objective;
    let swap = chosen.swap;
    let task = |id: String, reader: &str| {
        let data = data(cli, &chosen, &input, held_out.as_ref(), &id)?;
        let (reader, held, held_out) = (reader.to_owned(), held.as_ref(), held_out.as_ref());
        let (chosen, files, input) = (&chosen, &files, &input);
        anyhow::Ok(Task { cli, chosen, files, held, input, held_out, data, reader, weighed: None })
    };
    match objective {
        Objective::Mark => {
            let asked = AtEnd::of_grades(cli)?;
            let task = Task { weighed: Some(&asked), ..task(asked.id(), &asked.reader)? };
            let model = load(cli)?;
            let labels = labels(&model, &asked.scale)?;
            let from = weights::read_from(&asked, model.info())?;
            let loss = Mark { labels: learned(&labels, from), alpha: cli.cross_entropy };
            let make = |maker: &Maker<'_>, input: &Input, _| maker.marks(input, &asked.template, &asked.scale);
            task.learn(model, loss, make, |tuned, rows| measure::of_marks(&labels, tuned, rows))
        }
        Objective::Verdict => {
            let asked = AtEnd::of_pairs(cli, &input)?;
            let task = task(asked.id(), &asked.reader)?;
            let model = load(cli)?;
            let labels = labels(&model, &asked.scale)?;
            let loss = Mark { labels: learned(&labels, ReadFrom::default()), alpha: 1.0 };
            let make = |maker: &Maker<'_>, input: &Input, is_held_out| {
                // Held-out pairs are measured in both orders, whichever an epoch draws.
                let swap = if is_held_out && swap == Swap::Random { Swap::Both } else { swap };
                maker.verdicts(input, &asked.template, &asked.scale, swap)
            };
            task.learn(model, loss, make, |tuned, rows| measure::of_verdicts(&labels, tuned, rows))
        }
        Objective::Decision => {
            let settings = prompt::of_decisions(cli)?;
            let task = task(settings.to_json().to_string(), "judge decide")?;
            let model = load(cli)?;
            let soft_cap = model.info().final_soft_cap;
            let judge = DecisionJudge::new(settings, &model)?;
            let loss = Decision { from: ReadFrom::default(), soft_cap };
            let make = |maker: &Maker<'_>, input: &Input, _| maker.decisions(input, &judge);
            task.learn(model, loss, make, |tuned, rows| measure::of_decisions(soft_cap, tuned, rows))
        }
        Objective::Preference => {
            let asked = AtEnd::of_grades(cli)?;
            let compared =
                if asked.is_compared(cli, &input)? { ", judge compare --apart --verdict logits" } else { "" };
            let task = Task { weighed: Some(&asked), ..task(asked.id(), &format!("{}{compared}", asked.reader))? };
            let model = load(cli)?;
            let labels = labels(&model, &asked.scale)?;
            let from = weights::read_from(&asked, model.info())?;
            let loss = BradleyTerry { reward: Reward::Expected(learned(&labels, from)), centring: 0.0 };
            let make = |maker: &Maker<'_>, input: &Input, _| maker.preferences(input, &asked.template);
            task.learn(model, loss, make, |tuned, rows| measure::of_preferences(&labels, tuned, rows))
        }
        Objective::Reward => {
            let asked = AtEnd::of_conversations(cli)?;
            let task = task(asked.id(), "judge reward, judge compare --reward")?;
            let loss = BradleyTerry { reward: Reward::Score, centring: CENTRING };
            let make = |maker: &Maker<'_>, input: &Input, _| maker.preferences(input, &asked.template);
            task.learn(load(cli)?, loss, make, measure::of_rewards)
        }
        Objective::Class => {
            let asked = AtEnd::of_conversations(cli)?;
            let task = task(asked.id(), &asked.reader)?;
            let make = |maker: &Maker<'_>, input: &Input, _| maker.classes(input, &asked.template, &asked.scale);
            let loss = Class { classes: asked.scale.len() };
            task.learn(load(cli)?, loss, make, |tuned, rows| measure::of_classes(&asked.scale, tuned, rows))
        }
        Objective::Ordinal => {
            let asked = AtEnd::of_conversations(cli)?;
            let task = task(asked.id(), &asked.reader)?;
            let make = |maker: &Maker<'_>, input: &Input, _| maker.classes(input, &asked.template, &asked.scale);
            let loss = Ordinal { classes: asked.scale.len() };
            task.learn(load(cli)?, loss, make, |tuned, rows| measure::of_ordinal(&asked.scale, tuned, rows))
        }
        Objective::Completion => {
            let task = task(String::new(), "whatever writes: judge compare, judge score --condition reasoning")?;
            let make = |maker: &Maker<'_>, input: &Input, _| maker.completions(input);
            task.learn(load(cli)?, Completion, make, |_, _| Ok(Figures::new()))
        }
    }
}

/// The model, in the dtype that it is trained in.
fn load(cli: &Cli) -> Result<Model> {
    // Found once, for the copy too.
    cli.model.folder()?;
    let mut model = cli.model.clone();
    model.dtype = Some(Dtype::F32);
    model.load()
}

/// The files that are read besides the model. The template of a pair may be a name.
fn inputs(cli: &Cli, objective: Objective) -> Vec<PathBuf> {
    let mut inputs: Vec<PathBuf> = std::iter::once(&cli.input.input).chain(&cli.eval).cloned().collect();
    inputs.extend(cli.questions.iter().chain(cli.decisions.inputs()).cloned());
    if objective == Objective::Verdict {
        let template = cli.lager.asked.template.as_ref().map(|path| path.to_string_lossy().into_owned());
        inputs.extend(PromptedArgs::of_labels(template, None).files());
    } else {
        inputs.extend(cli.lager.inputs().cloned());
    }
    inputs
}

/// What was chosen, for a checkpoint: of the files that are read their content; `asked` is of how examples are asked.
fn data(cli: &Cli, chosen: &Chosen, input: &Input, held_out: Option<&Input>, asked: &str) -> Result<String> {
    let blake3 = |input: &Input| {
        let file = input.identity().with_context(|| input.path().display().to_string())?;
        Ok::<_, anyhow::Error>(file.blake3)
    };
    let Cli { input: rows, model, batch_tokens, seed, .. } = cli;
    let entries = [
        ("input_blake3", json!(blake3(input)?)),
        ("eval_blake3", json!(held_out.map(blake3).transpose()?)),
        ("objective", json!(name_of(chosen.objective))),
        ("columns", json!(rows.columns.as_ref().map(ToString::to_string))),
        ("limit", json!(model.limit)),
        ("template_args", json!(model.template_args)),
        ("date", json!(model.date.to_string())),
        ("batch_tokens", json!(batch_tokens)),
        ("seed", json!(seed)),
        ("asked", json!(asked)),
    ];
    let mut settings: Settings = serde_json::from_value(chosen.to_json())?;
    settings.extend(entries.map(|(name, value)| (name.to_owned(), value)));
    rows.note_part(&mut settings);
    Ok(serde_json::to_string(&settings)?)
}

/// The labels of a scale in the model's vocabulary.
fn labels(model: &Model, scale: &Scale) -> Result<measure::Labels> {
    let tokens = scale.labels().map(|label| model.label_token(label)).collect::<Result<_, _>>()?;
    Ok(measure::Labels { scale: scale.clone(), tokens })
}

/// The same for a loss.
fn learned(labels: &measure::Labels, from: ReadFrom) -> Labels {
    Labels { tokens: labels.tokens.clone(), values: labels.scale.values().collect(), from }
}

/// Says so where all examples have one label: nothing can be learned from them but to say it.
fn tell_one_label(objective: Objective, human: &[f64]) {
    let is_labelled = matches!(objective, Objective::Mark | Objective::Verdict | Objective::Class | Objective::Ordinal);
    if let ([first, rest @ ..], true) = (human, is_labelled)
        && rest.iter().all(|label| label == first)
    {
        let which = match human.len() {
            1 => "there is one example alone".to_owned(),
            n => format!("all {n} examples have the same label"),
        };
        tell(format_args!("note: {which}: nothing can be told apart, and the judge learns to give it always"));
    }
}

impl Task<'_> {
    /// Makes examples of the rows, of those that are held out with `true`, and learns from them.
    fn learn<L: Loss>(
        self,
        model: Model,
        loss: L,
        make: impl Fn(&Maker<'_>, &Input, bool) -> Result<Examples<L::Example>>,
        measure: impl Fn(&Trainer<L>, &Examples<L::Example>) -> Result<Figures>,
    ) -> Result<()>
    where
        L::Example: Clone,
    {
        let Self { cli, chosen, .. } = self;
        let maker = Maker { cli, model: &model, limit: cli.model.limit };
        let learned = make(&maker, self.input, false)?;
        let maker = Maker { limit: None, ..maker };
        tell_one_label(chosen.objective, &learned.human);
        let held_out = self.held_out.map(|input| make(&maker, input, true)).transpose()?;
        let base = model.info().clone();
        let n_layers = base.n_layers;
        drop(model); // the trainer has the tensors in another form
        let sizes: Vec<usize> = learned.all.iter().map(|(_, tokens)| *tokens).collect();
        let Chosen { epochs, batch_size: size, .. } = *chosen;
        if sizes.len().saturating_mul(epochs as usize) > MOST_SEEN {
            let seen = counted(sizes.len(), "example");
            return Err(usage(format!(
                "--epochs {epochs} of {seen}: expected at most {MOST_SEEN} in all epochs together"
            )));
        }
        let batches = Batches { epochs, size, tokens: cli.batch_tokens, seed: cli.seed };
        let plan = batches.steps(&sizes, learned.one_of_two.then_some(&learned.ids));
        let mut settings = chosen.settings(cli, plan.len() as u64, n_layers, self.data.clone())?;
        if chosen.keeps_states(cli, n_layers) && !cli.dry_run {
            settings.states = Some(self.files.states.clone());
        }
        let folder = cli.model.folder()?.path.clone();
        let (learned, held_out) = (&learned, held_out.as_ref());
        let course = Course { task: &self, plan: &plan, learned, held_out, folder: &folder, base: &base };
        if cli.dry_run { course.dry_run(loss, settings) } else { course.run(loss, settings, measure) }
    }
}
