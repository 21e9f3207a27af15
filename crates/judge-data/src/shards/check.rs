//! The proof that every row was scored once, from the text that is in the files: on parts of a plan, or on what an engine wrote.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::buckets::Buckets;
use super::part::PartRecord;
use super::plan::{ShardPlan, items_of_table};
use super::table::ParquetTable;
use crate::files::paths::entries;
use crate::{Error, ItemSpec, ResultDigests, ResultRow, ResultTally, RowHash, SetDigest};

/// Rows of each kind that are named.
const NAMED: usize = 20;

/// Where results lie, and what they must be the results of.
#[derive(Clone, Debug)]
pub enum Output<'a> {
    /// The parts of a plan, in their folder.
    Parts {
        /// The plan.
        plan: &'a ShardPlan,
        /// The folder.
        folder: &'a Path,
    },
    /// Files that an engine wrote.
    Files {
        /// What was scored.
        input: &'a [PathBuf],
        /// What is read of it.
        items: &'a ItemSpec,
        /// The run that all rows must belong to.
        run: &'a str,
        /// The results.
        output: &'a [PathBuf],
    },
}

/// What a check lets pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Rows that are there more than once, with equal results.
    pub repeats: bool,
    /// This many rows whose worker died.
    pub lost: u64,
    /// Whether all rows must come from one device, for equal bits.
    pub one_device: bool,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completeness {
    /// Whether every row of the input has its result, and nothing else is there but what was let pass.
    pub complete: bool,
    /// Rows of the input.
    pub planned: u64,
    /// Rows of the results.
    pub rows: u64,
    /// Those with a score.
    pub scored: u64,
    /// Those without, by status.
    pub unscored: BTreeMap<String, u64>,
    /// Rows of the input without a result.
    pub missing: u64,
    /// Results beyond the first of a row.
    pub repeated: u64,
    /// Those of them that are not equal to the first.
    pub repeated_and_different: u64,
    /// Results of rows that the input does not have.
    pub foreign: u64,
    /// Results that were made from other texts than those in the input.
    pub changed: u64,
    /// Rows whose worker died. They are counted neither by run nor by device.
    pub lost: u64,
    /// Rows by run.
    pub runs: BTreeMap<String, u64>,
    /// Rows by device.
    pub devices: BTreeMap<String, u64>,
    /// The digests of the results.
    pub digests: ResultDigests,
    /// Everything that keeps it from being complete, with names.
    pub problems: Vec<String>,
}

/// A row of the slow pass: the id's hash, whether it is a result, the input's, the result's, and where it lies.
type Record = [u8; 57];

/// Sides of a record.
const INPUT: u8 = 0;
const RESULT: u8 = 1;
/// A result whose worker died.
const LOST: u8 = 2;

impl Check {
    /// Compares results with what they must be the results of.
    ///
    /// The files of a plan must still be the planned ones. The digests of the rows that are in them now, whatever the plan says of them,
    /// and of the results are added up first. Only where they differ are rows compared one by one, with temporary files and one more
    /// reading of both sides. What is wrong with rows, parts and runs is no error but among the [problems](Completeness::problems), and so is
    /// a file of results that cannot be read, of which no row counts.
    ///
    /// # Errors
    /// [`Error::FileChanged`] for an input that is not the planned one;
    /// [`Error::InFile`] for an input without the columns of items;
    /// [`Error::NoParquet`], [`Error::Io`].
    pub fn run(self, output: &Output<'_>, mut see: impl FnMut(usize)) -> Result<Completeness, Error> {
        let mut found = Completeness::default();
        let mut files = match output {
            Output::Parts { plan, folder } => {
                for file in &plan.files {
                    file.open()?;
                }
                parts(plan, folder, &mut found.problems)?
            }
            Output::Files { output, .. } => output.to_vec(),
        };
        let mut tally = ResultTally::default();
        files.retain(|file| match counted(file, &mut see) {
            Ok(counted) => {
                tally += &counted.tally;
                found.lost += counted.lost;
                counted.runs.into_iter().for_each(|(run, rows)| *found.runs.entry(run).or_default() += rows);
                counted
                    .devices
                    .into_iter()
                    .for_each(|(device, rows)| *found.devices.entry(device).or_default() += rows);
                true
            }
            Err(error) => {
                found.problems.push(error.to_string());
                false
            }
        });
        let (expected, run) = expected(output, &mut see)?;
        (found.planned, found.rows, found.scored) = (expected.0, tally.rows, tally.scored);
        (found.digests, found.unscored) = (tally.digests, tally.unscored);
        // A file can keep its size and its footer and have other texts in its pages.
        if let Output::Parts { plan, .. } = output
            && expected != (plan.rows, plan.ids, plan.all_inputs())
        {
            found
                .problems
                .push("the rows of the input are not those that were planned: they have been changed since".to_owned());
        }
        if expected != (found.rows, found.digests.ids, found.digests.inputs) {
            compare(output, &files, self, &mut found, &mut see)?;
        }
        for (other, n) in found.runs.iter().filter(|(other, _)| **other != run) {
            found.problems.push(format!("{} of the run {other:?}, expected {run:?}", in_words(*n, "row")));
        }
        if self.one_device && found.devices.len() > 1 {
            let devices: Vec<String> =
                found.devices.iter().map(|(device, rows)| format!("{rows} of {device:?}")).collect();
            found.problems.push(format!("rows of {} devices: {}", devices.len(), devices.join(", ")));
        }
        if found.lost > self.lost {
            found.problems.push(format!("{} whose worker died", in_words(found.lost, "row")));
        }
        found.complete = found.problems.is_empty();
        Ok(found)
    }
}

/// What the rows of a file of results add up to.
#[derive(Default)]
struct Counted {
    tally: ResultTally,
    lost: u64,
    runs: BTreeMap<String, u64>,
    devices: BTreeMap<String, u64>,
}

fn counted(file: &Path, see: &mut impl FnMut(usize)) -> Result<Counted, Error> {
    let mut counted = Counted::default();
    for rows in results(file)? {
        let rows = rows?;
        see(rows.len());
        for row in rows {
            counted.tally.add(&row);
            if row.is_lost() {
                counted.lost += 1;
                continue;
            }
            *counted.runs.entry(row.run).or_default() += 1;
            *counted.devices.entry(row.device).or_default() += 1;
        }
    }
    Ok(counted)
}

/// The parts of a plan that are there. What is wrong with them as files is a problem each.
fn parts(plan: &ShardPlan, folder: &Path, problems: &mut Vec<String>) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let mut none = 0;
    let find = PartRecord::finder(folder, plan);
    for shard in 0..plan.shards() {
        let path = PartRecord::part_path(folder, shard, plan.shards());
        let record = match find(shard) {
            Ok(record) => record,
            Err(error @ (Error::Io { .. } | Error::NoLocks { .. })) => return Err(error),
            Err(error) => {
                problems.push(format!("shard {shard}: {error}"));
                None
            }
        };
        let is_there = path.try_exists().map_err(Error::io("read", &path))?;
        let name = path.display();
        match record {
            None if !is_there && none < NAMED => problems.push(format!("shard {shard}: no part {name}")),
            None if !is_there => {}
            None => problems.push(format!("shard {shard}: {name} has no record of its own; run the shard again")),
            Some(record) => {
                if !record.describes(&path)? {
                    problems.push(format!(
                        "shard {shard}: {name} is not the file that its record describes; run the shard again"
                    ));
                }
            }
        }
        match is_there {
            true => files.push(path),
            false => none += 1,
        }
    }
    if none > NAMED {
        problems.push(format!("{none} of {} shards have no part", plan.shards()));
    }
    // Whoever reads the folder as a data set reads these, too.
    let (own, mut others) = (files.iter().cloned().collect::<HashSet<_>>(), entries(folder)?);
    others.retain(|path| path.extension().is_some_and(|extension| extension == "parquet") && !own.contains(path));
    others.sort();
    for path in others {
        problems.push(format!("{} is no part of this plan", path.display()));
        files.push(path);
    }
    Ok(files)
}

/// The rows of a file of results, some at a time.
pub(super) fn results(path: &Path) -> Result<impl Iterator<Item = Result<Vec<ResultRow>, Error>> + use<>, Error> {
    let table = ParquetTable::open(path)?;
    results_of(&table, 0..table.rows())
}

/// Some of the rows of such a file.
fn results_of(
    table: &ParquetTable,
    rows: Range<u64>,
) -> Result<impl Iterator<Item = Result<Vec<ResultRow>, Error>> + use<>, Error> {
    let columns: Vec<usize> = (0..table.schema().fields().len()).collect();
    table.read(&columns, rows, ResultRow::from_batch)
}

/// What the results must add up to: number of rows, digests of ids and inputs.
type Expected = (u64, SetDigest, SetDigest);

/// What the results must add up to by the input as it is now, and their run.
fn expected(output: &Output<'_>, see: &mut impl FnMut(usize)) -> Result<(Expected, String), Error> {
    let (mut rows, mut ids, mut inputs) = (0, SetDigest::default(), SetDigest::default());
    each_input(output, |_, id, _, input| {
        rows += 1;
        ids.add(id);
        inputs.add(input);
        see(1);
        Ok(())
    })?;
    let run = match output {
        Output::Parts { plan, .. } => plan.run.clone(),
        Output::Files { run, .. } => (*run).to_owned(),
    };
    Ok(((rows, ids, inputs), run))
}

/// Calls with each row of the input: its number, the hash of its id, its 16 bytes, and their hash.
pub(super) fn each_input(
    output: &Output<'_>,
    mut each: impl FnMut(u64, RowHash, [u8; 16], RowHash) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut row = 0;
    let mut see = |items: Vec<crate::BatchItem>| -> Result<(), Error> {
        for item in items {
            each(row, RowHash::of_id(&item.id), item.input(), item.input_hash())?;
            row += 1;
        }
        Ok(())
    };
    match output {
        Output::Parts { plan, .. } => {
            for items in plan.batches(0..plan.rows) {
                see(items?)?;
            }
        }
        Output::Files { input, items, .. } => {
            for path in *input {
                let table = ParquetTable::open(path)?;
                for items in items_of_table(&table, items, 0..table.rows())? {
                    see(items?)?;
                }
            }
        }
    }
    Ok(())
}

/// The slow pass: brings the rows of both sides together by their ids, and names what does not fit.
fn compare(
    output: &Output<'_>,
    files: &[PathBuf],
    allowed: Check,
    found: &mut Completeness,
    see: &mut impl FnMut(usize),
) -> Result<(), Error> {
    let mut all = Buckets::<57>::new();
    each_input(output, |row, id, input, _| all.push(&record(id, INPUT, input, [0; 16], row)))?;
    let before = found.problems.len();
    for (index, file) in files.iter().enumerate() {
        let mut row = 0_u64;
        for rows in results(file)? {
            let rows = rows?;
            see(rows.len());
            for result in rows {
                let place = (index as u64) << 40 | row;
                let side = if result.is_lost() { LOST } else { RESULT };
                all.push(&record(result.id_hash(), side, result.input, result.result_hash().short(), place))?;
                row += 1;
            }
        }
    }
    let mut named: BTreeMap<&'static str, Vec<u64>> = BTreeMap::new();
    let mut name = |kind: &'static str, record: &Record| {
        let list = named.entry(kind).or_default();
        if list.len() < NAMED {
            list.push(u64::from_be_bytes(std::array::from_fn(|at| record[49 + at])));
        }
    };
    let mut twice = 0_u64;
    for records in all.sorted() {
        for same in records?.chunk_by(|a, b| a[..16] == b[..16]) {
            let (inputs, results) = same.split_at(same.iter().take_while(|record| record[16] == INPUT).count());
            twice += (inputs.len() as u64).saturating_sub(1);
            let Some(input) = inputs.first() else {
                found.foreign += results.len() as u64;
                results.iter().for_each(|record| name("foreign", record));
                continue;
            };
            if results.len() < inputs.len() {
                found.missing += (inputs.len() - results.len()) as u64;
                name("missing", input);
            }
            for extra in results.iter().skip(inputs.len()) {
                found.repeated += 1;
                let differs = extra[33..49] != results[0][33..49];
                found.repeated_and_different += u64::from(differs);
                name(if differs { "repeated and different" } else { "repeated" }, extra);
            }
            for result in results.iter().filter(|result| result[16] == RESULT) {
                if !inputs.iter().any(|input| input[17..33] == result[17..33]) {
                    found.changed += 1;
                    name("changed", result);
                }
            }
        }
    }
    if twice > 0 {
        found.problems.push(format!("{} of the input with an id that was there before", in_words(twice, "row")));
    }
    for (kind, places) in named {
        if kind == "repeated" && allowed.repeats {
            continue;
        }
        let what = match kind {
            "missing" => format!("{} of the input without a result", in_words(found.missing, "row")),
            "foreign" => format!("{} with ids that the input does not have", in_words(found.foreign, "result")),
            "changed" => format!("{} of other texts than those in the input", in_words(found.changed, "result")),
            "repeated" => {
                format!("{} repeated, and equal", in_words(found.repeated - found.repeated_and_different, "result"))
            }
            _ => format!("{} repeated, and not equal", in_words(found.repeated_and_different, "result")),
        };
        let of_input = kind == "missing";
        let names =
            places.iter().map(|&place| if of_input { input_name(output, place) } else { result_name(files, place) });
        found.problems.push(format!("{what}: {}", names.collect::<Result<Vec<_>, Error>>()?.join("; ")));
    }
    let is_explained = found.lost > 0 || found.repeated > 0 || found.problems.len() > before;
    if !is_explained {
        found.problems.push("the digests differ, but no row does".to_owned());
    }
    Ok(())
}

fn in_words(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn record(id: RowHash, side: u8, input: [u8; 16], result: [u8; 16], place: u64) -> Record {
    let mut record = [0; 57];
    record[..16].copy_from_slice(&id.short());
    record[16] = side;
    record[17..33].copy_from_slice(&input);
    record[33..49].copy_from_slice(&result);
    record[49..].copy_from_slice(&place.to_be_bytes());
    record
}

/// A row of the input for a message: its id, and where it lies.
fn input_name(output: &Output<'_>, row: u64) -> Result<String, Error> {
    match output {
        Output::Parts { plan, .. } => {
            let items = plan.batches(row..row + 1).next().transpose()?.unwrap_or_default();
            let id = items.first().map(|item| item.id.to_string()).unwrap_or_default();
            Ok(format!("{id} ({})", plan.place(row)))
        }
        Output::Files { input, items, .. } => {
            let mut row = row;
            for path in *input {
                let table = ParquetTable::open(path)?;
                if row < table.rows() {
                    let found = items_of_table(&table, items, row..row + 1)?.next().transpose()?.unwrap_or_default();
                    let id = found.first().map(|item| item.id.to_string()).unwrap_or_default();
                    return Ok(format!("{id} ({} row {row})", path.display()));
                }
                row -= table.rows();
            }
            Ok(String::new())
        }
    }
}

/// A result for a message: its id, and where it lies.
fn result_name(files: &[PathBuf], place: u64) -> Result<String, Error> {
    let (index, row) = ((place >> 40) as usize, place & ((1 << 40) - 1));
    let Some(path) = files.get(index) else { return Ok(String::new()) };
    let rows = results_of(&ParquetTable::open(path)?, row..row + 1)?.next().transpose()?.unwrap_or_default();
    let id = rows.first().map(|row| row.id.to_string()).unwrap_or_default();
    Ok(format!("{id} ({} row {row})", path.display()))
}
