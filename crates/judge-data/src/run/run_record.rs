use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use judge_core::{ModelInfo, Reason};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::files::paths::{target, with_suffix};
use crate::{Document, Error, Settings};

/// How a result came to be: enough to make it again, or to say why it cannot be.
///
/// A [`Run`](crate::Run) writes it beside its output as `FILE.run.json`, in the same step;
/// [`RunPlan::record`](crate::RunPlan::record) makes one for other outputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// The program that wrote it.
    pub program: Program,
    /// The command line, program first. Empty if it is not known.
    pub command: Vec<String>,
    /// The model, with dtype and device; `None` if none took part.
    pub model: Option<ModelInfo>,
    /// Content id of the prompt template, where there is one.
    pub template: Option<String>,
    /// The [settings](judge_core::Judge::settings) of the judges that made the rows, in their order.
    /// Empty if no judge took part, and in records of programs
    /// that did not note them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub judges: Vec<Value>,
    /// The run's seed, where anything was drawn.
    pub seed: Option<u64>,
    /// Everything else that was chosen and known before the model was loaded.
    pub settings: Settings,
    /// What followed from the settings once the model was loaded, e.g. the layers that `all` stands for.
    pub resolved: Settings,
    /// The files that were read.
    pub inputs: Vec<InputFile>,
    /// The files that were written.
    pub outputs: Vec<OutputFile>,
    /// What became of the rows.
    pub counts: Counts,
    /// When it was first started, as RFC 3339 in UTC.
    pub started: Option<String>,
    /// When it was finished, as RFC 3339 in UTC.
    pub finished: Option<String>,
    /// How often it was interrupted and resumed.
    pub resumes: usize,
}

impl RunRecord {
    /// A setting by its name, be it chosen or resolved; `None` if there is none.
    pub fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.get(name).or_else(|| self.resolved.get(name))
    }
}

/// Version 1 had the program's version and commit beside the others and its name in the command line alone.
impl Document for RunRecord {
    const FORMAT: &'static str = "judge-run-record";
    const VERSION: u64 = 2;
    const OLDEST: u64 = 1;

    /// A model of version 1 without the number of heads, which its first records do not have, cannot be told in full: it is kept under
    /// `resolved.model` as it was written.
    fn upgrade(_: u64, mut content: Value) -> Value {
        let Value::Object(record) = &mut content else { return content };
        let mut program = serde_json::Map::new();
        for (old, new) in [("program_version", "version"), ("git_commit", "git_commit")] {
            program.extend(record.remove(old).map(|value| (new.to_owned(), value)));
        }
        record.insert("program".into(), program.into());
        if let Some(model) = record.remove("model") {
            match serde_json::from_value::<Option<ModelInfo>>(model.clone()) {
                Ok(_) => record.insert("model".into(), model),
                Err(_) => record.insert("resolved".into(), serde_json::json!({"model": model})),
            };
        }
        content
    }
}

/// What the name of a run record ends with, behind that of its output.
pub(crate) const RECORD: &str = ".run.json";

/// Where the run record of an output lies: `FILE.run.json`, beside the file that a link leads to.
pub fn record_path(output: &Path) -> PathBuf {
    // What cannot be an output has no record, whatever its name.
    with_suffix(&target(output).unwrap_or_else(|_| output.to_path_buf()), RECORD)
}

/// The program that a result was made with. Rows of two versions are never mixed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// Its name. Empty in records of version 1.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Commit of the sources it was built from, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_commit: Option<String>,
}

impl Program {
    /// Name and version, as `Program::new(env!("CARGO_BIN_NAME"), env!("CARGO_PKG_VERSION"))`.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), git_commit: None }
    }
}

/// What became of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fate {
    /// Why it has no score; `None` if it has one.
    pub unscored: Option<Reason>,
    /// Whether it has a human score.
    pub graded: bool,
}

impl Fate {
    /// A row with a score, without a human one.
    pub const SCORED: Self = Self { unscored: None, graded: false };

    /// A row without a score.
    pub fn unscored(reason: Reason) -> Self {
        Self { unscored: Some(reason), graded: false }
    }
}

/// Rows by fate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Rows with a score.
    pub scored: usize,
    /// Rows without, by reason.
    pub unscored: BTreeMap<Reason, usize>,
    /// Rows with a human score, whether they have one of a judge or not.
    #[serde(default)]
    pub graded: usize,
}

impl Counts {
    /// All rows.
    pub fn rows(&self) -> usize {
        self.scored + self.unscored.values().sum::<usize>()
    }

    /// Counts some rows of one fate.
    pub fn add(&mut self, fate: Fate, rows: usize) {
        match fate.unscored {
            _ if rows == 0 => {}
            None => self.scored += rows,
            Some(reason) => *self.unscored.entry(reason).or_default() += rows,
        }
        self.graded += if fate.graded { rows } else { 0 };
    }

    /// Counts what another counted.
    pub fn merge(&mut self, other: &Self) {
        self.scored += other.scored;
        self.graded += other.graded;
        other.unscored.iter().for_each(|(&reason, rows)| *self.unscored.entry(reason).or_default() += rows);
    }
}

/// A file that was read, identified by its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Its name as it was given.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// BLAKE3 hash of its bytes, in lower-case hexadecimal.
    pub blake3: String,
    /// How many rows of it were read, where it has rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
}

impl InputFile {
    /// Reads a file once to identify it. Its rows are not counted.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut hasher = blake3::Hasher::new();
        let file = File::open(path).map_err(Error::io("open", path))?;
        hasher.update_reader(file).map_err(Error::io("read", path))?;
        let blake3 = hasher.finalize().to_hex().to_string();
        Ok(Self { path: path.to_path_buf(), bytes: hasher.count(), blake3, rows: None })
    }

    /// Rows that are in no file, under a name of their own: identified by their JSON, each on a line.
    ///
    /// # Errors
    /// [`Error::Serialize`] for a row without a JSON form.
    pub fn of_rows<T: Serialize>(name: impl Into<PathBuf>, rows: impl IntoIterator<Item = T>) -> Result<Self, Error> {
        let (mut hasher, mut n) = (blake3::Hasher::new(), 0);
        for row in rows {
            hasher.update(&serde_json::to_vec(&row).map_err(Error::serialize)?).update(b"\n");
            n += 1;
        }
        let blake3 = hasher.finalize().to_hex().to_string();
        Ok(Self { path: name.into(), bytes: hasher.count(), blake3, rows: Some(n) })
    }

    /// Says how many rows of it were read.
    #[must_use]
    pub fn with_rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// The file itself, where its name was that of a link.
    pub path: PathBuf,
    /// Its rows.
    pub rows: usize,
    /// Its length in bytes.
    pub bytes: u64,
    /// BLAKE3 hash of its bytes, in lower-case hexadecimal; `None` where it was not taken (tables of hidden states).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
}
