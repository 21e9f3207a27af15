//! Instruction data, graded by a model and chosen from.
//!
//! ```text
//! file ─► Example ─► Passes ─► OUTPUT.aspects.jsonl, OUTPUT.likelihood.jsonl, … ─► Numbers ─► Choice ─► OUTPUT, Report
//!         (example)  (pass, graders)               one row per example             (numbers)  (choice)  (write, report)
//! ```
//!
//! What a model says is kept in files beside the output, so that another choice from the same rows needs no model. Memory is some 170 bytes for each row, whatever the rows hold.

pub mod choice;
pub mod example;
pub mod graders;
pub mod numbers;
pub mod pass;
pub mod report;
pub mod rubrics;
pub mod write;
