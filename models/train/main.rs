//! Trains the small judge that ships in `models/tiny-judge`, from scratch: data, tokenizer, decoder.
//!
//! ```text
//! cargo run --release -p tiny-judge -- --out models/tiny-judge
//! ```
//!
//! A run that was stopped resumes at its last checkpoint when the same command is given again. The same seed gives the same
//! data and tokenizer on every machine, and the same weights on machines with the same instruction set.

mod data;
mod folder;
mod lesson;
mod start;
mod tokenizer;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use judge_data::Outputs;
use judge_metrics::correlation::spearman;
use judge_models::Dtype;
use judge_models::train::{
    AdamW, Completion, CompletionExample, Course, Mean, Run, RunEvent, Schedule, TrainSettings, Trainer, Tuning,
};
use tiny_judge::planted::{Draw, Item, Split, generate, item};
use tokenizers::Tokenizer;

/// Examples per step.
const BATCH: usize = 32;
/// Batches that are cut from one stretch of the data, so that each can have items of like length.
const STRETCH: usize = 16;
/// Items between the beginnings of two stretches: enough for one in which more than half of them are left out.
const ITEMS: usize = 3 * STRETCH * BATCH;
/// One in so many steps teaches answering, before the others teach judging.
const ANSWERING: u64 = 3;

/// Train the tiny judge on generated questions and answers.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Folder to write the model to; a checkpoint lies there until the run is complete
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Steps of 32 examples; the learning rate follows a schedule of this length
    #[arg(long, default_value_t = 5_400)]
    steps: u64,
    /// Seed of data, parameters and order
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Steps between checkpoints
    #[arg(long, default_value_t = 200)]
    checkpoint_every: u64,
    /// Also write the validation, test and shifted split, and 1,000 training items, as JSON lines
    #[arg(long, value_name = "DIR")]
    write_data: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    /// Replace files that this program did not write
    #[arg(long)]
    overwrite: bool,
}

fn main() -> Result<()> {
    let args = &Args::parse();
    if args.out.is_none() && args.write_data.is_none() {
        bail!("nothing to do: give --out DIR, --write-data DIR, or both");
    }
    if let Some(out) = &args.out {
        check_folder(args, out)?;
    }
    if let Some(dir) = &args.write_data {
        data::write(dir, args.seed, args.overwrite)?;
    }
    args.out.as_ref().map_or(Ok(()), |out| train(args, out))
}

/// Refuses, before any work, a folder in which something else lies than an unfinished training.
fn check_folder(args: &Args, out: &Path) -> Result<()> {
    match args.overwrite || checkpoint(out).is_file() {
        true => Ok(()),
        false => Ok(Outputs::default().folders([out]).check()?),
    }
}

fn checkpoint(out: &Path) -> PathBuf {
    out.join("checkpoint.safetensors")
}

fn train(args: &Args, out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let tokenizer = tokenizer::train(folder::D_VOCAB, folder::TOKENIZER_ITEMS, args.seed)?;
    folder::write(out, &tokenizer)?;

    let [begun, trained] = ["begun", "trained"].map(|name| out.join(name));
    start::write(&begun, &tokenizer, args.seed)?;

    let settings = TrainSettings {
        tuning: Tuning::Full,
        optimizer: AdamW { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weight_decay: 0.1 },
        schedule: Schedule {
            peak: 1.5e-3,
            warmup: args.steps.min(100),
            steps: args.steps,
            course: Course::Eased { floor: 0.05 },
        },
        mean: Mean::Examples,
        micro_batch: BATCH / 2,
        seed: args.seed,
        ..TrainSettings::default()
    };
    let mut trainer = Trainer::new(&begun, Completion, settings)?;
    let checkpoint = checkpoint(out);
    let say = |text: String| {
        if !args.quiet {
            eprintln!("{text}");
        }
    };
    say(format!("{} parameters, {} steps", trainer.n_parameters(), args.steps));

    let validation = generate(Split::Validation, 200, args.seed);
    let mut lessons =
        Lessons { tokenizer: &tokenizer, seed: args.seed, answering: args.steps / ANSWERING, stretch: None };
    let (mut start, mut loss, mut steps) = (Instant::now(), 0.0, 0.0);
    let run = Run { checkpoint: Some(&checkpoint), every: args.checkpoint_every };
    trainer.run(
        &run,
        |step| lessons.batch(step),
        |trainer, event| {
            let done = trainer.steps_done();
            match event {
                RunEvent::Step(report) => {
                    loss += report.loss;
                    steps += 1.0;
                    if done.is_multiple_of(50) || done == args.steps {
                        let rate = steps / start.elapsed().as_secs_f64();
                        say(format!("step {done}: loss {:.3}, {rate:.2} steps/s", loss / steps));
                        (start, loss, steps) = (Instant::now(), 0.0, 0.0);
                    }
                }
                RunEvent::Checkpoint => {
                    let agreement = agreement(trainer, &tokenizer, &validation)?;
                    say(format!("step {done}: Spearman on 200 validation items {agreement:.3}"));
                    start = Instant::now();
                }
            }
            Ok::<_, anyhow::Error>(ControlFlow::Continue(()))
        },
    )?;
    remove(&trained)?;
    trainer.write(&trained, Some(Dtype::Bf16))?;
    fs::rename(trained.join("model.safetensors"), out.join("model.safetensors"))?;
    remove(&trained)?;
    remove(&begun)?;
    fs::remove_file(&checkpoint)
        .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    Ok(())
}

/// Deletes a folder that this program wrote, if it is there.
fn remove(folder: &Path) -> Result<()> {
    if folder.is_dir() { Ok(fs::remove_dir_all(folder)?) } else { Ok(()) }
}

/// The batches of a run, by number.
struct Lessons<'a> {
    tokenizer: &'a Tokenizer,
    seed: u64,
    /// The first so many steps teach answering, the others judging.
    answering: u64,
    /// The stretch that was last asked for, and its batches.
    stretch: Option<(u64, Vec<Vec<CompletionExample>>)>,
}

impl Lessons<'_> {
    /// Batch number `step`: `STRETCH` batches share a stretch of the training items, sorted by length, and come in random order.
    fn batch(&mut self, step: u64) -> Result<Vec<CompletionExample>> {
        let (number, place) = (step / STRETCH as u64, step as usize % STRETCH);
        let batches = match self.stretch.take() {
            Some((cached, batches)) if cached == number => batches,
            _ => self.batches(number)?,
        };
        let batch = batches[place].clone();
        self.stretch = Some((number, batches));
        Ok(batch)
    }

    fn batches(&self, number: u64) -> Result<Vec<Vec<CompletionExample>>> {
        let answering = (number * STRETCH as u64) < self.answering;
        let mut lessons = Vec::with_capacity(STRETCH * BATCH);
        let mut index = number as usize * ITEMS;
        while lessons.len() < STRETCH * BATCH {
            let item = item(Split::Train, index, self.seed);
            if answering {
                lessons.extend(lesson::answering(self.tokenizer, &item)?);
            } else {
                lessons.push(lesson::judging(self.tokenizer, &item, item.scores[index % item.scores.len()])?);
            }
            index += 1;
        }
        lessons.sort_by_key(|lesson| lesson.tokens.len());
        let mut batches: Vec<Vec<CompletionExample>> =
            lessons.chunks(BATCH).map(<[CompletionExample]>::to_vec).collect();
        Draw::new(self.seed, u64::MAX - number).shuffle(&mut batches);
        Ok(batches)
    }
}

/// Spearman's correlation of the expected mark with the raters' mean.
fn agreement(trainer: &Trainer<Completion>, tokenizer: &Tokenizer, items: &[Item]) -> Result<f64> {
    let marks: Vec<u32> = (1..=5).filter_map(|mark| tokenizer.token_to_id(&mark.to_string())).collect();
    let mut judged = Vec::with_capacity(items.len());
    let prompts: Vec<_> = items.iter().map(|item| lesson::question(tokenizer, item)).collect::<Result<_>>()?;
    for logits in trainer.label_logits(&prompts, &marks)? {
        let odds: Vec<f64> = logits.iter().map(|&logit| f64::from(logit).exp()).collect();
        let sum: f64 = odds.iter().sum();
        judged.push(odds.iter().zip(1..).map(|(odds, mark)| f64::from(mark) * odds / sum).sum());
    }
    let human: Vec<f64> = items.iter().map(Item::human).collect();
    Ok(spearman(&judged, &human)?.estimate)
}
