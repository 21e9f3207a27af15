//! Tables of hidden states: one safetensors file, or a set of shards that are such files each.

mod cut;
mod ids;
mod mapped;
mod names;
mod reader;
mod shard;
mod shard_writer;
mod spec;
mod writer;

pub use ids::{StatesRow, ids_path};
pub(crate) use names::{is_states, refuse_foreign_states, states_names};
pub use reader::StatesFile;
pub use spec::{Sharding, StatesSpec, StatesWritten};
pub use writer::StatesWriter;
