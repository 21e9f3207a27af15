//! Runs that survive a kill, a loss of power and a second start.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use judge_core::{ModelInfo, Reason};
use judge_data::{
    Counts, Error, Fate, InputFile, Layout, Locking, MadeBy, Opened, OutputProblem, Program, Resolved, Resumed, Run,
    RunPlan, RunRecord, SyncEvery, load, record_path,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::files::{files, names, place};

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn plan(path: &Path, rows: usize, seed: u64) -> RunPlan {
    let mut plan = RunPlan::new(path, rows, Program::new("test", "1.0.0"));
    plan.command = vec!["test".into()];
    plan.seed = Some(seed);
    plan.settings = [("want".to_owned(), json!({"lens": "raw", "layers": [1, 2]}))].into();
    plan.made_by = MadeBy::Model(model("f32"));
    plan.started = at(5);
    plan.clock = || at(10);
    plan
}

fn model(dtype: &str) -> Resolved {
    let dimensions = judge_core::model::Dimensions { n_layers: 2, d_model: 8, n_heads: 2, d_vocab: 32, max_len: 64 };
    let mut model = ModelInfo::new("tiny", "f00d", dimensions);
    model.family = "llama".into();
    model.dtype = dtype.into();
    Resolved {
        model: Some(model),
        template: Some("t".into()),
        settings: [("layers".to_owned(), json!([0, 1]))].into(),
        ..Resolved::default()
    }
}

#[track_caller]
fn begin(plan: RunPlan) -> Run {
    match plan.open().unwrap() {
        Opened::Ready(start) => start.begin(model("f32")).unwrap(),
        Opened::Complete(record) => panic!("complete: {record:?}"),
    }
}

#[track_caller]
fn complete(plan: RunPlan) -> RunRecord {
    match plan.open().unwrap() {
        Opened::Complete(record) => *record,
        Opened::Ready(start) => panic!("not complete: {:?}", start.resumed()),
    }
}

fn value(row: usize) -> Value {
    json!({"id": row, "text": "x\n\t".repeat(row % 4), "x": row as f64 / 3.0})
}

fn fate(row: usize) -> Fate {
    Fate { unscored: (row % 3 == 2).then_some(Reason::TooLong), graded: row.is_multiple_of(2) }
}

fn expected(rows: usize) -> String {
    (0..rows).map(|row| format!("{}\n", value(row))).collect()
}

fn push(run: &mut Run, row: usize) {
    run.push(row, &value(row), fate(row)).unwrap();
}

fn finish(mut run: Run) -> RunRecord {
    for row in run.pending().collect::<Vec<_>>().into_iter().rev() {
        push(&mut run, row);
    }
    run.finish().unwrap()
}

/// An output of 6 rows of which 4, 0 and 2 are written, left as a kill leaves it.
fn interrupted(folder: &Path) -> PathBuf {
    let path = folder.join("out.jsonl");
    let mut run = begin(plan(&path, 6, 1));
    for row in [4, 0, 2] {
        push(&mut run, row);
    }
    path
}

#[test]
fn rows_come_in_any_order_and_go_out_in_theirs() {
    let (folder, path) = place("out.jsonl");
    let mut run = begin(plan(&path, 3, 1));
    assert_eq!(run.resumed(), Resumed::default());
    for row in [2, 0, 1] {
        push(&mut run, row);
    }
    assert_eq!(run.read::<Value>(0).unwrap(), Some(value(0)));
    assert!(!path.exists());
    let record = run.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(3));
    assert_eq!(names(folder.path()), ["out.jsonl", "out.jsonl.run.json"]);

    assert_eq!(load::<RunRecord>(record_path(&path)).unwrap(), record);
    assert_eq!(record.counts, Counts { scored: 2, unscored: [(Reason::TooLong, 1)].into(), graded: 2 });
    let hash = InputFile::of(&path).unwrap();
    assert_eq!(record.outputs[0].blake3.as_ref(), Some(&hash.blake3));
    assert_eq!((record.outputs[0].rows, record.outputs[0].bytes), (3, hash.bytes));
    assert_eq!(record.started.as_deref(), Some("1970-01-01T00:00:05Z"));
    assert_eq!(record.finished.as_deref(), Some("1970-01-01T00:00:10Z"));
    assert_eq!((record.resumes, record.setting("layers")), (0, Some(&json!([0, 1]))));
}

#[test]
fn no_rows_make_an_empty_file_and_arrays_are_arrays() {
    let (folder, path) = place("out.jsonl");
    finish(begin(plan(&path, 0, 1)));
    assert_eq!(fs::read(&path).unwrap(), b"");
    for rows in 0..3 {
        let mut plan = plan(&folder.path().join(format!("{rows}.json")), rows, 1);
        plan.layout = Layout::Array;
        finish(begin(plan.clone()));
        let text = fs::read_to_string(&plan.output).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), Value::Array((0..rows).map(value).collect()));
        complete(plan.clone());
        plan.layout = Layout::Lines;
        let error = plan.open().unwrap_err().to_string();
        assert!(error.contains(r#"output.layout was "array", is unset"#), "{error}");
    }
}

#[test]
fn a_killed_run_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    let Opened::Ready(start) = plan(&path, 6, 1).open().unwrap() else { panic!("complete") };
    assert_eq!(start.resumed(), Resumed { rows: 3, torn_bytes: 0 });
    let mut later = plan(&path, 6, 1);
    later.started = at(7);
    drop(start);
    let mut run = begin(later);
    assert_eq!(run.pending().collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(run.counts(), Counts { scored: 2, unscored: [(Reason::TooLong, 1)].into(), graded: 3 });
    assert_eq!(run.read::<Value>(4).unwrap(), Some(value(4)));
    assert_eq!(run.read::<Value>(1).unwrap(), None);
    assert!(matches!(run.push(4, &value(4), fate(4)), Err(Error::RowTwice { row: 4 })));
    assert!(matches!(run.push(6, &value(6), fate(6)), Err(Error::NoSuchRow { row: 6, rows: 6 })));
    let record = finish(run);
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(6));
    assert_eq!((record.counts.rows(), record.counts.graded, record.resumes), (6, 3, 1));
    assert_eq!(record.started.as_deref(), Some("1970-01-01T00:00:05Z"), "of the first start");
}

#[test]
fn finishing_too_early_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    fs::write(folder.path().join("out.jsonl.partial.sorted"), "left by a kill while finishing").unwrap();
    let run = begin(plan(&path, 6, 1));
    assert!(matches!(run.finish(), Err(Error::Incomplete { missing: 3, rows: 6, first: 1 })));
    let run = begin(plan(&path, 6, 1));
    assert_eq!(run.resumed().rows, 3);
    finish(run);
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(6));
    assert_eq!(names(folder.path()), ["out.jsonl", "out.jsonl.run.json"]);
}

#[test]
fn a_finished_run_is_recognised_and_nothing_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    let record = finish(begin(plan(&path, 6, 1)));
    let before = files(folder.path());
    assert_eq!(complete(plan(&path, 6, 1)), record);
    let mut again = plan(&path, 6, 1);
    (again.started, again.options.overwrite) = (at(99), true);
    assert_eq!(complete(again), record);
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_finished_output_is_replaced_only_on_request() {
    let (folder, path) = place("out.jsonl");
    finish(begin(plan(&path, 6, 1)));
    let before = files(folder.path());
    let refused = |plan: RunPlan| {
        let error = plan.open().unwrap_err();
        assert!(matches!(error, Error::OutputExists { .. }) && error.is_usage(), "{error}");
        error.to_string()
    };
    let error = refused(plan(&path, 6, 2));
    assert!(error.contains("seed was 1, is 2; choose another output"), "{error}");
    let mut newer = plan(&path, 5, 1);
    newer.program.version = "1.0.1".into();
    newer.settings.insert("want".into(), json!({"lens": "normed", "layers": [1, 2]}));
    let error = refused(newer);
    let expected_words =
        r#"rows was 6, is 5, program.version was "1.0.0", is "1.0.1", want.lens was "raw", is "normed""#;
    assert!(error.contains(expected_words), "{error}");
    assert_eq!(files(folder.path()), before);

    // Rows that someone has changed since are not what is recorded of them.
    fs::write(&path, "changed\n").unwrap();
    assert!(refused(plan(&path, 6, 1)).contains("is 8"));
    // Nothing says how they were made: they are nobody's to replace.
    let record = fs::read(record_path(&path)).unwrap();
    fs::remove_file(record_path(&path)).unwrap();
    let mut other = plan(&path, 4, 2);
    other.options.overwrite = true;
    for plan in [plan(&path, 6, 1), other.clone()] {
        let error = plan.open().unwrap_err();
        let is_foreign = matches!(error, Error::Output { problem: OutputProblem::Foreign, .. });
        assert!(is_foreign && error.is_usage(), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "changed\n");
    fs::write(record_path(&path), record).unwrap();

    let mut run = begin(other.clone());
    push(&mut run, 3);
    drop(run);
    assert_eq!(fs::read_to_string(&path).unwrap(), "changed\n");
    let run = begin(other);
    assert_eq!(run.resumed().rows, 1);
    finish(run);
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(4));
    assert_eq!(complete(plan(&path, 4, 2)).seed, Some(2));
}

#[test]
fn an_empty_file_is_no_output_yet() {
    let (_folder, path) = place("out.jsonl");
    fs::write(&path, "").unwrap();
    finish(begin(plan(&path, 2, 1)));
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(2));
}

#[test]
fn other_settings_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    let mut other = plan(&path, 7, 2);
    other.settings =
        [("want".to_owned(), json!({"lens": "normed", "layers": [1, 2]})), ("k".to_owned(), json!(1))].into();
    let error = other.open().unwrap_err();
    let Error::SettingsDiffer { differences, .. } = &error else { panic!("{error}") };
    let keys: Vec<&str> = differences.iter().map(|d| d.key.as_str()).collect();
    assert_eq!(keys, ["rows", "seed", "want.lens", "k"]);
    let words = r#"rows was 6, is 7, seed was 1, is 2, want.lens was "raw", is "normed", k was unset, is 1; repeat with the old settings, delete it to start again"#;
    assert!(error.to_string().contains(words), "{error}");

    // What is known only with the model.
    let Opened::Ready(start) = plan(&path, 6, 1).open().unwrap() else { panic!("complete") };
    let mut other = model("bf16");
    other.model.as_mut().unwrap().name = "another name".into();
    other.settings.clear();
    let error = start.begin(other).unwrap_err().to_string();
    assert!(error.contains(r#"settings: model.dtype was "f32", is "bf16", layers was [0,1], is unset;"#), "{error}");
    // Nothing was touched.
    assert_eq!(begin(plan(&path, 6, 1)).resumed().rows, 3);
}

#[test]
fn a_run_is_not_resumed_by_another_version_or_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    let mut newer = plan(&path, 6, 1);
    newer.program.version = "1.1.0".into();
    assert!(newer.open().unwrap_err().to_string().contains(r#"program.version was "1.0.0", is "1.1.0""#));
    // A commit that is not known is no other one.
    let mut built = plan(&path, 6, 1);
    built.program.git_commit = Some("abc".into());
    finish(begin(built));
    let mut rebuilt = plan(&path, 6, 1);
    complete(rebuilt.clone());
    let mut made = plan(&folder.path().join("b.jsonl"), 6, 1);
    made.program.git_commit = Some("abc".into());
    finish(begin(made.clone()));
    rebuilt.output.clone_from(&made.output);
    rebuilt.program.git_commit = Some("abd".into());
    assert!(rebuilt.open().unwrap_err().to_string().contains(r#"program.git_commit was "abc", is "abd""#));
}

#[test]
fn settings_of_a_run_without_rows_do_not_matter() {
    let (_folder, path) = place("out.jsonl");
    drop(begin(plan(&path, 6, 1)));
    finish(begin(plan(&path, 5, 2)));
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(5));
}

#[test]
fn what_was_opened_and_not_begun_leaves_nothing() {
    let (folder, path) = place("out.jsonl");
    let start = plan(&path, 6, 1).open().unwrap();
    assert_eq!(names(folder.path()), ["out.jsonl.partial"]);
    drop(start);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn two_processes_do_not_share_an_output() {
    let (_folder, path) = place("out.jsonl");
    let first = begin(plan(&path, 6, 1));
    let error = plan(&path, 6, 1).open().unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    let mut unlocked = plan(&path, 6, 1);
    unlocked.options.locking = Locking::None;
    unlocked.open().unwrap();
    drop(first);
    begin(plan(&path, 6, 1));
}

#[test]
fn an_output_without_locks_is_resumed_too() {
    let (_folder, path) = place("out.jsonl");
    let mut unlocked = plan(&path, 6, 1);
    unlocked.options.locking = Locking::None;
    let mut run = begin(unlocked.clone());
    push(&mut run, 5);
    drop(run);
    let run = begin(unlocked);
    assert_eq!(run.resumed().rows, 1);
    finish(run);
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(6));
}

#[test]
fn an_input_is_no_output_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["out.jsonl", "out.jsonl.partial", "out.jsonl.run.json"] {
        let input = folder.path().join(name);
        fs::write(&input, "{}\n").unwrap();
        let mut plan = plan(&folder.path().join("out.jsonl"), 1, 1);
        plan.inputs = vec![InputFile::of(&input).unwrap().with_rows(1)];
        let error = plan.open().unwrap_err();
        assert!(matches!(error, Error::Output { .. }) && error.is_usage(), "{error}");
        assert_eq!(fs::read_to_string(&input).unwrap(), "{}\n");
        fs::remove_file(input).unwrap();
    }
}

#[test]
fn other_inputs_are_told_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.jsonl");
    fs::write(&input, "{}\n").unwrap();
    let plan = |path: &Path| {
        let mut plan = plan(&folder.path().join("out.jsonl"), 2, 1);
        plan.inputs = vec![InputFile::of(path).unwrap()];
        plan
    };
    let mut run = begin(plan(&input));
    push(&mut run, 1);
    drop(run);
    let moved = folder.path().join("moved.jsonl");
    fs::rename(&input, &moved).unwrap();
    assert_eq!(begin(plan(&moved)).resumed().rows, 1);
    fs::write(&input, "{}\n{}\n").unwrap();
    assert!(plan(&input).open().unwrap_err().to_string().contains("the content of inputs[0] has changed"));
}

#[test]
fn foreign_content_is_refused_and_kept() {
    let problem = |content: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        let path = interrupted(folder.path());
        let partial = folder.path().join("out.jsonl.partial");
        fs::write(&partial, content).unwrap();
        let error = plan(&path, 6, 1).open().unwrap_err();
        assert_eq!(fs::read(&partial).unwrap(), content);
        match error {
            Error::Partial { place, expected, found } => (place.line, format!("{expected}, {found}")),
            other => panic!("{content:?}: {other:?}"),
        }
    };
    for content in [&b"hello"[..], b"hello\n", b"0\t{\"id\":1}\n"] {
        assert_eq!(problem(content), (1, "the beginning of an unfinished output, something else".to_owned()));
    }
    let newer = b"{\"format\":\"judge-journal\",\"version\":9,\"more\":1}\n";
    assert_eq!(problem(newer), (1, "an unfinished output of version 1, version 9".to_owned()));
}

#[test]
fn a_first_line_that_was_cut_short_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    let partial = folder.path().join("out.jsonl.partial");
    let bytes = fs::read(&partial).unwrap();
    let first = bytes.iter().position(|&b| b == b'\n').unwrap();
    for kept in (0..=first).step_by(7) {
        fs::write(&partial, &bytes[..kept]).unwrap();
        assert_eq!(begin(plan(&path, 6, 1)).resumed().rows, 0);
        fs::write(&partial, vec![0; kept]).unwrap();
        assert_eq!(begin(plan(&path, 6, 1)).resumed().rows, 0);
    }
}

/// What a loss of power does: pages that were never written are zeros, in the middle too.
#[test]
fn damaged_lines_are_done_again() {
    let (folder, path) = place("out.jsonl");
    let partial = folder.path().join("out.jsonl.partial");
    let mut run = begin(plan(&path, 8, 1));
    (0..7).for_each(|row| push(&mut run, row));
    drop(run);
    let whole = fs::read(&partial).unwrap();
    let first = whole.iter().position(|&b| b == b'\n').unwrap() + 1;
    for from in (first..whole.len()).step_by(11) {
        for length in [1, 40, 300] {
            let mut damaged = whole.clone();
            let end = whole.len().min(from + length);
            damaged[from..end].fill(0);
            damaged.extend(vec![0; length]); // and the file is longer than what was written
            fs::write(&partial, damaged).unwrap();
            let run = begin(plan(&path, 8, 1));
            assert!(run.resumed().rows < 7 && run.resumed().torn_bytes > 0, "{from}");
            assert_eq!(run.counts().rows(), run.resumed().rows);
            drop(run);
            finish(begin(plan(&path, 8, 1)));
            assert_eq!(fs::read_to_string(&path).unwrap(), expected(8), "{from} {length}");
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn rows_are_synced_as_often_as_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let marks = |rows, bytes| {
        let path = folder.path().join(format!("{rows}-{bytes}.jsonl"));
        let mut plan = plan(&path, 9, 1);
        plan.options.sync = SyncEvery { rows, bytes };
        let mut run = begin(plan.clone());
        (0..9).for_each(|row| push(&mut run, row));
        drop(run);
        let journal = fs::read_to_string(folder.path().join(format!("{rows}-{bytes}.jsonl.partial"))).unwrap();
        assert_eq!(begin(plan).resumed(), Resumed { rows: 9, torn_bytes: 0 });
        journal.lines().filter(|line| line.ends_with("\tsynced")).count()
    };
    assert_eq!(marks(100, 1 << 20), 0);
    assert_eq!(marks(4, 1 << 20), 2);
    assert_eq!(marks(100, 1), 9);
}

#[test]
fn what_cannot_be_written_leaves_no_trace() {
    let (_folder, path) = place("out.jsonl");
    let mut run = begin(plan(&path, 1, 1));
    let no_json = std::collections::HashMap::from([((1, 2), 3)]);
    assert!(matches!(run.push(0, &no_json, Fate::SCORED), Err(Error::Serialize { .. })));
    finish(run);
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(1));
}

#[cfg(unix)]
#[test]
fn a_link_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("scratch")).unwrap();
    let (link, real) = (folder.path().join("link.jsonl"), folder.path().join("scratch/real.jsonl"));
    std::os::unix::fs::symlink("scratch/real.jsonl", &link).unwrap();
    let mut run = begin(plan(&link, 6, 1));
    push(&mut run, 3);
    drop(run);
    assert_eq!(begin(plan(&real, 6, 1)).resumed().rows, 1);
    finish(begin(plan(&link, 6, 1)));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(names(&folder.path().join("scratch")), ["real.jsonl", "real.jsonl.run.json"]);
    assert_eq!(fs::read_to_string(&real).unwrap(), expected(6));
    assert_eq!(record_path(&link), record_path(&real));
    complete(plan(&link, 6, 1));
}

#[test]
fn a_missing_folder_is_named_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let error = plan(&folder.path().join("no/such/out.jsonl"), 1, 1).open().unwrap_err();
    assert!(error.is_usage());
    let words = format!("the folder {} does not exist", folder.path().join("no/such").display());
    assert!(error.to_string().contains(&words), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Wherever a run is cut off, resuming gives the bytes of an uninterrupted one.
    #[test]
    fn cut_anywhere_and_resumed(order in Just((0..7).collect::<Vec<usize>>()).prop_shuffle(), written in 0..=7_usize, cut in 0.0..=1.0) {
        let (folder, path) = place("out.jsonl");
        let mut run = begin(plan(&path, 7, 1));
        for &row in &order[..written] {
            push(&mut run, row);
        }
        drop(run);
        let partial = folder.path().join("out.jsonl.partial");
        let bytes = fs::read(&partial).unwrap();
        let first = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
        let kept = first + ((bytes.len() - first) as f64 * cut) as usize;
        fs::write(&partial, &bytes[..kept]).unwrap();
        let whole = bytes[first..kept].iter().filter(|&&b| b == b'\n').count();
        let torn = bytes[..kept].iter().rev().take_while(|&&b| b != b'\n').count();

        let run = begin(plan(&path, 7, 1));
        prop_assert_eq!(run.resumed(), Resumed { rows: whole, torn_bytes: if whole == 0 { run.resumed().torn_bytes } else { torn } });
        let record = finish(run);
        prop_assert_eq!(record.counts.rows(), 7);
        prop_assert_eq!(fs::read_to_string(&path).unwrap(), expected(7));
        prop_assert_eq!(names(folder.path()), ["out.jsonl", "out.jsonl.run.json"]);
    }
}

/// Judges each record by its own number, by a judge that says which one it is, or not.
struct Fixed(Option<&'static str>);

impl judge_core::Judge<judge_data::Numbered> for Fixed {
    fn name(&self) -> &str {
        "fixed"
    }

    fn ask(&self, _: &judge_data::Numbered) -> Result<Vec<judge_core::Request>, judge_core::JudgeError> {
        Ok(Vec::new())
    }

    fn decide(
        &self,
        item: &judge_data::Numbered,
        _: &judge_core::Rounds<'_>,
    ) -> Result<judge_core::Score, judge_core::JudgeError> {
        Ok(judge_core::Score::new(item.row as f64))
    }

    fn settings(&self) -> Option<Value> {
        self.0.map(Value::from)
    }
}

/// Judges the rows of four that a run lacks, at most so many; says which were seen.
fn judge(path: &Path, judge: &Fixed, most: usize) -> Result<usize, Error> {
    let Opened::Ready(start) = plan(path, 4, 1).open()? else { panic!("it is complete") };
    let rows = 4;
    let records = (0..rows).map(|row| {
        let input = judge_data::PromptInput::Text("?".into());
        let (id, scores, columns) = ((row as u64).into(), Vec::new(), judge_data::RowColumns::default());
        let extra = judge_data::Extra::new();
        Ok::<_, Error>(judge_data::Record::Prompt(judge_data::PromptRecord { id, input, scores, columns, extra }))
    });
    let model = judge_core::testing::ScriptedBackbone::new(1);
    let mut seen = 0;
    let row =
        |result: judge_core::ItemResult<judge_data::Numbered>| Ok::<_, Error>((value(result.item.row), Fate::SCORED));
    let mut observe = |event: &judge_core::runner::RunEvent<judge_data::Numbered>| {
        seen += usize::from(matches!(event, judge_core::runner::RunEvent::Item(_)));
        if seen == most { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    let items = judge_data::Numbered::all(records);
    start.judge(self::model("f32"), &model, &[judge as _], items, row, &mut observe).map(|_| seen)
}

#[test]
fn another_model_template_or_judge_is_never_complete_and_never_resumed() {
    let (_folder, path) = place("out.jsonl");
    // The judge says by itself which one it is: nobody has put it into the plan.
    assert_eq!(judge(&path, &Fixed(Some("one")), 2).unwrap(), 2);
    let run = begin(plan(&path, 4, 1));
    assert_eq!(run.record().judges, [json!("one")]);
    drop(run);
    let error = judge(&path, &Fixed(Some("another")), 9).unwrap_err();
    let differ = |error: &Error| matches!(error, Error::SettingsDiffer { .. });
    assert!(differ(&error) && error.to_string().contains(r#"judges was ["one"], is ["another"]"#), "{error}");
    assert_eq!(judge(&path, &Fixed(Some("one")), 9).unwrap(), 2);

    let made_by = |change: &dyn Fn(&mut Resolved)| {
        let mut resolved = Resolved { judges: vec![json!("one")], ..model("f32") };
        change(&mut resolved);
        MadeBy::Model(resolved)
    };
    let with = |made_by: MadeBy| RunPlan { made_by, ..plan(&path, 4, 1) };
    complete(with(made_by(&|_| {})));
    complete(with(made_by(&|resolved| resolved.model.as_mut().unwrap().name = "another name".into())));
    complete(with(MadeBy::ModelToLoad { fingerprint: "f00d".into(), template: Some("t".into()) }));
    let others: [(MadeBy, &str); 8] = [
        (MadeBy::Program, "model was {"),
        (
            MadeBy::ModelToLoad { fingerprint: "beef".into(), template: Some("t".into()) },
            "model.fingerprint was \"f00d\"",
        ),
        (MadeBy::ModelToLoad { fingerprint: "f00d".into(), template: None }, "template was \"t\", is null"),
        (made_by(&|resolved| resolved.model.as_mut().unwrap().fingerprint = "beef".into()), "model.fingerprint was"),
        (made_by(&|resolved| resolved.template = Some("u".into())), "template was \"t\", is \"u\""),
        (made_by(&|resolved| resolved.judges = vec![json!("another")]), "judges was [\"one\"], is [\"another\"]"),
        (made_by(&|resolved| resolved.judges.clear()), "judges was [\"one\"], is []"),
        (made_by(&|resolved| resolved.settings.clear()), "layers was [0,1], is unset"),
    ];
    for (made_by, says) in others {
        let error = with(made_by.clone()).open().unwrap_err();
        assert!(
            matches!(error, Error::OutputExists { .. }) && error.to_string().contains(says),
            "{made_by:?}: {error}"
        );
    }
}

#[test]
fn a_run_is_not_judged_by_what_does_not_say_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let error = judge(&folder.path().join("out.jsonl"), &Fixed(None), 9).unwrap_err();
    assert!(matches!(error, Error::JudgeSettings { .. }) && error.to_string().contains("Judge::settings"), "{error}");
}
