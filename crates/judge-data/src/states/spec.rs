use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use judge_core::Layer;

use crate::{Counts, Error, OutputFile};

/// How a table of hidden states is cut into files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharding {
    /// One file.
    #[default]
    Whole,
    /// Shards of so many rows, the last one of those that are left.
    Rows(NonZeroUsize),
    /// Shards of as many rows as fit in so many bytes of values, and of at least one.
    Bytes(u64),
}

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
    /// `[layers × d_model]` values of one row.
    pub(super) fn row_values(&self) -> usize {
        self.layers.len() * self.d_model
    }

    /// Refuses a table of more bytes than can be counted: whatever else is computed of it is less.
    pub(super) fn check(&self) -> Result<(), Error> {
        let (rows, layers, d_model) = (self.rows, self.layers.len(), self.d_model);
        let row = layers.checked_mul(d_model).and_then(|values| values.checked_mul(4)?.checked_add(1));
        let bytes = row.and_then(|row| row.checked_mul(rows)).filter(|&bytes| bytes <= usize::MAX / 16);
        bytes.map(|_| ()).ok_or(Error::StatesTooLarge { rows, layers, d_model })
    }
}

/// What a [`StatesWriter`](crate::StatesWriter) has written, earlier starts included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatesWritten {
    /// What became of the rows.
    pub counts: Counts,
    /// The files, each with its ids, in the order of their rows.
    pub outputs: Vec<OutputFile>,
}
