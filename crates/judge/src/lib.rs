//! The program `judge`: one command for each task, all with the same options under the same names.
//!
//! It is no library to depend on and promises nothing but its command line. `commands.rs` lists the commands;
//! `rows/` has those over rows, `figures/` those over scores, `models/` those over models.
//! The page where people grade is the crate `judge-grade`, the service `judge-serve`, and what all share `judge-cli`.

mod commands;
mod figures;
mod inspector;
mod models;
#[cfg(test)]
mod reference;
mod rows;

pub use commands::main;

// Every code block of the documentation compiles and runs.
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/architecture.md")]
#[doc = include_str!("../../../docs/benchmarks.md")]
#[doc = include_str!("../../../docs/choosing.md")]
#[doc = include_str!("../../../docs/clusters.md")]
#[doc = include_str!("../../../docs/commands.md")]
#[doc = include_str!("../../../docs/compare-versions.md")]
#[doc = include_str!("../../../docs/emotion.md")]
#[doc = include_str!("../../../docs/files.md")]
#[doc = include_str!("../../../docs/first-steps.md")]
#[doc = include_str!("../../../docs/glossary.md")]
#[doc = include_str!("../../../docs/gpu.md")]
#[doc = include_str!("../../../docs/grade.md")]
#[doc = include_str!("../../../docs/judges.md")]
#[doc = include_str!("../../../docs/knowledge.md")]
#[doc = include_str!("../../../docs/labels.md")]
#[doc = include_str!("../../../docs/lager.md")]
#[doc = include_str!("../../../docs/models.md")]
#[doc = include_str!("../../../docs/probes.md")]
#[doc = include_str!("../../../docs/prompted.md")]
#[doc = include_str!("../../../docs/python.md")]
#[doc = include_str!("../../../docs/rerank.md")]
#[doc = include_str!("../../../docs/selection.md")]
#[doc = include_str!("../../../docs/serve.md")]
#[doc = include_str!("../../../docs/statistics.md")]
#[doc = include_str!("../../../docs/trained.md")]
#[doc = include_str!("../../../docs/trained-tables.md")]
#[doc = include_str!("../../../docs/training.md")]
#[doc = include_str!("../../../docs/troubleshooting.md")]
#[cfg(doctest)]
struct Documentation;
