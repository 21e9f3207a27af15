//! Where outputs go: what may be written, and what must not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::atomic::{folder, with_suffix};

/// Names beside an output that a run uses too: see [`RunPlan::open`](crate::RunPlan::open).
const BESIDE: [&str; 3] = [".partial", ".partial.sorted", ".run.json"];

/// Links that are followed before they are taken for a circle, as Linux does it.
const MAX_LINKS: usize = 40;

/// Why a path cannot be an output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputProblem {
    /// `-`, which stands for standard output in other programs.
    #[error("an output must be a file, it cannot go to standard output")]
    StandardOutput,
    /// Its folder is not there, or is no folder.
    #[error("the folder {} does not exist", folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// Something that is not a regular file has this name.
    #[error("is {kind}, expected a regular file or a new name")]
    NotAFile {
        /// What it is, in words.
        kind: &'static str,
    },
    /// Writing it would destroy an input.
    #[error("is the same file as the input {}; choose another output", input.display())]
    IsInput {
        /// The input.
        input: PathBuf,
    },
    /// A run needs this name beside its output, and what lies there is no run's.
    #[error("needs the name {}, which a file that is no run's has; move that file, or choose another output", by.display())]
    Taken {
        /// The file.
        by: PathBuf,
    },
    /// A folder that is written whole has something in it.
    #[error("is a folder with something in it; expected a new name or an empty folder")]
    NotEmpty,
    /// Something that is no folder has the name of one that is to be written.
    #[error("is no folder; expected a new name or an empty folder")]
    NotAFolder,
    /// Records name files in JSON, which is UTF-8.
    #[error("its name is not UTF-8, so no record could name it; choose another name")]
    NotUtf8,
    /// Two outputs go to one file.
    #[error("is the same file as the output {}, or one that is kept beside it; choose another", other.display())]
    IsOutput {
        /// The other output.
        other: PathBuf,
    },
}

/// Refuses outputs that cannot be written or would destroy an input or each other, by their names. [`Outputs`](crate::Outputs) also looks at what is there.
///
/// Two paths are the same file if they have the same device and inode, or lead to the same name, also through links and also if
/// nothing is there yet. The names that a run keeps beside an output (`.partial`, `.run.json`) count as well, so that none of them is an
/// input. `-` among the inputs stands for standard input and is compared by device and inode. Nothing is created or changed.
///
/// # Errors
/// [`Error::Output`] with the first problem in the order of the outputs; [`Error::InputNotUtf8`]; [`Error::Io`] if a path cannot be looked at.
pub fn check_outputs<I, O>(inputs: I, outputs: O) -> Result<(), Error>
where
    I: IntoIterator<Item: AsRef<Path>>,
    O: IntoIterator<Item: AsRef<Path>>,
{
    let inputs: Vec<PathBuf> = inputs.into_iter().map(|path| path.as_ref().to_path_buf()).collect();
    let named = |path: &Path| Ok(Named { path: path.to_path_buf(), names: run_names(&target(path)?) });
    let outputs = outputs.into_iter().map(|path| named(path.as_ref())).collect::<Result<Vec<_>, Error>>()?;
    check_names(&inputs, &outputs)
}

/// An output with every name that is used because of it, its own first.
pub(crate) struct Named {
    pub(crate) path: PathBuf,
    pub(crate) names: Vec<PathBuf>,
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
    let inputs: Vec<(PathBuf, Identity)> = inputs.iter().map(|path| input(path)).collect();
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

/// The file that is written when `path` is the output: links are followed, also one that leads to a name without a file.
///
/// # Errors
/// [`Error::Output`] for `-`, a folder that does not exist, and what is there and no regular file; [`Error::Io`].
pub(crate) fn target(path: &Path) -> Result<PathBuf, Error> {
    let refuse = |problem| Error::Output { path: path.to_path_buf(), problem };
    if path == Path::new("-") {
        return Err(refuse(OutputProblem::StandardOutput));
    }
    let found = follow(path)?;
    let Some(name) = found.file_name() else {
        return Err(refuse(OutputProblem::NotAFile { kind: "a folder" }));
    };
    let parent = folder(&found);
    let parent = match parent.canonicalize() {
        Ok(canonical) if canonical.is_dir() => canonical,
        Ok(_) => return Err(refuse(OutputProblem::NoFolder { folder: parent.to_path_buf() })),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(refuse(OutputProblem::NoFolder { folder: parent.to_path_buf() }));
        }
        Err(error) => return Err(Error::io("look at", parent)(error)),
    };
    // /dev/stdout and /dev/fd/1 lead here. A file put in their place would not be what they were redirected to.
    if parent.starts_with("/proc") {
        return Err(refuse(OutputProblem::NotAFile { kind: "an open stream of a process" }));
    }
    let target = parent.join(name);
    match fs::symlink_metadata(&target) {
        Ok(metadata) if metadata.is_file() => Ok(target),
        Ok(metadata) => Err(refuse(OutputProblem::NotAFile { kind: kind(&metadata) })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(target),
        Err(error) => Err(Error::io("look at", path)(error)),
    }
}

/// What the last link of a chain leads to. Links on the way, in the names of folders, are left to the operating system.
fn follow(path: &Path) -> Result<PathBuf, Error> {
    let mut found = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        // What /proc has for an open stream is no link to follow by its text: `pipe:[4711]`. /dev/fd is /proc/self/fd by another name.
        let parent = folder(&found).canonicalize();
        if parent.is_ok_and(|parent| parent.starts_with("/proc"))
            || !fs::symlink_metadata(&found).is_ok_and(|metadata| metadata.is_symlink())
        {
            return Ok(found);
        }
        let link = fs::read_link(&found).map_err(Error::io("follow the link", path))?;
        found = folder(&found).join(link);
    }
    Err(Error::io("follow the link", path)(io::Error::other("it leads in a circle")))
}

fn kind(metadata: &fs::Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    if metadata.is_dir() { "a folder" } else { "something else than a file" }
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
