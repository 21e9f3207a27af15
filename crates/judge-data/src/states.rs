//! Tables of hidden states: one safetensors file, or a set of shards that are such files each.

mod cut;
mod ids;
mod mapped;
mod names;
mod reader;
mod shard;
mod shard_writer;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use judge_core::{ItemId, Layer, Unscored};
use serde::{Deserialize, Serialize};

use crate::atomic::with_suffix;
use crate::states::cut::Cut;
use crate::{Counts, Error, OutputFile};

pub use cut::Sharding;
pub(crate) use names::{refuse_foreign_states, states_names};
pub use reader::StatesFile;
pub use writer::StatesWriter;

/// Shape and origin of a table of hidden states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatesSpec {
    /// Number of rows: one per item, in input order.
    pub rows: usize,
    /// The layers, in the order of the second axis.
    pub layers: Vec<Layer>,
    /// Width of a state.
    pub d_model: usize,
    /// Settings, input and model fingerprint, kept in every file. A run that was interrupted is resumed only with the same.
    pub metadata: BTreeMap<String, String>,
    /// How the table is cut into files.
    pub sharding: Sharding,
}

impl StatesSpec {
    /// Bytes that the table will take on the disk, the ids beside it not counted: to be said before they are written. The space is not asked for at
    /// the start, files grow as rows come; a disk that is full ends the run with an error and keeps what is written.
    ///
    /// # Errors
    /// [`Error::Serialize`].
    pub fn bytes(&self) -> Result<u64, Error> {
        let cut = Cut::new(PathBuf::new(), self.clone());
        (0..cut.len()).map(|shard| cut.shard(shard).layout().map(|layout| layout.length())).sum()
    }

    /// `[layers × d_model]` values of one row.
    fn row_values(&self) -> usize {
        self.layers.len() * self.d_model
    }
}

/// What a [`StatesWriter`] has written, earlier starts included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatesWritten {
    /// What became of the rows.
    pub counts: Counts,
    /// The files, each with its ids, in the order of their rows.
    pub outputs: Vec<OutputFile>,
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

/// `x.safetensors` → `x.ids.jsonl`; another name gets `.ids.jsonl` appended. Each shard has its own.
pub fn ids_path(path: &Path) -> PathBuf {
    match path.extension() {
        Some(extension) if extension == "safetensors" => path.with_extension("ids.jsonl"),
        _ => with_suffix(path, ".ids.jsonl"),
    }
}
