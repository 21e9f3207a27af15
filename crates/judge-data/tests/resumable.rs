//! Outputs that survive a kill.

use std::fs;
use std::path::{Path, PathBuf};

use judge_data::{Error, JsonlWriter, PartialProblem, ResumableJsonl, Resumed, Settings, write_atomic};
use proptest::prelude::*;
use serde_json::{Value, json};

fn settings(seed: u64) -> Settings {
    [("seed".to_owned(), json!(seed)), ("model".to_owned(), json!("m"))].into()
}

fn value(row: usize) -> Value {
    json!({"id": row, "text": "x\n".repeat(row % 4), "x": row as f64 / 3.0})
}

fn expected(rows: usize) -> String {
    (0..rows).map(|row| format!("{}\n", value(row))).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// An output of 6 rows of which 4, 0 and 2 are written, left as a kill leaves it.
fn interrupted(folder: &Path) -> PathBuf {
    let path = folder.join("out.jsonl");
    let mut output = ResumableJsonl::open(&path, 6, &settings(1)).unwrap();
    for row in [4, 0, 2] {
        output.push(row, &value(row)).unwrap();
    }
    path
}

fn finish(mut output: ResumableJsonl) {
    for row in output.pending().collect::<Vec<_>>().into_iter().rev() {
        output.push(row, &value(row)).unwrap();
    }
    output.finish().unwrap();
}

#[test]
fn rows_come_in_any_order_and_go_out_in_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let mut output = ResumableJsonl::open(&path, 3, &settings(1)).unwrap();
    assert_eq!(output.resumed(), Resumed::default());
    for row in [2, 0, 1] {
        output.push(row, &value(row)).unwrap();
    }
    assert_eq!(output.read::<Value>(0).unwrap(), Some(value(0)));
    assert!(!path.exists());
    output.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(3));
    assert_eq!(files(folder.path()), ["out.jsonl"]);
}

#[test]
fn no_rows_make_an_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    ResumableJsonl::open(&path, 0, &settings(1)).unwrap().finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn a_killed_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    let mut output = ResumableJsonl::open(&path, 6, &settings(1)).unwrap();
    assert_eq!(output.resumed(), Resumed { rows: 3, torn_bytes: 0 });
    assert_eq!(output.pending().collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(output.read::<Value>(4).unwrap(), Some(value(4)));
    assert_eq!(output.read::<Value>(1).unwrap(), None);
    assert!(matches!(output.push(4, &value(4)), Err(Error::RowTwice { row: 4 })));
    assert!(matches!(output.push(6, &value(6)), Err(Error::NoSuchRow { row: 6, rows: 6 })));
    finish(output);
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(6));
    assert_eq!(files(folder.path()), ["out.jsonl"]);
}

#[test]
fn finishing_too_early_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    fs::write(folder.path().join("out.jsonl.partial.sorted"), "left by a kill while finishing").unwrap();
    let output = ResumableJsonl::open(&path, 6, &settings(1)).unwrap();
    assert!(matches!(output.finish(), Err(Error::Incomplete { missing: 3, rows: 6, first: 1 })));
    let output = ResumableJsonl::open(&path, 6, &settings(1)).unwrap();
    assert_eq!(output.resumed().rows, 3);
    finish(output);
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(6));
    assert_eq!(files(folder.path()), ["out.jsonl"]);
}

#[test]
fn other_settings_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    let mut other = settings(2);
    other.remove("model");
    other.insert("lens".to_owned(), json!("raw"));
    let error = ResumableJsonl::open(&path, 7, &other).unwrap_err();
    let Error::SettingsDiffer { differences, .. } = &error else { panic!("{error}") };
    let keys: Vec<&str> = differences.iter().map(|d| d.key.as_str()).collect();
    assert_eq!(keys, ["rows", "model", "seed", "lens"]);
    assert!(
        error
            .to_string()
            .ends_with(r#"rows was 6, is 7, model was "m", is unset, seed was 1, is 2, lens was unset, is "raw""#),
        "{error}"
    );
    // Nothing was touched.
    assert_eq!(ResumableJsonl::open(&path, 6, &settings(1)).unwrap().resumed().rows, 3);
}

#[test]
fn settings_of_a_run_without_rows_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    drop(ResumableJsonl::open(&path, 6, &settings(1)).unwrap());
    drop(ResumableJsonl::open(&path, 5, &settings(2)).unwrap());
}

#[test]
fn two_processes_do_not_share_an_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let first = ResumableJsonl::open(&path, 6, &settings(1)).unwrap();
    assert!(matches!(ResumableJsonl::open(&path, 6, &settings(1)), Err(Error::Locked { .. })));
    drop(first);
    ResumableJsonl::open(&path, 6, &settings(1)).unwrap();
}

#[test]
fn foreign_content_is_refused() {
    let problem = |content: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = interrupted(folder.path());
        fs::write(folder.path().join("out.jsonl.partial"), content).unwrap();
        match ResumableJsonl::open(&path, 6, &settings(1)) {
            Err(Error::Partial { place, problem }) => (place.line, problem),
            other => panic!("{content:?}: {other:?}"),
        }
    };
    assert_eq!(problem("0\t{}\nhello\n"), (2, PartialProblem::NotARow));
    assert_eq!(problem("0\t{\"a\":\n"), (1, PartialProblem::NotARow));
    assert_eq!(problem("-1\t{}\n"), (1, PartialProblem::NotARow));
    assert_eq!(problem("0\t5\n"), (1, PartialProblem::NotARow));
    assert_eq!(problem("\n"), (1, PartialProblem::NotARow));
    assert_eq!(problem("1\t{}\n1\t{}\n"), (2, PartialProblem::RowTwice { row: 1 }));
    assert_eq!(problem("6\t{}\n"), (1, PartialProblem::NoSuchRow { row: 6, rows: 6 }));

    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    fs::remove_file(folder.path().join("out.jsonl.partial.json")).unwrap();
    let error = ResumableJsonl::open(&path, 6, &settings(1)).unwrap_err();
    assert!(matches!(error, Error::Partial { problem: PartialProblem::NoSettings, .. }), "{error}");
}

#[test]
fn what_cannot_be_written_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let mut output = ResumableJsonl::open(&path, 1, &settings(1)).unwrap();
    let no_json = std::collections::HashMap::from([((1, 2), 3)]);
    assert!(matches!(output.push(0, &no_json), Err(Error::Serialize { .. })));
    output.push(0, &value(0)).unwrap();
    output.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(1));
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    write_atomic(&path, b"old").unwrap();
    let mut writer = JsonlWriter::create(&path).unwrap();
    writer.write(&value(0)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(writer);
    assert_eq!((fs::read(&path).unwrap(), files(folder.path())), (b"old".to_vec(), vec!["out.jsonl".to_owned()]));
    let mut writer = JsonlWriter::create(&path).unwrap();
    writer.write(&value(0)).unwrap();
    writer.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(1));
    assert_eq!(files(folder.path()), ["out.jsonl"]);
    assert!(matches!(write_atomic(folder.path().join("no/x"), b""), Err(Error::Io { .. })));
}

#[cfg(unix)]
#[test]
fn results_are_as_readable_as_other_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    write_atomic(folder.path().join("a"), b"").unwrap();
    fs::write(folder.path().join("b"), b"").unwrap();
    let mode = |name| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("a"), mode("b"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Wherever a run is cut off, going on gives the bytes of an uninterrupted one.
    #[test]
    fn cut_anywhere_and_resumed(order in Just((0..7).collect::<Vec<usize>>()).prop_shuffle(), written in 0..=7_usize, cut in 0.0..=1.0) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl");
        let mut output = ResumableJsonl::open(&path, 7, &settings(1)).unwrap();
        for &row in &order[..written] {
            output.push(row, &value(row)).unwrap();
        }
        drop(output);
        let partial = folder.path().join("out.jsonl.partial");
        let bytes = fs::read(&partial).unwrap();
        let kept = (bytes.len() as f64 * cut) as usize;
        fs::write(&partial, &bytes[..kept]).unwrap();
        let whole = bytes[..kept].iter().filter(|&&b| b == b'\n').count();
        let torn = bytes[..kept].iter().rev().take_while(|&&b| b != b'\n').count();

        let output = ResumableJsonl::open(&path, 7, &settings(1)).unwrap();
        prop_assert_eq!(output.resumed(), Resumed { rows: whole, torn_bytes: torn });
        finish(output);
        prop_assert_eq!(fs::read_to_string(&path).unwrap(), expected(7));
        prop_assert_eq!(files(folder.path()), ["out.jsonl"]);
    }
}
