use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use judge_core::{ModelInfo, Reason};
use serde::{Deserialize, Serialize};

use crate::{Document, Error, Settings};

/// How a result came to be: enough to make it again, or to say why it cannot be.
///
/// Times and commit are the caller's to give; nothing here looks at a clock or a repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The command line, program first.
    pub command: Vec<String>,
    /// Version of the program.
    pub program_version: String,
    /// Commit of the sources it was built from, where known.
    pub git_commit: Option<String>,
    /// The model, with dtype and device; `None` if none took part.
    pub model: Option<ModelInfo>,
    /// Content id of the prompt template, where there is one.
    pub template: Option<String>,
    /// The run's seed, where anything was drawn.
    pub seed: Option<u64>,
    /// Everything else that was chosen.
    pub settings: Settings,
    /// The files that were read.
    pub inputs: Vec<InputFile>,
    /// What became of the rows.
    pub counts: Counts,
    /// Start, as RFC 3339.
    pub started: Option<String>,
    /// End, as RFC 3339.
    pub finished: Option<String>,
}

impl Document for RunRecord {
    const FORMAT: &'static str = "judge-run-record";
    const VERSION: u64 = 1;
}

/// Rows by fate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Rows with a score.
    pub scored: usize,
    /// Rows without, by reason.
    pub unscored: BTreeMap<Reason, usize>,
}

impl Counts {
    /// All rows.
    pub fn rows(&self) -> usize {
        self.scored + self.unscored.values().sum::<usize>()
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
}

impl InputFile {
    /// Reads a file once to identify it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut hasher = blake3::Hasher::new();
        let file = File::open(path).map_err(Error::io("open", path))?;
        hasher.update_reader(file).map_err(Error::io("read", path))?;
        Ok(Self { path: path.to_path_buf(), bytes: hasher.count(), blake3: hasher.finalize().to_hex().to_string() })
    }
}
