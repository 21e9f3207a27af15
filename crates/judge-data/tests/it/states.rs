//! Hidden states in safetensors files.

use std::fs;
use std::path::Path;

use judge_core::{ItemId, Layer, Reason, Unscored};
use judge_data::{
    Counts, Error, Resumed, Rows, Sharding, StatesFile, StatesRow, StatesSpec, StatesWriter, SyncEvery, WriteOptions,
    ids_path,
};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::files::{names, place};

const ROWS: usize = 5;

fn spec() -> StatesSpec {
    let metadata = [("model".to_owned(), "größe \"m\"".to_owned()), ("pooling".to_owned(), "last".to_owned())].into();
    StatesSpec {
        rows: ROWS,
        layers: vec![Layer(0), Layer(7), Layer(12)],
        d_model: 2,
        metadata,
        sharding: Sharding::Whole,
    }
}

fn states(row: usize) -> Vec<f32> {
    (0..6).map(|k| row as f32 + k as f32 / 7.0 - 2.5).collect()
}

fn id(row: usize) -> ItemId {
    ItemId::from(format!("item {row}"))
}

/// Row 3 has no states.
fn write(writer: &mut StatesWriter, row: usize) {
    let written = match row {
        3 => writer.write_unscored(row, &id(row), &Unscored::new(Reason::TooLong, "5000 > 4096")),
        _ => writer.write(row, &id(row), &states(row)),
    };
    written.unwrap();
}

fn write_all(path: &Path) {
    let mut writer = StatesWriter::open(path, &spec(), WriteOptions::default()).unwrap();
    for row in [3, 4, 0, 2, 1] {
        write(&mut writer, row);
    }
    writer.finish().unwrap();
}

#[test]
fn the_safetensors_crate_reads_what_is_written() {
    let (folder, path) = place("out.safetensors");
    write_all(&path);
    assert_eq!(names(folder.path()), ["out.ids.jsonl", "out.safetensors"]);

    let bytes = fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut names = file.names();
    names.sort_unstable();
    assert_eq!(names, ["layers", "scored", "states"]);
    let tensor = |name| file.tensor(name).unwrap();
    assert_eq!((tensor("states").dtype(), tensor("states").shape()), (Dtype::F32, &[ROWS, 3, 2][..]));
    assert_eq!(
        (tensor("layers").dtype(), tensor("layers").data()),
        (Dtype::I64, [0_i64, 7, 12].map(i64::to_le_bytes).as_flattened())
    );
    assert_eq!((tensor("scored").dtype(), tensor("scored").data()), (Dtype::U8, &[1, 1, 1, 0, 1][..]));
    let expected: Vec<u8> = (0..ROWS)
        .flat_map(|row| if row == 3 { vec![0.0; 6] } else { states(row) })
        .flat_map(f32::to_le_bytes)
        .collect();
    assert_eq!(tensor("states").data(), expected);
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(header.metadata().as_ref().unwrap()["model"], "größe \"m\"");

    let ids: Vec<String> = Rows::open(ids_path(&path)).unwrap().map(|row| row.unwrap().string("id").unwrap()).collect();
    assert_eq!(ids, ["item 0", "item 1", "item 2", "item 3", "item 4"]);
    let line = fs::read_to_string(ids_path(&path)).unwrap().lines().nth(3).unwrap().to_owned();
    assert_eq!(line, r#"{"id":"item 3","unscored":{"reason":"too_long","detail":"5000 > 4096"}}"#);
}

#[test]
fn the_file_reads_back() {
    let (_folder, path) = place("out.safetensors");
    write_all(&path);
    let file = StatesFile::open(&path).unwrap();
    assert_eq!((file.rows(), file.d_model(), file.layers()), (ROWS, 2, &[Layer(0), Layer(7), Layer(12)][..]));
    assert_eq!(file.metadata()["pooling"], "last");
    assert_eq!(file.row(4).unwrap(), Some(states(4)));
    assert_eq!(file.state(4, Layer(7)).unwrap(), Some(states(4)[2..4].to_vec()));
    assert_eq!(file.state(4, Layer(1)).unwrap(), None);
    for absent in [3, ROWS, usize::MAX] {
        assert_eq!((file.is_scored(absent), file.row(absent).unwrap()), (false, None));
    }
    let rows: Vec<_> = file.iter().map(Result::unwrap).collect();
    assert_eq!(rows, (0..ROWS).map(|row| (row != 3).then(|| states(row))).collect::<Vec<_>>());
    let ids: Vec<StatesRow> = file.ids().map(Result::unwrap).collect();
    assert_eq!(ids.iter().map(|row| row.id.clone()).collect::<Vec<_>>(), (0..ROWS).map(id).collect::<Vec<_>>());
    assert_eq!(ids[3].unscored, Some(Unscored::new(Reason::TooLong, "5000 > 4096")));
}

#[test]
fn a_killed_run_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.safetensors");
    write_all(&whole);
    for torn in [0, 1, 9] {
        let path = folder.path().join("cut.safetensors");
        let mut writer = StatesWriter::open(&path, &spec(), WriteOptions::default()).unwrap();
        for row in [3, 1, 0] {
            write(&mut writer, row);
        }
        drop(writer);
        let journal = folder.path().join("cut.ids.jsonl.partial");
        let bytes = fs::read(&journal).unwrap();
        fs::write(&journal, &bytes[..bytes.len() - torn]).unwrap();

        let mut writer = StatesWriter::open(&path, &spec(), WriteOptions::default()).unwrap();
        assert_eq!(writer.resumed().rows, if torn == 0 { 3 } else { 2 });
        for row in writer.pending().collect::<Vec<_>>() {
            write(&mut writer, row);
        }
        writer.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), fs::read(&whole).unwrap());
        assert_eq!(fs::read(ids_path(&path)).unwrap(), fs::read(ids_path(&whole)).unwrap());
        assert_eq!(names(folder.path()).len(), 4);
        fs::remove_file(ids_path(&path)).unwrap(); // alone they would be nobody's
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_journal_without_its_states_starts_again() {
    let (folder, path) = place("out.safetensors");
    let mut writer = StatesWriter::open(&path, &spec(), WriteOptions::default()).unwrap();
    write(&mut writer, 0);
    drop(writer);
    fs::remove_file(folder.path().join("out.safetensors.partial")).unwrap();
    let writer = StatesWriter::open(&path, &spec(), WriteOptions::default()).unwrap();
    assert_eq!(writer.resumed(), Resumed::default());
    assert_eq!(writer.pending().count(), ROWS);
}

#[test]
fn other_shapes_and_settings_do_not_mix() {
    let (_folder, path) = place("out.safetensors");
    let mut writer = StatesWriter::open(&path, &spec(), WriteOptions::default()).unwrap();
    write(&mut writer, 0);
    drop(writer);
    let mut other = spec();
    other.layers.pop();
    other.metadata.insert("pooling".into(), "mean".into());
    let error = StatesWriter::open(&path, &other, WriteOptions::default()).unwrap_err();
    let Error::SettingsDiffer { differences, .. } = &error else { panic!("{error}") };
    assert_eq!(differences.iter().map(|d| d.key.as_str()).collect::<Vec<_>>(), ["pooling", "shape.layers"]);
}

#[test]
fn broken_files_are_typed_errors() {
    let (_folder, path) = place("out.safetensors");
    write_all(&path);
    let bytes = fs::read(&path).unwrap();
    for cut in [0, 4, 8, 100, bytes.len() - 1] {
        fs::write(&path, &bytes[..cut]).unwrap();
        let error = StatesFile::open(&path).unwrap_err();
        assert!(matches!(error, Error::Safetensors { .. } | Error::Io { .. }), "{cut}: {error}");
    }

    let view = |dtype, shape: &[usize], data| TensorView::new(dtype, shape.to_vec(), data).unwrap();
    let layers = [3_i64.to_le_bytes(), (-1_i64).to_le_bytes()].concat();
    for (tensor, with) in [
        ("states", vec![("layers", view(Dtype::I64, &[1], &layers[..8]))]),
        ("layers", vec![("layers", view(Dtype::F64, &[1], &layers[..8]))]),
        ("layers", vec![("layers", view(Dtype::I64, &[1, 1], &layers[..8]))]),
        (
            "states",
            vec![
                ("layers", view(Dtype::I64, &[1], &layers[..8])),
                ("states", view(Dtype::F32, &[1, 2, 1], &layers[..8])),
            ],
        ),
        (
            "scored",
            vec![
                ("layers", view(Dtype::I64, &[1], &layers[..8])),
                ("states", view(Dtype::F32, &[1, 1, 2], &layers[..8])),
                ("scored", view(Dtype::U8, &[2], &layers[..2])),
            ],
        ),
        (
            "layers",
            vec![
                ("layers", view(Dtype::I64, &[1], &layers[8..])),
                ("states", view(Dtype::F32, &[1, 1, 2], &layers[..8])),
                ("scored", view(Dtype::U8, &[1], &layers[..1])),
            ],
        ),
    ] {
        fs::write(&path, safetensors::serialize(with, None).unwrap()).unwrap();
        let error = StatesFile::open(&path).unwrap_err();
        assert!(matches!(error, Error::Content { what, .. } if what == tensor), "{tensor}: {error}");
    }
}

#[test]
fn states_that_are_no_numbers_are_found_when_they_are_read() {
    let (_folder, path) = place("out.safetensors");
    write_all(&path);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() - ROWS - 4 * 3; // the last row's fourth value, before `scored`
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let file = StatesFile::open(&path).unwrap();
    for error in [file.row(4).unwrap_err(), file.state(4, Layer(7)).unwrap_err()] {
        let Error::Content { what: "states", found, .. } = &error else { panic!("{error}") };
        assert_eq!(found, "NaN in row 4, value 3");
    }
    assert!(file.state(4, Layer(0)).is_ok() && file.row(2).is_ok());
}

#[test]
fn ids_must_fit_their_states() {
    let (folder, path) = place("out.safetensors");
    write_all(&path);
    let ids = fs::read_to_string(ids_path(&path)).unwrap();
    let lines: Vec<&str> = ids.lines().collect();
    let read = |text: Option<String>| {
        match text {
            Some(text) => fs::write(ids_path(&path), text).unwrap(),
            None => fs::remove_file(ids_path(&path)).unwrap(),
        }
        let file = StatesFile::open(&path).unwrap();
        let found: Vec<_> = file.ids().collect();
        (found.len(), found.into_iter().last().unwrap().unwrap_err())
    };
    let part = |error: &Error| match error {
        Error::Content { path, what, expected, found } => {
            assert_eq!(path, &ids_path(&folder.path().join("out.safetensors")));
            format!("{what}: {expected}, {found}")
        }
        other => panic!("{other}"),
    };
    let (n, error) = read(Some(lines[..4].join("\n")));
    assert_eq!((n, part(&error).as_str()), (5, "rows: 5, 4"));
    let (n, error) = read(Some(format!("{ids}{{\"id\": 9}}\n")));
    assert_eq!((n, part(&error).as_str()), (6, "rows: 5, more"));
    let (n, error) = read(Some([lines[0], lines[1], lines[2], lines[4], lines[3]].join("\n")));
    assert_eq!((n, part(&error).as_str()), (4, "scored rows: row 3 unscored, row 3 scored"));
    let (n, error) = read(Some(ids.replace("\"item 1\"", "1.5")));
    assert!(n == 2 && matches!(&error, Error::WrongType { column, .. } if column == "id"), "{error}");
    let (n, error) = read(Some(ids.replace("too_long", "too_wide")));
    assert!(n == 4 && matches!(&error, Error::WrongType { column, .. } if column == "unscored"), "{error}");
    let (n, error) = read(Some(String::new()));
    assert_eq!((n, part(&error).as_str()), (1, "rows: 5, 0"));
    let (n, error) = read(None);
    assert!(n == 1 && matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn a_file_begun_but_not_headed_starts_again() {
    let (folder, path) = place("out.safetensors");
    drop(StatesWriter::open(&path, &spec(), WriteOptions::default()).unwrap());
    let partial = folder.path().join("out.safetensors.partial");
    let begun = fs::read(&partial).unwrap();
    let layers = 3 * 8;
    let header = 8 + u64::from_le_bytes(*begun.first_chunk().unwrap()) as usize;
    // Killed before anything, within the header, and before the layers' numbers.
    for kept in [0, 20, header, header + layers - 1] {
        let mut torn = begun.clone();
        torn[kept..].fill(0);
        fs::write(&partial, &torn).unwrap();
        drop(StatesWriter::open(&path, &spec(), WriteOptions::default()).unwrap());
        assert_eq!(fs::read(&partial).unwrap(), begun, "{kept}");
    }
}

/// What a loss of power does: the journal's line is on the disk, the states are not.
#[test]
fn a_row_is_not_done_without_its_states() {
    let (folder, path) = place("out.safetensors");
    let whole = folder.path().join("whole.safetensors");
    write_all(&whole);
    let every = |rows| WriteOptions { sync: SyncEvery { rows, bytes: u64::MAX }, ..WriteOptions::default() };
    let mut writer = StatesWriter::open(&path, &spec(), every(100)).unwrap();
    for row in [3, 1, 0, 4] {
        write(&mut writer, row);
    }
    drop(writer);
    let partial = folder.path().join("out.safetensors.partial");
    let mut bytes = fs::read(&partial).unwrap();
    let states_at = bytes.len() - ROWS - ROWS * 6 * 4;
    let scored_at = bytes.len() - ROWS;
    bytes[states_at + 24..states_at + 28].fill(0); // of row 1
    bytes[scored_at + 4] = 0; // of row 4
    fs::write(&partial, bytes).unwrap();

    // It stays forgotten, also when the rest is synced and the run is killed again.
    let mut writer = StatesWriter::open(&path, &spec(), every(1)).unwrap();
    assert_eq!((writer.resumed().rows, writer.pending().collect::<Vec<_>>()), (2, vec![1, 2, 4]));
    assert_eq!(writer.counts().rows(), 2);
    write(&mut writer, 2);
    drop(writer);
    let mut writer = StatesWriter::open(&path, &spec(), every(1)).unwrap();
    assert_eq!(writer.pending().collect::<Vec<_>>(), [1, 4]);
    write(&mut writer, 4);
    write(&mut writer, 1);
    let written = writer.finish().unwrap();
    assert_eq!(written.counts, Counts { scored: 4, unscored: [(Reason::TooLong, 1)].into(), graded: 0 });
    let paths: Vec<_> = written.outputs.iter().map(|file| (file.path.clone(), file.rows, file.bytes)).collect();
    let length = |path: &Path| fs::metadata(path).unwrap().len();
    let (path, ids) = (path.canonicalize().unwrap(), ids_path(&path).canonicalize().unwrap());
    assert_eq!(paths, [(path.clone(), ROWS, length(&path)), (ids.clone(), ROWS, length(&ids))]);
    assert_eq!(fs::read(&path).unwrap(), fs::read(&whole).unwrap());
    assert_eq!(fs::read(ids).unwrap(), fs::read(ids_path(&whole)).unwrap());
}

#[test]
fn a_complete_table_is_not_written_again() {
    let (_folder, path) = place("out.safetensors");
    write_all(&path);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let writer = StatesWriter::open(&path, &spec(), WriteOptions::default()).unwrap();
    assert_eq!((writer.resumed().rows, writer.pending().count()), (ROWS, 0));
    assert_eq!(writer.counts().unscored, [(Reason::TooLong, 1)].into());
    writer.finish().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    let mut other = spec();
    other.metadata.insert("pooling".into(), "mean".into());
    let error = StatesWriter::open(&path, &other, WriteOptions::default()).unwrap_err();
    assert!(matches!(error, Error::OutputExists { .. }), "{error}");
    assert!(error.to_string().contains(r#"pooling was "last", is "mean""#), "{error}");
}

#[test]
fn the_size_is_known_before() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sharding) in [("whole", Sharding::Whole), ("set", Sharding::Bytes(60))] {
        let path = folder.path().join(format!("{name}.safetensors"));
        let spec = StatesSpec { sharding, ..spec() };
        let mut writer = StatesWriter::open(&path, &spec, WriteOptions::default()).unwrap();
        (0..ROWS).for_each(|row| write(&mut writer, row));
        let outputs = writer.finish().unwrap().outputs;
        let states = outputs.iter().filter(|file| file.path.extension().is_some_and(|e| e == "safetensors"));
        assert_eq!(states.map(|file| file.bytes).sum::<u64>(), spec.bytes().unwrap(), "{name}");
    }
}

#[test]
fn a_table_too_large_to_be_counted_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for spec in [StatesSpec { rows: usize::MAX, ..spec() }, StatesSpec { d_model: usize::MAX / 2, ..spec() }] {
        let opened = StatesWriter::open(folder.path().join("x.safetensors"), &spec, WriteOptions::default());
        assert!(matches!(opened, Err(Error::StatesTooLarge { .. })), "{spec:?}");
        assert!(matches!(spec.bytes(), Err(Error::StatesTooLarge { .. })), "{spec:?}");
    }
}
