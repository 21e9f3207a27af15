//! The program `judge`: one command for each task, all with the same options under the same names.
//!
//! It is no library to depend on and promises nothing but its command line. `commands.rs` lists the commands;
//! `rows/` has those over rows, `figures/` those over scores, `models/` those over models, `grade/` the page where people grade.
//! The service is the crate `judge-serve`, and what all share `judge-cli`.

mod commands;
mod figures;
mod grade;
mod ids;
mod inspector;
mod models;
#[cfg(test)]
mod reference;
mod rows;

pub use commands::main;

/// Every code block of the documentation compiles and runs.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/architecture.md")]
    struct Architecture;
    #[doc = include_str!("../../../docs/benchmarks.md")]
    struct Benchmarks;
    #[doc = include_str!("../../../docs/choosing.md")]
    struct Choosing;
    #[doc = include_str!("../../../docs/clusters.md")]
    struct Clusters;
    #[doc = include_str!("../../../docs/commands.md")]
    struct Commands;
    #[doc = include_str!("../../../docs/compare-versions.md")]
    struct CompareVersions;
    #[doc = include_str!("../../../docs/emotion.md")]
    struct Emotion;
    #[doc = include_str!("../../../docs/files.md")]
    struct Files;
    #[doc = include_str!("../../../docs/first-steps.md")]
    struct FirstSteps;
    #[doc = include_str!("../../../docs/glossary.md")]
    struct Glossary;
    #[doc = include_str!("../../../docs/gpu.md")]
    struct Gpu;
    #[doc = include_str!("../../../docs/grade.md")]
    struct Grade;
    #[doc = include_str!("../../../docs/judges.md")]
    struct Judges;
    #[doc = include_str!("../../../docs/knowledge.md")]
    struct Knowledge;
    #[doc = include_str!("../../../docs/labels.md")]
    struct Labels;
    #[doc = include_str!("../../../docs/lager.md")]
    struct Lager;
    #[doc = include_str!("../../../docs/models.md")]
    struct Models;
    #[doc = include_str!("../../../docs/probes.md")]
    struct Probes;
    #[doc = include_str!("../../../docs/prompted.md")]
    struct Prompted;
    #[doc = include_str!("../../../docs/python.md")]
    struct Python;
    #[doc = include_str!("../../../docs/rerank.md")]
    struct Rerank;
    #[doc = include_str!("../../../docs/selection.md")]
    struct Selection;
    #[doc = include_str!("../../../docs/serve.md")]
    struct Serve;
    #[doc = include_str!("../../../docs/statistics.md")]
    struct Statistics;
    #[doc = include_str!("../../../docs/trained.md")]
    struct Trained;
    #[doc = include_str!("../../../docs/trained-tables.md")]
    struct TrainedTables;
    #[doc = include_str!("../../../docs/training.md")]
    struct Training;
    #[doc = include_str!("../../../docs/troubleshooting.md")]
    struct Troubleshooting;
}
