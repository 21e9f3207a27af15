//! The model itself, tuned on the rows that the probe is trained on: the baseline that asks whether reading is enough.
//!
//! An adapter learns the grades where the prompt asks for them, as `judge tune --objective mark` does. It is asked for the grades of held-out
//! rows and not kept: `judge tune` makes one to keep. A run that is stopped goes on from its checkpoint.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Error, Result, anyhow, ensure};
use judge_cli::terminal::interrupt::Interrupts;
use judge_cli::terminal::progress::Progress;
use judge_core::Backbone;
use judge_models::Model;
use judge_models::train::{
    Blocks, Labels, Lora, Mark, MarkExample, ReadFrom, Run, RunEvent, Schedule, TrainError, TrainSettings, Trainer,
    Tuning,
};
use judge_probe::training::{GradedRow, Grading};

use super::cli::Cli;
use crate::models::tune::plan::Batches;

/// Rows of a step.
const BATCH: usize = 8;

/// What a model is tuned on, and where a run of it is kept.
pub struct Tuned<'a> {
    cli: &'a Cli,
    folder: PathBuf,
    /// The file of the checkpoint; that of the states of lower blocks is beside it.
    checkpoint: PathBuf,
    tuning: Tuning,
    /// Whether what comes out of the blocks below is kept.
    keeps_states: bool,
    labels: Labels,
    /// The tokens of each row, and the place of its grade among the labels.
    rows: Vec<(Vec<u32>, usize)>,
    trained: Mutex<Option<Trainer<Mark>>>,
}

impl<'a> Tuned<'a> {
    /// A baseline of these rows. Those that the model cannot read are never asked for.
    ///
    /// # Errors
    /// If a grade is no token of the model.
    pub fn new(cli: &'a Cli, model: &Model, aspect: &str, rows: &[GradedRow]) -> Result<Self> {
        let class = |row: &GradedRow| Grading::Whole.class(row.grade);
        let mut grades: Vec<i64> = rows.iter().map(class).collect();
        grades.sort_unstable();
        grades.dedup();
        let tokens = grades.iter().map(|grade| model.token(&grade.to_string())).collect::<Result<_, _>>();
        let tokens = tokens.context("--tuned-baseline: a grade must be one token, at which the model is tuned")?;
        let values = grades.iter().map(|&grade| grade as f64).collect();
        let example = |row: &GradedRow| {
            let place = grades.partition_point(|&grade| grade < class(row));
            (model.tokens(&row.prompt).unwrap_or_default(), place)
        };
        let labels = Labels { tokens, values, from: ReadFrom::default() };
        let folder = cli.model.folder()?.path.clone();
        let blocks = cli.tuned_top_blocks.map_or(Blocks::All, Blocks::Last);
        let tuning = Tuning::Lora(Lora { blocks, ..Lora::default() });
        Trainer::check(&folder, &Mark { labels: labels.clone(), alpha: 1.0 }, &tuning).context("--tuned-baseline")?;
        let checkpoint = cli.states_folder().join(format!("{aspect}.tuned.safetensors"));
        Ok(Self {
            cli,
            folder,
            checkpoint,
            tuning,
            keeps_states: cli.tuned_epochs > 1 && cli.tuned_top_blocks.is_some_and(|top| top < model.info().n_layers),
            labels,
            rows: rows.iter().map(example).collect(),
            trained: Mutex::new(None),
        })
    }

    /// The file of the states of lower blocks.
    fn states(&self) -> PathBuf {
        self.checkpoint.with_extension("states")
    }

    /// Logits of the grades for each row of `tested`, by an adapter that has learned the rows `train`.
    ///
    /// # Errors
    /// Those of the training.
    pub fn logits(&self, train: &[usize], tested: &[usize]) -> Result<Vec<Vec<f64>>> {
        let mut trained = self.trained.lock().map_err(|_| anyhow!("the tuning ended by a panic"))?;
        let trainer = match trained.take() {
            Some(trainer) => trained.insert(trainer),
            None => trained.insert(self.train(train)?),
        };
        let prompts: Vec<Vec<u32>> = tested.iter().map(|&row| self.rows[row].0.clone()).collect();
        let logits = trainer.label_logits(&prompts, &self.labels.tokens)?;
        Ok(logits.into_iter().map(|logits| logits.into_iter().map(f64::from).collect()).collect())
    }

    fn train(&self, train: &[usize]) -> Result<Trainer<Mark>> {
        let epochs = self.cli.tuned_epochs;
        let example = |&row: &usize| {
            let (prompt, place) = &self.rows[row];
            let target = (0..self.labels.tokens.len()).map(|label| if label == *place { 1.0 } else { 0.0 }).collect();
            MarkExample { prompt: prompt.clone(), target }
        };
        let examples: Vec<MarkExample> = train.iter().map(example).collect();
        let sizes: Vec<usize> = examples.iter().map(|example| example.prompt.len()).collect();
        let plan = Batches { epochs, size: BATCH, tokens: None, seed: 0 }.steps(&sizes, None);
        let steps = plan.len() as u64;
        let settings = TrainSettings {
            tuning: self.tuning.clone(),
            schedule: Schedule {
                peak: self.cli.tuned_lr,
                warmup: (steps / 20).max(1).min(steps - 1),
                steps,
                ..Schedule::default()
            },
            micro_batch: 2,
            blocks_at_once: Some(4),
            states: self.keeps_states.then(|| self.states()),
            data: blake3::hash(&serde_json::to_vec(&train.iter().map(|&row| &self.rows[row]).collect::<Vec<_>>())?)
                .to_hex()
                .to_string(),
            ..TrainSettings::default()
        };
        let mark = Mark { labels: self.labels.clone(), alpha: 1.0 };
        let mut trainer = Trainer::new(&self.folder, mark, settings)?;
        let progress = Progress::new("tuning the baseline", plan.len(), self.cli.model.quiet);
        let stop = Interrupts::catch()?;
        let run = Run { checkpoint: Some(&self.checkpoint), every: steps.div_ceil(u64::from(epochs)) };
        let ran = trainer.run(
            &run,
            |step| Ok::<_, TrainError>(plan[step as usize].iter().map(|&place| examples[place].clone()).collect()),
            |trainer, event| {
                if let RunEvent::Step(report) = event {
                    progress.add(1, plan[trainer.steps_done() as usize - 1].iter().map(|&place| sizes[place]).sum());
                    progress.note(format!("loss {:.4}", report.loss));
                }
                Ok(stop.flow())
            },
        );
        ran.map_err(|error| match error {
            TrainError::OtherRun { .. } | TrainError::NoCheckpoint { .. } | TrainError::CheckpointTensor { .. } => {
                let advice = format!("{}: remove it, or name another --states folder", self.checkpoint.display());
                Error::new(error).context(advice)
            }
            other => other.into(),
        })?;
        progress.finish_and_clear();
        let done = trainer.steps_done() as usize;
        stop.check(done < plan.len(), done, plan.len(), "steps of the baseline")?;
        Ok(trainer)
    }

    /// Gives back memory and disk once held-out rows have been asked for. The checkpoint stays: a run that is stopped in another aspect
    /// does not learn this one again.
    ///
    /// # Errors
    /// If the file of states cannot be removed.
    pub fn release(&self) -> Result<()> {
        *self.trained.lock().map_err(|_| anyhow!("the tuning ended by a panic"))? = None;
        remove(&self.states())
    }

    /// Removes the checkpoint, when the report of all aspects is written.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn finish(&self) -> Result<()> {
        remove(&self.checkpoint)
    }
}

fn remove(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Refuses what a tuned baseline cannot have, before any work.
pub fn check(cli: &Cli, blocks: usize) -> Result<()> {
    let within = |top: usize| (1..=blocks).contains(&top);
    ensure!(cli.tuned_top_blocks.is_none_or(within), "--tuned-top-blocks: the model has {blocks} blocks");
    ensure!(
        cli.model.adapters.is_empty(),
        "--tuned-baseline: it starts from a model without adapters; `judge merge` makes one"
    );
    Ok(())
}
