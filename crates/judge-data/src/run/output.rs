//! Where outputs go: what may be written, and what must not.

mod problem;

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::paths::{target, with_suffix};
use crate::run::run_record::RECORD;
use crate::{Error, record_path};

pub use problem::OutputProblem;

/// Names beside an output that a run uses too: see [`RunPlan::open`](crate::RunPlan::open).
const BESIDE: [&str; 3] = [".partial", ".partial.sorted", RECORD];

/// Refuses outputs that cannot be written or would destroy an input or each other, by their names.
/// [`Outputs`](crate::Outputs) also looks at what is there.
///
/// Two paths are the same file if they have the same device and inode, or lead to the same name, also through links and also if
/// nothing is there yet. The names that a run keeps beside an output (`.partial`, `.run.json`) count as well, so that none of them is an
/// input, and so does the record of an input. `-` among the inputs stands for standard input and is compared by device and inode. Nothing
/// is created or changed.
///
/// # Errors
/// [`Error::Output`] with the first problem in the order of the outputs; [`Error::InputNotUtf8`]; [`Error::StdinTwice`];
/// [`Error::Io`] if a path cannot be looked at.
pub fn check_outputs<I, O>(inputs: I, outputs: O) -> Result<(), Error>
where
    I: IntoIterator<Item: AsRef<Path>>,
    O: IntoIterator<Item: AsRef<Path>>,
{
    let inputs: Vec<PathBuf> = inputs.into_iter().map(|path| path.as_ref().to_path_buf()).collect();
    let named = |path: &Path| Ok(Named { path: path.to_path_buf(), names: run_names(&recorded(path)?) });
    let outputs = outputs.into_iter().map(|path| named(path.as_ref())).collect::<Result<Vec<_>, Error>>()?;
    check_names(&inputs, &outputs)
}

/// An output with every name that is used because of it, its own first.
pub(crate) struct Named {
    pub(crate) path: PathBuf,
    pub(crate) names: Vec<PathBuf>,
}

/// Where an output leads that its record names.
///
/// # Errors
/// As [`target`], and [`Error::Output`] where that is not UTF-8.
pub(crate) fn recorded(path: &Path) -> Result<PathBuf, Error> {
    let target = target(path)?;
    match target.to_str() {
        Some(_) => Ok(target),
        None if path.to_str().is_none() => {
            Err(Error::Output { path: path.to_path_buf(), problem: OutputProblem::NotUtf8 })
        }
        None => Err(Error::Output { path: path.to_path_buf(), problem: OutputProblem::TargetNotUtf8 { target } }),
    }
}

/// The names that a run uses: its output, and what is beside it.
pub(crate) fn run_names(target: &Path) -> Vec<PathBuf> {
    std::iter::once(target.to_path_buf()).chain(BESIDE.map(|suffix| with_suffix(target, suffix))).collect()
}

/// Refuses outputs of which a name is an input or that of another output, and paths that are not UTF-8.
pub(crate) fn check_names(inputs: &[PathBuf], outputs: &[Named]) -> Result<(), Error> {
    if let Some(path) = inputs.iter().find(|path| path.to_str().is_none()) {
        return Err(Error::InputNotUtf8 { path: path.clone() });
    }
    if inputs.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(Error::StdinTwice);
    }
    let records = inputs.iter().filter(|path| *path != Path::new("-")).map(|path| record_path(path));
    let inputs: Vec<(PathBuf, Identity)> = inputs.iter().cloned().chain(records).map(|path| input(&path)).collect();
    let mut before: Vec<(PathBuf, Vec<Identity>)> = Vec::new();
    for Named { path, names } in outputs {
        let refuse = |problem| Err(Error::Output { path: path.clone(), problem });
        if path.to_str().is_none() {
            return refuse(OutputProblem::NotUtf8);
        }
        let names: Vec<Identity> = names.iter().cloned().map(Identity::of).collect();
        if let Some((input, _)) = inputs.iter().find(|(_, input)| names.iter().any(|name| name.is(input))) {
            return refuse(OutputProblem::IsInput { input: input.clone() });
        }
        let shared = |other: &[Identity]| names.iter().any(|name| other.iter().any(|other| name.is(other)));
        if let Some((other, _)) = before.iter().find(|(_, other)| shared(other)) {
            return refuse(OutputProblem::IsOutput { other: other.clone() });
        }
        before.push((path.clone(), names));
    }
    Ok(())
}

/// What tells whether two paths are one file.
#[derive(Debug)]
struct Identity {
    path: PathBuf,
    /// Device and inode, where there is a file and the system has them.
    inode: Option<(u64, u64)>,
}

impl Identity {
    fn of(path: PathBuf) -> Self {
        Self { inode: inode(&path), path }
    }

    fn is(&self, other: &Self) -> bool {
        self.path == other.path || (self.inode.is_some() && self.inode == other.inode)
    }
}

/// An input may be anything, also something that is not there: opening it will say so.
fn input(path: &Path) -> (PathBuf, Identity) {
    let found = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let inode = inode(found);
    let identity = Identity { path: found.canonicalize().unwrap_or_else(|_| found.to_path_buf()), inode };
    (path.to_path_buf(), identity)
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<(u64, u64)> {
    None
}
