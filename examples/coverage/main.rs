//! How often the intervals of judge-metrics hold the truth, by simulation.
//!
//! `cargo run --release --example coverage`

mod agreement;
mod bootstraps;
mod calibrated_mean;
mod calibration;
mod correlation;
mod draw;
mod labels;
mod means;
mod prediction_powered;
mod ranking;
mod simulations;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;
use clap::Parser;
use judge_data::{AtomicFile, Outputs};
use judge_examples::console::{progress, say, start, table, usage};
use judge_examples::files::{OverwriteArgs, program};
use judge_examples::interrupt::{Interrupts, Stopped};
use judge_metrics::{Error, Proportion};
use serde_json::json;

use crate::draw::Draw;
use crate::simulations::{Simulation, simulations};

/// Simulate how often intervals hold the truth.
///
/// Each line is one interval on one kind of data: so many samples are drawn from a population whose parameter is known, and the
/// share of intervals that hold it is the true coverage, with its own 95 % interval. Samples that leave the statistic undefined are counted apart.
/// A line whose nominal level is "power" is a test: its share is that of samples in which it finds what is there.
#[derive(Parser)]
#[command(name = "coverage", after_help = names())]
struct Cli {
    /// Samples drawn for each line, at least 100; 400 at most of what takes long
    #[arg(long, default_value_t = 2_000, value_name = "SAMPLES")]
    runs: usize,
    /// Only lines whose name contains this; the names are below
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Chooses the samples
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where the figures go
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    write: OverwriteArgs,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    if cli.runs < 100 {
        return Err(usage("--runs must be at least 100: fewer say nothing of a coverage"));
    }
    let wanted = |simulation: &Simulation| cli.only.as_ref().is_none_or(|text| simulation.name.contains(text.as_str()));
    let simulations: Vec<Simulation> = simulations().into_iter().filter(wanted).collect();
    if simulations.is_empty() {
        let text = cli.only.as_deref().unwrap_or_default();
        return Err(usage(format_args!("no line's name contains {text:?} of --only\n\n{}", names())));
    }
    Outputs::default().reports("coverage", &cli.json).overwrite(cli.write.overwrite).check()?;
    // Opened now: minutes later is too late to learn that it cannot be written.
    let json = cli.json.as_ref().map(AtomicFile::create).transpose()?;
    let stop = Interrupts::catch()?;
    let bar = progress("simulating", simulations.len(), cli.quiet);
    let mut lines = vec![
        ["interval", "n", "nominal", "coverage", "95 % of it", "samples", "undefined"].map(str::to_owned).to_vec(),
    ];
    let mut figures = Vec::new();
    for (number, simulation) in simulations.iter().enumerate() {
        let runs = simulation.most.map_or(cli.runs, |most| most.min(cli.runs));
        let Counts { held, missed } = count(cli.seed, simulation, runs, &stop)?;
        if let Some(signal) = stop.interrupted() {
            let (done, total) = (number, simulations.len());
            return Err(Stopped { signal, done, total, what: "lines", resumes: false }.into());
        }
        bar.inc(1);
        let coverage = Proportion { count: held, n: held + missed };
        let (estimate, interval) = (coverage.estimate()?, coverage.clopper_pearson(0.95)?);
        let undefined = runs - held - missed;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        lines.push(vec![
            simulation.name.to_owned(),
            simulation.n.to_string(),
            simulation.nominal.to_owned(),
            percent(estimate),
            format!("{} – {}", percent(interval.low), percent(interval.high)),
            runs.to_string(),
            undefined.to_string(),
        ]);
        figures.push(json!({
            "name": simulation.name, "n": simulation.n, "nominal": simulation.nominal, "runs": runs, "number": number,
            "coverage": estimate, "low": interval.low, "high": interval.high, "undefined": undefined,
        }));
    }
    bar.finish_and_clear();
    say(table(&lines).trim_end())?;
    if let Some(mut file) = json {
        let figures = json!({"runs": cli.runs, "seed": cli.seed, "simulations": figures});
        serde_json::to_writer_pretty(&mut file, &json!({"program": program("coverage"), "lines": figures}))?;
        file.commit()?;
    }
    Ok(())
}

/// The names that --only looks in, for the help.
fn names() -> String {
    let names: BTreeSet<&str> = simulations().iter().map(|simulation| simulation.name).collect();
    let names: Vec<&str> = names.into_iter().collect();
    format!("Names of the lines:\n  {}", names.join("\n  "))
}

struct Counts {
    held: usize,
    missed: usize,
}

/// Runs a simulation on all cores, until it is done or a signal stops it. A sample depends on the seed, the line's name and its own
/// number alone.
fn count(seed: u64, simulation: &Simulation, runs: usize, stop: &Interrupts) -> Result<Counts> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Counts> {
        let mut counts = Counts { held: 0, missed: 0 };
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs || stop.interrupted().is_some() {
                return Ok(counts);
            }
            match (simulation.holds)(&mut Draw::new(seed, simulation, run)) {
                Ok(true) => counts.held += 1,
                Ok(false) => counts.missed += 1,
                // Where one side always wins, a likelihood has no maximum.
                Err(error) if error.is_undefined() || matches!(error, Error::NoConvergence { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = Counts { held: 0, missed: 0 };
        for worker in workers {
            let part = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all.held += part.held;
            all.missed += part.missed;
        }
        Ok(all)
    })
}
