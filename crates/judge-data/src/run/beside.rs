//! What lies beside an output, and whether it is a run's.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::paths::with_suffix;
use crate::run::journal::is_journal;
use crate::{Error, OutputProblem};

/// Refuses an output beside which a run would write over a file that no run has written.
///
/// # Errors
/// [`Error::Output`]; [`Error::Io`].
pub(crate) fn refuse_foreign_beside(path: &Path, target: &Path) -> Result<(), Error> {
    let [journal, sorted] = [".partial", ".partial.sorted"].map(|suffix| with_suffix(target, suffix));
    refuse_foreign_journal(path, &journal, [sorted])
}

/// Refuses a journal that is none, and what is there of a run's files although no journal is.
///
/// # Errors
/// [`Error::Output`]; [`Error::Io`].
pub(crate) fn refuse_foreign_journal(
    path: &Path,
    journal: &Path,
    of_run: impl IntoIterator<Item = PathBuf>,
) -> Result<(), Error> {
    let runs = journal.exists();
    if runs && !is_journal(journal)? {
        return Err(taken(path, journal.to_path_buf()));
    }
    for file in of_run {
        if !runs && !is_empty(&file)? {
            return Err(taken(path, file));
        }
    }
    Ok(())
}

pub(crate) fn taken(path: &Path, by: PathBuf) -> Error {
    Error::Output { path: path.to_path_buf(), problem: OutputProblem::Taken { by } }
}

/// Whether there is no file, or one without content.
pub(crate) fn is_empty(path: &Path) -> Result<bool, Error> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.is_file() && metadata.len() == 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::io("look at", path)(error)),
    }
}
