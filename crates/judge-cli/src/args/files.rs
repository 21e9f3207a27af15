//! The options that say which rows are read and where rows are written, and what of a run depends on them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use judge_data::{
    Carry, Columns, Cut, Dataset, DatasetFormat, DatasetOptions, Input, Locking, PART, Part, Program, Records, RunPlan,
    Settings, WriteOptions,
};

use crate::terminal::console::{VERSION_NUMBER, tell, usage};

/// Opens an input, and says what is odd about it as it is read.
///
/// # Errors
/// If it cannot be opened.
pub fn open(path: &Path) -> Result<Input> {
    Ok(Input::open(path)?.on_note(|note| tell(format_args!("note: {note}"))))
}

/// Which rows are read.
#[derive(Args, Clone, Debug)]
pub struct InputArgs {
    /// Rows: JSON lines, a JSON array, CSV or TSV with a first line of names, plain, gzip or zstd, or Parquet; `-` is standard input
    #[arg(long, alias = "data", value_name = "FILE")]
    pub input: PathBuf,
    /// Which columns hold which fields, e.g. instruction=prompt,response=completion,human=grade; `id=` numbers the rows
    #[arg(long, value_name = "FIELD=COLUMN,…")]
    pub columns: Option<Columns>,
    /// Read only these rows, counted from 0 and without TO; what `judge shards` gives each of its parts.
    /// Rows without an id keep the number that they have in the file, whose first row is
    /// number N
    #[arg(long, value_name = "FROM..TO[@N]", hide = true, conflicts_with = "limit")]
    pub part: Option<Part>,
}

impl InputArgs {
    /// The input, to be read as often as needed.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&self) -> Result<Input> {
        Ok(open(&self.input)?.with_part(self.part.clone()))
    }

    /// Adds to the settings of a run which rows it reads, if not all.
    pub fn note_part(&self, settings: &mut Settings) {
        settings.extend(self.part.iter().map(|part| (PART.to_owned(), part.to_string().into())));
    }

    /// The records of an input that these options name.
    #[must_use]
    pub fn source(&self, input: &Input, format: Option<DatasetFormat>, limit: Option<usize>) -> Records {
        let columns = self.columns.clone().unwrap_or_default();
        let options = DatasetOptions { format, max_rows: limit, columns, ..DatasetOptions::default() };
        Records::new(input.clone(), options)
    }

    /// The same, to be read once.
    ///
    /// # Errors
    /// Whatever is wrong with its first row.
    pub fn records(&self, input: &Input, format: Option<DatasetFormat>, limit: Option<usize>) -> Result<Dataset> {
        Ok(self.source(input, format, limit).dataset()?)
    }
}

/// At most how many rows are read: of none nothing can be said.
///
/// # Errors
/// What was expected.
pub fn row_limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&rows| rows > 0).ok_or_else(|| "expected a number of rows, at least 1".to_owned())
}

/// Where rows are written.
#[derive(Args, Clone, Debug)]
pub struct OutputArgs {
    /// Where the rows go, JSON lines; the record of the run goes to FILE.run.json. Interrupted, the same command resumes
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    /// How it is written.
    pub write: WriteArgs,
}

/// Whether files of others are replaced, of programs whose own are made anew each time.
#[derive(Args, Clone, Copy, Debug)]
pub struct OverwriteArgs {
    /// Replace files that this program did not write, or wrote otherwise
    #[arg(long, help_heading = "Run")]
    pub overwrite: bool,
}

/// How an output is written.
#[derive(Args, Clone, Copy, Debug)]
pub struct WriteArgs {
    /// Replace a finished output that was made with other settings
    #[arg(long, help_heading = "Run")]
    pub overwrite: bool,
    /// Do not protect the unfinished output from a second writer: for file systems without locks
    #[arg(long, help_heading = "Run")]
    pub no_lock: bool,
}

impl WriteArgs {
    /// The same for judge-data.
    #[must_use]
    pub fn options(self) -> WriteOptions {
        let locking = if self.no_lock { Locking::None } else { Locking::default() };
        WriteOptions { overwrite: self.overwrite, locking, ..WriteOptions::default() }
    }

    /// The plan of a run that writes `rows` rows to `output`, without inputs. `settings` are what decides about a row besides the columns.
    #[must_use]
    pub fn plan(self, output: &Path, name: &str, rows: usize, columns_of: &InputArgs, settings: Settings) -> RunPlan {
        let mut plan = RunPlan::new(output, rows, program(name));
        plan.settings = settings;
        if let Some(columns) = &columns_of.columns {
            plan.settings.insert("columns".to_owned(), columns.to_string().into());
        }
        columns_of.note_part(&mut plan.settings);
        plan.options = self.options();
        plan
    }
}

/// This program, for run records.
#[must_use]
pub fn program(name: &str) -> Program {
    let mut program = Program::new(name, VERSION_NUMBER);
    program.git_commit = crate::terminal::console::commit().map(str::to_owned);
    program
}

/// A file beside an output that keeps what it was made from: `OUTPUT.WHAT`.
#[must_use]
pub fn beside(output: &Path, what: &str) -> PathBuf {
    let mut path = output.as_os_str().to_owned();
    path.push(".");
    path.push(what);
    path.into()
}

/// Parquet files by their paths, their folders or patterns such as `data/*.parquet`, in the order of their names. Names that begin with a
/// dot or an underscore, which engines use for what is no data, are passed over in folders, and where a pattern does not write them out.
///
/// # Errors
/// If one of them names no file.
pub fn parquet_files(names: &[String]) -> Result<Vec<PathBuf>> {
    files(names, "Parquet file", &["parquet"])
}

/// Files of rows, as [`parquet_files`]; in folders those that are called JSON lines, compressed or not, or Parquet.
///
/// # Errors
/// If one of them names no file.
pub fn input_files(names: &[String]) -> Result<Vec<PathBuf>> {
    files(
        names,
        "file of rows",
        &[
            "jsonl",
            "json",
            "ndjson",
            "jsonl.gz",
            "json.gz",
            "jsonl.zst",
            "json.zst",
            "csv",
            "tsv",
            "csv.gz",
            "tsv.gz",
            "csv.zst",
            "tsv.zst",
            "parquet",
        ],
    )
}

fn files(names: &[String], what: &str, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in names {
        let before = files.len();
        let path = Path::new(name);
        if path.is_dir() {
            walk(path, endings, &mut files)?;
        } else if path.exists() {
            files.push(path.to_path_buf());
        } else {
            let found = glob::glob(name).map_err(|error| usage(format!("{name:?} is no pattern of files: {error}")))?;
            for path in found {
                let path = path.with_context(|| format!("cannot list {name:?}"))?;
                // What an engine has not put in place yet, or keeps for itself, is no data.
                let hidden = |part: &std::ffi::OsStr| part.to_string_lossy().starts_with(['.', '_']);
                let is_of_pattern = |part: &std::ffi::OsStr| name.contains(&*part.to_string_lossy());
                if path.iter().any(|part| part != "." && part != ".." && hidden(part) && !is_of_pattern(part)) {
                    continue;
                }
                match path.is_dir() {
                    true => walk(&path, endings, &mut files)?,
                    false => files.push(path),
                }
            }
        }
        if files.len() == before {
            return Err(usage(format!("{name:?} names no {what}")));
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn walk(folder: &Path, endings: &[&str], files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(['.', '_']) {
            continue;
        }
        if path.is_dir() {
            walk(&path, endings, files)?;
        } else if endings.iter().any(|ending| name.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.'))) {
            files.push(path);
        }
    }
    Ok(())
}

/// Which of a row's other fields its output row gets, and which the judge sees a part of.
#[derive(Args, Clone, Debug, Default)]
pub struct CarryArgs {
    /// Which fields are carried to the output: all (that the command does not read), none, or names with commas between, read or not:
    /// all,response adds a text
    #[arg(long = "carry", id = "carry", default_value = "all", value_name = "FIELDS")]
    pub chosen: Carry,
    /// Show the judge at most so many tokens of a field: its beginning (head), its end (tail), or both ends without the middle (middle). What
    /// was cut is in the row's `cut` (repeatable)
    #[arg(long = "cut", value_name = "FIELD=TOKENS[:head|tail|middle]")]
    pub cuts: Vec<Cut>,
}

impl CarryArgs {
    /// The fields of a record that its row gets.
    #[must_use]
    pub fn fields(&self) -> Cow<'_, Carry> {
        self.chosen.and_cuts(&self.cuts)
    }
}
