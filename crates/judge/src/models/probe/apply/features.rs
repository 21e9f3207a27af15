//! Features from a file: a table of features as they are, or hidden states of which the probe takes its own.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use half::f16;
use judge_core::{ItemId, Layer, Unscored, request::Signal};
use judge_data::StatesFile;
use judge_probe::{Matrix, Precision, SavedProbe};
use memmap2::Mmap;
use safetensors::{Dtype, SafeTensors};

/// From bytes to numbers.
type Read = fn(&[u8]) -> Vec<f64>;

/// The tensor `features` [n, d] of a safetensors file, in the probe's order.
pub struct Features {
    path: PathBuf,
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
        Ok(Some(Self { path: path.to_path_buf(), at, read, precision, n_rows, n_features, map }))
    }

    /// The rows from `first`, at most `n` of them.
    pub fn matrix(&self, first: usize, n: usize) -> Result<Matrix> {
        let row_bytes = self.at.len() / self.n_rows.max(1);
        let bytes = &self.map[self.at.clone()][first * row_bytes..(first + n).min(self.n_rows) * row_bytes];
        Matrix::new((self.read)(bytes), self.n_features)
            .with_context(|| format!("{}: rows are counted from row {first}", self.path.display()))
    }
}

/// Files of `judge states`, which hold states of the same rows, each by its own pooling.
pub struct States {
    files: Vec<StatesFile>,
    /// For each of the probe's signals its file and layer.
    places: Vec<(usize, Layer)>,
    pub n_rows: usize,
}

impl States {
    /// Opens the files and finds the probe's layers and poolings among them.
    pub fn open(paths: &[PathBuf], probe: &SavedProbe) -> Result<Self> {
        let mut files = Vec::new();
        let mut offered: Vec<(Layer, Signal)> = Vec::new();
        let mut of_file = Vec::new();
        for path in paths {
            let file = StatesFile::open(path)
                .with_context(|| format!("{} has neither a tensor `features` nor hidden states", path.display()))?;
            let signal = signal_of(&file)?;
            check_model(&file, probe)?;
            offered.extend(file.layers().iter().map(|&layer| (layer, signal)));
            of_file.extend(file.layers().iter().map(|&layer| (files.len(), layer)));
            files.push(file);
        }
        let places = probe.places_of(&offered)?.into_iter().map(|place| of_file[place]).collect();
        let n_rows = files.first().map_or(0, StatesFile::rows);
        for file in &files {
            let found = file.rows();
            ensure!(found == n_rows, "{} has {found} rows, the first file {n_rows}", file.path().display());
        }
        Ok(Self { files, places, n_rows })
    }

    /// Each row's id and, if it could not be read, why: from FILE.ids.jsonl beside the first file.
    pub fn ids(&self) -> Result<Vec<(ItemId, Option<Unscored>)>> {
        let Some(file) = self.files.first() else { return Ok(Vec::new()) };
        let row = |row: Result<judge_data::StatesRow, judge_data::Error>| row.map(|row| (row.id, row.unscored));
        Ok(file.ids().map(row).collect::<Result<_, _>>()?)
    }

    /// The probe's features of a row; `None` if it was not read.
    pub fn row(&self, row: usize) -> Result<Option<Matrix>> {
        let mut values: Vec<f32> = Vec::new();
        for &(file, layer) in &self.places {
            let Some(state) = self.files[file].state(row, layer)? else { return Ok(None) };
            values.extend(state);
        }
        Ok(Some(Matrix::from_f32_rows([values])?))
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
