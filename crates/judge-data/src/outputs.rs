//! All that a program writes, known before any work.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::beside::{is_empty, refuse_foreign_beside, taken};
use crate::output::{Named, check_names, run_names};
use crate::paths::{target, with_suffix};
use crate::states::{refuse_foreign_states, states_names};
use crate::{Document, Error, OutputProblem, RunRecord, record_path};

/// Bytes at the end of a page or a picture in which its mark is looked for.
const MARK_WITHIN: u64 = 256;

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
/// assert!(outputs().check().is_err());
/// outputs().overwrite(true).check()?; // somebody said that it may go
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
    Document { is_own: fn(&Path) -> bool },
    Made,
    Folder,
}

impl Outputs {
    /// A program that reads these files.
    pub fn new(inputs: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        Self { inputs: inputs.into_iter().map(|path| path.as_ref().to_path_buf()).collect(), ..Self::default() }
    }

    /// Whether finished files of others may be replaced. What is unfinished, and what lies where a run keeps something beside its output,
    /// never is.
    #[must_use]
    pub fn overwrite(self, overwrite: bool) -> Self {
        Self { overwrite, ..self }
    }

    /// Rows of a [`Run`](crate::Run), or of another writer that leaves a [`RunRecord`] beside them. A file without a record is refused; one
    /// with a record is compared with it by [`RunPlan::open`](crate::RunPlan::open).
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

    /// Figures, pages and pictures, which are made anew each time: they replace those that the same program made, and nothing else. Of JSON
    /// that is an object with `program.name`, or the run record of the program; of other files, one that ends with [`report_mark`].
    #[must_use]
    pub fn reports(self, program: &str, paths: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        self.with(paths, || Kind::Report { program: program.to_owned() })
    }

    /// Documents of one format, which are kept: a file that is none is refused here, and one of other content by
    /// [`save_new`](crate::save_new).
    #[must_use]
    pub fn documents<T: Document>(self, paths: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        self.with(paths, || Kind::Document { is_own: is_document::<T> })
    }

    /// Files of another format that are kept, as [`documents`](Self::documents) are; `is_own` says whether a file is one of that format.
    #[must_use]
    pub fn kept(self, paths: impl IntoIterator<Item: AsRef<Path>>, is_own: fn(&Path) -> bool) -> Self {
        self.with(paths, || Kind::Document { is_own })
    }

    /// Files whose content is compared when it is made, by [`write_new`](crate::write_new). Here only their names are.
    #[must_use]
    pub fn made(self, paths: impl IntoIterator<Item: AsRef<Path>>) -> Self {
        self.with(paths, || Kind::Made)
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
    /// another file has;
    /// [`Error::InputNotUtf8`]; [`Error::OutputExists`] for a file that the program did not write; [`Error::Io`].
    pub fn check(&self) -> Result<(), Error> {
        let named = |(path, kind): &(PathBuf, Kind)| -> Result<Named, Error> {
            let names = match kind {
                Kind::Folder => return Ok(Named { path: path.clone(), names: vec![folder_target(path)?] }),
                Kind::Rows => run_names(&target(path)?),
                Kind::States => states_names(&target(path)?)?,
                Kind::Report { .. } | Kind::Document { .. } | Kind::Made => vec![target(path)?],
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
        let may_replace = |is_own: &dyn Fn(&Path) -> Result<bool, Error>| {
            let target = target(path)?;
            match !is_empty(&target)? && !self.overwrite && !is_own(&target)? {
                true => Err(Error::OutputExists { path: path.to_path_buf(), differences: Vec::new() }),
                false => Ok(()),
            }
        };
        match kind {
            Kind::Rows => self.check_rows(path),
            Kind::States => {
                refuse_foreign_states(&target(path)?, self.overwrite).and_then(|()| self.check_record(path))
            }
            Kind::Report { program } => may_replace(&|target| is_report_of(target, program)),
            Kind::Document { is_own } => may_replace(&|target| Ok(is_own(target))),
            Kind::Made | Kind::Folder => Ok(()),
        }
    }

    fn check_rows(&self, path: &Path) -> Result<(), Error> {
        let target = target(path)?;
        refuse_foreign_beside(path, &target)?;
        self.check_record(path)?;
        // A run that was killed in its last step is completed when it is opened.
        let is_known = record_path(path).exists() || with_suffix(&target, ".partial").exists();
        match !is_known && !self.overwrite && !is_empty(&target)? {
            true => Err(Error::OutputExists { path: path.to_path_buf(), differences: Vec::new() }),
            false => Ok(()),
        }
    }

    fn check_record(&self, path: &Path) -> Result<(), Error> {
        let record = record_path(path);
        match !self.overwrite && !is_empty(&record)? && !is_document::<RunRecord>(&record) {
            true => Err(taken(path, record)),
            false => Ok(()),
        }
    }
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
    format!("<!-- made by {program} of local-judge -->\n")
}

fn is_report_of(path: &Path, program: &str) -> Result<bool, Error> {
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
    }
    let mut file = File::open(path).map_err(Error::io("open", path))?;
    if let Ok(report) = serde_json::from_reader::<_, Report>(BufReader::new(&file)) {
        let name = report.program.or(report.content.map(|content| content.program));
        return Ok(name.is_some_and(|found| found.name == program));
    }
    let length = file.metadata().map_err(Error::io("look at", path))?.len();
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(MARK_WITHIN))).map_err(Error::io("read", path))?;
    file.take(MARK_WITHIN).read_to_end(&mut end).map_err(Error::io("read", path))?;
    Ok(end.ends_with(report_mark(program).as_bytes()))
}

/// Whether a file is a document of this format, of whatever version.
pub(crate) fn is_document<T: Document>(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct Head {
        format: String,
    }
    let head = File::open(path).ok().and_then(|file| serde_json::from_reader::<_, Head>(BufReader::new(file)).ok());
    head.is_some_and(|head| head.format == T::FORMAT)
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
