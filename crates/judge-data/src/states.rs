use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use judge_core::{ItemId, Layer, Unscored};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::atomic::{rename, with_suffix};
use crate::{Error, ResumableJsonl, Resumed, Settings};

/// Shape and origin of a file of hidden states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatesSpec {
    /// Number of rows: one per item, in input order.
    pub rows: usize,
    /// The layers, in the order of the second axis.
    pub layers: Vec<Layer>,
    /// Width of a state.
    pub d_model: usize,
    /// Settings, input and model fingerprint, kept in the file. A run that was interrupted goes on only with the same.
    pub metadata: BTreeMap<String, String>,
}

/// Streams hidden states into a safetensors file; see [`StatesFile`](crate::StatesFile) for its content.
///
/// Rows come in any order and go straight to their place on the disk; memory does not grow with the states. While it
/// is written the file is called `FILE.safetensors.partial`. A killed run goes on where it was, because ids and reasons are a
/// [`ResumableJsonl`] that is written after the states of each row.
#[derive(Debug)]
pub struct StatesWriter {
    path: PathBuf,
    partial: PathBuf,
    file: File,
    ids: ResumableJsonl,
    layout: FileLayout,
}

/// One line of `FILE.ids.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatesRow {
    /// The item.
    pub id: ItemId,
    /// Why it has no states; `None` if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscored: Option<Unscored>,
}

/// Where things are in the file.
#[derive(Debug)]
struct FileLayout {
    header: Vec<u8>,
    /// `[layers × d_model]` values of one row.
    row_values: usize,
    states_at: u64,
    scored_at: u64,
    length: u64,
}

impl StatesWriter {
    /// Starts a file, or goes on with one that was interrupted.
    ///
    /// # Errors
    /// [`Error::SettingsDiffer`] if the interrupted one had another shape or other metadata, and as
    /// [`ResumableJsonl::open`].
    pub fn open(path: impl Into<PathBuf>, spec: &StatesSpec) -> Result<Self, Error> {
        let path = path.into();
        let partial = with_suffix(&path, ".partial");
        let layout = FileLayout::new(spec)?;
        let mut settings: Settings = spec.metadata.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
        settings.insert("shape.layers".into(), json!(spec.layers));
        settings.insert("shape.d_model".into(), json!(spec.d_model));
        let mut ids = ResumableJsonl::open(ids_path(&path), spec.rows, &settings)?;

        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&partial);
        let mut file = file.map_err(Error::io("open", &partial))?;
        if !layout.is_that_of(&mut file).map_err(Error::io("read", &partial))? {
            // Never begun, or lost since: rows noted as done have no states.
            ids.restart()?;
            let begin = |file: &mut File| {
                file.set_len(0)?;
                file.set_len(layout.length)?; // zeros without being written: what an unscored row holds
                file.seek(SeekFrom::Start(0))?;
                file.write_all(&layout.header)?;
                let layers: Vec<u8> = spec.layers.iter().flat_map(|l| (l.0 as u64).to_le_bytes()).collect();
                file.write_all(&layers)
            };
            begin(&mut file).map_err(Error::io("write", &partial))?;
        }
        Ok(Self { path, partial, file, ids, layout })
    }

    /// What was found of an interrupted run.
    pub fn resumed(&self) -> Resumed {
        self.ids.resumed()
    }

    /// Whether this row is written.
    pub fn is_done(&self, row: usize) -> bool {
        self.ids.is_done(row)
    }

    /// The rows that are not written yet, ascending.
    pub fn pending(&self) -> impl Iterator<Item = usize> {
        self.ids.pending()
    }

    /// Writes one row's states, shape `[layers, d_model]`, row-major, finite.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NonFinite`], [`Error::RowTwice`], [`Error::NoSuchRow`], [`Error::Io`].
    pub fn write(&mut self, row: usize, id: &ItemId, states: &[f32]) -> Result<(), Error> {
        self.check_row(row)?;
        let expected = self.layout.row_values;
        if states.len() != expected {
            return Err(Error::Shape { what: "values of row", index: row, expected, found: states.len() });
        }
        if let Some((index, &value)) = states.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            return Err(Error::NonFinite { what: "states", row, index, value: value.into() });
        }
        self.put(row, states, 1)?;
        self.ids.push(row, &StatesRow { id: id.clone(), unscored: None })
    }

    /// Notes that a row could not be read; its states are zero and its `scored` is 0.
    ///
    /// # Errors
    /// [`Error::RowTwice`], [`Error::NoSuchRow`], [`Error::Io`].
    pub fn write_unscored(&mut self, row: usize, id: &ItemId, reason: &Unscored) -> Result<(), Error> {
        self.check_row(row)?;
        // Zeros are there from the start, unless a run was killed after it had written this row and before it noted that.
        self.put(row, &vec![0.0; self.layout.row_values], 0)?;
        self.ids.push(row, &StatesRow { id: id.clone(), unscored: Some(reason.clone()) })
    }

    /// Puts the file and its ids in place.
    ///
    /// # Errors
    /// [`Error::Incomplete`] if rows are missing, [`Error::Io`].
    pub fn finish(self) -> Result<(), Error> {
        // The ids' journal goes last: as long as it is there, a kill in between costs no more than a new start.
        self.ids.assemble()?;
        self.file.sync_all().map_err(Error::io("write", &self.partial))?;
        rename(&self.partial, &self.path)?;
        self.ids.remove_partial()
    }

    fn check_row(&self, row: usize) -> Result<(), Error> {
        match (row < self.ids.rows(), self.is_done(row)) {
            (false, _) => Err(Error::NoSuchRow { row, rows: self.ids.rows() }),
            (_, true) => Err(Error::RowTwice { row }),
            _ => Ok(()),
        }
    }

    fn put(&mut self, row: usize, states: &[f32], scored: u8) -> Result<(), Error> {
        let bytes: Vec<u8> = states.iter().flat_map(|v| v.to_le_bytes()).collect();
        let at = self.layout.states_at + (row * bytes.len()) as u64; // within the file: `check_row`
        self.write_at(at, &bytes)?;
        self.write_at(self.layout.scored_at + row as u64, &[scored])
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        written.map_err(Error::io("write", &self.partial))
    }
}

impl FileLayout {
    /// Tensors lie in the order `layers`, `states`, `scored`, so that each is aligned to its own element. The
    /// `safetensors` crate writes only from memory, hence this header.
    fn new(spec: &StatesSpec) -> Result<Self, Error> {
        let row_values = spec.layers.len() * spec.d_model;
        let layers_end = 8 * spec.layers.len();
        let states_end = layers_end + 4 * row_values * spec.rows;
        let scored_end = states_end + spec.rows;
        let mut metadata = spec.metadata.clone();
        metadata.insert("format".into(), crate::states_file::FORMAT.into());
        let header = json!({
            "__metadata__": metadata,
            "layers": {"dtype": "I64", "shape": [spec.layers.len()], "data_offsets": [0, layers_end]},
            "states": {"dtype": "F32", "shape": [spec.rows, spec.layers.len(), spec.d_model], "data_offsets": [layers_end, states_end]},
            "scored": {"dtype": "U8", "shape": [spec.rows], "data_offsets": [states_end, scored_end]},
        });
        let mut json = serde_json::to_vec(&header).map_err(Error::serialize)?;
        json.resize(json.len().next_multiple_of(8), b' ');
        let mut header = (json.len() as u64).to_le_bytes().to_vec();
        header.extend(json);
        let data_at = header.len() as u64;
        Ok(Self {
            row_values,
            states_at: data_at + layers_end as u64,
            scored_at: data_at + states_end as u64,
            length: data_at + scored_end as u64,
            header,
        })
    }

    fn is_that_of(&self, file: &mut File) -> std::io::Result<bool> {
        if file.metadata()?.len() != self.length {
            return Ok(false);
        }
        let mut header = vec![0; self.header.len()];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut header)?;
        Ok(header == self.header)
    }
}

/// `x.safetensors` → `x.ids.jsonl`; another name gets `.ids.jsonl` appended.
pub fn ids_path(path: &Path) -> PathBuf {
    match path.extension() {
        Some(extension) if extension == "safetensors" => path.with_extension("ids.jsonl"),
        _ => with_suffix(path, ".ids.jsonl"),
    }
}
