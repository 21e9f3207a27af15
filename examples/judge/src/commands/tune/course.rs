//! A run: its steps, what is measured between them, what is kept, and the folder at the end.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use judge_core::{Scale, scale::ScoreDistribution};
use judge_metrics::correlation::spearman;
use judge_metrics::prediction::mean_absolute_error;
use judge_models::train::{
    Loss, MarkExample, PairExample, Run, RunEvent, StepReport, TrainError, TrainSettings, Trainer,
};
use serde_json::{Value, json};

use super::cli::{Cli, Method};
use super::examples::Examples;
use super::{Files, PROGRAM};
use crate::args::files::program;
use crate::report::write_json;
use crate::terminal::console::{say, tell};
use crate::terminal::interrupt::Interrupts;
use crate::terminal::memory::peak_memory;
use crate::terminal::progress::Progress;

/// What held-out rows say of the judge, by name; `loss` is always there.
pub(super) type Figures = BTreeMap<&'static str, f64>;

/// The loss alone.
pub(super) fn by_loss<L: Loss>(tuned: &Trainer<L>, held_out: &Examples<L::Example>) -> Result<Figures>
where
    L::Example: Clone,
{
    let all: Vec<L::Example> = held_out.all.iter().map(|(example, _)| example.clone()).collect();
    Ok([("loss", tuned.loss(&all)?)].into())
}

/// The marks that a judge reads: the points of a scale, and the token of each.
pub(super) struct Marks<'a> {
    pub(super) scale: &'a Scale,
    pub(super) tokens: &'a [u32],
}

/// The expected mark of each prompt.
fn expected<L: Loss>(tuned: &Trainer<L>, prompts: &[Vec<u32>], marks: &Marks<'_>) -> Result<Vec<f64>> {
    let logits = tuned.label_logits(prompts, marks.tokens)?;
    let mean = |logits: Vec<f32>| {
        let logits: Vec<f64> = logits.into_iter().map(f64::from).collect();
        Ok(ScoreDistribution::softmax(marks.scale, &logits)?.expected())
    };
    logits.into_iter().map(mean).collect()
}

/// The loss, and what expected marks have to do with what people said.
pub(super) fn of_marks<L: Loss<Example = MarkExample>>(
    marks: &Marks<'_>,
) -> impl Fn(&Trainer<L>, &Examples<MarkExample>) -> Result<Figures> {
    move |tuned, held_out| {
        let mut figures = by_loss(tuned, held_out)?;
        let prompts: Vec<Vec<u32>> = held_out.all.iter().map(|(example, _)| example.prompt.clone()).collect();
        let expected = expected(tuned, &prompts, marks)?;
        figures.insert("mae", mean_absolute_error(&held_out.human, &expected)?.estimate);
        // Undefined where all of one side are equal.
        figures.extend(spearman(&expected, &held_out.human).ok().map(|found| ("spearman", found.estimate)));
        Ok(figures)
    }
}

/// The loss, and in how many pairs the better response has the greater expected mark; equal ones count half.
pub(super) fn of_pairs<L: Loss<Example = PairExample>>(
    marks: &Marks<'_>,
) -> impl Fn(&Trainer<L>, &Examples<PairExample>) -> Result<Figures> {
    move |tuned, held_out| {
        let mut figures = by_loss(tuned, held_out)?;
        let side = |of: fn(&PairExample) -> &Vec<u32>| -> Result<Vec<f64>> {
            let prompts: Vec<Vec<u32>> = held_out.all.iter().map(|(example, _)| of(example).clone()).collect();
            expected(tuned, &prompts, marks)
        };
        let (better, worse) = (side(|pair| &pair.better)?, side(|pair| &pair.worse)?);
        let right = |(better, worse): (&f64, &f64)| match better.total_cmp(worse) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
        let sum: f64 = better.iter().zip(&worse).map(right).sum();
        figures.insert("accuracy", sum / better.len() as f64);
        Ok(figures)
    }
}

/// A run that is about to begin.
pub(super) struct Course<'a, E> {
    pub(super) cli: &'a Cli,
    pub(super) files: &'a Files,
    pub(super) plan: &'a [Vec<usize>],
    pub(super) learned: &'a Examples<E>,
    pub(super) held_out: Option<&'a Examples<E>>,
    pub(super) folder: &'a Path,
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
            self.cli.epochs,
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
        let mut trainer = Trainer::new(self.folder, loss, settings)?;
        let every = cli.every.unwrap_or_else(|| plan.len().div_ceil(cli.epochs as usize));
        if cli.write.overwrite {
            files.remove()?;
        }
        let mut log = Log::open(files)?;
        if files.checkpoint.exists() {
            let advice = || format!("{}: --overwrite starts over", files.checkpoint.display());
            trainer.resume(&files.checkpoint).with_context(advice)?;
            if !cli.model.quiet {
                tell(format_args!("resuming: {} of {} steps are done", trainer.steps_done(), plan.len()));
            }
        }
        let left = plan.len().saturating_sub(trainer.steps_done() as usize);
        let progress = Progress::new("tuning", left, cli.model.quiet);
        let stop = Interrupts::catch()?;
        if let (Some(held_out), true) = (self.held_out, log.figures.is_empty() && trainer.steps_done() == 0) {
            log.measured(0, &measure(&trainer, held_out)?)?;
        }
        let run = Run { checkpoint: Some(&files.checkpoint), every: every as u64 };
        let (mut stopped, mut seconds, mut since) = (false, Vec::new(), Instant::now());
        trainer
            .run(
                &run,
                |step| Ok::<_, Failed>(self.batch(step)),
                |trainer, event| {
                    match event {
                        RunEvent::Step(report) => {
                            seconds.push(since.elapsed().as_secs_f64());
                            log.step(trainer.steps_done(), &report)?;
                            progress.add(
                                1,
                                self.plan[trainer.steps_done() as usize - 1]
                                    .iter()
                                    .map(|&p| self.learned.all[p].1)
                                    .sum(),
                            );
                            progress.note(format!("loss {:.4}", report.loss));
                        }
                        RunEvent::Checkpoint => {
                            if let Some(held_out) = self.held_out {
                                let is_best = log.measured(trainer.steps_done(), &measure(trainer, held_out)?)?;
                                if is_best {
                                    trainer.save(&files.best)?;
                                }
                            }
                        }
                    }
                    since = Instant::now();
                    stopped = stop.interrupted().is_some();
                    Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                },
            )
            .map_err(|Failed(error)| error)?;
        progress.finish_and_clear();
        let done = trainer.steps_done() as usize;
        stop.check(stopped && done < plan.len(), done, plan.len(), "steps")?;
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
        self.report(&log, kept, trainer.n_parameters(), &seconds)?;
        files.remove()
    }

    fn report(&self, log: &Log, kept: usize, parameters: usize, seconds: &[f64]) -> Result<()> {
        let output = self.cli.output.display();
        say(format_args!(
            "{} examples, {} steps, {parameters} numbers learned; the state after step {kept} -> {output}",
            self.learned.all.len(),
            self.plan.len()
        ))?;
        let of =
            |step: usize| log.figures.iter().find(|(known, _)| *known as usize == step).map(|(_, figures)| figures);
        if let (Some(before), Some(after)) = (of(0), of(kept)) {
            for (name, value) in before {
                let after = after.get(name).map_or_else(|| "undefined".to_owned(), |value| format!("{value:.4}"));
                say(format_args!("held out, {name}: {value:.4} -> {after}"))?;
            }
        }
        if self.cli.method == Method::Lora {
            say(format_args!("use it with --adapter {output}"))?;
        }
        let Some(path) = &self.cli.json else { return Ok(()) };
        let held_out: Vec<Value> =
            log.figures.iter().map(|(step, figures)| json!({"step": step, "figures": figures})).collect();
        let report = json!({
            "program": program(PROGRAM), "objective": format!("{:?}", self.cli.objective).to_lowercase(),
            "examples": self.learned.all.len(), "held_out_examples": self.held_out.map(|held_out| held_out.all.len()),
            "steps": self.plan.len(), "kept_step": kept, "parameters": parameters, "held_out": held_out,
            "seconds_per_step": seconds, "peak_gigabytes": peak_memory().map(|bytes| bytes as f64 / 1e9),
        });
        write_json(path, PROGRAM, &report)
    }
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

/// `OUTPUT.log.jsonl`: a line for each step and for each look at the held-out rows.
struct Log {
    file: File,
    /// What held-out rows said, by the number of steps.
    figures: Vec<(u64, BTreeMap<String, f64>)>,
    /// The smallest loss of held-out rows, and after which step.
    best: Option<(u64, f64)>,
}

impl Log {
    /// A new one, unless a checkpoint says that a run is resumed: then its steps beyond the checkpoint are done again, and lines of them
    /// come twice.
    fn open(files: &Files) -> Result<Self> {
        let resumed = files.checkpoint.exists();
        let path = &files.log;
        let mut found = Self {
            file: OpenOptions::new()
                .create(true)
                .append(resumed)
                .write(true)
                .truncate(!resumed)
                .open(path)
                .with_context(|| format!("cannot write {}", path.display()))?,
            figures: Vec::new(),
            best: None,
        };
        if !resumed {
            return Ok(found);
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        for line in text.lines() {
            // The last line may be cut off by what ended the run.
            let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
            let step = entry["step"].as_u64().unwrap_or_default();
            if let Some(figures) = entry["held_out"].as_object() {
                let figures = figures.iter().filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
                found.note(step, figures.collect());
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(found.file).context("cannot write the log")?;
        }
        Ok(found)
    }

    fn step(&mut self, step: u64, report: &StepReport) -> Result<()> {
        let StepReport { loss, grad_norm, learning_rate, count } = report;
        self.line(&json!({"step": step, "loss": loss, "grad_norm": grad_norm, "learning_rate": learning_rate, "count": count}))
    }

    /// Takes note of what held-out rows say; whether no loss before was as small.
    fn measured(&mut self, step: u64, figures: &Figures) -> Result<bool> {
        self.line(&json!({"step": step, "held_out": figures}))?;
        Ok(self.note(step, figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()))
    }

    fn note(&mut self, step: u64, figures: BTreeMap<String, f64>) -> bool {
        let loss = figures.get("loss").copied().unwrap_or(f64::INFINITY);
        // A state that is measured again, since the run was killed while it was kept, is kept now.
        let is_best = self.best.is_none_or(|(at, best)| at == step || loss < best);
        if is_best {
            self.best = Some((step, loss));
        }
        self.figures.retain(|(known, _)| *known != step);
        self.figures.push((step, figures));
        is_best
    }

    fn line(&mut self, entry: &Value) -> Result<()> {
        writeln!(self.file, "{entry}").context("cannot write the log")
    }
}

fn span(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}
