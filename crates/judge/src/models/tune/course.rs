//! A run: its steps, what is measured between them, what is kept, and the folder at the end.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use judge_cli::args::files::program;
use judge_cli::args::words::{Words, in_a_shell};
use judge_cli::report::{write_json_if, write_marked};
use judge_cli::terminal::console::{counted, say, tell, usage};
use judge_cli::terminal::interrupt::Interrupts;
use judge_cli::terminal::memory::peak_memory;
use judge_cli::terminal::options::name_of;
use judge_cli::terminal::progress::Progress;
use judge_core::ModelInfo;
use judge_data::{Error, Input};
use judge_models::Dtype;
use judge_models::train::{Loss, Run, RunEvent, TrainError, TrainSettings, Trainer};
use serde_json::{Value, json};

use super::Cli;
use super::cli::{Method, PROGRAM};
use super::examples::Examples;
use super::files::{Files, refuse_existing};
use super::log::{Held, Log, Resumed};
use super::measure::{Figures, examples};
use super::prompt::AtEnd;
use super::settings::Chosen;
use super::{plot, prompt, settings, weights};

/// What is done, whatever is learned.
pub(super) struct Task<'a> {
    pub(super) cli: &'a Cli,
    pub(super) chosen: &'a Chosen,
    pub(super) files: &'a Files,
    /// The log, which no other run has; `None` in a dry run.
    pub(super) held: Option<&'a Held>,
    /// The rows that are learned from.
    pub(super) input: &'a Input,
    /// Those that are held out.
    pub(super) held_out: Option<&'a Input>,
    pub(super) data: String,
    pub(super) reader: String,
    /// How marks are asked for whose layers may be weighed.
    pub(super) weighed: Option<&'a AtEnd>,
}

/// A run that is about to begin.
pub(super) struct Course<'a, E> {
    pub(super) task: &'a Task<'a>,
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

    /// What learns. A setting that cannot be is called as its option.
    fn trainer<L: Loss<Example = E>>(&self, loss: L, settings: TrainSettings) -> Result<Trainer<L>> {
        Trainer::new(self.folder, loss, settings).map_err(|error| match error {
            TrainError::Setting { setting: "tuning.rank", found, expected } => {
                usage(format!("--rank is {found}, expected {expected}"))
            }
            TrainError::Setting { setting: "tuning.alpha", found, expected } => {
                usage(format!("--alpha is {found}, expected {expected}"))
            }
            error => error.into(),
        })
    }

    /// Says what a run would take, by its largest step.
    pub(super) fn dry_run<L: Loss<Example = E>>(&self, loss: L, settings: TrainSettings) -> Result<()> {
        let mut trainer = self.trainer(loss, settings)?;
        let size = |step: &Vec<usize>| step.iter().map(|&place| self.learned.all[place].1).sum::<usize>();
        let largest = (0..self.plan.len()).max_by_key(|&step| size(&self.plan[step])).unwrap_or_default();
        let start = Instant::now();
        trainer.step(&self.batch(largest as u64))?;
        let seconds = start.elapsed().as_secs_f64() * self.tokens() as f64 / size(&self.plan[largest]) as f64;
        say(format_args!(
            "{}, {} of {}, {}; {} numbers are learned",
            counted(self.learned.all.len(), "example"),
            counted(self.plan.len(), "step"),
            counted(self.task.chosen.epochs as usize, "epoch"),
            counted(self.tokens(), "token"),
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
        let Self { task: Task { cli, files, .. }, plan, .. } = self;
        // Without a checkpoint, what lies there is no work that could be resumed.
        if cli.write.overwrite && !files.checkpoint.exists() {
            files.remove()?;
        }
        let measure = |tuned: &Trainer<L>, held_out: &Examples<E>| {
            let loss = self.loss_of(tuned, &examples(held_out), "the held-out rows")?;
            anyhow::Ok(measure(tuned, held_out)?.into_iter().chain([("loss", loss)]).collect::<Figures>())
        };
        let mut trainer = self.trainer(loss, settings)?;
        let every = cli.every.unwrap_or_else(|| plan.len().div_ceil(self.task.chosen.epochs as usize));
        let mut resumed = None;
        if files.checkpoint.exists() {
            let best = files.best.exists() && trainer.resume(&files.best).is_ok();
            let best = best.then(|| trainer.steps_done());
            trainer.resume(&files.checkpoint).map_err(|error| match error {
                TrainError::OtherRun { what, expected, found } => {
                    let differences = settings::differences(what, &found, &expected);
                    Error::SettingsDiffer { path: files.checkpoint.clone(), differences }.into()
                }
                error => anyhow::Error::from(error),
            })?;
            if !cli.model.quiet {
                tell(format_args!("resuming: {} of {} steps are done", trainer.steps_done(), plan.len()));
            }
            resumed = Some(Resumed { done: trainer.steps_done(), best });
        }
        let mut log = Log::open(files, self.task.held.context("a run has its log")?, resumed)?;
        if resumed.is_none() {
            // From here on a run that is killed resumes, also while held-out rows are measured.
            trainer.save(&files.checkpoint)?;
        }
        let is_enough = |log: &Log, step| cli.patience.is_some_and(|most| log.since_best(step) >= most);
        if (trainer.steps_done() as usize) < plan.len() && !is_enough(&log, trainer.steps_done()) {
            // No run with steps left has written it.
            refuse_existing(&cli.output)?;
        }
        let left = plan.len().saturating_sub(trainer.steps_done() as usize);
        let progress = Progress::new("tuning", left, cli.model.quiet);
        let stop = Interrupts::catch()?;
        if let (Some(held_out), true) = (self.held_out, log.figures.is_empty() && trainer.steps_done() == 0) {
            log.measured(0, &measure(&trainer, held_out)?)?;
        }
        let run = Run { checkpoint: Some(&files.checkpoint), every: every as u64 };
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
                anyhow::Ok(if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            };
            trainer.run(&run, |step| anyhow::Ok(self.batch(step)), observe).map_err(|error| self.explained(error))?;
        }
        progress.finish_and_clear();
        let done = trainer.steps_done() as usize;
        stop.check(stopped && done < plan.len(), done, plan.len(), "steps")?;
        let stopped_early = done < plan.len();
        if stopped_early {
            log.stopped_early(done as u64, log.since_best(done as u64))?;
        }
        let kept = match (self.held_out, log.best) {
            (Some(_), Some((best, _))) => {
                trainer.resume(&files.best)?;
                if log.gained().is_none() {
                    tell(format_args!(
                        "note: the loss of the held-out rows was smallest before the first step; the folder has the best of the \
                         later states, that after step {best}"
                    ));
                }
                best as usize
            }
            _ => done,
        };
        // What is said of the judge is said of the folder that is written.
        let is_rounded = trainer.round_as_written(None);
        let written = self.held_out.filter(|_| is_rounded).map(|held_out| measure(&trainer, held_out)).transpose()?;
        // The same rows before the first step and at the end; of other rows it would be another loss. No step looked at
        // what the last one made, so this comes before anything is written.
        let after = self.loss_of(&trainer, &self.batch(0), "the first step's rows")?;
        let loss = log.losses.get(&1).map(|&first| [first, after]);
        if !trainer.is_written(&cli.output, None) {
            refuse_existing(&cli.output)?;
            trainer.write(&cli.output, None)?;
        }
        if let (Some(theta), Some(asked)) = (trainer.layer_weights(), self.task.weighed) {
            let tuned = weights::tuned(self.base, self.folder, &cli.output, self.task.chosen.method)?;
            weights::save(&files.weights, theta, asked, (&tuned, self.learned.all.len(), cli.cross_entropy))?;
        }
        let (parameters, dtype) = (trainer.n_parameters(), trainer.stored_dtype());
        let ended = Ended { done, kept, parameters, seconds: &seconds, loss, written: written.as_ref(), dtype };
        self.report(&log, &ended)?;
        files.remove()
    }

    /// The mean loss of examples, of which `rows` says what they are.
    ///
    /// # Errors
    /// If it is not finite, and those of [`Trainer::loss`].
    fn loss_of<L: Loss<Example = E>>(&self, tuned: &Trainer<L>, examples: &[E], rows: &str) -> Result<f64> {
        let (loss, steps) = (tuned.loss(examples)?, tuned.steps_done());
        if loss.is_finite() {
            return Ok(loss);
        }
        let found = anyhow!("after {} the loss of {rows} is {loss}", counted(steps as usize, "step"));
        Err(if steps > 0 { found.context(self.diverges("")) } else { found })
    }

    fn diverges(&self, rows: &str) -> String {
        format!("training diverges{rows}: give a lower --lr; it is {:e}", self.task.chosen.lr)
    }

    /// The error of a step with the rows that it is of, and what to do; any other as it is.
    fn explained(&self, error: anyhow::Error) -> anyhow::Error {
        let rows = match error.downcast_ref() {
            Some(TrainError::Diverged { step, first, last, .. }) => {
                let places = &self.plan[*step as usize][*first..=*last];
                let mut ids: Vec<&str> = places.iter().map(|&place| self.learned.ids[place].as_str()).collect();
                ids.dedup();
                format!(" on the {} {}", if ids.len() == 1 { "row" } else { "rows" }, ids.join(", "))
            }
            Some(TrainError::Overflow { .. }) => String::new(),
            _ => return error,
        };
        error.context(self.diverges(&rows))
    }

    fn report(&self, log: &Log, ended: &Ended<'_>) -> Result<()> {
        let (Ended { done, kept, parameters, seconds, loss, written, dtype }, steps) = (*ended, self.plan.len());
        let Task { cli, chosen, files, .. } = self.task;
        let output = cli.output.display();
        if done < steps {
            let measurements = counted(log.since_best(done as u64), "measurement");
            say(format_args!(
                "stopped early, after step {done} of {steps}: {measurements} of held-out rows in a row had no smaller loss"
            ))?;
        }
        say(format_args!(
            "{}, {}, {parameters} numbers learned; the state after step {kept} -> {output}",
            counted(self.learned.all.len(), "example"),
            counted(done, "step"),
        ))?;
        if let Some([before, after]) = loss {
            say(format_args!("loss of the first step's rows: {before:.4} -> {after:.4}"))?;
            if after > before {
                tell(if log.gained().is_some() {
                    "note: the loss has grown on rows that were learned from, those of the first step, though not on held-out rows"
                } else {
                    "note: the loss has grown on rows that were learned from: the judge is worse than the model that it began with; \
                     lower --lr"
                });
            }
        }
        let of = |step: usize| log.figures.get(&(step as u64));
        if let (Some(before), Some(after)) = (of(0), of(kept)) {
            for (name, value) in before {
                let after = written.map_or(after.get(name), |written| written.get(name.as_str()));
                let after = after.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.4}"));
                say(format_args!("held out, {name}: {value:.4} -> {after}"))?;
            }
        }
        if let (Some(learned), Some(written)) =
            (of(kept).and_then(|figures| figures.get("loss")), written.and_then(|figures| figures.get("loss")))
        {
            tell(format_args!(
                "note: the folder is written in {dtype}, as the one that training began from: the loss of held-out rows was \
                 {learned:.4} before the weights were rounded, and is {written:.4}"
            ));
        }
        let words = match chosen.method {
            Method::Lora => {
                let words = Words::default()
                    .option_if("--model", cli.model.model.clone())
                    .flag("--embedded", cli.model.embedded);
                words.path("--adapter", &cli.output)
            }
            Method::Full => Words::default().path("--model", &cli.output),
        };
        // An adapter is measured over a base that is not rounded.
        let in_f32 = (chosen.method == Method::Lora && dtype != Dtype::F32).then(|| Dtype::F32.to_string());
        let words =
            words.path_if("--weights", cli.learn_weights.then_some(&*files.weights)).option_if("--dtype", in_f32);
        let words = prompt::words(words, cli, chosen.objective);
        say(format_args!("use it with {}: {}", in_a_shell(&words.list), self.task.reader))?;
        let objective = name_of(chosen.objective);
        if let Some(path) = &cli.plot {
            write_marked(path, PROGRAM, &plot::of(log, &objective, kept as u64)?)?;
        }
        write_json_if(cli.json.as_deref(), PROGRAM, || {
            let held_out: Vec<Value> =
                log.figures.iter().map(|(step, figures)| json!({"step": step, "figures": figures})).collect();
            Ok(json!({
                "program": program(PROGRAM), "objective": objective, "recipe": chosen.recipe.map(name_of),
                "settings": chosen.to_json(), "read_by": self.task.reader,
                "examples": self.learned.all.len(), "held_out_examples": self.held_out.map(|held_out| held_out.all.len()),
                "steps": steps, "steps_done": done, "stopped_early": done < steps, "kept_step": kept, "parameters": parameters, "held_out": held_out,
                "held_out_as_written": written,
                "loss_of_first_rows": loss, "seconds_per_step": seconds, "peak_gigabytes": peak_memory().map(|bytes| bytes as f64 / 1e9),
            }))
        })
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
    /// What held-out rows say of the folder, where its weights are rounded.
    written: Option<&'a Figures>,
    /// That of the model that training began from.
    dtype: Dtype,
}

fn span(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}
