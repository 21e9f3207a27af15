use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use judge_core::Layer;
use serde_json::json;

use crate::states::mapped::{MappedStates, settings};
use crate::{Difference, Error, Settings};

/// The metadata's `format`.
pub(super) const FORMAT: &str = "judge-states-1";
/// The metadata's key for the row of the table that a shard begins with.
pub(super) const FIRST_ROW: &str = "rows.first";
/// The metadata's key for the number of rows of the table that a shard is of.
pub(super) const TABLE_ROWS: &str = "rows.total";

/// What one file of hidden states is to hold.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) path: PathBuf,
    pub(super) rows: usize,
    pub(super) layers: Vec<Layer>,
    pub(super) d_model: usize,
    pub(super) metadata: BTreeMap<String, String>,
}

impl Shard {
    /// Everything that the rows depend on.
    pub(super) fn settings(&self) -> Settings {
        settings(&self.metadata, &self.layers, self.d_model)
    }

    /// Bytes of one row's states.
    pub(super) fn row_bytes(&self) -> usize {
        4 * self.layers.len() * self.d_model
    }

    /// In what a complete file is not the one wanted.
    pub(super) fn differences(&self, found: &MappedStates) -> Vec<Difference> {
        let mut differences = Difference::within("rows", &found.rows.into(), &self.rows.into());
        differences.extend(Difference::between(&found.settings(), &self.settings()));
        differences
    }

    /// Tensors lie in the order `layers`, `states`, `scored`, so that each is aligned to its own element. The
    /// `safetensors` crate writes only from memory, hence this header.
    pub(super) fn layout(&self) -> Result<FileLayout, Error> {
        let (rows, n_layers) = (self.rows, self.layers.len());
        let layers_end = 8 * n_layers;
        let states_end = layers_end + 4 * n_layers * self.d_model * rows;
        let scored_end = states_end + rows;
        let header = json!({
            "__metadata__": self.metadata,
            "layers": {"dtype": "I64", "shape": [n_layers], "data_offsets": [0, layers_end]},
            "states": {"dtype": "F32", "shape": [rows, n_layers, self.d_model], "data_offsets": [layers_end, states_end]},
            "scored": {"dtype": "U8", "shape": [rows], "data_offsets": [states_end, scored_end]},
        });
        let mut json = serde_json::to_vec(&header).map_err(Error::serialize)?;
        json.resize(json.len().next_multiple_of(8), b' ');
        let mut head = (json.len() as u64).to_le_bytes().to_vec();
        head.extend(json);
        let data_at = head.len() as u64;
        head.extend(self.layers.iter().flat_map(|&Layer(number)| (number as u64).to_le_bytes()));
        Ok(FileLayout { head, scored_at: data_at + states_end as u64, length: data_at + scored_end as u64 })
    }
}

/// Where things are in a file of hidden states.
#[derive(Debug)]
pub(super) struct FileLayout {
    /// All before the states: the header and the tensor `layers`.
    head: Vec<u8>,
    pub(super) scored_at: u64,
    /// Of the whole file, in bytes.
    pub(super) length: u64,
}

impl FileLayout {
    pub(super) fn states_at(&self) -> u64 {
        self.head.len() as u64
    }

    /// Makes an empty table of a file.
    pub(super) fn begin(&self, file: &mut File) -> io::Result<()> {
        file.set_len(0)?;
        file.set_len(self.length)?; // zeros without being written: what an unscored row holds
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&self.head)
    }

    /// Whether a file was begun as this.
    pub(super) fn is_that_of(&self, file: &mut File) -> io::Result<bool> {
        if file.metadata()?.len() != self.length {
            return Ok(false);
        }
        let mut head = vec![0; self.head.len()];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut head)?;
        Ok(head == self.head)
    }
}
