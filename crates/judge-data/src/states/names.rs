//! The files of a table, complete or not, and those of others in their places.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use safetensors::SafeTensorError;

use crate::files::paths::with_suffix;
use crate::run::beside::{is_empty, refuse_foreign_journal, taken};
use crate::run::output::run_names;
use crate::states::cut::{Number, PARTIAL, named_alike, shard_path};
use crate::states::ids_path;
use crate::states::mapped::MappedStates;
use crate::{Error, OutputProblem};

/// Every name that a table at `path` may use: of one file, and of the shards of which something is there.
///
/// # Errors
/// [`Error::Io`] if the folder cannot be listed.
pub(crate) fn states_names(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let of_file = |file: &Path| {
        let ids = ids_path(file);
        let journal = with_suffix(&ids, PARTIAL);
        [file.to_path_buf(), with_suffix(file, PARTIAL), with_suffix(&journal, ".sorted"), journal, ids]
    };
    let mut names: Vec<PathBuf> = of_file(path).into();
    names.extend(run_names(path).into_iter().skip(1));
    for number in numbers_of(path)? {
        names.extend(of_file(&shard_path(path, number)));
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Ok(names)
}

/// Refuses a table where a file of another kind has one of its names, in one file or as a shard.
///
/// # Errors
/// [`Error::Output`] for a file that is no table of states, and for one in the place of what is kept beside a table;
/// [`Error::Safetensors`] for a table that was cut short, unless it may be overwritten; [`Error::Io`].
pub(crate) fn refuse_foreign_states(path: &Path, overwrite: bool) -> Result<(), Error> {
    refuse_foreign_file(path, overwrite)?;
    numbers_of(path)?.into_iter().try_for_each(|number| refuse_foreign_file(&shard_path(path, number), overwrite))
}

/// The same for one file of a table.
pub(super) fn refuse_foreign_file(path: &Path, overwrite: bool) -> Result<(), Error> {
    let ids = ids_path(path);
    let journal = with_suffix(&ids, PARTIAL);
    refuse_foreign_journal(path, &journal, [with_suffix(path, PARTIAL), with_suffix(&journal, ".sorted")])?;
    let table = if is_empty(path)? { None } else { Some(MappedStates::open(path)) };
    let is_table = matches!(table, Some(Ok(_)));
    match table {
        // A table that was cut short.
        Some(Err(Error::Safetensors { source: SafeTensorError::MetadataIncompleteBuffer, .. })) if overwrite => {}
        Some(Err(error @ Error::Safetensors { source: SafeTensorError::MetadataIncompleteBuffer, .. })) => {
            return Err(error);
        }
        Some(Err(_)) => {
            return Err(Error::Output { path: path.to_path_buf(), problem: OutputProblem::Foreign });
        }
        _ => {}
    }
    // Ids go before their states and come after them, so none are ever there alone.
    if !is_empty(&ids)? && !is_table { Err(taken(path, ids)) } else { Ok(()) }
}

/// Whether a file is a table of states with its ids beside it, which says itself how it was made.
pub(crate) fn is_states(path: &Path) -> bool {
    ids_path(path).exists() && MappedStates::open(path).is_ok()
}

/// The shards of a table of which any file is there.
fn numbers_of(path: &Path) -> Result<BTreeSet<Number>, Error> {
    let numbers = named_alike(path, |_, rest| Number::parse(rest.split(|&byte| byte == b'.').next()?))?;
    Ok(numbers.into_iter().collect())
}
