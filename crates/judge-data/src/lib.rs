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
//! | write score files, on which layer weights are fitted | [`score_row`] with [`Resolved::with_origin`] |
//! | write a judge's labels as graded rows for probes | [`LabelRow`] |
//! | have people grade rows | [`GradingTask`], [`GradingRecord`], [`graded_row`] |
//! | write rows | [`RunPlan`] and [`Run`]; [`JsonlWriter`] for what is quick; [`AtomicFile`] for anything else |
//! | swap files with LAGER's program | [`read_lager_results`], [`write_lager_results`] |
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

#[cfg(feature = "arrow")]
mod arrow;
mod benchmark;
mod dataset;
mod error;
mod files;
mod grading;
mod input;
mod job;
#[cfg(test)]
mod kill_tests;
#[cfg(test)]
mod known_tests;
mod results;
mod rows;
mod run;
mod scored;
#[cfg(feature = "parquet")]
mod shards;
mod states;

#[cfg(feature = "arrow")]
pub use arrow::{
    BatchItem, BatchReader, BatchWriter, IdKind, ItemColumns, ItemSpec, ResultColumns, ResultDigests, ResultRow,
    ResultScorer, ResultTally,
};
pub use benchmark::{
    Benchmark, BenchmarkPair, PairTexts, PairVerdicts, PairVote, Perturbation, PerturbedPair, Published, Statistics,
};
pub use dataset::Dataset;
pub use dataset::answers_record::AnswersRecord;
pub use dataset::record::{Numbered, Record};
pub use dataset::records::{EmotionRecord, GradedRecord, LagerRecord, PairRecord, PromptInput, PromptRecord};
pub use dataset::unread_record::UnreadRecord;
pub use error::{Error, Place};
pub use files::atomic::{AtomicFile, write_atomic, write_new};
pub use files::document::{Document, load, save, save_new};
pub use files::lock::{Locking, open as open_locked};
pub use grading::{
    Given, GradingGroup, GradingOption, GradingRecord, GradingScale, GradingTask, GradingTool, ImportedGrades,
    RaterGrade, Shown, graded_row, grades_of,
};
pub use input::read_text::read_text;
pub use input::{Input, InputReader, IntoInput, PART, Part};
pub use job::jobs::{check_templates, check_templates_on, read_rows, score_row, split_label};
pub use job::{
    Checked, DecisionRecords, Finished, GradingRecords, Job, Missing, RagRecords, RecordList, Records, RerankRecords,
    Source, Unread, check_files,
};
pub use results::carry::Carry;
pub use results::decision_row::{Decided, DecisionRecord, DecisionRow};
pub use results::label_row::{JudgedAspect, LabelRow};
pub use results::lager_result::{LagerLayer, LagerResult, LagerScores, read_lager_results, write_lager_results};
pub use results::output_row::{Judged, OutputRow};
pub use results::pair_table::{PairLogits, PairTable};
pub use results::rag::{MeasuredRag, RagRecord, RagRow};
pub use results::rerank_row::{RerankRecord, RerankRow, Reranked, WrittenResult};
pub use results::score_row::{JudgedScore, LabelTable, ScoreOutcome, ScoreRow};
pub use results::verdict_row::{
    JudgedPair, JudgedResponse, OrderRow, PairOrders, PairProbabilities, PairRow, SingleRow, joined,
};
pub use rows::columns::{Columns, RowColumns};
pub use rows::cut::{Cut, Kept};
pub use rows::digest::{RowHash, RowHasher, SetDigest};
pub use rows::field::Field;
pub use rows::human::Human;
pub use rows::ids::Ids;
pub use rows::options::{DatasetFormat, DatasetOptions};
pub use rows::pair_verdict::{PairVerdict, majority, preferred};
pub use rows::row::{Extra, Row};
pub use rows::texts::with_input;
pub use rows::{Layout, Rows};
pub use run::journal::{Resumed, SyncEvery};
pub use run::jsonl::JsonlWriter;
pub use run::origin::{ORIGIN, is_unrecorded, recorded_origin, unrecorded_origin};
pub use run::output::{OutputProblem, check_outputs};
pub use run::outputs::{Outputs, check_new, is_any_document, report_mark};
pub use run::run_record::{Counts, Fate, InputFile, OutputFile, Program, RunRecord, record_path};
pub use run::settings::{Difference, Settings, run_id, with_variant};
pub use run::{MadeBy, Observer, Opened, Resolved, RowItem, Run, RunPlan, RunResult, RunStart, WriteOptions};
pub use scored::human_scores::HumanScores;
pub use scored::pair_reading::OrderReading;
pub use scored::score_file::{ScoreFile, ScoreFormat, ScoredItem};
pub use scored::score_table::ScoreTable;
pub use scored::trec::{Qrels, TrecRun};
pub use scored::{Grade, NoScore, ScoredFields, ScoredFile, ScoredRow, ScoredRows};
#[cfg(feature = "parquet")]
pub use shards::{
    Check, CommandPart, CommandPlan, CommandResults, Completeness, Export, Exported, Output, ParquetTable, PartRecord,
    PartWriter, PlannedFile, SeeIds, ShardPlan,
};
pub use states::{Sharding, StatesFile, StatesRow, StatesSpec, StatesWriter, StatesWritten, ids_path};
