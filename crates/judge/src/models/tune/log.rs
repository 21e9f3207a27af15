//! `OUTPUT.log.jsonl`: a line for each step and for each look at the held-out rows, and what they come to.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_cli::terminal::console::tell;
use judge_data::{Error, Locking, open_locked};
use judge_models::train::StepReport;
use serde_json::{Value, json};

use super::files::Files;
use super::measure::Figures;

/// The file of a log, which one process at a time has, from before any work on: two runs with one output would train over each other.
pub(super) struct Held {
    file: File,
    path: PathBuf,
    is_new: bool,
}

impl Held {
    /// Takes it, and makes it if it is not there.
    ///
    /// # Errors
    /// If another run has it, or the system refuses.
    pub(super) fn take(path: &Path) -> Result<Self> {
        let is_new = !path.exists();
        let file = match open_locked(path, Locking::Exclusive) {
            Err(Error::NoLocks { .. }) => {
                tell("note: this file system has no locks; make sure that no other run has the same --output");
                open_locked(path, Locking::None)?
            }
            Err(error @ Error::Locked { .. }) => {
                return Err(error)
                    .context("another run of `judge tune` has this --output: let it end, or name another");
            }
            file => file?,
        };
        Ok(Self { file, path: path.to_owned(), is_new })
    }
}

impl Drop for Held {
    /// A run that ends before its first line leaves nothing.
    fn drop(&mut self) {
        if self.is_new && self.file.metadata().is_ok_and(|found| found.len() == 0) {
            // Nobody is left to be told; an empty log is in nobody's way.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a file is a log of this command: lines of JSON that name a step. The first may be all that a full disk took of it.
pub(super) fn is_log(path: &Path) -> bool {
    let mut line = String::new();
    let first = File::open(path).and_then(|file| BufReader::new(file.take(1 << 16)).read_line(&mut line));
    let begins = [r#"{"count":"#, r#"{"held_out":"#, r#"{"step":"#];
    first.is_ok()
        && match serde_json::from_str::<Value>(&line) {
            Ok(entry) => entry["step"].is_u64(),
            Err(_) => !line.ends_with('\n') && begins.iter().any(|begin| line.starts_with(begin)),
        }
}

/// What a run has that is resumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resumed {
    /// The steps that its checkpoint has.
    pub(super) done: u64,
    /// The step whose state is kept as the best.
    pub(super) best: Option<u64>,
}

/// The log of a run.
pub(super) struct Log {
    file: File,
    /// The loss of each step, by the number of steps with it.
    pub(super) losses: BTreeMap<u64, f64>,
    /// What held-out rows said, by the number of steps.
    pub(super) figures: BTreeMap<u64, BTreeMap<String, f64>>,
    /// After which step the loss of held-out rows was smallest, that before the first one aside, and that loss. Its state is kept.
    pub(super) best: Option<(u64, f64)>,
}

impl Log {
    /// A new one, or that of a run that is resumed. Steps beyond its checkpoint are done again, perhaps with looks at held-out
    /// rows after other steps: what it says of them counts no more, but for the step whose state is kept as the best.
    /// Lines of them come twice. No state but the one that is kept is the best, whatever was measured of others.
    pub(super) fn open(files: &Files, held: &Held, resumed: Option<Resumed>) -> Result<Self> {
        let path = &files.log;
        let unwritten = || format!("cannot write {}", path.display());
        let file = held.file.try_clone().with_context(unwritten)?;
        let mut found = Self { file, losses: BTreeMap::new(), figures: BTreeMap::new(), best: None };
        let Some(Resumed { done, best }) = resumed else {
            found.file.set_len(0).with_context(unwritten)?;
            return Ok(found);
        };
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        for line in text.lines() {
            // The last line may be cut off by what ended the run.
            let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
            let step = entry["step"].as_u64().unwrap_or_default();
            if step > done && best != Some(step) {
                continue;
            }
            found.losses.extend(entry["loss"].as_f64().map(|loss| (step, loss)));
            if let Some(figures) = entry["held_out"].as_object() {
                let figures = figures.iter().filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
                found.figures.insert(step, figures.collect());
            }
        }
        found.best = best.and_then(|best| Some((best, found.loss_after(best)?)));
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(found.file).context("cannot write the log")?;
        }
        Ok(found)
    }

    pub(super) fn step(&mut self, step: u64, report: &StepReport) -> Result<()> {
        let StepReport { loss, grad_norm, learning_rate, count } = report;
        self.losses.insert(step, *loss);
        self.line(&json!({"step": step, "loss": loss, "grad_norm": grad_norm, "learning_rate": learning_rate, "count": count}))
    }

    /// Takes note of what held-out rows say; whether this step's state is the best, to be kept.
    pub(super) fn measured(&mut self, step: u64, figures: &Figures) -> Result<bool> {
        self.line(&json!({"step": step, "held_out": figures}))?;
        self.figures.insert(step, figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect());
        let is_best = |loss: &f64| step > 0 && self.best.is_none_or(|(_, best)| *loss < best);
        let best = self.loss_after(step).filter(is_best).map(|loss| (step, loss));
        self.best = best.or(self.best);
        Ok(best.is_some())
    }

    /// How many measurements in a row, up to a step, had no smaller loss than the best before them, also that before the first step.
    pub(super) fn since_best(&self, step: u64) -> usize {
        let best = self.gained().unwrap_or(0);
        self.figures.keys().filter(|&&at| best < at && at <= step).count()
    }

    /// The best step, where the loss of held-out rows is smaller after it than before the first one.
    pub(super) fn gained(&self) -> Option<u64> {
        let (step, loss) = self.best?;
        self.loss_after(0).is_none_or(|before| loss < before).then_some(step)
    }

    /// That the run stops here, and why.
    pub(super) fn stopped_early(&mut self, step: u64, measurements: usize) -> Result<()> {
        self.line(&json!({"step": step, "stopped_early": {"measurements_without_a_smaller_loss": measurements}}))
    }

    /// That of held-out rows, where it was measured.
    fn loss_after(&self, steps: u64) -> Option<f64> {
        self.figures.get(&steps)?.get("loss").copied()
    }

    fn line(&mut self, entry: &Value) -> Result<()> {
        writeln!(self.file, "{entry}").context("cannot write the log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which look was the best is known of states alone that a resumed run still has.
    #[test]
    fn what_is_beyond_the_checkpoint_counts_where_its_state_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::of(&folder.path().join("tuned"));
        let lines =
            [(3, 2.0), (6, 1.5), (9, 1.0)].map(|(step, loss)| json!({"step": step, "held_out": {"loss": loss}}));
        fs::write(&files.log, lines.map(|line| format!("{line}\n")).concat()).unwrap();
        let held = Held::take(&files.log).unwrap();
        for (done, best, expected) in [(6, 6, (6, 1.5)), (6, 9, (9, 1.0)), (4, 3, (3, 2.0))] {
            let log = Log::open(&files, &held, Some(Resumed { done, best: Some(best) })).unwrap();
            assert_eq!(log.best, Some(expected));
        }
    }

    /// A run that never gains keeps the best state that it has: not the one that it began from, and of an older version's run, which kept
    /// none, not what only the log knows.
    #[test]
    fn the_best_is_a_state_after_a_step_that_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::of(&folder.path().join("tuned"));
        let held = Held::take(&files.log).unwrap();
        let mut log = Log::open(&files, &held, None).unwrap();
        let measured = |log: &mut Log, step, loss| log.measured(step, &[("loss", loss)].into_iter().collect()).unwrap();
        let kept = [(0, 1.5), (3, 1.7), (6, 1.6), (9, 1.8)].map(|(step, loss)| measured(&mut log, step, loss));
        assert_eq!(kept, [false, true, true, false]);
        assert_eq!((log.best, log.gained(), log.since_best(9)), (Some((6, 1.6)), None, 3));

        let mut log = Log::open(&files, &held, Some(Resumed { done: 9, best: None })).unwrap();
        assert_eq!((log.best, log.since_best(9)), (None, 3));
        assert!(measured(&mut log, 12, 1.75) && measured(&mut log, 15, 1.4));
        assert_eq!((log.gained(), log.since_best(15)), (Some(15), 0));
    }
}
