//! The files of a decision model as files: which adapter they name, and how they are copied.
//!
//! What they say is read in `folder.rs`. The hub's client, merges and full tuning ask here, so that a model answers alike
//! wherever its files went.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::is_same_folder;
use crate::folder::file::{self, FILES, Fetched, Reader, Written};
use crate::folder::named_adapter::{adapter_field, adapter_of};
use crate::folder::{names, read_json};
use crate::{Error, WeightsError};

/// The folders of the adapters that the files of a folder name, whether or not they are there; of nested ones the outermost.
pub(crate) fn adapters_in(home: &Path) -> Vec<String> {
    let named = [file::DECISION, file::JEV].into_iter().filter_map(|name| {
        let settings = read_json(&home.join(name)).ok()?;
        let adapter = adapter_of(name, &settings).ok()??;
        adapter.name.split('/').next().map(str::to_owned)
    });
    named.collect()
}

/// Files of a folder whose names say that they are about decisions and that nothing reads, sorted.
pub(super) fn unread(home: &Path) -> Vec<String> {
    let has = |name: &str| home.join(name).is_file();
    let is_unread = |name: &String| {
        let role = FILES.iter().find(|role| role.name == name);
        match role.map(|role| (role.reader, role.fetched)) {
            Some((Reader::Decisions, Fetched::With(settings))) => !has(settings),
            Some(_) => false,
            None => name.ends_with(".json") && ["temperature", "calibrat"].iter().any(|word| name.contains(word)),
        }
    };
    names(home).unwrap_or_default().into_iter().filter(is_unread).collect()
}

/// Copies the files of decisions from one folder to another, with the adapter that they name. One that is among those `merged` into the
/// weights of the new folder is left out, and no longer named. Returns the names of what was written.
///
/// # Errors
/// [`WeightsError::Read`] and [`Error::Write`], and those of a file of settings that is not JSON.
pub(crate) fn copy(from: &Path, to: &Path, merged: &[PathBuf]) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    let mut copy = |name: String| -> Result<(), Error> {
        let bytes =
            fs::read(from.join(&name)).map_err(|source| WeightsError::Read { path: from.join(&name), source })?;
        write(&to.join(&name), &bytes)?;
        names.push(name);
        Ok(())
    };
    let mut adapted = Vec::new();
    for role in FILES.iter().filter(|role| role.reader == Reader::Decisions && from.join(role.name).is_file()) {
        if role.written != Written::WithoutMergedAdapter {
            copy(role.name.to_owned())?;
            continue;
        }
        let settings = read_json(&from.join(role.name))?;
        match adapter_of(role.name, &settings) {
            Ok(Some(adapter)) if merged.iter().any(|merged| is_same(merged, &from.join(adapter.name))) => {
                adapted.push((role.name, settings));
            }
            Ok(Some(adapter)) => {
                copy(role.name.to_owned())?;
                for of_adapter in FILES.iter().filter(|role| role.reader == Reader::Adapter) {
                    let name = format!("{}/{}", adapter.name, of_adapter.name);
                    if from.join(&name).is_file() {
                        copy(name)?;
                    }
                }
            }
            _ => copy(role.name.to_owned())?,
        }
    }
    for (name, mut settings) in adapted {
        if let Some(fields) = settings.as_object_mut() {
            fields.insert(adapter_field(name).to_owned(), Value::Null);
        }
        write(&to.join(name), format!("{settings:#}\n").as_bytes())?;
        names.push(name.to_owned());
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Writes a file and the folder that it is in.
///
/// # Errors
/// [`Error::Write`].
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(path, bytes)).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Whether two folders are one adapter's: the same folder, or one and its copy.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    is_same_folder(one, other)
        || [file::ADAPTER_WEIGHTS, file::ADAPTER_PICKLE].into_iter().any(|name| {
            match (fs::read(one.join(name)), fs::read(other.join(name))) {
                (Ok(one), Ok(other)) => one == other,
                _ => false,
            }
        })
}
