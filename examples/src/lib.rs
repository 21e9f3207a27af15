//! Pieces the examples share. Not a library to depend on: it promises nothing.

pub mod api_args;
pub mod boundary;
pub mod console;
pub mod drawing;
pub mod files;
pub mod inspector;
pub mod interrupt;
pub mod judged_pairs;
pub mod lager;
pub mod lager_file;
pub mod layers;
pub mod model_args;
pub mod options;
pub mod pace;
pub mod pair_orders;
pub mod planted;
pub mod preferences;
pub mod probes;
pub mod progress;
pub mod prompted;
pub mod prompts;
pub mod reliability;
pub mod report;
pub mod scoring;
pub mod selection;
pub mod surface;
pub mod texts;
pub mod unread;

pub use console::commit;

/// Every code block of the documentation compiles and runs.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/architecture.md")]
    struct Architecture;
    #[doc = include_str!("../../docs/benchmarks.md")]
    struct Benchmarks;
    #[doc = include_str!("../../docs/clusters.md")]
    struct Clusters;
    #[doc = include_str!("../../docs/emotion.md")]
    struct Emotion;
    #[doc = include_str!("../../docs/files.md")]
    struct Files;
    #[doc = include_str!("../../docs/first-steps.md")]
    struct FirstSteps;
    #[doc = include_str!("../../docs/glossary.md")]
    struct Glossary;
    #[doc = include_str!("../../docs/gpu.md")]
    struct Gpu;
    #[doc = include_str!("../../docs/judges.md")]
    struct Judges;
    #[doc = include_str!("../../docs/knowledge.md")]
    struct Knowledge;
    #[doc = include_str!("../../docs/labels.md")]
    struct Labels;
    #[doc = include_str!("../../docs/lager.md")]
    struct Lager;
    #[doc = include_str!("../../docs/models.md")]
    struct Models;
    #[doc = include_str!("../../docs/probes.md")]
    struct Probes;
    #[doc = include_str!("../../docs/prompted.md")]
    struct Prompted;
    #[doc = include_str!("../../docs/selection.md")]
    struct Selection;
    #[doc = include_str!("../../docs/statistics.md")]
    struct Statistics;
    #[doc = include_str!("../../docs/troubleshooting.md")]
    struct Troubleshooting;
}
