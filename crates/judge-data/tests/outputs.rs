//! Where outputs may go, and files that appear whole.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use judge_data::{AtomicFile, Error, JsonlWriter, OutputProblem, check_outputs, write_atomic};
use serde_json::json;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
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
fn what_a_kill_has_left_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(&[b'x'; 100_000]).unwrap();
    file.flush().unwrap();
    assert!(matches!(AtomicFile::create(&path), Err(Error::Locked { .. })));
    let left = names(folder.path());
    assert_eq!(left, [".out.json.tmp"]);
    drop(file);
    fs::write(folder.path().join(&left[0]), "longer than what comes").unwrap();
    write_atomic(&path, b"new").unwrap();
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"new".to_vec(), vec!["out.json".to_owned()]));
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
