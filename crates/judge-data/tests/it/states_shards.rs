//! Hidden states in sets of shards: the same table as in one file, whatever happens on the way.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use judge_core::{ItemId, Layer, Reason, Unscored};
use judge_data::{Error, Resumed, Sharding, StatesFile, StatesRow, StatesSpec, StatesWriter, WriteOptions, ids_path};
use proptest::prelude::*;
use safetensors::SafeTensors;

use crate::files::{files, names, place};

/// Bytes of a row: 2 layers of width 3, and whether it is scored.
const ROW_BYTES: u64 = 2 * 3 * 4 + 1;

fn spec(rows: usize, sharding: Sharding) -> StatesSpec {
    let metadata = [("model".to_owned(), "m".to_owned()), ("input".to_owned(), "abc".to_owned())].into();
    StatesSpec { rows, layers: vec![Layer(1), Layer(4)], d_model: 3, metadata, sharding }
}

fn per_shard(rows: usize) -> Sharding {
    Sharding::Rows(NonZeroUsize::new(rows).unwrap())
}

fn open(path: impl Into<PathBuf>, spec: &StatesSpec) -> Result<StatesWriter, Error> {
    StatesWriter::open(path, spec, WriteOptions::default())
}

fn states(row: usize) -> Option<Vec<f32>> {
    (row % 5 != 3).then(|| (0..6).map(|k| row as f32 - k as f32 / 3.0).collect())
}

fn id(row: usize) -> ItemId {
    ItemId::from(row as u64)
}

fn write(writer: &mut StatesWriter, row: usize) {
    let written = match states(row) {
        Some(states) => writer.write(row, &id(row), &states),
        None => writer.write_unscored(row, &id(row), &Unscored::new(Reason::EmptyPrompt, "")),
    };
    written.unwrap();
}

/// Opens the table, writes what is missing, and closes it.
fn complete(path: &Path, spec: &StatesSpec) {
    let mut writer = open(path, spec).unwrap();
    for row in writer.pending().collect::<Vec<_>>() {
        write(&mut writer, row);
    }
    writer.finish().unwrap();
}

/// A complete set of five rows in shards of two.
fn set() -> (tempfile::TempDir, PathBuf) {
    let (folder, path) = place("x.safetensors");
    complete(&path, &spec(5, per_shard(2)));
    (folder, path)
}

fn shard(path: &Path, index: usize, of: usize) -> PathBuf {
    path.with_file_name(format!("x-{index:05}-of-{of:05}.safetensors"))
}

#[track_caller]
fn assert_is_table(path: &Path, rows: usize) {
    let table = StatesFile::open(path).unwrap();
    assert_eq!((table.rows(), table.layers(), table.d_model()), (rows, &[Layer(1), Layer(4)][..], 3));
    assert_eq!(table.iter().map(Result::unwrap).collect::<Vec<_>>(), (0..rows).map(states).collect::<Vec<_>>());
    for row in (0..rows).rev() {
        assert_eq!(table.state(row, Layer(4)).unwrap(), states(row).map(|states| states[3..].to_vec()));
        assert_eq!(table.is_scored(row), states(row).is_some());
    }
    assert!(!table.is_scored(rows) && table.row(rows).unwrap().is_none());
    let ids: Vec<StatesRow> = table.ids().map(Result::unwrap).collect();
    assert_eq!(ids.len(), rows);
    assert!(ids.iter().enumerate().all(|(row, line)| line.id == id(row)));
}

#[test]
fn shards_are_files_of_their_own_and_one_table_together() {
    let (folder, path) = set();
    let expected = ["00001-of-00003", "00002-of-00003", "00003-of-00003"];
    let expected: Vec<String> =
        expected.iter().flat_map(|n| [format!("x-{n}.ids.jsonl"), format!("x-{n}.safetensors")]).collect();
    assert_eq!(names(folder.path()), expected);
    assert_is_table(&path, 5);
    let table = StatesFile::open(&path).unwrap();
    assert_eq!(table.path(), path);
    assert_eq!(table.files().collect::<Vec<_>>(), [1, 2, 3].map(|index| shard(&path, index, 3)));
    let metadata: Vec<_> = table.metadata().iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(metadata, ["format=judge-states-1", "input=abc", "model=m", "rows.total=5"]);

    let alone = StatesFile::open(shard(&path, 2, 3)).unwrap();
    assert_eq!((alone.rows(), alone.row(0).unwrap(), alone.row(1).unwrap()), (2, states(2), states(3)));
    assert_eq!((alone.metadata()["rows.first"].as_str(), alone.metadata()["rows.total"].as_str()), ("2", "5"));
    assert_eq!(alone.ids().map(|line| line.unwrap().id).collect::<Vec<_>>(), [2, 3].map(id));

    // The tensors of the one file, cut.
    let whole = folder.path().join("whole.safetensors");
    complete(&whole, &spec(5, Sharding::Whole));
    let whole = fs::read(whole).unwrap();
    let whole = SafeTensors::deserialize(&whole).unwrap();
    for (name, width) in [("states", 24), ("scored", 1)] {
        let mut joined = Vec::new();
        for file in table.files() {
            let bytes = fs::read(file).unwrap();
            joined.extend_from_slice(SafeTensors::deserialize(&bytes).unwrap().tensor(name).unwrap().data());
        }
        assert_eq!(joined, whole.tensor(name).unwrap().data());
        assert_eq!(joined.len(), 5 * width);
    }
}

#[test]
fn every_number_of_rows_has_its_shards() {
    let bytes = |rows| Sharding::Bytes(ROW_BYTES * rows);
    for (rows, sharding, files) in [
        (0, per_shard(2), 1),
        (1, per_shard(2), 1),
        (2, per_shard(2), 1),
        (3, per_shard(2), 2),
        (6, per_shard(2), 3),
        (3, per_shard(1), 3),
        (6, bytes(3), 2),
        (7, bytes(3), 3),
        (3, Sharding::Bytes(1), 3),
        (0, Sharding::Whole, 1),
        (7, Sharding::Whole, 1),
    ] {
        let (folder, path) = place("x.safetensors");
        let spec = spec(rows, sharding);
        assert_eq!(open(&path, &spec).unwrap().files(), files, "{rows} {sharding:?}");
        complete(&path, &spec);
        assert_eq!(names(folder.path()).len(), 2 * files, "{rows} {sharding:?}");
        assert_eq!(StatesFile::open(&path).unwrap().files().len(), files);
        assert_is_table(&path, rows);
    }
}

#[test]
fn an_empty_file_is_written_over() {
    let (_folder, path) = place("x.safetensors");
    fs::write(&path, "").unwrap();
    complete(&path, &spec(7, Sharding::Whole));
    assert_is_table(&path, 7);
}

#[test]
fn a_complete_set_is_not_written_again() {
    let (folder, path) = set();
    let before = files(folder.path());
    let mut writer = open(&path, &spec(5, per_shard(2))).unwrap();
    assert_eq!((writer.resumed(), writer.pending().count()), (Resumed { rows: 5, torn_bytes: 0 }, 0));
    assert!((0..5).all(|row| writer.is_done(row)) && !writer.is_done(5));
    assert!(matches!(writer.write(2, &id(2), &[0.0; 6]), Err(Error::RowTwice { row: 2 })));
    assert!(matches!(writer.write(5, &id(5), &[0.0; 6]), Err(Error::NoSuchRow { row: 5, rows: 5 })));
    writer.finish().unwrap();
    assert_eq!(files(folder.path()), before);
}

#[test]
fn rows_have_the_tables_numbers() {
    let (_folder, path) = place("x.safetensors");
    let mut writer = open(&path, &spec(7, per_shard(2))).unwrap();
    for row in [5, 2, 6] {
        write(&mut writer, row);
    }
    assert!(shard(&path, 4, 4).exists() && !shard(&path, 3, 4).exists());
    assert!(matches!(writer.write(5, &id(5), &[0.0; 6]), Err(Error::RowTwice { row: 5 })));
    assert!(matches!(writer.write(6, &id(6), &[0.0; 6]), Err(Error::RowTwice { row: 6 })));
    assert!(matches!(writer.write(4, &id(4), &[0.0; 5]), Err(Error::Shape { index: 4, expected: 6, found: 5, .. })));
    let nan = [0.0, 0.0, f32::INFINITY, 0.0, 0.0, 0.0];
    assert!(matches!(writer.write(4, &id(4), &nan), Err(Error::NonFinite { row: 4, index: 2, .. })));
    assert_eq!(writer.pending().collect::<Vec<_>>(), [0, 1, 3, 4]);
    assert!(matches!(writer.finish(), Err(Error::Incomplete { missing: 4, rows: 7, first: 0 })));
    let writer = open(&path, &spec(7, per_shard(2))).unwrap();
    assert_eq!((writer.resumed().rows, writer.pending().collect::<Vec<_>>()), (3, vec![0, 1, 3, 4]));
}

#[track_caller]
fn differences(path: &Path, spec: &StatesSpec) -> Vec<String> {
    match open(path, spec) {
        Err(Error::SettingsDiffer { differences, .. } | Error::OutputExists { differences, .. }) => {
            differences.iter().map(ToString::to_string).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_settings_are_refused_and_nothing_is_touched() {
    let (folder, path) = set();
    let before = files(folder.path());
    let changed = |change: fn(&mut StatesSpec)| {
        let mut spec = spec(5, per_shard(2));
        change(&mut spec);
        differences(&path, &spec)
    };
    let other_model = changed(|spec| spec.metadata = [("model".to_owned(), "n".to_owned())].into());
    assert_eq!(other_model, [r#"input was "abc", is unset"#, r#"model was "m", is "n""#]);
    assert_eq!(changed(|spec| spec.layers = vec![Layer(1)]), ["shape.layers was [1,4], is [1]"]);
    assert_eq!(changed(|spec| spec.d_model = 4), ["shape.d_model was 3, is 4"]);
    // As many shards, of other rows.
    assert_eq!(changed(|spec| spec.rows = 6), [r#"rows.total was "5", is "6""#]);
    assert_eq!(changed(|spec| spec.sharding = per_shard(5)), ["shards was 3, is 1"]);
    assert_eq!(changed(|spec| spec.sharding = per_shard(1)), ["shards was 3, is 5"]);
    assert_eq!(changed(|spec| spec.sharding = Sharding::Whole), ["shards was 3, is unset"]);
    assert_eq!(files(folder.path()), before);

    fs::remove_file(ids_path(&shard(&path, 2, 3))).unwrap();
    let error = open(&path, &spec(5, per_shard(2))).unwrap_err();
    assert!(matches!(&error, Error::Io { path: found, .. } if *found == ids_path(&shard(&path, 2, 3))), "{error}");
    let second = shard(&path, 2, 3);
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..bytes.len() - 1]).unwrap();
    let error = open(&path, &spec(5, per_shard(2))).unwrap_err();
    assert!(matches!(&error, Error::Safetensors { path, .. } if *path == second), "{error}");
}

#[test]
fn an_interrupted_run_is_not_continued_with_other_settings() {
    let (folder, path) = place("x.safetensors");
    let mut writer = open(&path, &spec(5, per_shard(4))).unwrap();
    write(&mut writer, 4);
    write(&mut writer, 0);
    assert!(matches!(open(&path, &spec(5, per_shard(4))), Err(Error::Locked { .. })));
    drop(writer);
    let second = shard(&path, 2, 2);
    [ids_path(&second), second].into_iter().for_each(|file| fs::remove_file(file).unwrap());
    assert_eq!(differences(&path, &spec(5, per_shard(2))), ["shards was 2, is 3"]);
    assert_eq!(differences(&path, &spec(5, Sharding::Whole)), ["shards was 2, is unset"]);
    assert_eq!(differences(&path, &spec(5, per_shard(3))), ["rows was 4, is 3"]);
    assert_eq!(differences(&path, &spec(6, per_shard(4))), [r#"rows.total was "5", is "6""#]);

    // A whole file, complete or not, is no shard, and is replaced by none.
    let whole = folder.path().join("y.safetensors");
    let mut writer = open(&whole, &spec(1, Sharding::Whole)).unwrap();
    assert_eq!(differences(&whole, &spec(1, per_shard(4))), ["shards was unset, is 1"]);
    write(&mut writer, 0);
    writer.finish().unwrap();
    assert_eq!(differences(&whole, &spec(1, per_shard(4))), ["shards was unset, is 1"]);
    assert_eq!(differences(&whole, &spec(4, Sharding::Whole)), ["rows was 1, is 4"]);
    let overwrite = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let mut writer = StatesWriter::open(&whole, &spec(4, Sharding::Whole), overwrite).unwrap();
    (0..4).for_each(|row| write(&mut writer, row));
    writer.finish().unwrap();
    assert_eq!(StatesFile::open(&whole).unwrap().rows(), 4);
}

#[test]
fn sets_that_are_none_are_refused_by_name() {
    let part = |change: &dyn Fn(&Path)| {
        let (_folder, path) = set();
        change(&path);
        match StatesFile::open(&path) {
            Err(Error::Content { path, what, expected, found }) => {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                [name, what.to_owned(), expected, found].join(" | ")
            }
            other => panic!("{other:?}"),
        }
    };
    for index in 1..=3 {
        let missing = part(&|path| fs::remove_file(shard(path, index, 3)).unwrap());
        assert_eq!(missing, format!("x-0000{index}-of-00003.safetensors | shard | number {index} of 3 | no such file"));
    }
    let two_sets = part(&|path| {
        fs::copy(shard(path, 2, 3), shard(path, 2, 4)).unwrap();
    });
    assert_eq!(two_sets, "x-00002-of-00004.safetensors | shards of the set | 3 | 4");
    let twice = part(&|path| {
        fs::copy(shard(path, 1, 3), shard(path, 2, 3)).unwrap();
    });
    assert_eq!(twice, "x-00002-of-00003.safetensors | rows.first | 2 | 0");
    let (other, longer) = (tempfile::tempdir().unwrap(), spec(5, per_shard(4)));
    complete(&other.path().join("x.safetensors"), &longer);
    let overlapping = part(&|path| {
        fs::copy(other.path().join("x-00001-of-00002.safetensors"), shard(path, 1, 3)).unwrap();
    });
    assert_eq!(overlapping, "x-00002-of-00003.safetensors | rows.first | 4 | 2");
    complete(&other.path().join("w.safetensors"), &spec(2, Sharding::Whole));
    let unnumbered = part(&|path| {
        fs::copy(other.path().join("w.safetensors"), shard(path, 1, 3)).unwrap();
    });
    assert_eq!(unnumbered, "x-00001-of-00003.safetensors | rows.first | 0 | no such metadata");
    // A set that says it is longer.
    let cut = part(&|path| {
        fs::remove_file(shard(path, 3, 3)).unwrap();
        for index in [1, 2] {
            fs::rename(shard(path, index, 3), shard(path, index, 2)).unwrap();
        }
    });
    assert_eq!(cut, "x-00002-of-00002.safetensors | rows of the table | 5 | 4");

    let (_folder, path) = set();
    let mut foreign = spec(5, per_shard(2));
    foreign.metadata.insert("model".into(), "n".into());
    complete(&other.path().join("f.safetensors"), &foreign);
    fs::copy(other.path().join("f-00003-of-00003.safetensors"), shard(&path, 3, 3)).unwrap();
    let error = StatesFile::open(&path).unwrap_err();
    assert!(
        error.to_string().ends_with(
            r#"x-00003-of-00003.safetensors is of another run than the files beside it: model was "n", is "m""#
        ),
        "{error}"
    );

    let second = shard(&path, 2, 3);
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..bytes.len() - 1]).unwrap();
    let error = StatesFile::open(&path).unwrap_err();
    assert!(matches!(&error, Error::Safetensors { path, .. } if *path == second), "{error}");
    let nothing = path.with_file_name("nothing.safetensors");
    assert!(matches!(StatesFile::open(&nothing), Err(Error::Io { path, .. }) if path == nothing));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In whatever order rows come and wherever the run stops, the set holds what the one file holds.
    #[test]
    fn a_set_equals_the_one_file(
        order in (0..14_usize).prop_flat_map(|rows| Just((0..rows).collect::<Vec<_>>()).prop_shuffle()),
        sharding in prop_oneof![(1..7_usize).prop_map(per_shard), (0..6 * ROW_BYTES).prop_map(Sharding::Bytes)],
        stops in prop::collection::vec(0..14_usize, 0..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (path, whole) = (folder.path().join("x.safetensors"), folder.path().join("whole.safetensors"));
        complete(&whole, &spec(order.len(), Sharding::Whole));
        let spec = spec(order.len(), sharding);
        let mut writer = open(&path, &spec).unwrap();
        for (done, &row) in order.iter().enumerate() {
            if stops.contains(&done) {
                drop(writer);
                writer = open(&path, &spec).unwrap();
                let mut rest = order[done..].to_vec();
                rest.sort_unstable();
                prop_assert_eq!(writer.pending().collect::<Vec<_>>(), rest);
                prop_assert_eq!(writer.resumed().rows, done);
            }
            write(&mut writer, row);
        }
        writer.finish().unwrap();
        let (set, whole) = (StatesFile::open(&path).unwrap(), StatesFile::open(&whole).unwrap());
        prop_assert_eq!((set.rows(), set.layers(), set.d_model()), (whole.rows(), whole.layers(), whole.d_model()));
        for row in 0..=order.len() {
            prop_assert_eq!(set.row(row).unwrap(), whole.row(row).unwrap());
            prop_assert_eq!(set.state(row, Layer(1)).unwrap(), whole.state(row, Layer(1)).unwrap());
        }
        let ids = |table: &StatesFile| table.ids().map(Result::unwrap).collect::<Vec<_>>();
        prop_assert_eq!(ids(&set), ids(&whole));
    }
}
