//! Where outputs may go, and files that appear whole.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use judge_core::lager::LayerWeights;
use judge_data::{
    AtomicFile, Error, InputFile, JsonlWriter, OutputFile, OutputProblem, Outputs, Program, RunRecord, check_outputs,
    report_mark, save, write_atomic, write_new,
};
use serde_json::json;

use crate::files::{names, place};

#[track_caller]
fn problem(inputs: &[&Path], outputs: &[&Path]) -> OutputProblem {
    let error = check_outputs(inputs, outputs).unwrap_err();
    assert!(error.is_usage());
    match error {
        Error::Output { problem, .. } => problem,
        other => panic!("{other:?}"),
    }
}

#[cfg(unix)]
#[test]
fn an_output_is_no_input_by_whatever_name() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("in.jsonl"), "{}").unwrap();
    fs::write(at("other.jsonl"), "{}").unwrap();
    symlink(at("in.jsonl"), at("link.jsonl")).unwrap();
    symlink("link.jsonl", at("link of link.jsonl")).unwrap();
    symlink(folder.path(), at("here")).unwrap();
    fs::hard_link(at("in.jsonl"), at("hard.jsonl")).unwrap();
    let input = at("in.jsonl");
    for same in ["in.jsonl", "link.jsonl", "link of link.jsonl", "here/in.jsonl", "sub/../in.jsonl", "hard.jsonl"] {
        let expected = OutputProblem::IsInput { input: input.clone() };
        assert_eq!(problem(&[&at("other.jsonl"), &input], &[&at("new.jsonl"), &at(same)]), expected, "{same}");
        // And the other way round: the input is the link.
        assert_eq!(problem(&[&at(same)], &[&input]), OutputProblem::IsInput { input: at(same) }, "{same}");
    }
    // What a run keeps beside its output.
    for beside in ["out.jsonl.partial", "out.jsonl.run.json"] {
        fs::write(at(beside), "").unwrap();
        assert_eq!(problem(&[&at(beside)], &[&at("out.jsonl")]), OutputProblem::IsInput { input: at(beside) });
    }
    check_outputs([&input], [at("new.jsonl"), at("other.jsonl"), at("in.jsonl.scores")]).unwrap();
    check_outputs([PathBuf::from("-"), at("not there")], [at("new.jsonl")]).unwrap();
    check_outputs([&input], Vec::<PathBuf>::new()).unwrap();
}

#[cfg(unix)]
#[test]
fn two_outputs_are_two_files_even_before_they_are_there() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    symlink("new.jsonl", at("dangling.jsonl")).unwrap();
    symlink(".", at("here")).unwrap();
    let new = at("new.jsonl");
    for same in ["new.jsonl", "dangling.jsonl", "here/new.jsonl", "here/dangling.jsonl", "new.jsonl.run.json"] {
        assert_eq!(problem(&[], &[&new, &at(same)]), OutputProblem::IsOutput { other: new.clone() }, "{same}");
        assert_eq!(problem(&[], &[&at(same), &new]), OutputProblem::IsOutput { other: at(same) }, "{same}");
    }
    check_outputs(Vec::<PathBuf>::new(), [at("new.jsonl"), at("new.json")]).unwrap();
    assert_eq!(names(folder.path()), ["dangling.jsonl", "here"]);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_and_left_alone() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let is = |path: &Path, kind| assert_eq!(problem(&[], &[path]), OutputProblem::NotAFile { kind }, "{path:?}");
    is(folder.path(), "a folder");
    is(Path::new("/"), "a folder");
    is(Path::new("/dev/null"), "a device");
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    is(&at("pipe"), "a pipe");
    symlink(at("pipe"), at("link")).unwrap();
    is(&at("link"), "a pipe");
    if cfg!(target_os = "linux") {
        // Whatever they are connected to in this test: also a regular file must not be replaced behind the stream.
        for stream in ["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1"] {
            is(Path::new(stream), "an open stream of a process");
        }
    }
    assert_eq!(problem(&[], &[Path::new("-")]), OutputProblem::StandardOutput);
    let error = write_atomic("/dev/null", b"x").unwrap_err();
    assert!(matches!(error, Error::Output { .. }), "{error}");
    symlink("b", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    assert!(matches!(check_outputs(Vec::<PathBuf>::new(), [at("a")]), Err(Error::Io { .. })));
}

#[test]
fn the_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no");
    assert_eq!(problem(&[], &[&missing.join("x")]), OutputProblem::NoFolder { folder: missing.clone() });
    fs::write(&missing, "a file").unwrap();
    assert_eq!(problem(&[], &[&missing.join("x")]), OutputProblem::NoFolder { folder: missing.clone() });
    let error = write_atomic(missing.join("x"), b"").unwrap_err().to_string();
    assert!(error.ends_with(&format!("the folder {} does not exist", missing.display())), "{error}");
    check_outputs(Vec::<PathBuf>::new(), ["a name in the folder at hand"]).unwrap();
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let (folder, path) = place("out.jsonl");
    write_atomic(&path, b"old").unwrap();
    let mut writer = JsonlWriter::create(&path).unwrap();
    writer.write(&json!({"id": 0})).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(writer);
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"old".to_vec(), vec!["out.jsonl".to_owned()]));
    let mut writer = JsonlWriter::create(&path).unwrap();
    writer.write(&json!({"id": 0})).unwrap();
    writer.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"id\":0}\n");
    assert_eq!(names(folder.path()), ["out.jsonl"]);
}

#[test]
fn what_a_kill_has_left_goes_with_the_version_that_begins_with_it() {
    let (folder, path) = place("out.json");
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(&[b'x'; 100_000]).unwrap();
    file.flush().unwrap();
    assert!(matches!(AtomicFile::create(&path), Err(Error::Locked { .. })));
    let left = names(folder.path());
    assert_eq!(left, [".out.json.judge-tmp"]);
    drop(file);
    fs::write(folder.path().join(&left[0]), "what com").unwrap();
    write_atomic(&path, b"what comes").unwrap();
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"what comes".to_vec(), vec!["out.json".to_owned()]));
}

#[test]
fn a_file_that_has_the_temporary_name_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let foreign = [".out.json.tmp", ".out.json.judge-tmp", ".out.json.judge-tmp-1"];
    foreign.iter().for_each(|name| fs::write(at(name), MINE).unwrap());
    for content in [b"one", b"two"] {
        write_atomic(at("out.json"), content).unwrap();
        assert_eq!(fs::read(at("out.json")).unwrap(), content);
        assert!(foreign.iter().all(|name| fs::read(at(name)).unwrap() == MINE));
        assert_eq!(names(folder.path()).len(), 4);
    }
    // Not even where all names are taken.
    (2..100).for_each(|number| fs::write(at(&format!(".out.json.judge-tmp-{number}")), MINE).unwrap());
    let error = write_atomic(at("out.json"), b"three").unwrap_err();
    assert!(matches!(error, Error::Output { problem: OutputProblem::Taken { .. }, .. }), "{error}");
    assert_eq!(names(folder.path()).len(), 102);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (link, real) = (folder.path().join("link"), folder.path().join("sub/real"));
    fs::create_dir(folder.path().join("sub")).unwrap();
    std::os::unix::fs::symlink("sub/real", &link).unwrap();
    for content in [b"one", b"two"] {
        write_atomic(&link, content).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), content);
    }
    assert_eq!(names(&folder.path().join("sub")), ["real"]);
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

const MINE: &[u8] = b"a file of mine";

/// What is said of an output in the place of whose file `name` a foreign one lies.
fn with_foreign(name: &str, outputs: impl Fn(&Path) -> Outputs) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join(name);
    fs::write(&at, MINE).unwrap();
    let error = outputs(folder.path()).check().expect_err(name);
    assert!(error.is_usage() && error.to_string().contains(name), "{name}: {error}");
    assert_eq!((fs::read(&at).unwrap(), names(folder.path()).len()), (MINE.to_vec(), 1));
    error
}

#[test]
fn a_file_of_others_is_in_the_way_of_each_name_that_a_run_uses() {
    type Made = fn(&Path) -> Outputs;
    let rows: Made = |folder| Outputs::default().rows([folder.join("o.jsonl")]);
    let states: Made = |folder| Outputs::default().states([folder.join("o.safetensors")]);
    let document: Made = |folder| Outputs::default().documents::<LayerWeights>([folder.join("o.json")]);
    let report: Made = |folder| Outputs::default().reports("p", [folder.join("o.json")]);
    let made: Made = |folder| Outputs::default().made([folder.join("o.json")], |_| false);
    let named = [
        ("o.jsonl", rows),
        ("o.safetensors", states),
        ("o-00002-of-00003.safetensors", states),
        ("o.json", document),
        ("o.json", report),
        ("o.json", made),
    ];
    // Nobody's to replace, whatever was allowed.
    for overwrite in [false, true] {
        for (name, outputs) in named {
            let error = with_foreign(name, |folder| outputs(folder).overwrite(overwrite));
            assert!(matches!(error, Error::Output { problem: OutputProblem::Foreign, .. }), "{name}: {error}");
        }
        for (beside, outputs) in [
            ("o.jsonl.partial", rows),
            ("o.jsonl.partial.sorted", rows),
            ("o.jsonl.run.json", rows),
            ("o.ids.jsonl", states),
            ("o.ids.jsonl.partial", states),
            ("o.ids.jsonl.partial.sorted", states),
            ("o.safetensors.partial", states),
            ("o.safetensors.run.json", states),
            ("o-00002-of-00003.ids.jsonl", states),
            ("o-00002-of-00003.safetensors.partial", states),
        ] {
            let error = with_foreign(beside, |folder| outputs(folder).overwrite(overwrite));
            assert!(matches!(error, Error::Output { problem: OutputProblem::Taken { .. }, .. }), "{beside}: {error}");
        }
        with_foreign("m", |folder| Outputs::default().folders([folder.join("m")]).overwrite(overwrite));
    }
}

#[test]
fn what_another_run_made_is_replaced_only_where_somebody_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let figures = json!({"program": {"name": "q", "version": "1"}}).to_string();
    let document = json!({"format": "judge-layer-weights", "version": 1, "content": {}}).to_string();
    for text in [figures, document, format!("<svg></svg>\n{}", report_mark("q"))] {
        fs::write(at("o"), &text).unwrap();
        for outputs in [|path| Outputs::default().reports("p", [path]), |path| Outputs::default().rows([path])] {
            let error = outputs(at("o")).check().unwrap_err();
            assert!(matches!(error, Error::OutputExists { .. }), "{text}: {error}");
            outputs(at("o")).overwrite(true).check().unwrap();
        }
    }
}

#[test]
fn rows_that_were_changed_since_are_no_longer_a_run_s() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("o.jsonl"), "{\"id\": 1}\n").unwrap();
    let blake3 = Some(blake3::hash(b"{\"id\": 1}\n").to_hex().to_string());
    let output = OutputFile { path: at("o.jsonl"), rows: 1, bytes: 10, blake3 };
    save(at("o.jsonl.run.json"), &RunRecord { outputs: vec![output], ..RunRecord::default() }).unwrap();
    let outputs = |overwrite| Outputs::default().rows([at("o.jsonl")]).overwrite(overwrite);
    outputs(false).check().unwrap(); // the run compares more
    outputs(true).check().unwrap();
    fs::write(at("o.jsonl"), "{\"id\": 2}\n").unwrap();
    let error = outputs(true).check().unwrap_err();
    assert!(matches!(error, Error::Output { problem: OutputProblem::Foreign, .. }), "{error}");
}

/// What took a model is no report, and a document takes the place of its own format alone.
#[test]
fn rows_their_record_and_other_formats_are_not_replaced_by_another_kind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("o.jsonl"), "{\"id\": 1}\n").unwrap();
    let InputFile { path, bytes, blake3, .. } = InputFile::of(at("o.jsonl")).unwrap();
    let outputs = vec![OutputFile { path, rows: 1, bytes, blake3: Some(blake3) }];
    let record = RunRecord { program: Program::new("p", "1"), outputs, ..RunRecord::default() };
    save(at("o.jsonl.run.json"), &record).unwrap();
    fs::write(at("p.json"), json!({"program": {"name": "p", "version": "1"}}).to_string()).unwrap();
    let report = |name: &str| Outputs::default().reports("p", [at(name)]);
    let weights = |name: &str| Outputs::default().documents::<LayerWeights>([at(name)]);
    let rows = |name: &str| Outputs::default().rows([at(name)]);
    for outputs in [
        report("o.jsonl"),
        report("o.jsonl.run.json"),
        weights("o.jsonl"),
        weights("o.jsonl.run.json"),
        weights("p.json"),
        rows("o.jsonl.run.json"),
    ] {
        let error = outputs.overwrite(true).check().unwrap_err();
        assert!(matches!(error, Error::Output { problem: OutputProblem::OtherKind, .. }), "{error}");
    }
    report("p.json").check().unwrap();
    rows("o.jsonl").overwrite(true).check().unwrap();
    // The record of an input is an input.
    let error = Outputs::new([at("o.jsonl")]).reports("q", [at("o.jsonl.run.json")]).check().unwrap_err();
    assert!(matches!(error, Error::Output { problem: OutputProblem::IsInput { .. }, .. }), "{error}");
}

#[test]
fn an_input_in_the_place_of_any_name_is_refused_even_if_everything_may_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (input, outputs) in [
        ("o.ids.jsonl", Outputs::new([at("o.ids.jsonl")]).states([at("o.safetensors")])),
        ("o-00001-of-00002.ids.jsonl", Outputs::new([at("o-00001-of-00002.ids.jsonl")]).states([at("o.safetensors")])),
        ("o.jsonl.run.json", Outputs::new([at("o.jsonl.run.json")]).rows([at("o.jsonl")])),
        ("a.json", Outputs::new([at("a.json")]).reports("p", [at("a.json")])),
    ] {
        fs::write(at(input), MINE).unwrap();
        let error = outputs.overwrite(true).check().unwrap_err();
        assert!(matches!(error, Error::Output { problem: OutputProblem::IsInput { .. }, .. }), "{input}: {error}");
    }
}

#[test]
fn a_report_of_the_same_program_is_made_anew() {
    let (_folder, path) = place("a");
    let check = |program: &str| Outputs::default().reports(program, [&path]).check().is_ok();
    for (text, is_own) in [
        (String::new(), true),
        (json!({"program": {"name": "p", "version": "1"}}).to_string(), true),
        (json!({"format": "judge-run-record", "content": {"program": {"name": "p"}}}).to_string(), true),
        (json!({"program": "p"}).to_string(), false),
        (json!({"name": "p"}).to_string(), false),
        (json!([{"program": {"name": "p"}}]).to_string(), false),
        (format!("<svg></svg>\n{}", report_mark("p")), true),
        (format!("{}<svg></svg>\n", report_mark("p")), false),
    ] {
        fs::write(&path, &text).unwrap();
        assert_eq!(check("p"), is_own, "{text}");
        assert_eq!(check("q"), text.is_empty(), "{text}");
    }
}

#[test]
fn what_is_kept_is_written_once() {
    let (folder, path) = place("a");
    write_new(&path, b"one", false).unwrap();
    write_new(&path, b"one", false).unwrap();
    for other in [&b"two"[..], b"one more", b"on", b""] {
        assert!(write_new(&path, other, false).unwrap_err().is_usage());
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }
    write_new(&path, b"two", true).unwrap();
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"two".to_vec(), vec!["a".to_owned()]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_is_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"o\xff"));
    let error = check_outputs([&odd], [folder.path().join("o")]).unwrap_err();
    assert!(matches!(error, Error::InputNotUtf8 { .. }) && error.is_usage(), "{error}");
    assert_eq!(problem(&[], &[&odd]), OutputProblem::NotUtf8);
    // Also where a link leads to such a folder.
    fs::create_dir(&odd).unwrap();
    std::os::unix::fs::symlink(&odd, folder.path().join("link")).unwrap();
    let path = folder.path().join("link/o");
    assert!(matches!(problem(&[], &[&path]), OutputProblem::TargetNotUtf8 { .. }));
    assert!(Outputs::default().rows([&path]).check().is_err());
    Outputs::default().reports("p", [&path]).check().unwrap(); // no record names it
}
