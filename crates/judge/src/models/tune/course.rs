//! A run: its steps, what is measured between them, what is kept, and the folder at the end.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use judge_cli::args::files::program;
use judge_cli::report::{write_json, write_marked};
use judge_cli::terminal::console::{say, tell};
use judge_cli::terminal::interrupt::Interrupts;
use judge_cli::terminal::memory::peak_memory;
use judge_cli::terminal::progress::Progress;
use judge_core::ModelInfo;
use judge_models::train::{Loss, Run, RunEvent, TrainError, TrainSettings, Trainer};
use serde_json::{Value, json};

use super::cli::{Cli, Method, PROGRAM, Recipe};
use super::examples::Examples;
use super::files::Files;
use super::log::{Held, Log};
use super::measure::Figures;
use super::prompt::AtEnd;
use super::settings::Chosen;
use super::{plot, weights};

/// A run that is about to begin.
pub(super) struct Course<'a, E> {
    pub(super) cli: &'a Cli,
    pub(super) chosen: &'a Chosen,
    /// The command that reads what is learned, with its options but the adapter.
    pub(super) reader: &'a str,
    /// How marks are asked for whose layers may be weighed.
    pub(super) weighed: Option<&'a AtEnd>,
    pub(super) files: &'a Files,
    /// The log's file; `None` in a dry run.
    pub(super) held: Option<&'a Held>,
    pub(super) plan: &'a [Vec<usize>],
    pub(super) learned: &'a Examples<E>,
    pub(super) held_out: Option<&'a Examples<E>>,
    pub(super) folder: &'a Path,
    /// What is known of the model in it.
    pub(super) base: &'a ModelInfo,
}

impl<E: Clone> Course<'_, E> {
    fn batch(&self, step: u64) -> Vec<E> {
        let places = self.plan.get(step as usize).map_or(&[][..], Vec::as_slice);
        places.iter().map(|&place| self.learned.all[place].0.clone()).collect()
    }

    /// Tokens of all steps.
    fn tokens(&self) -> usize {
        self.plan.iter().flatten().map(|&place| self.learned.all[place].1).sum()
    }

    /// Says what a run would take, by its largest step.
    pub(super) fn dry_run<L: Loss<Example = E>>(&self, loss: L, settings: TrainSettings) -> Result<()> {
        let mut trainer = Trainer::new(self.folder, loss, settings)?;
        let size = |step: &Vec<usize>| step.iter().map(|&place| self.learned.all[place].1).sum::<usize>();
        let largest = (0..self.plan.len()).max_by_key(|&step| size(&self.plan[step])).unwrap_or_default();
        let start = Instant::now();
        trainer.step(&self.batch(largest as u64))?;
        let seconds = start.elapsed().as_secs_f64() * self.tokens() as f64 / size(&self.plan[largest]) as f64;
        say(format_args!(
            "{} examples, {} steps of {} epochs, {} tokens; {} numbers are learned",
            self.learned.all.len(),
            self.plan.len(),
            self.chosen.epochs,
            self.tokens(),
            trainer.n_parameters()
        ))?;
        say(format_args!("about {} by the time of the largest step, without held-out rows", span(seconds)))?;
        match peak_memory() {
            Some(bytes) => {
                say(format_args!("{:.2} GB of memory at most so far, the model's loading included", bytes as f64 / 1e9))
            }
            None => Ok(()),
        }
    }

    /// Trains, and writes the folder.
    pub(super) fn run<L: Loss<Example = E>>(
        &self,
        loss: L,
        settings: TrainSettings,
        measure: impl Fn(&Trainer<L>, &Examples<E>) -> Result<Figures>,
    ) -> Result<()> {
        let Self { cli, files, plan, .. } = self;
        if cli.write.overwrite {
            files.remove()?;
        }
        let mut trainer = Trainer::new(self.folder, loss, settings)?;
        let every = cli.every.unwrap_or_else(|| plan.len().div_ceil(self.chosen.epochs as usize));
        let mut log = Log::open(files, self.held.context("a run has its log")?)?;
        if files.checkpoint.exists() {
            let advice = || format!("{}: --overwrite starts over", files.checkpoint.display());
            trainer.resume(&files.checkpoint).with_context(advice)?;
            if !cli.model.quiet {
                tell(format_args!("resuming: {} of {} steps are done", trainer.steps_done(), plan.len()));
            }
        } else {
            // From here on a run that is killed resumes, also while held-out rows are measured.
            trainer.save(&files.checkpoint)?;
        }
        let left = plan.len().saturating_sub(trainer.steps_done() as usize);
        let progress = Progress::new("tuning", left, cli.model.quiet);
        let stop = Interrupts::catch()?;
        if let (Some(held_out), true) = (self.held_out, log.figures.is_empty() && trainer.steps_done() == 0) {
            log.measured(0, &measure(&trainer, held_out)?)?;
        }
        let run = Run { checkpoint: Some(&files.checkpoint), every: every as u64 };
        let is_enough = |log: &Log, step| cli.patience.is_some_and(|most| log.since_best(step) >= most);
        let (mut stopped, mut seconds, mut since) = (false, Vec::new(), Instant::now());
        // A run that was killed after its last measurement has no step left.
        if !is_enough(&log, trainer.steps_done()) {
            let observe = |trainer: &Trainer<L>, event| {
                let step = trainer.steps_done();
                match event {
                    RunEvent::Step(report) => {
                        seconds.push(since.elapsed().as_secs_f64());
                        log.step(step, &report)?;
                        let tokens = self.plan[step as usize - 1].iter().map(|&place| self.learned.all[place].1);
                        progress.add(1, tokens.sum());
                        progress.note(format!("loss {:.4}", report.loss));
                    }
                    RunEvent::Checkpoint => {
                        if let Some(held_out) = self.held_out
                            && log.measured(step, &measure(trainer, held_out)?)?
                        {
                            trainer.save(&files.best)?;
                        }
                    }
                }
                since = Instant::now();
                stopped = stop.interrupted().is_some();
                let ends = stopped || (event == RunEvent::Checkpoint && is_enough(&log, step));
                Ok(if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            };
            trainer.run(&run, |step| Ok::<_, Failed>(self.batch(step)), observe).map_err(|Failed(error)| error)?;
        }
        progress.finish_and_clear();
        let done = trainer.steps_done() as usize;
        stop.check(stopped && done < plan.len(), done, plan.len(), "steps")?;
        let stopped_early = done < plan.len();
        if stopped_early {
            log.stopped_early(done as u64, log.since_best(done as u64))?;
        }
        let kept = match (self.held_out, log.best) {
            (Some(_), Some((0, _))) => {
                tell("note: no step made the loss of the held-out rows smaller; the folder has the last");
                done
            }
            (Some(_), Some((best, _))) if files.best.exists() => {
                trainer.resume(&files.best)?;
                let kept = trainer.steps_done();
                ensure!(
                    kept == best,
                    "{} has the state after step {kept}, not after step {best}",
                    files.best.display()
                );
                best as usize
            }
            _ => done,
        };
        trainer.write(&cli.output, None)?;
        if let (Some(theta), Some(asked)) = (trainer.layer_weights(), self.weighed) {
            let tuned = weights::tuned(self.base, self.folder, &cli.output, self.chosen.method);
            let saved = tuned.and_then(|tuned| {
                weights::save(&files.weights, theta, asked, (&tuned, self.learned.all.len(), cli.cross_entropy))
            });
            if saved.is_err() {
                // Without its weights the folder is no result; the checkpoint has all of it.
                let _ = std::fs::remove_dir_all(&cli.output);
            }
            saved?;
        }
        // The same rows before the first step and at the end; of other rows it would be another loss.
        let first = log.losses.get(&1).copied();
        let loss = first.map(|first| Ok::<_, TrainError>([first, trainer.loss(&self.batch(0))?])).transpose()?;
        let ended = Ended { done, kept, parameters: trainer.n_parameters(), seconds: &seconds, loss };
        self.report(&log, &ended)?;
        files.remove()
    }

    fn report(&self, log: &Log, ended: &Ended<'_>) -> Result<()> {
        let (Ended { done, kept, parameters, seconds, loss }, steps) = (*ended, self.plan.len());
        let output = self.cli.output.display();
        if done < steps {
            let measurements = log.since_best(done as u64);
            say(format_args!(
                "stopped early, after step {done} of {steps}: {measurements} measurements of held-out rows in a row had no smaller loss"
            ))?;
        }
        say(format_args!(
            "{} examples, {done} steps, {parameters} numbers learned; the state after step {kept} -> {output}",
            self.learned.all.len(),
        ))?;
        if let Some([before, after]) = loss {
            say(format_args!("loss of the first step's rows: {before:.4} -> {after:.4}"))?;
            // Of what is no number, too.
            if after.partial_cmp(&before).is_none_or(Ordering::is_gt) {
                tell(
                    "note: the loss has grown on rows that were learned from: the judge is worse than the model that it began with; lower --lr",
                );
            }
        }
        let of =
            |step: usize| log.figures.iter().find(|(known, _)| *known as usize == step).map(|(_, figures)| figures);
        if let (Some(before), Some(after)) = (of(0), of(kept)) {
            for (name, value) in before {
                let after = after.get(name).map_or_else(|| "undefined".to_owned(), |value| format!("{value:.4}"));
                say(format_args!("held out, {name}: {value:.4} -> {after}"))?;
            }
        }
        let option = match self.chosen.method {
            Method::Lora => "--adapter",
            Method::Full => "--model",
        };
        let weights = match self.cli.learn_weights {
            true => format!(" --weights {}", self.files.weights.display()),
            false => String::new(),
        };
        say(format_args!("use it with {option} {output}{weights}: {}", self.reader))?;
        let objective = self.chosen.objective.name();
        if let Some(path) = &self.cli.plot {
            write_marked(path, PROGRAM, &plot::of(log, &objective, kept as u64)?)?;
        }
        let Some(path) = &self.cli.json else { return Ok(()) };
        let held_out: Vec<Value> =
            log.figures.iter().map(|(step, figures)| json!({"step": step, "figures": figures})).collect();
        let report = json!({
            "program": program(PROGRAM), "objective": objective, "recipe": self.chosen.recipe.map(Recipe::name),
            "settings": self.chosen.to_json(), "read_by": self.reader,
            "examples": self.learned.all.len(), "held_out_examples": self.held_out.map(|held_out| held_out.all.len()),
            "steps": steps, "steps_done": done, "stopped_early": done < steps, "kept_step": kept, "parameters": parameters, "held_out": held_out,
            "loss_of_first_rows": loss, "seconds_per_step": seconds, "peak_gigabytes": peak_memory().map(|bytes| bytes as f64 / 1e9),
        });
        write_json(path, PROGRAM, &report)
    }
}

/// What came of the steps.
#[derive(Clone, Copy)]
struct Ended<'a> {
    done: usize,
    kept: usize,
    parameters: usize,
    seconds: &'a [f64],
    /// Of the rows of the first step, before it and at the end.
    loss: Option<[f64; 2]>,
}

/// An error of the run, of training or of what is done between steps.
struct Failed(anyhow::Error);

impl From<TrainError> for Failed {
    fn from(error: TrainError) -> Self {
        Self(error.into())
    }
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}

fn span(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}
