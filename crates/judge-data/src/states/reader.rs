use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use judge_core::Layer;

use crate::states::StatesRow;
use crate::states::cut::{Number, PARTIAL, shard_path, shards_of, table_path};
use crate::states::ids::ids_of;
use crate::states::mapped::MappedStates;
use crate::states::shard::{FIRST_ROW, TABLE_ROWS};
use crate::{Difference, Error};

/// A table of hidden states on disk, read through memory maps: only the rows that are asked for are fetched.
///
/// A safetensors file with three tensors: `states` f32 `[rows, layers, d_model]`, row k being input row k; `layers` i64
/// `[layers]`, Hugging Face's `hidden_states` numbers; `scored` u8 `[rows]`, 0 where a row could not be read and its
/// states are zero. Written by [`StatesWriter`](crate::StatesWriter), or by any program.
///
/// Or a set of shards `x-00001-of-00007.safetensors`, each of them such a file of some of the rows, in order, and of use alone. Their
/// metadata are the same but for `rows.first`, the row of the table that a shard begins with; `rows.total` is the table's number of rows.
#[derive(Debug)]
pub struct StatesFile {
    path: PathBuf,
    shards: Vec<MappedStates>,
    /// The first row of each shard.
    starts: Vec<usize>,
    rows: usize,
    metadata: BTreeMap<String, String>,
}

impl StatesFile {
    /// Opens the file `path`, or, where there is none, the shards that go by its name, and checks all headers. The files must not be
    /// changed while they are open.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Safetensors`] if a header is broken or a file is cut short; [`Error::Content`] if one
    /// of the tensors is absent or of another dtype or shape. Of a set, [`Error::Content`] if shards are missing, belong to sets of
    /// different sizes, overlap or leave rows out; [`Error::OtherRun`] if one has other metadata, layers or states of another
    /// width than the first.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let set = if path.exists() { Vec::new() } else { set(&path)? };
        if set.is_empty() {
            let file = MappedStates::open(&path)?;
            let (rows, metadata) = (file.rows, file.metadata.clone());
            return Ok(Self { path, shards: vec![file], starts: vec![0], rows, metadata });
        }
        let mut this = Self { path, shards: Vec::new(), starts: Vec::new(), rows: 0, metadata: BTreeMap::new() };
        for path in set {
            this.append(MappedStates::open(&path)?)?;
        }
        let total = this.metadata.get(TABLE_ROWS).cloned();
        match this.shards.last() {
            Some(last) if total != Some(this.rows.to_string()) => {
                let expected = total.unwrap_or_else(|| format!("a number as {TABLE_ROWS}"));
                Err(Error::content(&last.path, "rows of the table", expected, this.rows.to_string()))
            }
            _ => Ok(this),
        }
    }

    /// The name that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it was opened as one shard of a set: the name that the set goes by.
    pub fn table(&self) -> Option<PathBuf> {
        table_path(&self.path)
    }

    /// The files, in the order of their rows.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.shards.iter().map(|shard| shard.path.as_path())
    }

    /// Number of rows, unscored ones included.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The layers, in the order of the second axis.
    pub fn layers(&self) -> &[Layer] {
        self.shards.first().map_or(&[], |shard| shard.layers.as_slice())
    }

    /// Width of a state.
    pub fn d_model(&self) -> usize {
        self.shards.first().map_or(0, |shard| shard.d_model)
    }

    /// Settings and model fingerprint of the run that wrote it.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Whether a row has states. False for a row that does not exist.
    pub fn is_scored(&self, row: usize) -> bool {
        self.locate(row).is_some_and(|(shard, row)| shard.is_scored(row))
    }

    /// The states of a row, shape `[layers, d_model]`, row-major, finite; `None` if the row was not scored or does not exist.
    ///
    /// # Errors
    /// [`Error::Content`] if the file holds NaN or infinity there.
    pub fn row(&self, row: usize) -> Result<Option<Vec<f32>>, Error> {
        let Some((shard, row)) = self.locate(row) else { return Ok(None) };
        shard.values(row, 0..self.layers().len())
    }

    /// The state of one row and layer, shape `[d_model]`, finite; `None` if the row was not scored or does not exist, or the
    /// layer is not in the file.
    ///
    /// # Errors
    /// As [`row`](Self::row).
    pub fn state(&self, row: usize, layer: Layer) -> Result<Option<Vec<f32>>, Error> {
        let index = self.layers().iter().position(|&l| l == layer);
        let (Some(index), Some((shard, row))) = (index, self.locate(row)) else { return Ok(None) };
        shard.values(row, index..index + 1)
    }

    /// The states of all rows in order, as [`row`](Self::row) gives them.
    pub fn iter(&self) -> impl Iterator<Item = Result<Option<Vec<f32>>, Error>> {
        (0..self.rows).map(|row| self.row(row))
    }

    /// The ids of all rows in order, and why some have no states, read from `FILE.ids.jsonl` beside each file. After an error there are no
    /// further ones.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no such file; those of [`Rows`](crate::Rows), [`Error::MissingField`] and [`Error::WrongType`];
    /// [`Error::Content`] if it has fewer or more rows than the states, or others of them are scored.
    pub fn ids(&self) -> impl Iterator<Item = Result<StatesRow, Error>> {
        let mut failed = false;
        self.shards.iter().flat_map(ids_of).map_while(move |row| {
            let before = failed;
            failed |= row.is_err();
            (!before).then_some(row)
        })
    }

    /// The shard of a row, and which of its rows that is.
    fn locate(&self, row: usize) -> Option<(&MappedStates, usize)> {
        let index = self.starts.partition_point(|&start| start <= row).checked_sub(1)?;
        Some((self.shards.get(index)?, row - self.starts[index])).filter(|_| row < self.rows)
    }

    /// Adds a shard that must go on where the one before it ends.
    fn append(&mut self, shard: MappedStates) -> Result<(), Error> {
        let first = shard.metadata.get(FIRST_ROW);
        if first != Some(&self.rows.to_string()) {
            let found = first.cloned().unwrap_or_else(|| "no such metadata".into());
            return Err(Error::content(&shard.path, FIRST_ROW, self.rows.to_string(), found));
        }
        match self.shards.first() {
            None => {
                self.metadata = shard.metadata.clone();
                self.metadata.remove(FIRST_ROW); // no shard begins with another's row
            }
            Some(known) => {
                let [mut before, mut expected] = [shard.settings(), known.settings()];
                before.remove(FIRST_ROW);
                expected.remove(FIRST_ROW);
                let differences = Difference::between(&before, &expected);
                if !differences.is_empty() {
                    return Err(Error::OtherRun { path: shard.path.clone(), differences });
                }
            }
        }
        self.starts.push(self.rows);
        self.rows += shard.rows;
        self.shards.push(shard);
        Ok(())
    }
}

/// The complete shards that go by a name, all of one set, in order; none if none is there.
fn set(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut shards = shards_of(path)?;
    shards.retain(|(_, path)| !path.as_os_str().as_encoded_bytes().ends_with(PARTIAL.as_bytes()));
    let Some(&(Number { of, .. }, _)) = shards.first() else { return Ok(Vec::new()) };
    if let Some((other, path)) = shards.iter().find(|(number, _)| number.of != of) {
        return Err(Error::content(path, "shards of the set", of.to_string(), other.of.to_string()));
    }
    if let Some(index) = (1..=of).find(|&index| shards.get(index - 1).is_none_or(|(number, _)| number.index != index)) {
        let path = shard_path(path, Number { index, of });
        return Err(Error::content(&path, "shard", format!("number {index} of {of}"), "no such file"));
    }
    Ok(shards.into_iter().map(|(_, path)| path).collect())
}
