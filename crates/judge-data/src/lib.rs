//! Everything of a judge that touches a disk: data sets, score files, hidden states, saved weights and run records.
//!
//! A [`Dataset`] gives the records of a JSON or JSON lines file one at a time, whatever its extension and layout. A
//! [`ResumableJsonl`] takes results in any order, survives a kill, and puts them into their file in input order. A
//! [`ScoreFile`] reads the layer logits in such a file, or in one of LAGER's published program, back for fitting and
//! comparison. What is written appears whole or not at all; what is read is checked, and an error names file, line, field,
//! what was expected and what was found.
//!
//! ```
//! use judge_core::{Fields, Layer};
//! use judge_data::{
//!     Dataset, DatasetOptions, Extra, InputFile, LabelTable, Record, ResumableJsonl, ScoreFile, ScoreOutcome, ScoreRow,
//!     Settings, write_atomic,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let (input, output) = (folder.path().join("graded.jsonl"), folder.path().join("scores.jsonl"));
//! write_atomic(
//!     &input,
//!     br#"{"id": "a", "instruction": "2 + 2?", "response": "4", "scores": [5, 4]}
//! {"id": "b", "instruction": "2 + 2?", "response": "five, I think", "scores": [1, 2]}
//! "#,
//! )?;
//!
//! // The kind is told from the fields; `DatasetOptions::format` overrides that.
//! let records: Vec<Record> = Dataset::open(&input, &DatasetOptions::default())?.collect::<Result<_, _>>()?;
//!
//! // A run that was killed goes on here, unless these have changed.
//! let mut settings = Settings::new();
//! settings.insert("input".into(), InputFile::of(&input)?.blake3.into());
//! let mut scores = ResumableJsonl::open(&output, records.len(), &settings)?;
//! for (row, record) in records.iter().enumerate().rev() {
//!     let (Record::Graded(graded), false) = (record, scores.is_done(row)) else { continue };
//!     let words = graded.field("response").map_or(0, |text| text.split(' ').count());
//!     let read = LabelTable {
//!         layers: vec![Layer(0), Layer(1)],
//!         labels: vec!["1".into(), "5".into()],
//!         logits: vec![0.0, 0.0, words as f32, 1.5], // a model's, as a rule
//!         step: 0,
//!         completion: String::new(),
//!     };
//!     let (id, human) = (graded.id.clone(), graded.human());
//!     scores.push(row, &ScoreRow { id, human, outcome: ScoreOutcome::Read(read), extra: Extra::new() })?;
//! }
//! scores.finish()?;
//!
//! let items = ScoreFile::open(&output)?.collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(items[0].human, Some(4.5));
//! let table = items[1].table.as_ref().map_err(ToString::to_string)?;
//! assert_eq!(table.row(Layer(1)), Some(&[3.0, 1.5][..]));
//! # Ok(())
//! # }
//! ```
//!
//! # What is here
//!
//! | to | take |
//! |---|---|
//! | read objects of a format of your own | [`Rows`], [`Row`] |
//! | read data sets | [`Dataset`], [`Record`] and the record types; [`Columns`] where columns have other names |
//! | read standard input, pipes and compressed files, or read one input several times | [`Input`] |
//! | tell users that their human scores are not read | [`HumanScores`] |
//! | write rows | [`ResumableJsonl`]; [`JsonlWriter`] for what is quick; [`AtomicFile`] for anything else |
//! | swap files with LAGER's program | [`read_lager_results`], [`write_lager_results`], [`LagerDataset`] |
//! | keep hidden states, in one file or in shards | [`StatesWriter`], [`StatesFile`], [`Sharding`] |
//! | keep fitted weights, run records, your own fitted things | [`save`], [`load`], [`Document`] |
//!
//! # When not to use it
//!
//! There is no network and no table format (CSV, Parquet) here; gzip and zstd are read, not written. Files are not edited in place: a new version
//! replaces the old one. Model folders are read by `judge-models`.

mod atomic;
mod columns;
mod dataset;
mod document;
mod error;
mod foreign;
mod human_scores;
mod ids;
mod input;
mod lager_result;
mod python_json;
mod reading;
mod record;
mod records;
mod resumable;
mod row;
mod rows;
mod run_record;
mod score_file;
mod score_row;
mod states;
mod texts;

pub use atomic::{AtomicFile, write_atomic};
pub use columns::{Columns, Field, RowColumns};
pub use dataset::{Dataset, DatasetFormat, DatasetOptions, LagerDataset};
pub use document::{Document, load, save};
pub use error::{Difference, Error, PartialProblem, Place};
pub use human_scores::HumanScores;
pub use ids::Ids;
pub use input::{Input, InputReader, IntoInput};
pub use lager_result::{LagerLayer, LagerResult, LagerScores, read_lager_results, write_lager_results};
pub use record::Record;
pub use records::{EmotionRecord, GradedRecord, LagerRecord, PromptInput, PromptRecord};
pub use resumable::{JsonlWriter, ResumableJsonl, Resumed, Settings};
pub use row::{Extra, Row};
pub use rows::{Layout, Rows};
pub use run_record::{Counts, InputFile, RunRecord};
pub use score_file::{ScoreFile, ScoreFormat, ScoredItem};
pub use score_row::{LabelTable, ScoreOutcome, ScoreRow};
pub use states::{Sharding, StatesFile, StatesRow, StatesSpec, StatesWriter, ids_path};
