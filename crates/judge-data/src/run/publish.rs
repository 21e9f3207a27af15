//! The last step of a run: its file and its record, put in place.

use std::path::{Path, PathBuf};

use crate::files::atomic::{remove, rename};
use crate::files::paths::with_suffix;
use crate::run::journal::Journal;
use crate::{Error, Layout, RunRecord, files::fault, record_path, save};

/// Completes what [`Run::finish`](crate::Run::finish) has begun.
pub(super) fn finish_interrupted(
    target: &Path,
    journal: Journal,
    remaining: &[u8],
    layout: Layout,
) -> Result<(), Error> {
    let record = serde_json::from_slice(remaining)
        .map_err(|source| Error::Document { path: journal.path().to_path_buf(), source })?;
    let sorted = sorted_path(target);
    // Whether the output is in place already is not asked: to write the same bytes again does no harm.
    journal.assemble(&sorted, layout)?;
    publish(target, &sorted, &record, journal)
}

/// The last step, to be taken as often as it is interrupted.
pub(super) fn publish(target: &Path, sorted: &Path, record: &RunRecord, journal: Journal) -> Result<(), Error> {
    let record_path = record_path(target);
    fault::point();
    remove(&record_path)?;
    fault::point();
    rename(sorted, target)?;
    fault::point();
    save(&record_path, record)?;
    fault::point();
    journal.remove()
}

pub(super) fn sorted_path(target: &Path) -> PathBuf {
    with_suffix(target, ".partial.sorted")
}
