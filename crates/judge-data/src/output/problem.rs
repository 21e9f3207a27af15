use std::path::PathBuf;

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
    /// Something lies there that no run made, or that was changed since.
    #[error(
        "is a file that no run of these programs made as it is, so it is not replaced; choose another output, or move the file"
    )]
    Foreign,
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
