//! What is said of plans of either kind.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use judge_cli::terminal::console::say;
use judge_data::{CommandPlan, Error, ShardPlan, load};

/// Says what a check has found: how many results of how many rows with how many scores, more lines, the digest of the results, and what is
/// wrong; an error if anything is.
pub(super) fn show(
    [rows, planned, scored]: [&impl Display; 3],
    lines: &[String],
    results: &impl Display,
    problems: &[String],
) -> Result<()> {
    say(format_args!("{rows} results of {planned} rows, {scored} with a score"))?;
    lines.iter().try_for_each(say)?;
    say(format_args!("results {results}"))?;
    if problems.is_empty() {
        return say("complete");
    }
    say("not complete")?;
    bail!("not complete: {}", problems.join("\n  "))
}

/// A line for each kind of rows, with how many there are.
pub(super) fn lines_of<K: Display, N: Display>(what: &str, rows: &BTreeMap<K, N>) -> Vec<String> {
    rows.iter().map(|(kind, rows)| format!("{what} {kind}: {rows}")).collect()
}

/// What went wrong with a plan; of a file of it that is not there also in which folder it is looked for.
pub(super) fn with_folder(plan: &Path, error: anyhow::Error) -> anyhow::Error {
    let absent = error.chain().find_map(|cause| match cause.downcast_ref::<Error>() {
        Some(Error::Io { path, source, .. }) if source.kind() == io::ErrorKind::NotFound => Some(path.clone()),
        _ => None,
    });
    let Some(absent) = absent.filter(|path| path.is_relative()) else { return error };
    let files: Vec<PathBuf> = match (load::<CommandPlan>(plan), load::<ShardPlan>(plan)) {
        (Ok(plan), _) => plan.files.into_iter().map(|file| file.path).collect(),
        (_, Ok(plan)) => plan.files.into_iter().map(|file| file.path).collect(),
        _ => Vec::new(),
    };
    match files.contains(&absent) {
        true => error.context(format!(
            "{}: its input {} is not in this folder; the paths of a plan are those that it was made with: start where it was made, or make it \
             with absolute paths",
            plan.display(),
            absent.display()
        )),
        false => error,
    }
}
