//! The integration tests of judge-data, in one binary: there is one link instead of one for each file.

mod benchmarks;
mod carried_fields;
mod columns;
mod csv;
mod documents;
mod files;
mod input;
mod job;
mod outputs;
mod preference;
mod prometheus;
#[cfg(feature = "parquet")]
mod pyarrow;
mod rag;
mod real_data;
mod records;
mod rows;
mod runs;
mod scores;
mod states;
mod states_shards;
mod votes;
