//! All that a program writes, known before any work.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::files::paths::{target, with_suffix};
use crate::run::beside::{is_empty, refuse_foreign_beside, taken};
use crate::run::output::{Named, check_names, recorded, run_names};
use crate::run::run_record::RECORD;
use crate::states::{is_states, refuse_foreign_states, states_names};
use crate::{Document, Error, InputFile, OutputProblem, RunRecord, load, record_path};

/// Bytes at the end of a page or a picture in which its mark is looked for.
const MARK_WITHIN: u64 = 256;

/// The mark, before and behind the name of the program.
const MARK: [&str; 2] = ["<!-- made by ", " of local-judge -->\n"];

/// Every file that a program writes, with what is kept beside it.
/// [`check`](Self::check) refuses, before any work, whatever would destroy a file that is
/// not the program's own.
///
/// ```
/// use judge_data::{Outputs, write_atomic};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let [input, report] = ["rows.jsonl", "report.json"].map(|name| folder.path().join(name));
/// write_atomic(&report, b"notes of mine")?;
/// let outputs = || Outputs::new([&input]).reports("summary", [&report]);
/// assert!(outputs().overwrite(true).check().is_err()); // nobody's to replace
/// write_atomic(&report, br#"{"program": {"name": "summary"}, "mean": 3.5}"#)?;
/// outputs().check()?; // its own, which may be made anew
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Outputs {
    inputs: Vec<PathBuf>,
    files: Vec<(PathBuf, Kind)>,
    overwrite: bool,
}

/// What is written, and so which file of that name may be replaced.
#[derive(Debug)]
enum Kind {
    Rows,
    States,
    Report { program: String },
    Made { is_own: fn(&Path) -> bool },
    Folder,
}

impl Outputs {
    /// A program that reads these files.
    pub fn new(inputs: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        Self { inputs: inputs.into_iter().map(|path| path.as_ref().to_path_buf()).collect(), ..Self::default() }
    }

    /// Whether finished files may be replaced that a run made otherwise. What no run made never is, and neither is what is unfinished.
    #[must_use]
    pub fn overwrite(self, overwrite: bool) -> Self {
        Self { overwrite, ..self }
    }

    /// Rows of a [`Run`](crate::Run), or of another writer that leaves a [`RunRecord`] beside them. A file without a record is refused, and
    /// with [`overwrite`](Self::overwrite) one that was changed since; else it is compared with its record by [`RunPlan::open`](crate::RunPlan::open).
    #[must_use]
    pub fn rows(self, paths: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        self.with(paths, || Kind::Rows)
    }

    /// Hidden states, whole or in shards, with their ids ([`StatesWriter`](crate::StatesWriter)).
    /// A file that is no table of states is refused; a table is compared by
    /// the writer.
    #[must_use]
    pub fn states(self, paths: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        self.with(paths, || Kind::States)
    }

    /// Figures, pages and pictures, which are made anew each time: they replace those that the same program made, with
    /// [`overwrite`](Self::overwrite) those of others and documents, and never rows, states or the records beside them. A report is JSON with
    /// `program.name`, the run record of the program, or a file that ends with [`report_mark`].
    #[must_use]
    pub fn reports(self, program: &str, paths: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        self.with(paths, || Kind::Report { program: program.to_owned() })
    }

    /// Documents of one format, which are kept: a file of another format is refused here whatever may be replaced, and one of other content
    /// by [`save_new`](crate::save_new).
    #[must_use]
    pub fn documents<T: Document>(self, paths: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        self.made(paths, is_document::<T>)
    }

    /// Files whose content is compared when it is made, by [`write_new`](crate::write_new), as that of [`documents`](Self::documents). Here a file is refused that is none of theirs:
    /// `is_own` says whether one is.
    #[must_use]
    pub fn made(self, paths: impl IntoIterator<Item: AsRef<Path>>, is_own: fn(&Path) -> bool) -> Self {
        self.with(paths, || Kind::Made { is_own })
    }

    /// Folders that are written whole: they are absent or empty. No option replaces a folder.
    #[must_use]
    pub fn folders(self, paths: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        self.with(paths, || Kind::Folder)
    }

    fn with(mut self, paths: impl IntoIterator<Item: AsRef<Path>>, kind: impl Fn() -> Kind) -> Self {
        self.files.extend(paths.into_iter().map(|path| (path.as_ref().to_path_buf(), kind())));
        self
    }

    /// Call it first. Nothing is created or changed. Names are compared as by [`check_outputs`](crate::check_outputs), and with everything
    /// that is kept beside an output.
    ///
    /// # Errors
    /// [`Error::Output`] for a path that cannot be an output, is an input or another output, is not UTF-8, or needs a name beside it that
    /// another file has, and for a file that no run made;
    /// [`Error::InputNotUtf8`]; [`Error::OutputExists`] for a file of another run; [`Error::Io`].
    pub fn check(&self) -> Result<(), Error> {
        let named = |(path, kind): &(PathBuf, Kind)| -> Result<Named, Error> {
            let names = match kind {
                Kind::Folder => return Ok(Named { path: path.clone(), names: vec![folder_target(path)?] }),
                Kind::Rows => run_names(&recorded(path)?),
                Kind::States => states_names(&recorded(path)?)?,
                Kind::Report { .. } | Kind::Made { .. } => vec![target(path)?],
            };
            Ok(Named { path: path.clone(), names })
        };
        if let Some((path, _)) = self.files.iter().find(|(path, _)| path.to_str().is_none()) {
            return Err(Error::Output { path: path.clone(), problem: OutputProblem::NotUtf8 });
        }
        let outputs = self.files.iter().map(named).collect::<Result<Vec<_>, _>>()?;
        check_names(&self.inputs, &outputs)?;
        self.files.iter().try_for_each(|(path, kind)| self.check_content(path, kind))
    }

    fn check_content(&self, path: &Path, kind: &Kind) -> Result<(), Error> {
        match kind {
            Kind::Rows => self.check_rows(path),
            Kind::States => refuse_foreign_states(&target(path)?, self.overwrite).and_then(|()| check_record(path)),
            Kind::Report { program } => self.may_replace(path, |target| is_report(target, Some(program))),
            Kind::Made { is_own } => {
                let target = target(path)?;
                match is_empty(&target)? || is_own(&target) {
                    true => Ok(()),
                    false if is_of_a_run(&target)? => Err(other_kind(path)),
                    false => Err(foreign(path)),
                }
            }
            Kind::Folder => Ok(()),
        }
    }

    /// Its own is made anew, what another run made only where somebody said so, and rows, states and anything else never.
    fn may_replace(&self, path: &Path, is_own: impl Fn(&Path) -> Result<bool, Error>) -> Result<(), Error> {
        let target = target(path)?;
        if is_empty(&target)? {
            return Ok(());
        }
        if is_kept(&target)? {
            return Err(other_kind(path));
        }
        match is_own(&target)? {
            true => Ok(()),
            false if !is_of_a_run(&target)? => Err(foreign(path)),
            false if self.overwrite => Ok(()),
            false => Err(Error::OutputExists { path: path.to_path_buf(), differences: Vec::new() }),
        }
    }

    fn check_rows(&self, path: &Path) -> Result<(), Error> {
        let target = target(path)?;
        refuse_foreign_beside(path, &target)?;
        check_record(path)?;
        // A run that was killed in its last step is completed when it is opened.
        if with_suffix(&target, ".partial").exists() {
            return Ok(());
        }
        match record_path(path).exists() {
            // A record says what it was made of. What was changed since is no longer what the run made.
            true if self.overwrite && !is_as_recorded(&target)? => Err(foreign(path)),
            true => Ok(()),
            false => self.may_replace(path, |_| Ok(false)),
        }
    }
}

fn foreign(path: &Path) -> Error {
    Error::Output { path: path.to_path_buf(), problem: OutputProblem::Foreign }
}

fn other_kind(path: &Path) -> Error {
    Error::Output { path: path.to_path_buf(), problem: OutputProblem::OtherKind }
}

/// Whether a file is what a run keeps: rows or states, or the record beside them.
fn is_kept(target: &Path) -> Result<bool, Error> {
    let is_record = target.to_str().and_then(|name| name.strip_suffix(RECORD)).is_some_and(|of| Path::new(of).exists());
    let is_recorded = is_document::<RunRecord>(&record_path(target)) && is_as_recorded(target)?;
    Ok(is_record && is_document::<RunRecord>(target) || is_recorded || is_states(target))
}

/// Refuses what lies in the place of an output's record and is none.
fn check_record(path: &Path) -> Result<(), Error> {
    let record = record_path(path);
    if is_empty(&record)? || is_document::<RunRecord>(&record) { Ok(()) } else { Err(taken(path, record)) }
}

/// Whether a file is what its record says that a run wrote.
fn is_as_recorded(target: &Path) -> Result<bool, Error> {
    // One that cannot be read, or is of a version that does not tell, says nothing against the file.
    let Ok(record) = load::<RunRecord>(record_path(target)) else { return Ok(true) };
    let Some(written) = record.outputs.iter().find(|output| output.path.file_name() == target.file_name()) else {
        return Ok(true);
    };
    if is_empty(target)? {
        return Ok(true);
    }
    let found = InputFile::of(target)?;
    Ok(found.bytes == written.bytes && written.blake3.as_ref().is_none_or(|blake3| *blake3 == found.blake3))
}

/// Whether any command made a file: there is a record of it, or it says so itself.
pub(crate) fn is_of_a_run(target: &Path) -> Result<bool, Error> {
    let record = record_path(target);
    Ok(is_document::<RunRecord>(&record) && is_as_recorded(target)?
        || is_report(target, None)?
        || is_any_document(target)
        || is_states(target))
}

/// A folder that may be written: absent, or empty.
fn folder_target(path: &Path) -> Result<PathBuf, Error> {
    let refuse = |problem| Error::Output { path: path.to_path_buf(), problem };
    match fs::read_dir(path) {
        Ok(mut entries) => match entries.next() {
            None => path.canonicalize().map_err(Error::io("look at", path)),
            Some(_) => Err(refuse(OutputProblem::NotEmpty)),
        },
        // Folders on the way to it are made with it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::path::absolute(path).map_err(Error::io("look at", path))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(refuse(OutputProblem::NotAFolder)),
        Err(error) => Err(Error::io("look at", path)(error)),
    }
}

/// What a page or a picture ends with, so that the program that made it knows it again: a comment of HTML and SVG.
#[must_use]
pub fn report_mark(program: &str) -> String {
    MARK.join(program)
}

/// Whether a file is a report of this program, or of any.
fn is_report(path: &Path, program: Option<&str>) -> Result<bool, Error> {
    #[derive(Deserialize)]
    struct Report {
        program: Option<Name>,
        content: Option<Content>,
    }
    #[derive(Deserialize)]
    struct Content {
        program: Name,
    }
    #[derive(Deserialize)]
    struct Name {
        name: String,
        version: Option<String>,
    }
    let mut file = File::open(path).map_err(Error::io("open", path))?;
    if let Ok(report) = serde_json::from_reader::<_, Report>(BufReader::new(&file)) {
        let name = report.program.or(report.content.map(|content| content.program));
        return Ok(name.is_some_and(|found| match program {
            Some(program) => found.name == program,
            None => found.version.is_some(),
        }));
    }
    let length = file.metadata().map_err(Error::io("look at", path))?.len();
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(MARK_WITHIN))).map_err(Error::io("read", path))?;
    file.take(MARK_WITHIN).read_to_end(&mut end).map_err(Error::io("read", path))?;
    let [before, after] = MARK;
    Ok(match program {
        Some(program) => end.ends_with(report_mark(program).as_bytes()),
        None => {
            let last = end.strip_suffix(b"\n").and_then(|end| end.rsplit(|&byte| byte == b'\n').next());
            let last = last.map(String::from_utf8_lossy).unwrap_or_default();
            last.starts_with(before) && last.ends_with(after.trim_end())
        }
    })
}

#[derive(Deserialize)]
struct Head {
    format: String,
}

fn head(path: &Path) -> Option<Head> {
    File::open(path).ok().and_then(|file| serde_json::from_reader(BufReader::new(file)).ok())
}

/// Whether a file is a document of this format, of whatever version.
pub(crate) fn is_document<T: Document>(path: &Path) -> bool {
    head(path).is_some_and(|head| head.format == T::FORMAT)
}

/// Whether a file is a document of any format of these crates.
#[must_use]
pub fn is_any_document(path: &Path) -> bool {
    head(path).is_some_and(|head| head.format.starts_with("judge-"))
}

/// Whether [`write_new`](crate::write_new) would write this content.
///
/// # Errors
/// [`Error::OutputExists`] for a file with other content, unless `overwrite`; [`Error::Output`], [`Error::Io`].
pub fn check_new(path: impl AsRef<Path>, bytes: &[u8], overwrite: bool) -> Result<(), Error> {
    let path = path.as_ref();
    let target = target(path)?;
    if overwrite || is_empty(&target)? || fs::read(&target).map_err(Error::io("read", path))? == bytes {
        return Ok(());
    }
    Err(Error::OutputExists { path: path.to_path_buf(), differences: Vec::new() })
}
