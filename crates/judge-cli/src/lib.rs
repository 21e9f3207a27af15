//! For the program `judge` alone, without a promise of stability: what its commands share.
//!
//! `args/` has the options, `terminal/` what people see, `row_job.rs` the job that every command over rows is; the other modules are what
//! several commands do alike. No command is here, and nothing here knows one.

pub mod args;
pub mod checklists;
pub mod choice;
pub mod groups;
pub mod human_scores;
pub mod ids;
pub mod judge_record;
pub mod judged_probe;
pub mod lager_file;
pub mod layer_agreement;
pub mod missing_fields;
pub mod pages;
pub mod pair_orders;
pub mod preferences;
pub mod probes;
pub mod prompts;
pub mod rankings;
pub mod ratings;
pub mod reliability;
pub mod replies;
pub mod report;
pub mod row_job;
pub mod sampling;
pub mod terminal;
