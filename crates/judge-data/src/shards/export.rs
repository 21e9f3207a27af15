//! A score file of what was scored: rows of results in the order of the input, with the texts that were scored and what people said of
//! them.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::Schema;
use judge_core::{
    Fields, Reason, Unscored,
    lager::{LayerTable, TableOrigin},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::check::{Output, each_input, results};
use super::part::PartRecord;
use super::table::ParquetTable;
use crate::arrow::wrong;
use crate::input::CellText;
use crate::rows::grades::NUMBERS;
use crate::rows::reading::Reading;
use crate::{
    BatchItem, Columns, Counts, Dataset, Error, Extra, Fate, Field, Human, Ids, ItemColumns, ItemSpec, JsonlWriter,
    JudgedScore, LabelTable, OutputRow, Place, Resolved, ResultRow, Row, RunPlan, ScoreOutcome, ScoreRow, Unread,
};

/// Turns results into a score file: JSON lines that `lager_evaluate` and `agreement` read, in the order of the input.
///
/// Each row has `id`, `human` where people scored it, what the model gave, and the fields that the template uses. With label logits it is a
/// [`ScoreRow`], whose `step` is 0 and whose `completion` is empty, as results do not keep them;
/// without, it has `score` and `probabilities` alone.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// Where the results lie. Let a [`Check`](crate::Check) find them complete first; of repeated rows the first is taken.
    pub output: &'a Output<'a>,
    /// What the logits are read from: their labels and layers.
    pub origin: &'a TableOrigin,
    /// The column of human scores. `None`: of the field's usual names the one that every reader of a table would take, or none.
    pub human: Option<&'a str>,
}

/// What was exported.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Exported {
    /// How many rows, and how many of them with a score and with a human score.
    pub counts: Counts,
    /// What of the human scores is none, and left out, in words.
    pub notes: Vec<String>,
}

impl Export<'_> {
    /// Writes the output of `plan` and its record, as [`AtomicFile::commit_recorded`](crate::AtomicFile::commit_recorded) does.
    /// `see` is told of rows as they are read.
    ///
    /// Human scores are read as those of any other file are: what is none costs the score, and not the row.
    /// Results wait in a temporary file of about their size; memory is 32 bytes a row.
    ///
    /// # Errors
    /// [`Error::NoResult`] for a row without one, or with one of other texts; [`Error::BatchColumn`] for a column of human scores that is
    /// not there; [`Error::Core`] for logits of another shape than the origin's; [`Error::NonFinite`](judge_core::Error::NonFinite) among
    /// them; [`Error::OutputExists`] for another file in the place of the output, unless the plan overwrites it; as of a
    /// [`Check`](crate::Check); [`Error::Io`].
    pub fn write(&self, plan: &RunPlan, resolved: Resolved, mut see: impl FnMut(usize)) -> Result<Exported, Error> {
        let mut rows_of: Vec<([u8; 16], u64)> = Vec::new();
        each_input(self.output, |row, id, _, _| {
            rows_of.push((id.short(), row));
            Ok(())
        })?;
        let mut waiting = Spool::new(rows_of.len())?;
        rows_of.sort_unstable();
        for file in files(self.output) {
            for rows in results(&file)? {
                let rows = rows?;
                see(rows.len());
                for result in rows {
                    let id = result.id_hash().short();
                    if let Ok(at) = rows_of.binary_search_by_key(&id, |(id, _)| *id) {
                        waiting.keep(usize::try_from(rows_of[at].1).unwrap_or(usize::MAX), &Kept::of(result))?;
                    }
                }
            }
        }
        drop(rows_of);
        let mut file = JsonlWriter::create(&plan.output)?;
        let (mut counts, mut unread) = (Counts::default(), Unread::default());
        let mut waiting = waiting.rewound()?;
        let mut number = 0;
        let mut notes = self.each_graded(|place, item, human, no_grade| {
            let Some(kept) = waiting.take(number)? else {
                return Err(Error::NoResult { id: item.id.to_string(), place: place() });
            };
            number += 1;
            if kept.status != Reason::WorkerDied.as_str() && kept.input != item.input() {
                return Err(Error::NoResult { id: item.id.to_string(), place: place() });
            }
            let reason = kept.reason()?;
            unread.note(&item.id, None);
            unread.note_grade(&item.id, no_grade.as_deref());
            counts.add(Fate { unscored: reason, graded: !human.is_empty() }, 1);
            kept.write(&item, human, reason, self.origin, &mut file)
        })?;
        notes.extend(unread.notes("get no score"));
        let record = plan.record(resolved, counts.clone(), Vec::new());
        file.finish_recorded(counts.rows(), plan.options.overwrite, record)?;
        Ok(Exported { counts, notes })
    }

    /// Calls with each row of the input in order: its place, what was scored, what people gave it, and what of that is none, in words.
    /// Returns what is to be said of columns.
    fn each_graded(
        &self,
        mut each: impl FnMut(&dyn Fn() -> String, BatchItem, Vec<Option<f64>>, Option<String>) -> Result<(), Error>,
    ) -> Result<Vec<String>, Error> {
        let mut notes = Vec::new();
        let mut of_table = |table: ParquetTable, spec: &ItemSpec| -> Result<(), Error> {
            let within = |source| Error::InFile { path: table.path().to_path_buf(), source: Box::new(source) };
            let columns = ItemColumns::find(table.schema(), spec).map_err(within)?;
            let (choice, names) = self.human_columns(table.schema(), spec).map_err(within)?;
            // As of any other input, the rows that a file begins with say which column is meant.
            let choice = choice.settled(&head(&table, &names)?);
            let mut indices = columns.indices(table.schema());
            indices.extend(names.iter().filter_map(|name| table.schema().index_of(name).ok()));
            let mut cells = CellText::new(table.path());
            for batch in table.batches(&indices, 0..table.rows())? {
                let batch = batch?;
                let graded = (!names.is_empty()).then(|| selected(&batch, &names));
                for (index, item) in columns.items(&batch).map_err(within)?.into_iter().enumerate() {
                    let (mut given, mut no_grade) = (Vec::new(), None);
                    if let Some(graded) = &graded {
                        let row = row_of(&mut cells, graded, index, table.path())?;
                        let mut reading = Reading::of(&row, &choice, Ids::RowNumber);
                        given = reading.raters();
                        no_grade = reading.finish().0.no_grade().map(str::to_owned);
                    }
                    let row = cells.row;
                    each(&|| format!("{} row {row}", table.path().display()), item, given, no_grade)?;
                    cells.row += 1;
                }
            }
            notes.append(&mut cells.notes);
            Ok(())
        };
        let done: Result<(), Error> = match self.output {
            Output::Parts { plan, .. } => plan.files.iter().try_for_each(|file| of_table(file.open()?, &plan.items)),
            Output::Files { input, items, .. } => {
                input.iter().try_for_each(|path| of_table(ParquetTable::open(path)?, items))
            }
        };
        done.map(|()| notes)
    }

    /// How people's scores are looked for, and which columns of a schema may have them.
    fn human_columns(&self, schema: &Schema, spec: &ItemSpec) -> Result<(Columns, Vec<String>), Error> {
        let choice = match self.human {
            Some(human) if schema.index_of(human).is_err() => return Err(wrong(human, NUMBERS, "no such column")),
            Some(human) => Columns::default().with(Field::Human, [human])?,
            None => spec.columns.clone(),
        };
        let names = choice.names(Field::Human).filter(|name| schema.index_of(name).is_ok());
        let names = names.map(str::to_owned).collect();
        Ok((choice, names))
    }
}

/// What a table begins with, of some of its columns.
fn head(table: &ParquetTable, names: &[String]) -> Result<Vec<Row>, Error> {
    let (mut head, mut cells) = (Vec::new(), CellText::new(table.path()));
    let indices: Vec<usize> = names.iter().filter_map(|name| table.schema().index_of(name).ok()).collect();
    if indices.is_empty() {
        return Ok(head);
    }
    for batch in table.batches(&indices, 0..Dataset::HEAD as u64)? {
        let batch = selected(&batch?, names);
        for index in 0..batch.len() {
            head.push(row_of(&mut cells, &batch, index, table.path())?);
        }
    }
    Ok(head)
}

/// The columns of a batch that have these names, one of each.
fn selected(batch: &RecordBatch, names: &[String]) -> StructArray {
    let at = names.iter().filter_map(|name| batch.schema_ref().index_of(name).ok());
    let columns = at.map(|at| (batch.schema_ref().fields()[at].clone(), batch.column(at).clone()));
    StructArray::from(columns.collect::<Vec<_>>())
}

/// A row of some columns, as a reader of JSON lines has it.
fn row_of(cells: &mut CellText, of: &StructArray, index: usize, path: &Path) -> Result<Row, Error> {
    cells.json.clear();
    cells.object(of, of.fields(), index, None);
    Row::parse(Place { path: path.to_path_buf(), line: cells.row + 1 }, 1, &cells.json)
}

/// The files of the results.
fn files(output: &Output<'_>) -> Vec<PathBuf> {
    match output {
        Output::Parts { plan, folder } => {
            (0..plan.shards()).map(|shard| PartRecord::part_path(folder, shard, plan.shards())).collect()
        }
        Output::Files { output, .. } => output.to_vec(),
    }
}

/// What an item got, on its way from the results to its place in the file.
#[derive(Serialize, Deserialize)]
struct Kept {
    score: Option<f64>,
    status: String,
    input: [u8; 16],
    detail: Option<String>,
    probabilities: Option<Vec<f64>>,
    logits: Option<Vec<f32>>,
}

impl Kept {
    fn of(row: ResultRow) -> Self {
        let ResultRow { score, status, input, detail, probabilities, logits, .. } = row;
        Self { score, status, input, detail, probabilities, logits }
    }

    /// Why there is no score; `None` if there is one.
    fn reason(&self) -> Result<Option<Reason>, Error> {
        if self.score.is_some() {
            return Ok(None);
        }
        let reason = Reason::deserialize(json!(self.status));
        reason.map(Some).map_err(|_| wrong("status", "the name of a reason where there is no score", &*self.status))
    }

    fn write(
        self,
        item: &BatchItem,
        human: Vec<Option<f64>>,
        reason: Option<Reason>,
        origin: &TableOrigin,
        file: &mut JsonlWriter,
    ) -> Result<(), Error> {
        let mut extra = Extra::new();
        for name in item.names() {
            let text = item.field(&name).unwrap_or_default().into_owned();
            extra.set(name, &text)?;
        }
        let judged = self.score.map(|score| JudgedScore { score, probabilities: self.probabilities, label_mass: None });
        let unscored = reason.map(|reason| Unscored::new(reason, self.detail.unwrap_or_default()));
        let outcome = match (unscored, self.logits) {
            (Some(unscored), _) => ScoreOutcome::Unscored(unscored),
            (None, Some(logits)) => {
                let labels: Vec<String> = origin.scale.points().iter().map(|point| point.label.clone()).collect();
                let logits: Vec<f64> = logits.into_iter().map(f64::from).collect();
                let layers = (0..=origin.n_layers).map(judge_core::Layer).collect();
                let table = LayerTable::new(layers, labels.len(), logits)?;
                ScoreOutcome::Read(LabelTable { labels, table, step: 0, completion: String::new() }, judged)
            }
            (None, None) => {
                if let Some((name, _)) = extra.iter().find(|(name, _)| ScoreRow::KNOWN.contains(name)) {
                    let problem = format!("the template's field {name:?} has a name of the format itself");
                    return Err(Error::serialize(serde::ser::Error::custom(problem)));
                }
                return file.write(&OutputRow { id: item.id.clone(), human: Human::Numbers(human), judged, extra });
            }
        };
        file.write(&ScoreRow { id: item.id.clone(), human, outcome, extra })
    }
}

/// Lines in a temporary file, each with a number.
struct Spool<File> {
    folder: PathBuf,
    file: File,
    end: u64,
    /// Where the line of each number begins, plus one; 0 for none.
    starts: Vec<u64>,
}

impl Spool<BufWriter<File>> {
    fn new(rows: usize) -> Result<Self, Error> {
        let folder = std::env::temp_dir();
        let file = tempfile::tempfile_in(&folder).map_err(Error::io("create a file in", &folder))?;
        Ok(Self { folder, file: BufWriter::new(file), end: 0, starts: vec![0; rows] })
    }

    /// Keeps a line, unless there is one of this number.
    fn keep(&mut self, number: usize, kept: &Kept) -> Result<(), Error> {
        if self.starts[number] == 0 {
            let mut line = serde_json::to_vec(kept).map_err(Error::serialize)?;
            line.push(b'\n');
            self.file.write_all(&line).map_err(Error::io("write to", &self.folder))?;
            self.starts[number] = self.end + 1;
            self.end += line.len() as u64;
        }
        Ok(())
    }

    fn rewound(self) -> Result<Spool<BufReader<File>>, Error> {
        let Self { folder, file, starts, .. } = self;
        let file = file.into_inner().map_err(|error| Error::io("write to", &folder)(error.into_error()))?;
        let mut file = BufReader::new(file);
        file.rewind().map_err(Error::io("read from", &folder))?;
        Ok(Spool { folder, file, end: 0, starts })
    }
}

impl Spool<BufReader<File>> {
    /// The line of a number; `None` if none was kept.
    fn take(&mut self, number: usize) -> Result<Option<Kept>, Error> {
        let Some(start) = self.starts[number].checked_sub(1) else { return Ok(None) };
        let io = || Error::io("read from", &self.folder);
        // Within the buffer where lines follow one another, as those of parts do.
        self.file.seek_relative(start as i64 - self.end as i64).map_err(io())?;
        let mut line = Vec::new();
        self.file.read_until(b'\n', &mut line).map_err(io())?;
        self.end = start + line.len() as u64;
        Ok(Some(serde_json::from_slice(&line).map_err(Error::serialize)?))
    }
}
