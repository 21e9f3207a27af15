//! How often the intervals of judge-metrics hold the truth, by simulation.
//!
//! `cargo bench -p judge-metrics --bench coverage [-- [--runs SAMPLES] [TEXT]]`: lines whose name contains TEXT, 2,000 samples each (400 at
//! most of what takes long). Each line is one interval on one kind of data: so many samples are drawn from a population whose parameter is
//! known, and the share of intervals that hold it is the true coverage, with its own 95 % interval. Samples that leave the interval
//! undefined are counted apart. A line whose nominal level is "power" is a test: its share is that of samples in which it finds what is
//! there.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a program for people

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

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, process, thread};

use judge_metrics::{Error, Proportion};

use crate::draw::Draw;
use crate::simulations::{Simulation, simulations};

/// Chooses the samples.
const SEED: u64 = 0;

fn main() -> Result<(), Error> {
    let (mut runs, mut text) = (2_000, String::new());
    let mut words = env::args().skip(1).filter(|word| word != "--bench"); // which cargo adds
    while let Some(word) = words.next() {
        match word.as_str() {
            "--runs" => {
                runs = words.next().and_then(|runs| runs.parse().ok()).unwrap_or_else(|| fail("--runs needs a number"))
            }
            _ => text = word,
        }
    }
    if runs < 100 {
        fail("--runs must be at least 100: fewer say nothing of a coverage");
    }
    let simulations: Vec<_> = simulations().into_iter().filter(|line| line.name.contains(&text)).collect();
    if simulations.is_empty() {
        fail("no line has this in its name");
    }
    println!(
        "{:<72} {:>6} {:>8} {:>9} {:>17} {:>8} {:>10}",
        "interval", "n", "nominal", "coverage", "95 % of it", "samples", "undefined"
    );
    for simulation in &simulations {
        let runs = simulation.most.map_or(runs, |most| most.min(runs));
        let Counts { held, missed } = count(simulation, runs)?;
        let coverage = Proportion { count: held, n: held + missed };
        let (estimate, interval) = (coverage.estimate()?, coverage.clopper_pearson(0.95)?);
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        println!(
            "{:<72} {:>6} {:>8} {:>9} {:>17} {:>8} {:>10}",
            simulation.name,
            simulation.n,
            simulation.nominal,
            percent(estimate),
            format!("{} – {}", percent(interval.low), percent(interval.high)),
            runs,
            runs - held - missed
        );
    }
    Ok(())
}

fn fail(problem: &str) -> ! {
    eprintln!("error: {problem}");
    process::exit(2)
}

struct Counts {
    held: usize,
    missed: usize,
}

/// Runs a simulation on all cores. A sample depends on the line's name and its own number alone.
fn count(simulation: &Simulation, runs: usize) -> Result<Counts, Error> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Counts, Error> {
        let mut counts = Counts { held: 0, missed: 0 };
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs {
                return Ok(counts);
            }
            match (simulation.holds)(&mut Draw::new(SEED, simulation, run)) {
                Ok(true) => counts.held += 1,
                Ok(false) => counts.missed += 1,
                // Where one side always wins, a likelihood has no maximum.
                Err(error) if error.is_undefined() || matches!(error, Error::NoConvergence { .. }) => {}
                Err(error) => return Err(error),
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
