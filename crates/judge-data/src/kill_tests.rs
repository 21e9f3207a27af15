//! Runs and tables that are killed between any two steps, by child processes of this test program.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use std::{env, fs};

use judge_core::{ItemId, Layer, Reason, Unscored};
use serde_json::{Value, json};

use crate::{
    Counts, Error, Fate, InputFile, JsonlWriter, Opened, Outputs, Program, Resolved, RunPlan, RunRecord, Sharding,
    StatesFile, StatesSpec, StatesWriter, SyncEvery, WriteOptions, files::fault, load, record_path,
};

const ROWS: usize = 5;
const KIND: &str = "JUDGE_DATA_TEST_KIND";
const FOLDER: &str = "JUDGE_DATA_TEST_FOLDER";
const POINT: &str = "JUDGE_DATA_TEST_POINT";

/// What is written, and killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Rows,
    /// Rows that are written at once, with their record.
    Recorded,
    Whole,
    Shards,
}

impl Kind {
    fn all() -> [Self; 4] {
        [Self::Rows, Self::Recorded, Self::Whole, Self::Shards]
    }

    fn is_of_rows(self) -> bool {
        matches!(self, Self::Rows | Self::Recorded)
    }

    fn output(self, folder: &Path) -> PathBuf {
        folder.join(if self.is_of_rows() { "out.jsonl" } else { "out.safetensors" })
    }

    /// Opens the output, writes what is missing in an order that is not that of the input, and finishes.
    fn write(self, folder: &Path, seed: u64) -> Result<(), Error> {
        let order = |pending: Vec<usize>| pending.into_iter().rev();
        let options =
            WriteOptions { overwrite: true, sync: SyncEvery { rows: 2, bytes: u64::MAX }, ..WriteOptions::default() };
        if self == Self::Rows {
            return write_rows(&self.output(folder), seed, options, || ());
        }
        if self == Self::Recorded {
            return write_recorded(&self.output(folder), seed, options);
        }
        let mut writer = StatesWriter::open(self.output(folder), &self.spec(seed), options)?;
        for row in order(writer.pending().collect()) {
            let id = ItemId::from(row as u64);
            match row {
                3 => writer.write_unscored(row, &id, &Unscored::new(Reason::TooLong, "long"))?,
                _ => writer.write(row, &id, &[row as f32 + 0.5, seed as f32])?,
            }
        }
        writer.finish().map(drop)
    }

    fn spec(self, seed: u64) -> StatesSpec {
        StatesSpec {
            rows: ROWS,
            layers: vec![Layer(3)],
            d_model: 2,
            metadata: [("seed".to_owned(), seed.to_string())].into(),
            sharding: match self {
                Self::Shards => Sharding::Rows(NonZeroUsize::new(2).unwrap()),
                _ => Sharding::Whole,
            },
        }
    }

    /// What a reader may find at any moment: nothing, or an output that is whole and has what belongs to it, or nothing, beside it.
    fn assert_consistent(self, folder: &Path) {
        let output = self.output(folder);
        if self.is_of_rows() {
            let record = record_path(&output);
            assert!(self == Self::Rows || !output.exists() || record.exists());
            if output.exists() && record.exists() {
                let record: RunRecord = load(record).unwrap();
                assert_eq!(record.outputs[0].blake3, Some(InputFile::of(&output).unwrap().blake3));
            }
            return;
        }
        if let Ok(table) = StatesFile::open(&output) {
            for (row, line) in table.ids().enumerate() {
                match line {
                    Ok(line) => assert_eq!((line.id, table.is_scored(row)), (ItemId::from(row as u64), row != 3)),
                    Err(Error::Io { .. }) => {} // ids that are not in place yet
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}

/// Rows from the last to the first; `before_finish` is called once all are in the journal.
fn write_rows(output: &Path, seed: u64, options: WriteOptions, before_finish: impl FnOnce()) -> Result<(), Error> {
    let Opened::Ready(start) = plan(output, seed, options).open()? else { return Ok(()) };
    let mut run = start.begin(Resolved::default())?;
    let pending: Vec<usize> = run.pending().collect();
    for row in pending.into_iter().rev() {
        run.push(row, &value(row, seed), Fate { unscored: None, graded: row == 1 })?;
    }
    before_finish();
    run.finish().map(drop)
}

/// The same rows, in order and at once.
fn write_recorded(output: &Path, seed: u64, options: WriteOptions) -> Result<(), Error> {
    Outputs::new(Vec::<PathBuf>::new()).rows([output]).overwrite(options.overwrite).check()?;
    let plan = plan(output, seed, options);
    if plan.finished()?.is_some() {
        return Ok(());
    }
    let mut file = JsonlWriter::create(output)?;
    (0..ROWS).try_for_each(|row| file.write(&value(row, seed)))?;
    let mut counts = Counts::default();
    counts.add(Fate::SCORED, ROWS);
    let record = plan.record(Resolved::default(), counts, Vec::new());
    file.finish_recorded(ROWS, options.overwrite, record).map(drop)
}

fn plan(output: &Path, seed: u64, options: WriteOptions) -> RunPlan {
    let mut plan = RunPlan::new(output, ROWS, Program::new("test", "1"));
    (plan.command, plan.seed, plan.options) = (Vec::new(), Some(seed), options);
    (plan.started, plan.clock) = (SystemTime::UNIX_EPOCH, || SystemTime::UNIX_EPOCH);
    plan
}

fn value(row: usize, seed: u64) -> Value {
    json!({"id": row, "seed": seed})
}

/// The files of a folder, by name; bytes as text, for messages that can be read.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let text = |path: PathBuf| fs::read(path).unwrap().escape_ascii().to_string();
    entries.map(|e| (e.file_name().into_string().unwrap(), text(e.path()))).collect()
}

/// The files of a run; of the record what does not say where it is and how often it was resumed.
fn results(folder: &Path) -> BTreeMap<String, String> {
    let mut files = files(folder);
    if let Some(text) = files.get_mut("out.jsonl.run.json") {
        let mut record: RunRecord = load(folder.join("out.jsonl.run.json")).unwrap();
        record.resumes = 0;
        record.outputs.iter_mut().for_each(|output| output.path = output.path.file_name().unwrap().into());
        *text = format!("{record:?}");
    }
    files
}

/// This test program as a child that writes one output and may be killed meanwhile.
/// One test at a time where a process is started or a lock is taken:
/// a process that is being started has, for a moment, the open files of this one, and with
/// them their locks.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn child(kind: Kind, folder: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "kill_tests::child_process", "--ignored"]);
    command.env(KIND, format!("{kind:?}")).env(FOLDER, folder).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Whether the child came to its end before the point of this number.
fn killed_at(kind: Kind, folder: &Path, point: usize) -> bool {
    !child(kind, folder).env(POINT, point.to_string()).status().unwrap().success()
}

#[test]
#[ignore = "is started by the others, with a folder and a point at which to end"]
fn child_process() {
    let kind = Kind::all().into_iter().find(|kind| format!("{kind:?}") == env::var(KIND).unwrap()).unwrap();
    if let Ok(point) = env::var(POINT) {
        fault::end_at(point.parse().unwrap());
    }
    kind.write(Path::new(&env::var(FOLDER).unwrap()), 2).unwrap();
}

#[test]
fn a_run_killed_at_any_step_ends_with_the_same_bytes() {
    let _alone = alone();
    for kind in Kind::all() {
        let whole = tempfile::tempdir().unwrap();
        kind.write(whole.path(), 2).unwrap();
        let whole = results(whole.path());
        // Over nothing, and over a finished output of another run.
        for before in [None, Some(1)] {
            let mut points = 0;
            loop {
                let folder = tempfile::tempdir().unwrap();
                if let Some(seed) = before {
                    kind.write(folder.path(), seed).unwrap();
                }
                let killed = killed_at(kind, folder.path(), points);
                kind.assert_consistent(folder.path());
                if killed && points % 3 == 0 {
                    // And once more, while it is resumed.
                    killed_at(kind, folder.path(), points % 7);
                    kind.assert_consistent(folder.path());
                }
                kind.write(folder.path(), 2).unwrap();
                assert_eq!(results(folder.path()), whole, "{kind:?} over {before:?}, point {points}");
                kind.write(folder.path(), 2).unwrap();
                assert_eq!(results(folder.path()), whole, "a second start, {kind:?}");
                if !killed {
                    break;
                }
                points += 1;
            }
            let least = if kind == Kind::Recorded { 3 } else { 3 * ROWS };
            assert!(points > least, "{kind:?}: only {points} points");
        }
    }
}

#[test]
fn what_is_in_place_is_not_done_again() {
    let _alone = alone();
    for kind in Kind::all() {
        for point in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let killed = killed_at(kind, folder.path(), point);
            if kind.is_of_rows() {
                if kind.output(folder.path()).exists() {
                    // No row is pushed from here on: the finish alone is completed.
                    let mut plan = RunPlan::new(kind.output(folder.path()), ROWS, Program::new("test", "1"));
                    plan.seed = Some(2);
                    assert!(matches!(plan.open().unwrap(), Opened::Complete(_)), "point {point}");
                }
            } else {
                let in_place = files(folder.path()).keys().filter(|name| name.ends_with(".safetensors")).count();
                let writer =
                    StatesWriter::open(kind.output(folder.path()), &kind.spec(2), WriteOptions::default()).unwrap();
                let rows = if kind == Kind::Whole { ROWS * in_place } else { (2 * in_place).saturating_sub(1) };
                assert!(writer.resumed().rows >= rows, "{kind:?}, point {point}");
                assert_eq!(writer.resumed().rows + writer.pending().count(), ROWS);
            }
            if !killed {
                break;
            }
        }
    }
}

/// A limit on the length of files stands for a disk that is full: what is written of a row is taken back, and no other file is left.
#[cfg(unix)]
#[test]
fn a_full_disk_costs_nothing_that_was_written() {
    let _alone = alone();
    let whole = tempfile::tempdir().unwrap();
    Kind::Rows.write(whole.path(), 2).unwrap();
    let (mut failed, mut kept) = (0, 0);
    for blocks in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let child = child(Kind::Rows, folder.path());
        let mut limited = Command::new("sh");
        // Without the signal, a write beyond the limit is an error of the system.
        limited.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
        limited.arg(child.get_program()).args(child.get_args());
        child.get_envs().for_each(|(key, value)| _ = limited.env(key, value.unwrap()));
        let succeeded = limited.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success();
        if !succeeded {
            failed += 1;
            assert!(!folder.path().join("out.jsonl.partial.sorted").exists());
            assert!(!folder.path().join("out.jsonl").exists());
            let journal = fs::read_to_string(folder.path().join("out.jsonl.partial")).unwrap_or_default();
            kept += journal.lines().filter(|line| line.contains("\tscored")).count();
        }
        Kind::Rows.write(folder.path(), 2).unwrap();
        assert_eq!(results(folder.path()), results(whole.path()), "{blocks}");
    }
    assert!(failed > 0 && kept > 0, "{failed} failed, {kept} rows were kept");
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_sorted_onto_a_full_disk_is_removed() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let sorted = folder.path().join("out.jsonl.partial.sorted");
    let fill = || std::os::unix::fs::symlink("/dev/full", &sorted).unwrap();
    let output = Kind::Rows.output(folder.path());
    let error = write_rows(&output, 2, WriteOptions::default(), fill).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if *path == sorted), "{error}");
    assert!(fs::symlink_metadata(&sorted).is_err());
    Kind::Rows.write(folder.path(), 2).unwrap();
}
