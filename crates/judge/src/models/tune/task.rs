//! What a run of `judge tune` does, whatever is learned.

use judge_data::Input;

use super::Cli;
use super::files::Files;
use super::log::Held;
use super::prompt::AtEnd;
use super::settings::Chosen;

/// The rows that are learned from, and those that are held out.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) input: &'a Input,
    pub(super) held_out: Option<&'a Input>,
}

/// What is done, whatever is learned.
pub(super) struct Task<'a> {
    pub(super) cli: &'a Cli,
    pub(super) chosen: &'a Chosen,
    pub(super) files: &'a Files,
    /// The log, which no other run has; `None` in a dry run.
    pub(super) held: Option<&'a Held>,
    pub(super) rows: Rows<'a>,
    pub(super) data: String,
    pub(super) reader: String,
    /// How marks are asked for whose layers may be weighed.
    pub(super) weighed: Option<&'a AtEnd>,
}
