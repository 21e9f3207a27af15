use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::files::paths::{entries, folder, with_suffix};
use crate::states::shard::{FIRST_ROW, FORMAT, Shard, TABLE_ROWS};
use crate::{Difference, Error, Sharding, StatesSpec};

/// The files of one table: which rows lie in which, and what they are called.
#[derive(Debug)]
pub(super) struct Cut {
    path: PathBuf,
    spec: StatesSpec,
    per_shard: NonZeroUsize,
}

/// The place of a shard in its set, as its name says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    /// From 1.
    pub(super) index: usize,
    /// Shards of the set.
    pub(super) of: usize,
}

impl Cut {
    pub(super) fn new(path: PathBuf, spec: StatesSpec) -> Self {
        let row_bytes = 4 * spec.row_values() + 1; // the states, and whether they are there
        let per_shard = match spec.sharding {
            Sharding::Whole => spec.rows,
            Sharding::Rows(rows) => rows.get(),
            Sharding::Bytes(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX) / row_bytes,
        };
        Self { path, per_shard: NonZeroUsize::new(per_shard).unwrap_or(NonZeroUsize::MIN), spec }
    }

    pub(super) fn spec(&self) -> &StatesSpec {
        &self.spec
    }

    /// Whether files are named as shards of a set, be it one.
    pub(super) fn is_set(&self) -> bool {
        self.spec.sharding != Sharding::Whole
    }

    /// Number of files, at least 1: a table without rows is a file without rows.
    pub(super) fn len(&self) -> usize {
        self.spec.rows.div_ceil(self.per_shard.get()).max(1)
    }

    /// The file that a row lies in.
    pub(super) fn shard_of(&self, row: usize) -> usize {
        row / self.per_shard
    }

    pub(super) fn rows_of(&self, shard: usize) -> Range<usize> {
        let start = shard * self.per_shard.get(); // the number of a row, or 0
        start..self.spec.rows.min(start.saturating_add(self.per_shard.get()))
    }

    /// What a file is to hold.
    pub(super) fn shard(&self, index: usize) -> Shard {
        let rows = self.rows_of(index);
        let mut metadata = self.spec.metadata.clone();
        metadata.insert("format".into(), FORMAT.into());
        let mut path = self.path.clone();
        if self.is_set() {
            path = shard_path(&path, Number { index: index + 1, of: self.len() });
            metadata.insert(FIRST_ROW.into(), rows.start.to_string());
            metadata.insert(TABLE_ROWS.into(), self.spec.rows.to_string());
        }
        Shard { path, rows: rows.len(), layers: self.spec.layers.clone(), d_model: self.spec.d_model, metadata }
    }

    /// Refuses to put a table beside files of the same name that were cut otherwise: nobody could tell which of them is meant.
    pub(super) fn refuse_others(&self) -> Result<(), Error> {
        let of = self.is_set().then(|| self.len());
        let mut found: Vec<(Option<usize>, PathBuf)> =
            shards_of(&self.path)?.into_iter().map(|(number, path)| (Some(number.of), path)).collect();
        if of.is_some() {
            // A whole file is not in the way of another, which replaces it.
            let whole = [self.path.clone(), with_suffix(&self.path, PARTIAL)];
            found.extend(whole.into_iter().filter(|path| path.exists()).map(|path| (None, path)));
        }
        match found.into_iter().find(|&(before, _)| before != of) {
            Some((before, path)) => {
                let [before, now] = [before, of].map(|shards| shards.map(Into::into));
                Err(Error::SettingsDiffer { path, differences: vec![Difference { key: "shards".into(), before, now }] })
            }
            None => Ok(()),
        }
    }
}

impl StatesSpec {
    /// Bytes that the table will take on the disk, the ids beside it not counted: to be said before they are written.
    /// The space is not asked for at the start, files grow as rows come; a disk that is full ends the run with an error
    /// and keeps what is written.
    ///
    /// # Errors
    /// [`Error::StatesTooLarge`], [`Error::Serialize`].
    pub fn bytes(&self) -> Result<u64, Error> {
        self.check()?;
        let cut = Cut::new(PathBuf::new(), self.clone());
        (0..cut.len()).map(|shard| cut.shard(shard).layout().map(|layout| layout.length)).sum()
    }
}

/// What the file of a table is called until it is complete.
pub(super) const PARTIAL: &str = ".partial";

/// `x.safetensors` → `x-00002-of-00007.safetensors`.
pub(super) fn shard_path(path: &Path, Number { index, of }: Number) -> PathBuf {
    let (stem, extension) = split(path);
    let mut name = stem.to_owned();
    name.push(format!("-{index:05}-of-{of:05}"));
    name.push(extension);
    path.with_file_name(name)
}

/// `x-00002-of-00007.safetensors` → `x.safetensors`; `None` for a file that is not named as a shard.
pub(super) fn table_path(path: &Path) -> Option<PathBuf> {
    let (stem, extension) = split(path);
    let stem = stem.to_str()?;
    let start = stem[..stem.rfind("-of-")?].rfind('-')?;
    Number::parse(&stem.as_bytes()[start..])?;
    let mut name = OsStr::new(&stem[..start]).to_owned();
    name.push(extension);
    Some(path.with_file_name(name))
}

/// The shards of a table that are there, complete or not, in the order of their names.
pub(super) fn shards_of(path: &Path) -> Result<Vec<(Number, PathBuf)>, Error> {
    let extension = split(path).1.as_encoded_bytes();
    let mut found = named_alike(path, |name, rest| {
        let rest = rest.strip_suffix(PARTIAL.as_bytes()).unwrap_or(rest);
        Some((Number::parse(rest.strip_suffix(extension)?)?, path.with_file_name(name)))
    })?;
    found.sort();
    Ok(found)
}

/// What is read of the names beside a table that begin as its own does, and of what follows there.
pub(super) fn named_alike<T>(path: &Path, read: impl Fn(&OsStr, &[u8]) -> Option<T>) -> Result<Vec<T>, Error> {
    let stem = split(path).0.as_encoded_bytes();
    let of = |file: &PathBuf| {
        let name = file.file_name()?;
        read(name, name.as_encoded_bytes().strip_prefix(stem)?)
    };
    Ok(entries(folder(path))?.iter().filter_map(of).collect())
}

impl Number {
    /// Reads `-00002-of-00007`.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let (index, of) = std::str::from_utf8(text).ok()?.strip_prefix('-')?.split_once("-of-")?;
        let number = |text: &str| {
            let plain = text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| plain)
        };
        let number = Self { index: number(index)?, of: number(of)? };
        (1..=number.of).contains(&number.index).then_some(number)
    }
}

/// A file's name before and from `.safetensors`; any other name has nothing behind.
fn split(path: &Path) -> (&OsStr, &OsStr) {
    let extension = OsStr::new(".safetensors");
    match (path.file_stem(), path.extension()) {
        (Some(stem), Some(found)) if found == "safetensors" => (stem, extension),
        _ => (path.file_name().unwrap_or_default(), OsStr::new("")),
    }
}

#[cfg(test)]
mod tests {
    use judge_core::Layer;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let path = Path::new("a/x-1.safetensors");
        let name = shard_path(path, Number { index: 2, of: 123_456 });
        assert_eq!(name, Path::new("a/x-1-00002-of-123456.safetensors"));
        assert_eq!(table_path(&name).as_deref(), Some(path));
        assert_eq!([path, Path::new("x-of-y.safetensors"), Path::new("-of-00007")].map(table_path), [None, None, None]);
        assert_eq!(Number::parse(b"-00002-of-123456"), Some(Number { index: 2, of: 123_456 }));
        for wrong in [
            "",
            "-2-of-7",
            "-00000-of-00007",
            "-00008-of-00007",
            "-0000x-of-00007",
            "-+0002-of-00007",
            "00002-of-00007",
        ] {
            assert_eq!(Number::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn every_row_lies_in_one_shard() {
        for (rows, sharding, expected) in [
            (0, Sharding::Whole, &[(0, 0)][..]),
            (7, Sharding::Whole, &[(0, 7)]),
            (0, Sharding::Bytes(0), &[(0, 0)]),
            (1, Sharding::Bytes(0), &[(0, 1)]),
            (3, Sharding::Bytes(26), &[(0, 2), (2, 3)]),
            (4, Sharding::Bytes(38), &[(0, 2), (2, 4)]),
            (3, Sharding::Bytes(u64::MAX), &[(0, 3)]),
        ] {
            let spec = StatesSpec { rows, layers: vec![Layer(3)], d_model: 3, sharding, ..StatesSpec::default() };
            let cut = Cut::new("x".into(), spec); // 13 bytes per row
            let found: Vec<_> = (0..cut.len()).map(|shard| cut.rows_of(shard)).collect();
            assert_eq!(
                found.iter().map(|rows| (rows.start, rows.end)).collect::<Vec<_>>(),
                expected,
                "{rows} {sharding:?}"
            );
            assert!((0..rows).all(|row| found[cut.shard_of(row)].contains(&row)));
        }
    }
}
