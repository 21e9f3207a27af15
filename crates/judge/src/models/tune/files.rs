//! The files beside the folder that is written.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_cli::args::files::beside;
use judge_cli::terminal::console::usage;
use judge_data::Error;

use super::cli::Cli;

/// Their names.
pub(super) struct Files {
    pub(super) log: PathBuf,
    pub(super) checkpoint: PathBuf,
    pub(super) best: PathBuf,
    pub(super) states: PathBuf,
    pub(super) weights: PathBuf,
}

impl Files {
    /// Those of a folder.
    pub(super) fn of(output: &Path) -> Self {
        let of = |what| beside(output, what);
        let (checkpoint, best) = (of("checkpoint.safetensors"), of("best.safetensors"));
        Self { log: of("log.jsonl"), checkpoint, best, states: of("states"), weights: of("weights.json") }
    }

    /// Refuses to replace what no run of this command has left.
    pub(super) fn check(&self, cli: &Cli) -> Result<()> {
        // A run that was killed at its end has the checkpoint and the folder, and finishes what is missing.
        if !cli.dry_run && !self.checkpoint.exists() {
            refuse_existing(&cli.output)?;
        }
        // A run that is resumed goes on with its own.
        let is_new = !self.checkpoint.exists() && !cli.write.overwrite;
        let weights = cli.learn_weights.then_some(&self.weights);
        // States without a checkpoint are of a run that did not begin; whether they fit is seen when they are opened.
        let mut own = [&self.log, &self.best].into_iter().chain(weights);
        // An empty file is what a full disk leaves.
        let has_content = |path: &Path| std::fs::metadata(path).is_ok_and(|found| found.len() > 0);
        match own.find(|path| is_new && has_content(path)) {
            Some(path) => Err(Error::OutputExists { path: path.clone(), differences: Vec::new() }.into()),
            None => Ok(()),
        }
    }

    /// Removes what a run keeps while it lasts.
    pub(super) fn remove(&self) -> Result<()> {
        for path in self.checkpoints().chain([self.states.clone()]).filter(|path| path.exists()) {
            std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// The states of the trainer, and the names that they have while they are written.
    pub(super) fn checkpoints(&self) -> impl Iterator<Item = PathBuf> {
        [&self.checkpoint, &self.best].into_iter().flat_map(|path| [path.clone(), beside(path, "partial")])
    }
}

/// Refuses what is there, but an empty folder.
///
/// # Errors
/// A usage error that names it.
pub(super) fn refuse_existing(output: &Path) -> Result<()> {
    let is_empty = std::fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_none());
    if output.exists() && !is_empty {
        return Err(usage(format!("{} exists and is no empty folder; name another with --output", output.display())));
    }
    Ok(())
}
