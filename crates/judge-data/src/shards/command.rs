//! Files of rows, cut into parts that one command of a program turns into results: the plan, and the record of a part that is done.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use judge_core::ItemId;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::buckets::Buckets;
use super::part::{recorded, stem};
use crate::files::atomic::remove;
use crate::files::paths::entries;
use crate::results::carry::in_words_of;
use crate::run::beside::is_empty;
use crate::run::run_record::RECORD;
use crate::{
    Difference, Document, Error, Input, InputFile, OutputFile, PART, Part, RowHash, RunRecord, load, record_path,
    run_id, save,
};

/// Tells of the id of every row of an input, in its order.
pub type SeeIds<'f> = dyn Fn(Input, &mut dyn FnMut(ItemId) -> Result<(), Error>) -> Result<(), Error> + 'f;

/// Files of rows in parts that one command turns into rows of results, each part in a file of its own with its run record.
///
/// Nothing is copied: the command reads a [`Part`] of a file. A part never crosses from one file to the next. Rows
/// without an id are numbered through all files, so that ids are unique; a file is otherwise read as if it were the
/// only one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandPlan {
    /// The command and its options, without input and output.
    pub command: Vec<String>,
    /// What the names of its outputs end with, e.g. `.jsonl`.
    pub extension: String,
    /// Whether its rows have the ids of the input.
    pub has_ids: bool,
    /// The files, in order, with their rows.
    pub files: Vec<InputFile>,
    /// Rows of a part; the last of each file may have fewer.
    pub rows_per_shard: usize,
}

impl Document for CommandPlan {
    const FORMAT: &'static str = "judge-command-plan";
    const VERSION: u64 = 1;
}

impl CommandPlan {
    /// Plans the parts of files: reads each as the command will, once; `ids` tells of the id of every row of an input, in its order, as
    /// [`Source::see_ids`](crate::Source::see_ids) does. `see` is told of every row.
    ///
    /// Ids are compared by 16 bytes of their hash, in temporary files; those of one file also in memory, as by a
    /// [`Dataset`](crate::Dataset).
    ///
    /// # Errors
    /// Whatever is wrong with a row, as of `ids`; [`Error::RepeatedRow`] for an id that is in two files; [`Error::NoRows`] if all files are
    /// empty; [`Error::Io`].
    pub fn make(
        command: Vec<String>,
        extension: &str,
        has_ids: bool,
        files: &[PathBuf],
        ids: &SeeIds<'_>,
        rows_per_shard: usize,
        mut see: impl FnMut(usize),
    ) -> Result<Self, Error> {
        let (extension, rows_per_shard) = (extension.to_owned(), rows_per_shard.max(1));
        let mut plan = Self { command, extension, has_ids, files: Vec::new(), rows_per_shard };
        let mut seen = Buckets::<24>::new();
        let mut row = 0;
        for path in files {
            let (input, first) = (Input::open(path)?, row);
            let part = Part { rows: 0..usize::MAX, first_number: first };
            let read = ids(input.clone().with_part(Some(part)), &mut |id| {
                seen.push_id(RowHash::of_id(&id), row)?;
                row += 1;
                see(1);
                Ok(())
            });
            match read {
                Err(Error::NoRows { .. }) => {} // so it has no part
                read => read?,
            }
            plan.files.push(input.identity()?.with_rows(row - first));
        }
        if row == 0 {
            return Err(Error::NoRows { path: files.first().cloned().unwrap_or_default() });
        }
        match seen.repeated(1)?.first() {
            Some(&[first, second]) => Err(Error::RepeatedRow {
                id: plan.id_of_input(first, ids)?,
                first: plan.place(first),
                second: plan.place(second),
            }),
            None => Ok(plan),
        }
    }

    /// What a row of the input is called.
    fn id_of_input(&self, row: usize, ids: &SeeIds<'_>) -> Result<String, Error> {
        let Some((file, local)) = self.locate(row) else { return Ok(String::new()) };
        let part = Part { rows: local..local + 1, first_number: row - local };
        let mut found = String::new();
        ids(Input::open(&file.path)?.with_part(Some(part)), &mut |id| {
            found = id.to_string();
            Ok(())
        })?;
        Ok(found)
    }

    /// Compares the files that these parts read with the planned ones. Call it before any work on their rows.
    ///
    /// # Errors
    /// [`Error::FileChanged`] for a file that is another one now; [`Error::Io`].
    pub fn check_inputs(&self, shards: &[usize]) -> Result<(), Error> {
        let mut files: Vec<&InputFile> = shards.iter().filter_map(|&shard| Some(self.shard(shard)?.0)).collect();
        files.dedup_by(|a, b| a.path == b.path);
        for file in files {
            if is_changed(file)? {
                return Err(Error::FileChanged { path: file.path.clone() });
            }
        }
        Ok(())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.files.iter().map(rows).sum()
    }

    /// Number of parts.
    pub fn shards(&self) -> usize {
        self.files.iter().map(|file| rows(file).div_ceil(self.rows_per_shard)).sum()
    }

    /// What a part reads: a file, and which rows of it. `None` if there is no such part.
    pub fn shard(&self, mut shard: usize) -> Option<(&InputFile, Part)> {
        let mut first_number = 0;
        for file in &self.files {
            let (rows, shards) = (rows(file), rows(file).div_ceil(self.rows_per_shard));
            if shard < shards {
                let start = shard * self.rows_per_shard;
                return Some((file, Part { rows: start..(start + self.rows_per_shard).min(rows), first_number }));
            }
            (shard, first_number) = (shard - shards, first_number + rows);
        }
        None
    }

    /// The rows of a part, counted through all files.
    pub fn rows_of(&self, shard: usize) -> Range<usize> {
        self.shard(shard)
            .map_or(0..0, |(_, Part { rows, first_number })| first_number + rows.start..first_number + rows.end)
    }

    /// What tells this plan from another: a hash of what it says, but of the files' names.
    #[must_use]
    pub fn id(&self) -> String {
        let Self { command, extension, has_ids, files, rows_per_shard } = self;
        let files: Vec<_> = files.iter().map(|file| json!({"blake3": file.blake3, "rows": file.rows})).collect();
        let content = json!({
            "command": command, "extension": extension, "has_ids": has_ids, "files": files, "rows_per_shard": rows_per_shard,
        });
        run_id(&[("plan".to_owned(), content)].into())
    }

    /// Where a row lies, counted through all files: its file, and its number there.
    pub fn place(&self, row: usize) -> String {
        match self.locate(row) {
            Some((file, row)) => format!("{} row {row}", file.path.display()),
            None => format!("row {row} behind the last file"),
        }
    }

    fn locate(&self, mut row: usize) -> Option<(&InputFile, usize)> {
        for file in &self.files {
            match row.checked_sub(rows(file)) {
                None => return Some((file, row)),
                Some(rest) => row = rest,
            }
        }
        None
    }

    /// Where the output of a part lies: `part-00012-of-04096.jsonl`.
    pub fn output(&self, folder: &Path, shard: usize) -> PathBuf {
        folder.join(stem(shard, self.shards()) + &self.extension)
    }
}

fn rows(file: &InputFile) -> usize {
    file.rows.unwrap_or_default()
}

/// Whether a file of a plan is another one now.
pub(super) fn is_changed(file: &InputFile) -> Result<bool, Error> {
    Ok(InputFile::of(&file.path)?.blake3 != file.blake3)
}

/// That a part is done, and which files it consists of: written last, as `part-00012-of-04096.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandPart {
    /// The plan that it is a part of ([`CommandPlan::id`]).
    pub plan: String,
    /// Its number, from 0.
    pub shard: usize,
    /// The files, each with its run record beside it: what their names have behind `part-00012-of-04096`, in order.
    pub outputs: Vec<String>,
}

impl Document for CommandPart {
    const FORMAT: &'static str = "judge-command-part";
    const VERSION: u64 = 1;
}

impl CommandPart {
    /// Where the record of a part lies.
    pub fn path(folder: &Path, plan: &CommandPlan, shard: usize) -> PathBuf {
        folder.join(stem(shard, plan.shards()) + ".json")
    }

    /// The record of a part that is done; `None` if it is not, be it that a file of it is gone or has another size.
    ///
    /// # Errors
    /// [`Error::Content`] for a record of another plan, or of another part; as [`load`] for a file of another kind; [`Error::Io`].
    pub fn find(folder: &Path, plan: &CommandPlan, shard: usize) -> Result<Option<Self>, Error> {
        Self::finder(folder, plan)(shard)
    }

    /// [`find`](Self::find) for many parts of a plan, whose [id](CommandPlan::id) is computed once.
    pub fn finder(folder: &Path, plan: &CommandPlan) -> impl Fn(usize) -> Result<Option<Self>, Error> {
        let id = plan.id();
        move |shard| {
            let Some(part) = Self::recorded(folder, plan, &id, shard)? else { return Ok(None) };
            for output in part.files(folder, plan) {
                let Some(record) = run_record(&output)? else { return Ok(None) };
                let has_size =
                    |file: &OutputFile| fs::metadata(beside(&output, file)).is_ok_and(|now| now.len() == file.bytes);
                if !record.outputs.iter().all(has_size) {
                    return Ok(None);
                }
            }
            Ok(Some(part))
        }
    }

    /// The record of a part, whatever became of its files.
    fn recorded(folder: &Path, plan: &CommandPlan, id: &str, shard: usize) -> Result<Option<Self>, Error> {
        recorded(Self::path(folder, plan, shard), (id, shard), |part: &Self| (part.plan.as_str(), part.shard))
    }

    /// Whether its files are those that their run records describe, to the byte, and were made of the part's rows. If not, they have been
    /// damaged or were made of another input, and the command is to make them again: see [`clear`](Self::clear).
    ///
    /// # Errors
    /// As [`load`]; [`Error::Io`].
    pub fn is_whole(&self, folder: &Path, plan: &CommandPlan) -> Result<bool, Error> {
        for output in self.files(folder, plan) {
            if !is_whole(plan, self.shard, &output, &load(record_path(&output))?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes what runs made of a part and is not whole, so that its command makes it again: files that their run record does not
    /// describe, or that are of other rows, and what the part's own record names without a run record that can be read. What is unfinished
    /// stays, and so does what no run made. Returned is what was removed, without the records.
    ///
    /// # Errors
    /// [`Error::Content`] for the record of a part of another plan; as [`load`]; [`Error::Io`].
    pub fn clear(folder: &Path, plan: &CommandPlan, shard: usize) -> Result<Vec<PathBuf>, Error> {
        let id = plan.id();
        let recorded = Self::recorded(folder, plan, &id, shard)?;
        let named = recorded.map(|part| part.files(folder, plan)).unwrap_or_default();
        let mut outputs = Self { plan: id, shard, outputs: endings(folder, plan, shard)? }.files(folder, plan);
        outputs.extend(named.iter().filter(|output| !record_path(output).exists()).cloned());
        let mut removed = Vec::new();
        for output in outputs {
            let record = run_record(&output)?;
            let stays = match &record {
                Some(record) => is_whole(plan, shard, &output, record)?,
                None => !named.contains(&output),
            };
            if stays {
                continue;
            }
            // The records go last: until then they tell what is to be removed.
            let files = record.into_iter().flat_map(|record| record.outputs);
            for path in files.map(|file| beside(&output, &file)).chain([output.clone()]) {
                remove(&path)?;
            }
            remove(&record_path(&output))?;
            removed.push(output);
        }
        if !removed.is_empty() {
            remove(&Self::path(folder, plan, shard))?;
        }
        Ok(removed)
    }

    /// Its files.
    pub fn files(&self, folder: &Path, plan: &CommandPlan) -> Vec<PathBuf> {
        let stem = stem(self.shard, plan.shards());
        self.outputs.iter().map(|behind| folder.join(format!("{stem}{behind}"))).collect()
    }

    /// Notes that a part is done, after the command has finished its files.
    /// They are found by their run records, which must be of the part's rows, and of the
    /// same run as those of a part that is done before.
    ///
    /// # Errors
    /// [`Error::NoPart`] if there are none; [`Error::FileChanged`] if another input was read than the planned one;
    /// [`Error::OtherRun`] for files of other rows of it, or that were made otherwise than those of another part; [`Error::Io`].
    pub fn finish(folder: &Path, plan: &CommandPlan, shard: usize) -> Result<Self, Error> {
        let part = Self { plan: plan.id(), shard, outputs: endings(folder, plan, shard)? };
        let files = part.files(folder, plan);
        if files.is_empty() {
            return Err(Error::NoPart { path: plan.output(folder, shard) });
        }
        for output in files {
            let record: RunRecord = load(record_path(&output))?;
            let Some((file, rows)) = plan.shard(shard) else { continue };
            if !has_read(&record, file) {
                return Err(Error::FileChanged { path: file.path.clone() });
            }
            let differences = Difference::within(PART, &json!(record.settings.get(PART)), &json!(rows.to_string()));
            if !differences.is_empty() {
                return Err(Error::OtherRun { path: output, differences });
            }
        }
        let find = Self::finder(folder, plan);
        for other in (0..plan.shards()).filter(|&other| other != shard) {
            if let Ok(Some(other)) = find(other) {
                for (output, other) in part.files(folder, plan).iter().zip(other.files(folder, plan)) {
                    let (record, other) = (load(record_path(output))?, load(record_path(&other))?);
                    let differences = made_otherwise(&other, &record, false);
                    if !differences.is_empty() {
                        return Err(Error::OtherRun { path: output.clone(), differences });
                    }
                }
                break;
            }
        }
        save(Self::path(folder, plan, shard), &part)?;
        Ok(part)
    }
}

/// The files of a part that have a run record, by what their names have behind `part-00012-of-04096`, in order.
fn endings(folder: &Path, plan: &CommandPlan, shard: usize) -> Result<Vec<String>, Error> {
    let stem = stem(shard, plan.shards());
    let ending = |file: &PathBuf| {
        let behind = file.file_name()?.to_str()?.strip_prefix(&stem)?;
        Some(behind.strip_suffix(RECORD)?.to_owned()).filter(|_| behind.starts_with('.'))
    };
    let mut endings: Vec<String> = entries(folder)?.iter().filter_map(ending).collect();
    endings.sort();
    Ok(endings)
}

/// The run record of a part's file; `None` if it is gone, or has been damaged.
fn run_record(output: &Path) -> Result<Option<RunRecord>, Error> {
    let path = record_path(output);
    if is_empty(&path)? {
        return Ok(None);
    }
    match load(path) {
        Err(Error::Document { .. } | Error::Utf8 { .. }) => Ok(None),
        record => record.map(Some),
    }
}

/// Where a file of an output's run lies: folders may have been moved.
fn beside(output: &Path, file: &OutputFile) -> PathBuf {
    output.with_file_name(file.path.file_name().unwrap_or_default())
}

fn is_whole(plan: &CommandPlan, shard: usize, output: &Path, record: &RunRecord) -> Result<bool, Error> {
    Ok(!is_of_other_rows(plan, shard, record) && damaged(output, record)?.is_none())
}

/// The first file of an output's run that is not what the run wrote; `None` if all are.
pub(super) fn damaged(output: &Path, record: &RunRecord) -> Result<Option<PathBuf>, Error> {
    for file in &record.outputs {
        let path = beside(output, file);
        let bytes = match fs::metadata(&path) {
            Ok(now) => Some(now.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("look at", &path)(error)),
        };
        let is_as_written = bytes == Some(file.bytes)
            && match &file.blake3 {
                Some(blake3) => InputFile::of(&path)?.blake3 == *blake3,
                None => true,
            };
        if !is_as_written {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Whether a run has read other rows than those of a part.
pub(super) fn is_of_other_rows(plan: &CommandPlan, shard: usize, record: &RunRecord) -> bool {
    plan.shard(shard).is_none_or(|(file, part)| {
        !has_read(record, file) || record.settings.get(PART).is_none_or(|found| *found != part.to_string())
    })
}

/// Whether a run has read rows of this file.
fn has_read(record: &RunRecord, file: &InputFile) -> bool {
    record.inputs.first().is_some_and(|input| input.blake3 == file.blake3)
}

/// In what two parts were made otherwise, apart from which rows they are of; `by_device`: also on what they ran.
pub(super) fn made_otherwise(before: &RunRecord, now: &RunRecord, by_device: bool) -> Vec<Difference> {
    // Either may be of an earlier version.
    let of = |record: &RunRecord, other: &RunRecord| {
        let RunRecord { program, model, template, judges, seed, resolved, inputs, .. } = record;
        let mut settings = in_words_of(&other.settings, record.settings.clone());
        settings.remove(PART);
        let model = model.as_ref().map(|model| {
            json!({
                "fingerprint": model.fingerprint, "dtype": model.dtype, "device": by_device.then_some(&model.device), "notes": model.notes,
            })
        });
        // What else was read than the rows.
        let others: Vec<_> = inputs.iter().skip(1).map(|input| &input.blake3).collect();
        json!({
            "program": {"name": program.name, "version": program.version}, "model": model, "template": template, "judges": judges,
            "seed": seed, "settings": settings, "resolved": resolved, "other inputs": others,
        })
    };
    let fields = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default().into_iter().collect();
    Difference::between(&fields(of(before, now)), &fields(of(now, before)))
}
