//! Everything of a judge that touches a disk: data sets, score files, hidden states, saved weights and run records.
//!
//! A [`Dataset`] gives the records of a JSON or JSON lines file one at a time, whatever its extension and layout. A [`Run`] takes results
//! in any order, survives a kill, and puts them into their file in input order, with the record of how they were made. A [`ScoreFile`]
//! reads the layer logits in such a file, or in one of LAGER's published program, back for fitting and comparison. What is written appears
//! whole or not at all; what is read is checked, and an error names file, line, field, what was expected and what was found.
//!
//! ```
//! use judge_core::testing::ScriptedBackbone;
//! use judge_core::{Scale, lager::{LagerJudge, LagerSettings}};
//! use judge_data::{Job, Program};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
//! # std::fs::write(&input, r#"{"id": 1, "instruction": "2 + 2?", "response": "4", "human": 5}"#)?;
//! let model = ScriptedBackbone::new(4); // a stand-in; `judge_models::Model::load` for a real one
//! let judge = LagerJudge::new(LagerSettings::prompt_end(Scale::integers(1, 5)?), &model)?;
//!
//! // Checks the whole input first, resumes what was interrupted, recognises what is finished.
//! let job = Job::open(&input, &output, Program::new("my_judge", env!("CARGO_PKG_VERSION")))?;
//! let counts = job.judge(&model, &judge, |done, rows| eprintln!("{done} of {rows}"))?;
//! println!("{} of {} rows scored", counts.scored, counts.rows());
//! # assert_eq!((counts.scored, counts.graded), (1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! Rows of your own are a [`Source`]; several judges, and a model that is loaded only if there is something to do, come by [`Job::run`].
//!
//! # What is here
//!
//! | to | take |
//! |---|---|
//! | read objects of a format of your own | [`Rows`], [`Row`] |
//! | read data sets | [`Dataset`], [`Record`] and the record types; [`Columns`] where columns have other names |
//! | read standard input, pipes and compressed files, or read one input several times | [`Input`] |
//! | read a published set of pairs, or verdicts on it that were made elsewhere | [`Benchmark`], [`PairVerdicts`]; [`PairVote`] for MT-bench's votes |
//! | tell users that their human scores are not read | [`HumanScores`] |
//! | refuse outputs that would destroy something | [`Outputs`], [`check_outputs`], [`write_new`] |
//! | judge a file | [`Job`]; [`Source`] for rows of your own |
//! | say before any work that a template uses a field that no row has | [`check_templates`] |
//! | read queries with documents, and write them in order | [`RerankRecord`], [`RerankRow`] |
//! | read states with typed questions, and write their answers | [`DecisionRecord`], [`DecisionRow`] |
//! | write a judge's labels as graded rows for probes | [`LabelRow`] |
//! | have people grade rows | [`GradingTask`], [`GradingRecord`], [`graded_row`] |
//! | write rows | [`RunPlan`] and [`Run`]; [`JsonlWriter`] for what is quick; [`AtomicFile`] for anything else |
//! | swap files with LAGER's program | [`read_lager_results`], [`write_lager_results`], [`LagerDataset`] |
//! | keep hidden states, in one file or in shards | [`StatesWriter`], [`StatesFile`], [`Sharding`] |
//! | take items from an engine that moves rows, score them, and hand over results | `BatchReader`, `ItemColumns`, `ResultScorer`, `ResultColumns`, `BatchWriter` (feature `arrow`) |
//! | cut Parquet files into shards, and prove that no row is missing | `ShardPlan`, `PartWriter`, `Check` (feature `parquet`) |
//! | let any command that makes rows of rows do it by parts, and join them | `CommandPlan`, `CommandPart` (feature `parquet`); [`Part`] |
//! | prove that parts of anything have each row once | [`SetDigest`] of [`RowHasher`]'s hashes |
//! | keep fitted weights, run records, your own fitted things | [`save`], [`load`], [`Document`] |
//!
//! # When not to use it
//!
//! There is no network here; CSV, gzip and zstd are read, not written. Files are not edited in place: a new version
//! replaces the old one. Model folders are read by `judge-models`.

mod answers_record;
#[cfg(feature = "arrow")]
mod arrow;
mod atomic;
mod benchmark;
mod beside;
mod body;
mod carry;
mod columns;
mod cut;
mod dataset;
mod decision_row;
mod digest;
mod document;
mod error;
mod fault;
mod field;
mod foreign;
mod grades;
mod grading;
mod human;
mod human_scores;
mod ids;
mod input;
mod job;
mod jobs;
mod journal;
mod jsonl;
#[cfg(test)]
mod kill_tests;
#[cfg(test)]
mod known_tests;
mod label_row;
mod lager_result;
mod lock;
mod messages;
mod numbered_rows;
mod origin;
mod output;
mod output_row;
mod outputs;
mod pair_reading;
mod pair_table;
mod pair_verdict;
mod paths;
mod preference;
mod prometheus;
mod python_json;
mod rag;
mod read_text;
mod reading;
mod record;
mod recorded;
mod records;
mod rerank_row;
mod row;
mod rows;
mod run;
mod run_record;
mod score_file;
mod score_row;
mod score_table;
mod scored;
mod settings;
#[cfg(feature = "parquet")]
mod shards;
mod states;
mod texts;
mod trec;
mod unread_record;
mod verdict_row;

pub use answers_record::AnswersRecord;
#[cfg(feature = "arrow")]
pub use arrow::{
    BatchItem, BatchReader, BatchWriter, IdKind, ItemColumns, ItemSpec, ResultColumns, ResultDigests, ResultRow,
    ResultScorer, ResultTally,
};
pub use atomic::{AtomicFile, write_atomic, write_new};
pub use benchmark::{
    Benchmark, BenchmarkPair, PairTexts, PairVerdicts, PairVote, Perturbation, PerturbedPair, Published, Statistics,
};
pub use body::BodyProblem;
pub use carry::Carry;
pub use columns::{Columns, RowColumns};
pub use cut::{Cut, Kept};
pub use dataset::{Dataset, DatasetFormat, DatasetOptions, LagerDataset};
pub use decision_row::{Decided, DecisionRecord, DecisionRow};
pub use digest::{RowHash, RowHasher, SetDigest};
pub use document::{Document, load, save, save_new};
pub use error::{Error, PartialProblem, Place};
pub use field::Field;
pub use grading::{
    Given, GradingGroup, GradingOption, GradingRecord, GradingScale, GradingTask, GradingTool, ImportedGrades,
    RaterGrade, Shown, graded_row, grades_of,
};
pub use human::Human;
pub use human_scores::HumanScores;
pub use ids::Ids;
pub use input::{Input, InputReader, IntoInput, PART, Part};
pub use job::{
    Checked, DecisionRecords, Finished, GradingRecords, Job, Missing, RagRecords, RecordList, Records, RerankRecords,
    Source, Unread,
};
pub use jobs::{check_templates, check_templates_on, read_rows, score_row, split_label};
pub use journal::{Resumed, SyncEvery};
pub use jsonl::JsonlWriter;
pub use label_row::{JudgedAspect, LabelRow};
pub use lager_result::{LagerLayer, LagerResult, LagerScores, read_lager_results, write_lager_results};
pub use lock::{Locking, open as open_locked};
pub use origin::{ORIGIN, is_unrecorded, recorded_origin, unrecorded_origin};
pub use output::{OutputProblem, check_outputs};
pub use output_row::{Judged, OutputRow};
pub use outputs::{Outputs, check_new, is_any_document, report_mark};
pub use pair_reading::OrderReading;
pub use pair_table::{PairLogits, PairTable};
pub use pair_verdict::{PairVerdict, majority};
pub use rag::{MeasuredRag, RagRecord, RagRow};
pub use read_text::read_text;
pub use record::{Numbered, Record};
pub use records::{EmotionRecord, GradedRecord, LagerRecord, PairRecord, PromptInput, PromptRecord};
pub use rerank_row::{RerankRecord, RerankRow, Reranked, WrittenResult};
pub use row::{Extra, Row};
pub use rows::{Layout, Rows};
pub use run::{MadeBy, Observer, Opened, Resolved, RowItem, Run, RunPlan, RunResult, RunStart, WriteOptions};
pub use run_record::{Counts, Fate, InputFile, OutputFile, Program, RunRecord, record_path};
pub use score_file::{ScoreFile, ScoreFormat, ScoredItem};
pub use score_row::{JudgedScore, LabelTable, ScoreOutcome, ScoreRow};
pub use score_table::ScoreTable;
pub use scored::{Grade, NoScore, ScoredFields, ScoredFile, ScoredRow, ScoredRows};
pub use settings::{Difference, Settings, run_id};
#[cfg(feature = "parquet")]
pub use shards::{
    Check, CommandPart, CommandPlan, CommandResults, Completeness, Export, Exported, Output, ParquetTable, PartRecord,
    PartWriter, PlannedFile, SeeIds, ShardPlan,
};
pub use states::{Sharding, StatesFile, StatesRow, StatesSpec, StatesWriter, StatesWritten, ids_path};
pub use texts::with_input;
pub use trec::{Qrels, TrecRun};
pub use unread_record::UnreadRecord;
pub use verdict_row::{
    JudgedPair, JudgedResponse, OrderRow, PairOrders, PairProbabilities, PairRow, SingleRow, joined,
};
