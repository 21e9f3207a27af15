//! Tuning a judge on one's own labels.
//!
//! `judge tune --input graded.jsonl --eval held-out.jsonl --model FOLDER --output ADAPTER`
//!
//! ```text
//! cli       what was asked for
//! examples  rows ─► tokens and targets; each odd row costs itself
//! plan      which examples make which step
//! course    the steps, with checkpoints, held-out rows, a log and the folder at the end
//! ```

mod cli;
mod course;
mod examples;
pub(crate) mod plan;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_core::{Backbone, Lens, Scale};
use judge_data::{DatasetFormat, Error, Input, Outputs};
use judge_models::train::{BradleyTerry, Class, Completion, Labels, Loss, Mark, ReadFrom, Reward, Trainer};

pub(crate) use self::cli::Cli;
use self::cli::Objective;
use self::course::{Course, Marks};
use self::examples::{Examples, Maker, data};
use crate::args::files::beside;
use crate::terminal::console::usage;

/// The name in reports.
const PROGRAM: &str = "tune";

/// The centring of rewards on a score head that TRL recommends.
const CENTRING: f64 = 0.01;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let files = Files::of(&cli.output.components().collect::<PathBuf>());
    let inputs = [&cli.input.input].into_iter().chain(&cli.eval).chain(cli.lager.inputs());
    let outputs = Outputs::new(inputs).reports(PROGRAM, &cli.json);
    outputs.made([&files.log, &files.checkpoint, &files.best, &files.states]).overwrite(cli.write.overwrite).check()?;
    files.check(cli)?;
    let input = cli.input.open()?;
    let held_out = cli.eval.as_deref().map(Input::open).transpose()?;
    let lager = cli.lager.lager_settings(DatasetFormat::Graded, &cli.model)?;
    let template = lager.template.clone().with_prefill(&lager.opening);
    let data = data(cli, &input, held_out.as_ref(), &template, &lager.scale)?;
    let model = cli.model.load()?;
    // Classes and rewards need no tokens for their labels.
    let labels = || labels(&model, &lager.scale, lager.lens);
    let maker = Maker::new(cli, &model, &template, &lager.scale);
    let info = model.info().clone();
    macro_rules! learn {
        ($loss:expr, $make:ident, $measure:expr) => {{
            let learned = maker.$make(&input)?;
            let held_out = held_out.as_ref().map(|input| maker.$make(input)).transpose()?;
            drop(model); // the trainer has the tensors in another form
            let loss = $loss;
            Task { cli, files: &files, data, n_layers: info.n_layers }.learn(loss, learned, held_out, $measure)
        }};
    }
    match cli.objective {
        Objective::Mark => {
            let labels = labels()?;
            let tokens = labels.tokens.clone();
            let loss = Mark { labels, alpha: cli.cross_entropy };
            learn!(loss, marks, course::of_marks(&Marks { scale: &lager.scale, tokens: &tokens }))
        }
        Objective::Preference => {
            let labels = labels()?;
            let tokens = labels.tokens.clone();
            let loss = BradleyTerry { reward: Reward::Expected(labels), centring: 0.0 };
            learn!(loss, pairs, course::of_pairs(&Marks { scale: &lager.scale, tokens: &tokens }))
        }
        Objective::Reward => {
            learn!(BradleyTerry { reward: Reward::Score, centring: CENTRING }, pairs, course::by_loss)
        }
        Objective::Class => {
            let classes = lager.scale.len();
            learn!(Class { classes }, classes, course::by_loss)
        }
        Objective::Completion => learn!(Completion, completions, course::by_loss),
    }
}

/// The files beside the folder.
struct Files {
    log: PathBuf,
    checkpoint: PathBuf,
    best: PathBuf,
    states: PathBuf,
}

impl Files {
    /// Refuses to replace what no run of this command has left.
    fn check(&self, cli: &Cli) -> Result<()> {
        if cli.output.exists() && !cli.dry_run {
            return Err(usage(format!("{} exists; name another folder with --output", cli.output.display())));
        }
        // A run that is resumed goes on with its own.
        let is_new = !self.checkpoint.exists() && !cli.write.overwrite;
        match [&self.log, &self.best].into_iter().find(|path| is_new && path.exists()) {
            Some(path) => Err(Error::OutputExists { path: path.clone(), differences: Vec::new() }.into()),
            None => Ok(()),
        }
    }

    /// Removes what a run keeps while it lasts.
    fn remove(&self) -> Result<()> {
        for path in [&self.checkpoint, &self.best, &self.states].into_iter().filter(|path| path.exists()) {
            std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    fn of(output: &Path) -> Self {
        let of = |what| beside(output, what);
        let (checkpoint, best) = (of("checkpoint.safetensors"), of("best.safetensors"));
        Self { log: of("log.jsonl"), checkpoint, best, states: of("states") }
    }
}

/// The labels of a scale in the model's vocabulary.
fn labels(model: &judge_models::Model, scale: &Scale, lens: Lens) -> Result<Labels> {
    let tokens = scale.labels().map(|label| model.label_token(label)).collect::<Result<_, _>>()?;
    Ok(Labels { tokens, values: scale.values().collect(), from: ReadFrom { layers: Vec::new(), lens } })
}

/// What is done, whatever is learned.
struct Task<'a> {
    cli: &'a Cli,
    files: &'a Files,
    data: String,
    n_layers: usize,
}

impl Task<'_> {
    fn learn<L: Loss>(
        self,
        loss: L,
        learned: Examples<L::Example>,
        held_out: Option<Examples<L::Example>>,
        measure: impl Fn(&Trainer<L>, &Examples<L::Example>) -> Result<course::Figures>,
    ) -> Result<()>
    where
        L::Example: Clone,
    {
        let Self { cli, files, data, n_layers } = self;
        let sizes: Vec<usize> = learned.all.iter().map(|(_, tokens)| *tokens).collect();
        let plan = plan::steps(&sizes, cli.epochs, cli.batch_size, cli.batch_tokens, cli.seed);
        let mut settings = cli.settings(plan.len() as u64, n_layers, data)?;
        if cli.keeps_states(n_layers) && !cli.dry_run {
            settings.states = Some(files.states.clone());
        }
        let folder = cli.model.folder()?.path.clone();
        let course =
            Course { cli, files, plan: &plan, learned: &learned, held_out: held_out.as_ref(), folder: &folder };
        if cli.dry_run { course.dry_run(loss, settings) } else { course.run(loss, settings, measure) }
    }
}
