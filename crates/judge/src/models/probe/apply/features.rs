//! Features from a file: a table of features as they are, or hidden states of which the probe takes its own.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use half::f16;
use judge_core::{ItemId, Layer, Unscored, request::Signal};
use judge_data::StatesFile;
use judge_probe::{Precision, SavedProbe};
use memmap2::Mmap;
use safetensors::{Dtype, SafeTensors};

/// From bytes to numbers.
type Read = fn(&[u8]) -> Vec<f64>;

/// The tensor `features` [n, d] of a safetensors file, in the probe's order.
pub struct Features {
    map: Mmap,
    at: std::ops::Range<usize>,
    read: Read,
    pub precision: Precision,
    pub n_rows: usize,
    pub n_features: usize,
}

impl Features {
    /// `None` if the file has no tensor `features`.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        let shown = path.display();
        let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
        // SAFETY: the map is private and read-only; a file that another program cuts short meanwhile ends this one.
        let map = unsafe { Mmap::map(&file) }.with_context(|| format!("cannot map {shown}"))?;
        let tensors = SafeTensors::deserialize(&map).with_context(|| format!("{shown} is no safetensors file"))?;
        let Ok(features) = tensors.tensor("features") else { return Ok(None) };
        let [n_rows, n_features] = *features.shape() else {
            bail!("{shown}: `features` must have two axes, rows and features, found {:?}", features.shape());
        };
        let (precision, read): (Precision, Read) = match features.dtype() {
            Dtype::F64 => {
                (Precision::F64, |bytes| bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect())
            }
            Dtype::F32 => {
                (Precision::F32, |bytes| bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b).into()).collect())
            }
            Dtype::F16 => {
                (Precision::F16, |bytes| bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).into()).collect())
            }
            other => bail!("{shown}: `features` must be f64, f32 or f16, found {other:?}"),
        };
        let start = features.data().as_ptr() as usize - map.as_ptr() as usize; // a slice of the map
        let at = start..start + features.data().len();
        Ok(Some(Self { at, read, precision, n_rows, n_features, map }))
    }

    /// The rows from `first`, at most `n` of them, one behind the other.
    pub fn values(&self, first: usize, n: usize) -> Vec<f64> {
        let row_bytes = self.at.len() / self.n_rows.max(1);
        (self.read)(&self.map[self.at.clone()][first * row_bytes..(first + n).min(self.n_rows) * row_bytes])
    }
}

/// A table of hidden states: a file, or the shards that go by its name.
pub fn open_states(path: &Path) -> Result<StatesFile> {
    let table = StatesFile::open(path);
    if path.exists() {
        return table.with_context(|| format!("{} has neither a tensor `features` nor hidden states", path.display()));
    }
    Ok(table?)
}

/// Metadata of which two tables of the same rows have the same.
const OF_ROWS: [&str; 2] = ["input_blake3", "prompts_blake3"];

/// Tables of hidden states of the same rows, each by its own pooling.
pub struct States {
    tables: Vec<StatesFile>,
    /// For each of the probe's signals its table and layer.
    places: Vec<(usize, Layer)>,
    pub n_rows: usize,
}

impl States {
    /// Finds the probe's layers and poolings among the tables.
    pub fn new(tables: Vec<StatesFile>, probe: &SavedProbe) -> Result<Self> {
        let mut offered: Vec<(Layer, Signal)> = Vec::new();
        let mut places: Vec<(usize, Layer)> = Vec::new();
        for (number, table) in tables.iter().enumerate() {
            let signal = signal_of(table)?;
            check_model(table, probe)?;
            for &layer in table.layers() {
                if let Some(place) = offered.iter().position(|known| *known == (layer, signal)) {
                    return Err(offered_twice(layer, signal, &tables[places[place].0], table));
                }
                offered.push((layer, signal));
                places.push((number, layer));
            }
        }
        let places = probe.places_of(&offered)?.into_iter().map(|place| places[place]).collect();
        let Some(first) = tables.first() else { return Ok(Self { tables, places, n_rows: 0 }) };
        let n_rows = first.rows();
        for table in &tables {
            let (path, found) = (table.path().display(), table.rows());
            ensure!(found == n_rows, "{path} has {found} rows, {} has {n_rows}", first.path().display());
            let both = |key: &str| table.metadata().get(key).zip(first.metadata().get(key));
            if let Some(key) = OF_ROWS.into_iter().find(|key| both(key).is_some_and(|(a, b)| a != b)) {
                bail!("{path} holds states of other rows than {}: their {key} differ", first.path().display());
            }
        }
        Ok(Self { tables, places, n_rows })
    }

    /// Each row's id and, if a table has no states of it, why: from FILE.ids.jsonl beside each file. All tables must have the same ids.
    pub fn ids(&self) -> Result<Vec<(ItemId, Option<Unscored>)>> {
        let mut rows: Vec<(ItemId, Option<Unscored>)> = Vec::with_capacity(self.n_rows);
        for table in &self.tables {
            for (row, found) in table.ids().enumerate() {
                let found = found?;
                let Some((id, why)) = rows.get_mut(row) else {
                    rows.push((found.id, found.unscored));
                    continue;
                };
                let [path, first] = [table, &self.tables[0]].map(|table| table.path().display());
                ensure!(
                    *id == found.id,
                    "{path} holds states of other rows than {first}: row {row} is {}, not {id}",
                    found.id
                );
                *why = why.take().or(found.unscored);
            }
        }
        Ok(rows)
    }

    /// The probe's features of a row; `None` if it was not read.
    pub fn row(&self, row: usize) -> Result<Option<Vec<f64>>> {
        let mut values = Vec::new();
        for &(table, layer) in &self.places {
            let Some(state) = self.tables[table].state(row, layer)? else { return Ok(None) };
            values.extend(state.into_iter().map(f64::from));
        }
        Ok(Some(values))
    }
}

/// The error for a signal that two tables have: which of them is meant is not known.
fn offered_twice(layer: Layer, signal: Signal, first: &StatesFile, second: &StatesFile) -> anyhow::Error {
    let [known, found] = [first, second].map(|table| table.path().display());
    let twice = anyhow!("{known} and {found} both have {} of {layer}; expected it once", signal.as_str());
    match (first.table(), second.table()) {
        (Some(table), Some(other)) if table == other => {
            twice.context(format!("shards of one table go by its name: --input {}", table.display()))
        }
        _ => twice,
    }
}

/// What a file of states holds: `pooling` of `judge states`, `read` of `judge probe train`.
fn signal_of(file: &StatesFile) -> Result<Signal> {
    let word = file.metadata().get("pooling").or_else(|| file.metadata().get("read"));
    let word = word.with_context(|| format!("{} does not say how its states are pooled", file.path().display()))?;
    serde_json::from_value(word.as_str().into())
        .with_context(|| format!("{}: {word:?} is no pooling", file.path().display()))
}

/// Refuses states of another model, where both files say which it is.
fn check_model(file: &StatesFile, probe: &SavedProbe) -> Result<()> {
    let (states, model) = (file.metadata().get("model_fingerprint"), &probe.origin().model);
    if let (Some(found), Some(expected)) = (states, &model.fingerprint) {
        ensure!(
            found == expected,
            "the probe is for {} with fingerprint {expected}, {} holds states of {} with fingerprint {found}",
            model.name,
            file.path().display(),
            file.metadata().get("model").map_or("another model", String::as_str)
        );
    }
    Ok(())
}
