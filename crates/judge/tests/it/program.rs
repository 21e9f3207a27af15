//! The program, for tests that run it as a user does.

use std::fs;
use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The commands, each with the name that it had as a program of its own.
pub const COMMANDS: [(&str, &str); 36] = [
    ("score", "lager_pointwise"),
    ("compare", "prompt_judge"),
    ("rank", "rank_answers"),
    ("rerank", "rerank"),
    ("reward", "reward_scores"),
    ("decide", "decide"),
    ("checklist", "checklist"),
    ("label", "label_with_api"),
    ("logits", "layer_logits"),
    ("states", "hidden_states"),
    ("tune", "finetune"),
    ("sft-evaluate", "sft-evaluate"),
    ("fit", "lager_evaluate"),
    ("agree", "agreement"),
    ("drift", "drift"),
    ("calibrate", "calibrate"),
    ("report", "report"),
    ("bench", "pairwise_benchmark"),
    ("bias", "bias_report"),
    ("select", "data_selection"),
    ("emotion", "emotional_understanding"),
    ("knowledge", "self_knowledge"),
    ("probe train", "inspector_train"),
    ("probe import", "probe_import"),
    ("probe apply", "probe_apply"),
    ("probe evaluate", "inspector_evaluate"),
    ("probe filter", "inspector_filter"),
    ("shards", "score_files"),
    ("stream", "score_stream"),
    ("merge", "merge_adapter"),
    ("speed", "throughput"),
    ("rows", "generate_rows"),
    ("serve", "serve"),
    ("grade", "grade"),
    ("doctor", "doctor"),
    ("try", "try"),
];

/// Arguments with which `inspector_train` makes probes, in the folder `probes`, of a few rows in `graded.jsonl`.
pub const QUICK_PROBES: &str =
    "--input graded.jsonl --output probes --layers 2 --pooling mean --folds 2 --c 0.01 --top-k 1";

/// The folder of the embedded model.
pub fn embedded_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/tiny-judge")
}

/// The path of a fixture of `judge-models`.
pub fn fixture(name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/judge-models/tests/fixtures");
    fixtures.join(name).to_str().expect("text").to_owned()
}

/// Copies the files of a folder into one that is there.
pub fn copy_files(from: impl AsRef<Path>, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// A command line, cut at spaces.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A command of the program, by its name or its former one; `probe train` is two words. The embedded model reads whatever rows there are.
pub fn judge(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_judge"));
    command.args(name.split(' ')).env("JUDGE_EMBEDDED", "1");
    command
}

/// What a command that has ended said.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    pub fn loaded_a_model(&self) -> bool {
        self.stderr.contains("fingerprint")
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Runs a command in a folder to its end.
pub fn run(name: &str, folder: &Path, args: &[&str]) -> Output {
    judge(name).args(args).current_dir(folder).stdin(Stdio::null()).output().expect("the program starts")
}

/// Runs a command to its end with these bytes on stdin; one that refuses them does not read them all.
pub fn fed(command: &mut Command, bytes: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("stdin");
    thread::scope(|scope| {
        scope.spawn(move || drop(input.write_all(bytes)));
        child.wait_with_output().expect("it ends")
    })
}

/// Runs a command: exit code, stdout and stderr.
pub fn ran(name: &str, folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let Said { code, stdout, stderr } = run(name, folder, args).into();
    (code, stdout, stderr)
}

/// Runs a command that must end with this exit code: stdout and stderr.
#[track_caller]
pub fn ended(name: &str, folder: &Path, args: &[&str], code: i32) -> (String, String) {
    let (found, stdout, stderr) = ran(name, folder, args);
    assert_eq!(found, Some(code), "{name} {args:?}: {stdout}{stderr}");
    (stdout, stderr)
}

/// Runs a command that must succeed: stdout and stderr.
#[track_caller]
pub fn finished(name: &str, folder: &Path, args: &[&str]) -> (String, String) {
    ended(name, folder, args, 0)
}

/// Runs a command that must succeed; its stdout.
#[track_caller]
pub fn succeed(name: &str, folder: &Path, args: &[&str]) -> String {
    finished(name, folder, args).0
}

/// Runs a command that must fail and say all this on stderr; its stderr.
#[track_caller]
pub fn fails(name: &str, folder: &Path, args: &[&str], said: &[&str]) -> String {
    failed(name, folder, args, said).1
}

/// The same, with exactly this exit code.
#[track_caller]
pub fn refused(name: &str, folder: &Path, args: &[&str], code: i32, said: &[&str]) -> String {
    let (found, stderr) = failed(name, folder, args, said);
    assert_eq!(found, Some(code), "{name} {args:?}: {stderr}");
    stderr
}

#[track_caller]
fn failed(name: &str, folder: &Path, args: &[&str], said: &[&str]) -> (Option<i32>, String) {
    let (code, stdout, stderr) = ran(name, folder, args);
    assert!(code.is_some_and(|code| code != 0), "{name} {args:?}: {stdout}{stderr}");
    for text in said {
        assert!(stderr.contains(text), "{name} {args:?}: {text:?} is not in {stderr}");
    }
    (code, stderr)
}

/// A folder in which the program is run; it goes with the value.
pub struct Desk(TempDir);

impl Desk {
    pub fn new() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    #[track_caller]
    pub fn put(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        fs::write(self.join(name), text).expect("written");
    }

    #[track_caller]
    pub fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.join(name)).expect("a file")
    }

    #[track_caller]
    pub fn text(&self, name: impl AsRef<Path>) -> String {
        fs::read_to_string(self.join(name)).expect("a file of text")
    }

    /// Writes JSON lines.
    pub fn write(&self, name: impl AsRef<Path>, rows: &[Value]) {
        write_rows(self.join(name), rows);
    }

    /// Reads JSON lines.
    pub fn rows(&self, name: impl AsRef<Path>) -> Vec<Value> {
        rows(self.join(name))
    }

    pub fn json(&self, name: impl AsRef<Path>) -> Value {
        read_json(self.join(name))
    }

    /// Runs a command line, cut at spaces.
    pub fn start(&self, line: &str) -> Said {
        let words = words(line);
        run(words[0], self, &words[1..]).into()
    }

    /// Runs a line that must succeed.
    #[track_caller]
    pub fn ok(&self, line: &str) -> Said {
        let said = self.start(line);
        assert_eq!(said.code, Some(0), "{line}: {}{}", said.stdout, said.stderr);
        said
    }

    /// Runs a line that must end with this exit code and say all this on stderr.
    #[track_caller]
    pub fn refused(&self, line: &str, code: i32, words: &[&str]) -> Said {
        let said = self.start(line);
        assert_eq!(said.code, Some(code), "{line}: {}{}", said.stdout, said.stderr);
        for word in words {
            assert!(said.stderr.contains(word), "{line}: {word:?} is not in {}", said.stderr);
        }
        said
    }

    /// The same, before any model work.
    #[track_caller]
    pub fn refused_at_once(&self, line: &str, code: i32, words: &[&str]) {
        let said = self.refused(line, code, words);
        assert!(!said.loaded_a_model(), "{line}: {}", said.stderr);
    }
}

impl Deref for Desk {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}

impl AsRef<Path> for Desk {
    fn as_ref(&self) -> &Path {
        self
    }
}

/// A turn of a conversation.
pub fn turn(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// Writes JSON lines.
pub fn write_rows(path: impl AsRef<Path>, rows: &[Value]) {
    fs::write(path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).expect("input");
}

/// Writes columns of texts as a Parquet file.
pub fn write_parquet(path: impl AsRef<Path>, columns: &[(&str, Vec<&str>)]) {
    let columns = columns.iter().map(|(name, texts)| (*name, Arc::new(StringArray::from(texts.clone())) as ArrayRef));
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let file = fs::File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("written");
}

/// Writes the run record of a file of scores on a scale from 1 to `points`.
pub fn write_record(file: &Path, points: u32, variant: &Value) {
    let scale: Vec<Value> = (1..=points).map(|n| json!({"value": f64::from(n), "label": n.to_string()})).collect();
    let content = json!({"settings": {"lager": {"scale": scale, "variant": variant}}});
    let record = json!({"format": "judge-run-record", "version": 2, "content": content});
    fs::write(file.with_extension("jsonl.run.json"), record.to_string()).expect("a record");
}

/// Reads JSON lines.
pub fn rows(path: impl AsRef<Path>) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("output");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Reads a file of JSON.
pub fn read_json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).expect("output")).expect("JSON")
}
