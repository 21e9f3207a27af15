//! The options that say which rows are read and where rows are written, and what of a run depends on them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use judge_data::{
    Carry, Columns, Cut, Dataset, DatasetFormat, DatasetOptions, Input, Locking, PART, Part, Program, Records,
    Settings, WriteOptions, is_any_document,
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
    /// Replace what another command of this program made, or this one made otherwise
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

/// Names of what rows are not written as.
const OTHER_FORMATS: [&str; 11] = ["json", "csv", "tsv", "tab", "parquet", "arrow", "xlsx", "xls", "gz", "zst", "zstd"];

/// Says so where the name of an output of rows promises something else than JSON lines.
pub fn tell_json_lines(output: &Path) {
    if ends_with(&output.to_string_lossy().to_lowercase(), &OTHER_FORMATS) {
        tell(format_args!("note: {} gets JSON lines, whatever its name says", output.display()));
    }
}

/// Parquet files by their paths, their folders or patterns such as `data/*.parquet`, in the order of their names. Names that begin with a
/// dot or an underscore, which engines use for what is no data, are passed over in folders, and where a pattern does not write them out. So
/// are this program's own records. What else a folder has, and what describes its data, is left out with a note.
///
/// # Errors
/// If one of them names no file.
pub fn parquet_files(names: &[String]) -> Result<Vec<PathBuf>> {
    files(names, "Parquet file", |name| ends_with(name, &["parquet"]))
}

/// Files of rows, as [`parquet_files`]; in folders those that are called JSON lines, CSV or TSV, compressed or not, or Parquet.
///
/// # Errors
/// If one of them names no file.
pub fn input_files(names: &[String]) -> Result<Vec<PathBuf>> {
    files(names, "file of rows", |name| {
        let plain = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end));
        ends_with(plain.unwrap_or(name), &["jsonl", "ndjson", "json", "csv", "tsv", "tab"])
            || ends_with(name, &["parquet"])
    })
}

/// Whether the extension of a name is one of these.
fn ends_with(name: &str, extensions: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
}

/// What a folder has.
#[derive(Default)]
struct Listed {
    files: Vec<PathBuf>,
    /// What is called as none of them are.
    left_out: Vec<PathBuf>,
}

/// `is_called` says of a name in small letters whether such a file has it.
fn files(names: &[String], what: &str, is_called: fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut listed = Listed::default();
    for name in names {
        let before = listed.files.len();
        let path = Path::new(name);
        if path.is_dir() {
            walk(path, is_called, &[], &mut listed)?;
        } else if path.exists() {
            listed.files.push(path.to_path_buf());
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
                    true => walk(&path, is_called, &[], &mut listed)?,
                    false if is_record(&path) => {}
                    false => listed.files.push(path),
                }
            }
        }
        if listed.files.len() == before {
            return Err(usage(format!("{name:?} names no {what}")));
        }
    }
    let Listed { mut files, mut left_out } = listed;
    left_out.sort();
    left_out.dedup();
    if let [first, others @ ..] = &left_out[..] {
        let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        tell(format_args!("note: left out of the folder, being no {what} by name: {}{more}", first.display()));
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// `above` are the folders that this one is in; a link back to one of them would be followed for ever.
fn walk(folder: &Path, is_called: fn(&str) -> bool, above: &[PathBuf], listed: &mut Listed) -> Result<()> {
    let in_words = || format!("cannot list {}", folder.display());
    let own = folder.canonicalize().with_context(in_words)?;
    if above.contains(&own) {
        return Ok(());
    }
    let above = [above, &[own]].concat();
    for entry in std::fs::read_dir(folder).with_context(in_words)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if name.starts_with(['.', '_']) {
            continue;
        }
        if path.is_dir() {
            walk(&path, is_called, &above, listed)?;
        } else if !is_record(&path) {
            let is_rows = is_called(&name) && !is_about_data(&path, &name);
            let list = if is_rows { &mut listed.files } else { &mut listed.left_out };
            list.push(path);
        }
    }
    Ok(())
}

/// Whether a file of this name describes a data set, as Hugging Face's datasets writes it beside the data.
fn is_about_data(path: &Path, name: &str) -> bool {
    const INFO: &str = "dataset_info.json";
    [INFO, "dataset_infos.json", "dataset_dict.json"].contains(&name)
        || name == "state.json" && path.with_file_name(INFO).exists()
}

/// Whether a file is a record, a plan or another document of this program, and so no rows.
fn is_record(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) && is_any_document(path)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_rows_whatever_the_case_and_no_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        let rows =
            ["a.jsonl", "b.NDJSON.GZ", "c.json.zst", "d.Csv", "e.tsv.zstd", "f.PARQUET", "g.json", "h.jsonl.run.json"];
        rows.iter().for_each(|name| put(name, r#"{"id": 1}"#));
        put("a.jsonl.run.json", r#"{"format": "judge-run-record", "version": 2, "content": {}}"#);
        ["notes.txt", "parquet", "x.parquet.gz", "_SUCCESS", ".hidden.jsonl"].iter().for_each(|name| put(name, ""));
        ["dataset_info.json", "dataset_infos.json", "state.json"].iter().for_each(|name| put(name, "{}"));
        let found = |names: &[&str], list: fn(&[String]) -> Result<Vec<PathBuf>>| {
            let names: Vec<String> = names.iter().map(|name| folder.path().join(name).display().to_string()).collect();
            let found = list(&names).expect("files");
            found
                .iter()
                .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&["."], input_files), rows);
        assert_eq!(found(&["."], parquet_files), ["f.PARQUET"]);
        assert_eq!(found(&["a.*"], input_files), ["a.jsonl"]);
        assert_eq!(found(&["notes.txt"], input_files), ["notes.txt"], "what is named is taken");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_folder_around_it_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        std::fs::write(inner.join("rows.jsonl"), "").expect("written");
        std::os::unix::fs::symlink(folder.path(), inner.join("back")).expect("a link");
        // Two folders that link to each other have none around them.
        let [one, other] = ["one", "other"].map(|name| inner.join(name));
        for (from, to) in [(&one, &other), (&other, &one)] {
            std::fs::create_dir_all(from).expect("a folder");
            std::os::unix::fs::symlink(to, from.join("link")).expect("a link");
        }
        let found = input_files(&[folder.path().display().to_string()]).expect("files");
        assert_eq!(found, [inner.join("rows.jsonl")]);
    }
}
