//! Shards of Parquet files: a plan that fixes who scores which rows, parts that appear whole, and the proof that no row is missing
//! (feature `parquet`).
//!
//! ```text
//! files ── ShardPlan::make ──► plan.json ──► a shard's rows ── ResultScorer ──► PartWriter ──► part-00012-of-04096.parquet, .json
//!                                  │                                                              │
//!                                  └───────────────── check: digests, then row by row ◄───────────┘
//! ```
//!
//! Nobody hands out shards: whoever scores takes those whose number it was given, as often as it likes. A part replaces an equal one, so
//! nothing is locked, and what a killed attempt has left is removed by the one that ends its shard. `shards/table.rs` reads Parquet,
//! `shards/plan.rs` owns the plan, `shards/part.rs` parts and their records, `shards/check.rs` the proof, `shards/export.rs` makes a
//! score file of what was scored, and `shards/buckets.rs` sorts what does not fit into memory.
//!
//! Any other command that makes rows of rows runs by parts too: `shards/command.rs` has its plan and the record of a part,
//! `shards/joined.rs` the check of all parts and the files that one run over all rows would have written.

mod buckets;
mod check;
mod command;
mod export;
mod joined;
mod part;
mod plan;
mod table;

pub use check::{Check, Completeness, Output};
pub use command::{CommandPart, CommandPlan, SeeIds};
pub use export::{Export, Exported};
pub use joined::CommandResults;
pub use part::{PartRecord, PartWriter};
pub use plan::ShardPlan;
pub use table::{ParquetTable, PlannedFile};
