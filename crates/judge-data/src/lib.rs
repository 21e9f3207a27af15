//! Everything of a judge that touches a disk.

mod atomic;
mod dataset;
mod document;
mod error;
mod ids;
mod lager_result;
mod python_json;
mod records;
mod resumable;
mod row;
mod rows;
mod run_record;
mod score_file;
mod score_row;
mod states;
mod states_file;

pub use atomic::{AtomicFile, write_atomic};
pub use dataset::{Dataset, DatasetFormat, DatasetOptions, LagerDataset, Record};
pub use document::{Document, load, save};
pub use error::{Difference, Error, PartialProblem, Place};
pub use lager_result::{LagerLayer, LagerResult, LagerScores, read_lager_results, write_lager_results};
pub use records::{EmotionRecord, GradedRecord, LagerRecord, PromptInput, PromptRecord};
pub use resumable::{JsonlWriter, ResumableJsonl, Resumed, Settings};
pub use row::{Extra, Row};
pub use rows::{Layout, Rows};
pub use run_record::{Counts, InputFile, RunRecord};
pub use score_file::{ScoreFile, ScoreFormat, ScoredItem};
pub use score_row::{LabelTable, ScoreOutcome, ScoreRow};
pub use states::{StatesRow, StatesSpec, StatesWriter, ids_path};
pub use states_file::StatesFile;
