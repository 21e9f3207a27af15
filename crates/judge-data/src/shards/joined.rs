//! The parts of a command's plan: whether all are there, and the files that one run over all rows would have written.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use judge_core::Reason;
use serde::{Deserialize, Serialize};

use super::buckets::Buckets;
use super::command::{CommandPart, CommandPlan, damaged, is_changed, is_of_other_rows, made_otherwise};
use crate::files::paths::{entries, target, with_suffix};
use crate::rows::ids::id_of;
use crate::run::run_record::RECORD;
use crate::{
    AtomicFile, Counts, Error, Field, InputFile, JsonlWriter, OutputFile, PART, Resolved, Row, RowHash, Rows, RunPlan,
    RunRecord, Sharding, StatesFile, StatesSpec, StatesWriter, WriteOptions, ids_path, load, record_path, save,
};

/// How many problems of one kind are named.
const NAMED: usize = 10;
const STATES: &str = ".safetensors";

/// What a check of a command's parts found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandResults {
    /// Whether every row has its results, all of one run.
    pub complete: bool,
    /// Rows of the plan.
    pub planned: usize,
    /// Rows of results, of the first file of each part.
    pub rows: usize,
    /// Those with a score.
    pub scored: usize,
    /// Those without, by reason.
    pub unscored: BTreeMap<Reason, usize>,
    /// Rows of results by what they were computed on, where a model took part.
    pub devices: BTreeMap<String, usize>,
    /// The files of which each part has one: what their names have behind `part-00012-of-04096`.
    pub outputs: Vec<String>,
    /// BLAKE3 of the results in the order of the input, in lower-case hexadecimal: that of the joined file, of the first of them.
    pub results: String,
    /// Everything that keeps it from being complete, with names.
    pub problems: Vec<String>,
}

impl CommandPlan {
    /// Checks that every part is there and whole, that all were made alike of the planned rows, and that no id occurs in two of them.
    /// `see` is told of rows of results as they are read.
    ///
    /// What is wrong is no error but among the [problems](CommandResults::problems).
    /// `one_device` makes a problem of parts that were computed on different devices.
    ///
    /// # Errors
    /// [`Error::Io`] of the inputs and of the folder. A part that cannot be read is a problem of its shard.
    pub fn check(&self, folder: &Path, one_device: bool, mut see: impl FnMut(usize)) -> Result<CommandResults, Error> {
        let mut found = CommandResults { planned: self.rows(), ..CommandResults::default() };
        for file in &self.files {
            if is_changed(file)? {
                found.problems.push(format!("{} has changed since it was planned", file.path.display()));
            }
        }
        let mut seen = Seen { first: None, ids: Buckets::new(), all: blake3::Hasher::new() };
        let mut none = 0;
        let find = CommandPart::finder(folder, self);
        for shard in 0..self.shards() {
            let checked = match find(shard) {
                Ok(Some(part)) => self.check_part(folder, part, one_device, &mut seen, &mut found, &mut see),
                Ok(None) => {
                    none += 1;
                    if none <= NAMED {
                        let part = self.output(folder, shard);
                        found
                            .problems
                            .push(format!("shard {shard}: no finished part {}; run the shard again", part.display()));
                    }
                    Ok(())
                }
                Err(error) => Err(error),
            };
            // A part that cannot be read says nothing against the others.
            if let Err(error) = checked {
                found.problems.push(format!("shard {shard}: {error}"));
            }
        }
        if none > NAMED {
            found.problems.push(format!("{none} of {} shards have no finished part", self.shards()));
        }
        let Seen { first, ids, all } = seen;
        for [one, other] in ids.repeated(NAMED)? {
            let id = self.id_of_result(folder, one, &first).unwrap_or_default();
            found.problems.push(format!("the id {id} occurs twice: {}, and {}", self.place(one), self.place(other)));
        }
        self.check_names(folder, &mut found.problems)?;
        found.outputs = first.map(|first| first.outputs).unwrap_or_default();
        found.results = all.finalize().to_hex().to_string();
        found.complete = found.problems.is_empty();
        Ok(found)
    }

    /// Checks a part that is there, and compares it with the first of all.
    fn check_part(
        &self,
        folder: &Path,
        part: CommandPart,
        one_device: bool,
        seen: &mut Seen,
        found: &mut CommandResults,
        see: &mut impl FnMut(usize),
    ) -> Result<(), Error> {
        let (shard, files) = (part.shard, part.files(folder, self));
        let mut records = Vec::new();
        for output in &files {
            let record: RunRecord = load(record_path(output))?;
            self.check_file(shard, output, &record, found)?;
            records.push(record);
        }
        let (Some(record), Some(output)) = (records.first(), files.first()) else { return Ok(()) };
        found.rows += record.counts.rows();
        found.scored += record.counts.scored;
        for (&reason, rows) in &record.counts.unscored {
            *found.unscored.entry(reason).or_default() += rows;
        }
        if let Some(model) = &record.model {
            *found.devices.entry(model.device.clone()).or_default() += record.counts.rows();
        }
        seen.all.update_reader(open(output)?).map_err(Error::io("read", output))?;
        let copies = self.see_ids(shard, output, record, &mut seen.ids, &mut found.problems, see)?;
        match &seen.first {
            None => seen.first = Some(First { shard, outputs: part.outputs, records, copies }),
            Some(first) => first.compare(self, shard, &part, &records, copies, one_device, &mut found.problems),
        }
        Ok(())
    }

    /// Compares a file of a part with its record.
    fn check_file(
        &self,
        shard: usize,
        output: &Path,
        record: &RunRecord,
        found: &mut CommandResults,
    ) -> Result<(), Error> {
        if let Some(file) = damaged(output, record)? {
            let name = file.display();
            found
                .problems
                .push(format!("shard {shard}: {name} is not the file that its record describes; run the shard again"));
        }
        if is_of_other_rows(self, shard, record) {
            let name = output.display();
            found.problems.push(format!(
                "shard {shard}: {name} was made of other rows than the planned ones; run the shard again"
            ));
        }
        Ok(())
    }

    /// Takes note of the ids of a part, and says how many results each row has.
    fn see_ids(
        &self,
        shard: usize,
        output: &Path,
        record: &RunRecord,
        ids: &mut Buckets<24>,
        problems: &mut Vec<String>,
        see: &mut impl FnMut(usize),
    ) -> Result<usize, Error> {
        let planned = self.rows_of(shard);
        let lines = lines_of(output);
        let copies = (record.counts.rows() / planned.len().max(1)).max(1);
        let mut rows = 0;
        for row in Rows::open(&lines)? {
            let row = row?;
            if self.has_ids && rows % copies == 0 {
                ids.push_id(RowHash::of_id(&id_of(&row)?), planned.start + rows / copies)?;
            }
            rows += 1;
            see(1);
        }
        if rows != planned.len() * copies {
            let (name, expected) = (lines.display(), planned.len() * copies);
            problems.push(format!("shard {shard}: expected {expected} rows in {name}, found {rows}"));
        }
        Ok(copies)
    }

    /// What a row is called, counted through all files, by its result.
    fn id_of_result(&self, folder: &Path, row: usize, first: &Option<First>) -> Result<String, Error> {
        let Some(shard) = (0..self.shards()).find(|&shard| self.rows_of(shard).contains(&row)) else {
            return Ok(String::new());
        };
        let place = (row - self.rows_of(shard).start) * first.as_ref().map_or(1, |first| first.copies);
        let files = CommandPart::find(folder, self, shard)?.map(|part| part.files(folder, self)).unwrap_or_default();
        let Some(output) = files.first() else { return Ok(String::new()) };
        match Rows::open(lines_of(output))?.nth(place).transpose()? {
            Some(row) => Ok(id_of(&row)?.to_string()),
            None => Ok(String::new()),
        }
    }

    /// Names records in the folder that are of no part of this plan: whoever reads the folder as a data set would read their files too.
    fn check_names(&self, folder: &Path, problems: &mut Vec<String>) -> Result<(), Error> {
        let planned: HashSet<PathBuf> =
            (0..self.shards()).map(|shard| CommandPart::path(folder, self, shard)).collect();
        let mut others = entries(folder)?;
        others.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_record = name.starts_with("part-") && name.ends_with(".json") && !name.ends_with(RECORD);
            is_record && !planned.contains(path)
        });
        others.sort();
        problems.extend(others.iter().map(|path| format!("{} is of no part of this plan", path.display())));
        Ok(())
    }

    /// Joins the parts: writes to `output`, and beside it what else the parts have, the rows of all parts in the order of the input, each
    /// file with the run record of one run over the whole input. Let a [check](Self::check) find them complete first.
    ///
    /// That run's command recognises them, given the input: the plan's only file, or `input`, which the [rows of several](Self::write_rows)
    /// were written to. Without either the record names the files, and no command takes them for its own.
    ///
    /// # Errors
    /// [`Error::NoPart`] for a part that is not there; [`Error::OutputExists`] for another file in the place of one, unless `write` says
    /// otherwise; [`Error::Io`].
    pub fn join(
        &self,
        folder: &Path,
        output: &Path,
        input: Option<&InputFile>,
        command: &[String],
        write: WriteOptions,
    ) -> Result<Vec<OutputFile>, Error> {
        let mut parts = Vec::new();
        let find = CommandPart::finder(folder, self);
        for shard in 0..self.shards() {
            let part = find(shard)?;
            let part = part.ok_or_else(|| Error::NoPart { path: self.output(folder, shard) })?;
            parts.push(part.files(folder, self).into_iter().zip(part.outputs).collect::<Vec<_>>());
        }
        let inputs = match input {
            Some(input) => vec![input.clone()],
            None => self.files.clone(),
        };
        let behind: Vec<String> = parts.first().into_iter().flatten().map(|(_, behind)| behind.clone()).collect();
        let mut written = Vec::new();
        for (index, behind) in behind.iter().enumerate() {
            let files: Vec<&Path> = parts.iter().filter_map(|part| Some(part.get(index)?.0.as_path())).collect();
            // `.jsonl` is the output itself, `.jsonl.aspects.jsonl` stands beside it.
            let beside = behind.strip_prefix(&self.extension).unwrap_or(behind);
            let path = if beside.is_empty() { output.to_path_buf() } else { with_suffix(&target(output)?, beside) };
            let records = files.iter().map(|file| load(record_path(file))).collect::<Result<Vec<RunRecord>, _>>()?;
            let mut record = joined(&records, &inputs);
            record.command = command.to_vec();
            let record = if behind.ends_with(STATES) {
                record.outputs = join_states(&path, &files, &records, &record, write)?;
                save(record_path(&path), &record)?;
                record
            } else {
                join_lines(&path, &files)?.commit_recorded(record.counts.rows(), write.overwrite, record)?
            };
            written.extend(record.outputs.into_iter().take(1));
        }
        Ok(written)
    }

    /// Writes the rows of all files, in order, as JSON lines to the output of `plan`, with its record: what a command reads to go on from
    /// the joined results. Rows of tables without ids get their numbers as `id`: in a table the command numbers them, in JSON lines it
    /// would not; `ids_are_chosen` says that the command's options name their column. `see` is told of every row.
    ///
    /// # Errors
    /// Whatever is wrong with a row; as [`AtomicFile::create`]; [`Error::OutputExists`] for another file there; [`Error::Io`].
    pub fn write_rows(
        &self,
        plan: &RunPlan,
        ids_are_chosen: bool,
        mut see: impl FnMut(usize),
    ) -> Result<InputFile, Error> {
        let path = plan.output.as_path();
        let mut file = JsonlWriter::create(path)?;
        let mut number = 0_usize;
        for input in &self.files {
            let mut rows = Rows::open(&input.path)?;
            let has_place = |row: &Row| row.keys().any(|key| Field::Id.aliases().contains(&key));
            let is_numbered = rows.is_of_table() && !ids_are_chosen && rows.peek()?.is_some_and(|row| !has_place(row));
            for row in rows {
                let mut fields = row?.into_extra(&[]);
                if is_numbered {
                    fields.set(Field::Id.as_str(), &number)?;
                }
                file.write(&fields)?;
                number += 1;
                see(1);
            }
        }
        let record = plan.record(Resolved::default(), Counts::default(), Vec::new());
        file.finish_recorded(self.rows(), plan.options.overwrite, record)?;
        Ok(InputFile::of(path)?.with_rows(self.rows()))
    }
}

/// What a check knows of the parts before.
struct Seen {
    first: Option<First>,
    ids: Buckets<24>,
    /// Of their results.
    all: blake3::Hasher,
}

/// The first part that is there, which the others must be like.
struct First {
    shard: usize,
    outputs: Vec<String>,
    records: Vec<RunRecord>,
    copies: usize,
}

impl First {
    #[expect(clippy::too_many_arguments, reason = "both parts, and what is compared")]
    fn compare(
        &self,
        plan: &CommandPlan,
        shard: usize,
        part: &CommandPart,
        records: &[RunRecord],
        copies: usize,
        one_device: bool,
        problems: &mut Vec<String>,
    ) {
        let of = self.shard;
        if self.outputs != part.outputs {
            problems.push(format!("shard {shard} has the files {:?}, shard {of} {:?}", part.outputs, self.outputs));
        }
        if self.copies != copies {
            problems.push(format!("shard {shard} has {copies} results of each row, shard {of} {}", self.copies));
        }
        for (before, now) in self.records.iter().zip(records) {
            let differences: Vec<String> =
                made_otherwise(before, now, one_device).iter().map(ToString::to_string).collect();
            if !differences.is_empty() {
                let rows = plan.rows_of(shard).len();
                problems.push(format!(
                    "shard {shard}, {rows} rows, was made otherwise than shard {of}: {}",
                    differences.join("; ")
                ));
            }
        }
    }
}

/// The record of one run over all rows, of those of its parts.
fn joined(records: &[RunRecord], inputs: &[InputFile]) -> RunRecord {
    let Some(first) = records.first() else { return RunRecord::default() };
    let mut record = first.clone();
    record.settings.remove(PART);
    record.inputs = inputs.iter().chain(first.inputs.iter().skip(1)).cloned().collect();
    record.counts = Counts::default();
    records.iter().for_each(|part| record.counts.merge(&part.counts));
    record.resumes = records.iter().map(|part| part.resumes).sum();
    // RFC 3339 in UTC is in the order of time.
    record.started = records.iter().filter_map(|part| part.started.clone()).min();
    record.finished = records.iter().filter_map(|part| part.finished.clone()).max();
    if let Some(model) = &mut record.model {
        let mut devices: Vec<&str> =
            records.iter().filter_map(|part| Some(part.model.as_ref()?.device.as_str())).collect();
        devices.sort_unstable();
        devices.dedup();
        model.device = devices.join(", ");
    }
    record
}

/// Where the ids of a part's file are, a line each. Whether it has states is told by the file: a command of lines may write some as well.
fn lines_of(output: &Path) -> PathBuf {
    if output.to_string_lossy().ends_with(STATES) { ids_path(output) } else { output.to_path_buf() }
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(Error::io("open", path))
}

fn join_lines(path: &Path, files: &[&Path]) -> Result<AtomicFile, Error> {
    let mut file = AtomicFile::create(path)?;
    for part in files {
        io::copy(&mut BufReader::new(open(part)?), &mut file).map_err(Error::io("copy", part))?;
    }
    Ok(file)
}

fn join_states(
    path: &Path,
    files: &[&Path],
    parts: &[RunRecord],
    record: &RunRecord,
    write: WriteOptions,
) -> Result<Vec<OutputFile>, Error> {
    let tables = files.iter().map(|file| StatesFile::open(*file)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = tables.first() else { return Ok(Vec::new()) };
    let mut metadata = first.metadata().clone();
    metadata.remove(PART);
    let of_parts = parts.first().and_then(|part| part.inputs.first()).map(|input| &input.blake3);
    if let ([input, ..], Some(of_parts)) = (&record.inputs[..], of_parts) {
        // The hash of the input, under whatever name a command keeps it.
        metadata.values_mut().filter(|value| *value == of_parts).for_each(|value| value.clone_from(&input.blake3));
    }
    let rows = tables.iter().map(StatesFile::rows).sum();
    let (layers, d_model) = (first.layers().to_vec(), first.d_model());
    let spec = StatesSpec { rows, layers, d_model, metadata, sharding: Sharding::Whole };
    let mut writer = StatesWriter::open(path, &spec, write)?;
    let mut row = 0;
    for table in &tables {
        for (local, line) in table.ids().enumerate() {
            let line = line?;
            let states = table.row(local)?;
            match (states, &line.unscored) {
                _ if writer.is_done(row) => {}
                (Some(states), _) => writer.write(row, &line.id, &states)?,
                (None, Some(why)) => writer.write_unscored(row, &line.id, why)?,
                (None, None) => return Err(Error::Incomplete { missing: 1, rows, first: row }),
            }
            row += 1;
        }
    }
    Ok(writer.finish()?.outputs)
}
