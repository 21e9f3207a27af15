//! The one error of this crate. What goes wrong is a variant here;
//! the files below have what variants hold, how they are made, and how they are worded.

mod making;
mod of_row;
mod place;
mod words;

use std::io;
use std::path::PathBuf;

use crate::{Difference, Field, OutputProblem};
pub use place::Place;
use words::{
    besides, clause, list, made_otherwise, meant, no_field, no_row_has, several, two_columns, without_position,
};

/// Everything that can go wrong between a judge and a disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What `judge-core` says of a table, a scale or weights.
    #[error(transparent)]
    Core(Box<judge_core::Error>),
    /// A field of the input has the name of one that is written.
    #[error("the input has a field {field:?}, and so has the output, which would overwrite it: rename it in the input")]
    FieldClash {
        /// The field.
        field: String,
    },
    /// What is to be written is no row.
    #[error("a row cannot be written: expected {expected}, found {found}")]
    Body {
        /// What a row is.
        expected: &'static str,
        /// What it is instead, shortened.
        found: String,
    },
    /// No row that is to be compared with people has a human score.
    #[error("{}: none of the {scored} {what} has a human score (field `human`){}", path.display(), clause(why.as_deref()))]
    NobodyGraded {
        /// The file.
        path: PathBuf,
        /// How many there are.
        scored: usize,
        /// What they are.
        what: &'static str,
        /// What people gave instead, where they gave something.
        why: Option<String>,
    },
    /// The content of a file, or of a folder, is not what it must be.
    #[error("{}: {what}: expected {expected}, found {found}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What of it.
        what: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Bytes that are not UTF-8.
    #[error("{place}, byte {column}: not valid UTF-8; save the file as UTF-8")]
    Utf8 {
        /// Where.
        place: Place,
        /// Byte within the line, from 1.
        column: usize,
    },
    /// Text that is not JSON.
    #[error("{place}, column {column}: {}", without_position(problem))]
    Malformed {
        /// Where.
        place: Place,
        /// Byte within the line, from 1.
        column: usize,
        /// What the parser says. Not the `source`: its own line and column count from the start of the object, and a
        /// message with two places helps nobody.
        problem: serde_json::Error,
    },
    /// Text between the elements of an array, or after it, that does not belong there.
    #[error("{place}, column {column}: expected {expected}, found {}", found.map_or("the end of the file".into(), |c| format!("{c:?}")))]
    Syntax {
        /// Where.
        place: Place,
        /// Byte within the line, from 1.
        column: usize,
        /// What could have stood there.
        expected: &'static str,
        /// The byte found; `None` at the end of the file.
        found: Option<char>,
    },
    /// A line or a row that is not as it must be, which a program can do no more about than say so.
    #[error("{place}: {problem}")]
    At {
        /// Where.
        place: Place,
        /// What is wrong.
        problem: String,
    },
    /// A field that must be there is not, under none of the names that are looked for.
    #[error("{place}: {}, found the fields {found:?}", no_field(*field, names))]
    MissingField {
        /// Where.
        place: Place,
        /// The field; `None` in a file whose columns cannot be chosen.
        field: Option<Field>,
        /// The names that were looked for.
        names: Vec<String>,
        /// The fields that are there.
        found: Vec<String>,
    },
    /// A field holds something else than it should.
    #[error("{place}: expected {column:?} to be {expected}, found {found}")]
    WrongType {
        /// Where.
        place: Place,
        /// The field; `None` in a file whose columns cannot be chosen.
        field: Option<Field>,
        /// The column that it was read from.
        column: String,
        /// What it should hold.
        expected: &'static str,
        /// What it holds, shortened.
        found: String,
    },
    /// Two fields of which only one can be meant.
    #[error("{place}: has both {first:?} and {second:?}, expected one of them")]
    BothFields {
        /// Where.
        place: Place,
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// Two rows with one id.
    #[error("{place}: the id {id} appears twice, first on line {first_line}")]
    DuplicateId {
        /// Where it stands again.
        place: Place,
        /// The id, as JSON.
        id: String,
        /// Where it stood first.
        first_line: usize,
    },
    /// A [`Source`](crate::Source) names nothing that identifies its rows.
    #[error(
        "nothing identifies the rows, which come from no file: a finished output could not be told from that of other rows; \
         return them from Source::identity, as InputFile::of_rows(name, rows)"
    )]
    NoIdentity,
    /// The fields of a row fit no kind of data set that is known, or several.
    #[error("{place}: the fields {found:?} fit {}; the known kinds are {known}", several(candidates))]
    UnknownFormat {
        /// Where.
        place: Place,
        /// The fields of the row.
        found: Vec<String>,
        /// The kinds they fit: none, or several.
        candidates: Vec<&'static str>,
        /// The known kinds with their fields.
        known: &'static str,
    },
    /// A file without a single row, where its kind is to be told from its rows.
    #[error("{} has no rows", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
    },
    /// Rows, columns or lists of a table that do not fit together.
    #[error("{place}: {what}: expected {expected} entries, found {found}")]
    Ragged {
        /// Where.
        place: Place,
        /// Which part of the table.
        what: String,
        /// Entries it should have.
        expected: usize,
        /// Entries it has.
        found: usize,
    },
    /// A file of this project, but not of the kind asked for; or not of this project.
    #[error("{}: expected a file of format {expected:?}, found {found}", path.display())]
    FileFormat {
        /// The file.
        path: PathBuf,
        /// The format asked for.
        expected: &'static str,
        /// What its `format` field holds, as JSON, or what stands in its place.
        found: String,
    },
    /// The content of a saved file is not what its format says.
    #[error("{}: {source}", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// Which part of it.
        source: serde_json::Error,
    },
    /// A value without a JSON form.
    #[error("cannot be written as JSON: {source}")]
    Serialize {
        /// Why.
        source: serde_json::Error,
    },
    /// NaN or infinity where only a finite number can be written.
    #[error("{what}: value {index} of row {row} is {value}, expected a finite number")]
    NonFinite {
        /// What the values are.
        what: &'static str,
        /// Index of the row.
        row: usize,
        /// Index within the row.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A table of hidden states of more bytes than can be counted.
    #[error("{rows} rows of {layers} layers with states of {d_model} numbers: more bytes than can be counted")]
    StatesTooLarge {
        /// Its rows.
        rows: usize,
        /// Its layers.
        layers: usize,
        /// Width of a state.
        d_model: usize,
    },
    /// A count is not what it must be.
    #[error("{what} {index}: expected {expected}, found {found}")]
    Shape {
        /// What is counted, e.g. `values of row`.
        what: &'static str,
        /// Which one.
        index: usize,
        /// The right count.
        expected: usize,
        /// The count found.
        found: usize,
    },
    /// An interrupted run is to be resumed with other settings than it began with.
    #[error("{} was begun with other settings: {}; repeat with the old settings, delete it to start again, or choose another output", path.display(), list(differences))]
    SettingsDiffer {
        /// The unfinished output.
        path: PathBuf,
        /// The settings that differ.
        differences: Vec<Difference>,
    },
    /// A file is not of the run of those beside it.
    #[error("{} is of another run than the files beside it: {}", path.display(), list(differences))]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// The settings that differ.
        differences: Vec<Difference>,
    },
    /// A judge does not say what its verdicts depend on, so a run could be resumed with another.
    #[error(
        "the judge {judge:?} does not say what its verdicts depend on; implement Judge::settings (and of a calibrator, name it: Calibrated::with_settings)"
    )]
    JudgeSettings {
        /// Its name.
        judge: String,
    },
    /// A finished output was made otherwise than this run would make it.
    #[error("{} exists, {}; choose another output, or allow it to be overwritten", path.display(), made_otherwise(differences))]
    OutputExists {
        /// The output.
        path: PathBuf,
        /// The settings that differ; none where only the content tells.
        differences: Vec<Difference>,
    },
    /// Two inputs are standard input.
    #[error("two inputs are `-`, and standard input can be read once; name a file for one of them")]
    StdinTwice,
    /// A path that cannot be an output.
    #[error("the output {}: {problem}", path.display())]
    Output {
        /// The path.
        path: PathBuf,
        /// Why not.
        problem: OutputProblem,
    },
    /// An input whose name no record could hold.
    #[error("the input {}: its name is not UTF-8, so no record could name it; rename it, or give it on standard input", path.display())]
    InputNotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// Another process is writing this output.
    #[error("{} is being written by another process{}", path.display(), pid.map_or(String::new(), |pid| format!(" (number {pid})")))]
    Locked {
        /// The unfinished output.
        path: PathBuf,
        /// The process, where the system says it.
        pid: Option<u32>,
    },
    /// A file system without locks.
    #[error("cannot lock {}: {source}; if its file system has no locks, make sure that nobody else writes this output and turn locking off", path.display())]
    NoLocks {
        /// The unfinished output.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// An unfinished output holds what this crate did not write there.
    #[error("{place}: expected {expected}, found {found}; delete the file to start again")]
    Partial {
        /// Where.
        place: Place,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A row that is already there.
    #[error("row {row} is already written")]
    RowTwice {
        /// Index of the row.
        row: usize,
    },
    /// A row of a source that says another place than it has.
    #[error(
        "row {place} of the source says that it is row {found}: rows are numbered from 0, in the order of `Source::items`"
    )]
    RowPlace {
        /// Its place.
        place: usize,
        /// What it says.
        found: usize,
    },
    /// A row beyond the number of rows.
    #[error("row {row} does not exist, there are {rows} rows")]
    NoSuchRow {
        /// Index of the row.
        row: usize,
        /// Number of rows.
        rows: usize,
    },
    /// A column of a record batch, of the feature `arrow`.
    #[error("column {column:?}: expected {expected}, found {found}")]
    BatchColumn {
        /// The column.
        column: String,
        /// What it is to hold.
        expected: &'static str,
        /// What it holds, and where.
        found: String,
    },
    /// The ids of a record batch are of another type than they are read as, of the feature `arrow`.
    #[error("column {column:?}: expected {expected} as ids, found {found}")]
    IdColumn {
        /// The column.
        column: String,
        /// What ids are read as: `texts` or `whole numbers`.
        expected: &'static str,
        /// The type of the column.
        found: String,
    },
    /// No column of a record batch has the ids, of the feature `arrow`.
    #[error("no column of ids: looked for {looked_for:?}, found {found:?}")]
    NoIdColumn {
        /// The columns that could have them.
        looked_for: Vec<String>,
        /// The columns that there are.
        found: Vec<String>,
    },
    /// A field that a template uses is in no column of a record batch, of the feature `arrow`.
    #[error("the template uses {{{field}}}, and no column holds it: looked for {looked_for:?}, found {found:?}")]
    NoItemColumn {
        /// The field.
        field: String,
        /// The columns that could hold it.
        looked_for: Vec<String>,
        /// The columns that there are.
        found: Vec<String>,
    },
    /// None of the rows of Parquet files can be scored, of the feature `parquet`:
    /// the columns are there, and what the template uses is not in them.
    #[error("none of the {rows} rows has the fields {fields:?} that the template uses; the columns are {columns:?}")]
    NoItemFits {
        /// The rows.
        rows: u64,
        /// The fields that no row has, or all of the template if each is in one.
        fields: Vec<String>,
        /// The columns of the first file.
        columns: Vec<String>,
    },
    /// Two columns of a record batch may be meant, or have one name, of the feature `arrow`.
    #[error("{}", two_columns(field, first, second))]
    AmbiguousItemColumn {
        /// The field.
        field: String,
        /// The one that comes first in the list of names.
        first: String,
        /// The other.
        second: String,
    },
    /// A stream of record batches that ends before its end mark, of the feature `arrow`: whoever wrote it died, or bytes were lost.
    #[error("{}: the stream ends without its end mark, after {batches} good batches", path.display())]
    StreamCut {
        /// What the stream is called.
        path: PathBuf,
        /// Batches before the cut.
        batches: usize,
    },
    /// Bytes that are no stream of record batches, of the feature `arrow`.
    #[error("{}: not an Arrow IPC stream, after {batches} good batches: {problem}", path.display())]
    NoStream {
        /// What the stream is called.
        path: PathBuf,
        /// Batches before.
        batches: usize,
        /// What is wrong.
        problem: String,
    },
    /// A file that is no Parquet file, or whose pages cannot be read, of the feature `parquet`.
    #[error("{}: cannot read it as Parquet: {problem}", path.display())]
    NoParquet {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// What is wrong with the columns of a file, of the feature `parquet`.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What.
        source: Box<Error>,
    },
    /// What is wrong with rows that were read together, of the feature `arrow`.
    #[error("{what} {number}: {source}")]
    InBatch {
        /// What is counted: batches of a stream, or rows of a file.
        what: &'static str,
        /// The number of the batch, or of its first row, from 0.
        number: u64,
        /// What.
        source: Box<Error>,
    },
    /// A file is not the one that a plan was made of, of the feature `parquet`.
    #[error("{}: it is not the file that the plan was made of; make a new plan, into a new folder", path.display())]
    FileChanged {
        /// The file.
        path: PathBuf,
    },
    /// An id that occurs twice in the files of a plan, or among the rows of a [`Source`](crate::Source).
    #[error("the id {id} occurs twice: {first}, and {second}")]
    RepeatedRow {
        /// The id.
        id: String,
        /// Where it is first.
        first: String,
        /// Where it is again.
        second: String,
    },
    /// A row without a result of its own texts in what is to be exported, of the feature `parquet`.
    #[error("no result of the texts of the row {id} ({place}); a check names all such rows")]
    NoResult {
        /// The id.
        id: String,
        /// Where the row is.
        place: String,
    },
    /// A part of a command's plan that is not there, of the feature `parquet`.
    #[error("{}: no finished part; run its shard again", path.display())]
    NoPart {
        /// The part.
        path: PathBuf,
    },
    /// An output is to be finished before all of its rows are there.
    #[error("{missing} of {rows} rows are not written yet, the first is row {first}")]
    Incomplete {
        /// Number of missing rows.
        missing: usize,
        /// Number of rows.
        rows: usize,
        /// Index of the first missing row.
        first: usize,
    },
    /// A safetensors file that cannot be read as one.
    #[error("{}: {source}", path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What is wrong with its header.
        source: safetensors::SafeTensorError,
    },
    /// A turn of a conversation that has no text, or is none.
    #[error("{place}: turn {turn} of {column:?}: expected {expected}, found {found}")]
    Turn {
        /// Where.
        place: Place,
        /// The column of the conversation.
        column: String,
        /// The turn, from 1.
        turn: usize,
        /// What should be there.
        expected: &'static str,
        /// What is there, shortened.
        found: String,
    },
    /// None of the rows that a file begins with can be read, so it is not the rows that are odd.
    #[error("{}: none of the first {rows} rows can be read; {first}", path.display())]
    NoRowFits {
        /// The file.
        path: PathBuf,
        /// How many were looked at: [`Dataset::HEAD`](crate::Dataset::HEAD), or all that there are.
        rows: usize,
        /// What is wrong with the first.
        first: Box<Error>,
    },
    /// A field of a template that none of the rows that a file begins with has, and that has no default.
    #[error("{}: {}{}", path.display(), no_row_has(*rows, field, holds.as_deref(), found), meant(field, found))]
    NoRowHas {
        /// The file.
        path: PathBuf,
        /// How many were looked at: [`Dataset::HEAD`](crate::Dataset::HEAD), or all that there are.
        rows: usize,
        /// The field.
        field: String,
        /// What it holds in the first row that has it, shortened: a list or an object, which is no text. `None` if none has it.
        holds: Option<String>,
        /// The fields that have a text in one of them at least.
        found: Vec<String>,
    },
    /// Two columns of different content, either of which may be the field.
    #[error("{place}: {first:?} and {second:?} may both be the {field}")]
    AmbiguousColumns {
        /// Where.
        place: Place,
        /// The field.
        field: Field,
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// A field that was in another column on earlier rows.
    #[error("{place}: expected the {field} in {before:?}, as on line {before_line}, found it in {column:?}")]
    ColumnMoved {
        /// Where.
        place: Place,
        /// The field.
        field: Field,
        /// Its column here.
        column: String,
        /// Its column before.
        before: String,
        /// The line that has it there.
        before_line: usize,
    },
    /// A row of another kind than the rows before it.
    #[error(
        "{place}: expected one of the {expected} that the file began with, found the fields of the kind {found}; a file has rows of one kind"
    )]
    MixedFormats {
        /// Where.
        place: Place,
        /// The kind of the first row.
        expected: &'static str,
        /// The kind of this one.
        found: &'static str,
    },
    /// An id that is a number but not whole, as pandas writes those of a column with gaps.
    #[error(
        "{place}: expected {column:?} to be a string or a whole number, found {found}; write the column as integers or as strings (pandas: `.astype(\"Int64\")` keeps gaps)"
    )]
    FractionalId {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// The number, as the file has it.
        found: String,
    },
    /// An id that is a whole number of more than 64 bits.
    #[error("{place}: the id {found} in {column:?} is too large for a whole number (64 bits); write it as a string")]
    IdTooLarge {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// The number, as the file has it.
        found: String,
    },
    /// A column that was chosen for a field and that no row has.
    #[error("{}: no row has the column {} that is named for the {field}; {rows} were read, and the first has the columns {found:?}", path.display(), names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or "))]
    NoSuchColumn {
        /// The file.
        path: PathBuf,
        /// How many rows were looked at.
        rows: usize,
        /// The field.
        field: Field,
        /// The columns that were named.
        names: Vec<String>,
        /// The columns of the first row.
        found: Vec<String>,
    },
    /// A field that is to be cut and of which no row has a text that can be.
    #[error(
        "{}: no row has a text in the field {field:?} that is to be cut; {rows} were read, and the fields of the first that can be cut are \
         {found:?}{}",
        path.display(),
        meant(field, found)
    )]
    NothingToCut {
        /// The file.
        path: PathBuf,
        /// How many rows were looked at.
        rows: usize,
        /// The field.
        field: String,
        /// The fields of the first row that can be cut.
        found: Vec<String>,
    },
    /// Two cuts of one field, by its name or by that of its column.
    #[error("{first} and {second} both cut the field {field:?}: give one of them")]
    CutTwice {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// The field.
        field: String,
    },
    /// Fields are to be cut for a model that does not count tokens.
    #[error(
        "fields are cut by the tokens of a model on this machine: this one, such as a service, does not say how many a text has"
    )]
    NoTokenCount,
    /// A field that is to be carried and that no row has.
    #[error(
        "{}: no row has the field {field:?} that is to be carried; {rows} were read, and the first has {}{}",
        path.display(),
        besides(found),
        meant(field, found)
    )]
    NothingToCarry {
        /// The file.
        path: PathBuf,
        /// How many rows were looked at.
        rows: usize,
        /// The field.
        field: String,
        /// The fields of the first row that can be carried.
        found: Vec<String>,
    },
    /// A name that nothing has.
    #[error("unknown {what} {found:?}: expected one of {known}")]
    Unknown {
        /// What is named: a field, a benchmark or a perturbation.
        what: &'static str,
        /// The name.
        found: String,
        /// The names that there are.
        known: String,
    },
    /// A text that is not of the form of what it should be.
    #[error("expected {expected}, found {found:?}")]
    Form {
        /// The form.
        expected: &'static str,
        /// The text.
        found: String,
    },
    /// A field that is chosen twice, or a column that is chosen for two fields.
    #[error("the {what} {name:?} is chosen twice, expected once")]
    ColumnsTwice {
        /// `field` or `column`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A file of another format.
    #[error("{} looks like {found}, expected JSON lines or a JSON array; {cure}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: &'static str,
        /// What to do.
        cure: &'static str,
    },
    /// A number that JSON does not have.
    #[error(
        "{place}, column {column}: {found} is not JSON, expected a number or null (Python's json.dumps writes it unless told allow_nan=False)"
    )]
    NotANumber {
        /// Where.
        place: Place,
        /// Byte within the line, from 1.
        column: usize,
        /// The word.
        found: &'static str,
    },
    /// An input that is not what it was when it was opened.
    #[error("{} was changed while it was being read: it had {bytes_before} bytes when it was opened and has {bytes_now} now; start again", path.display())]
    InputChanged {
        /// The file.
        path: PathBuf,
        /// Its length then.
        bytes_before: u64,
        /// Its length now; the same where it was written over.
        bytes_now: u64,
    },
    /// Pairs without a verdict in a file that should have one for each.
    #[error("{}: {missing} of {pairs} pairs have no verdict, the first is {first}", path.display())]
    NoVerdict {
        /// The file of verdicts.
        path: PathBuf,
        /// Pairs without one.
        missing: usize,
        /// Pairs of the benchmark.
        pairs: usize,
        /// The id of the first one without, as JSON.
        first: String,
    },
    /// Logits that do not make a table.
    #[error("{place}: {source}")]
    Table {
        /// Where.
        place: Place,
        /// Why not.
        source: Box<judge_core::Error>,
    },
}
