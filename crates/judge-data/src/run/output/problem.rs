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
    #[error("it is {kind}, expected a regular file or a new name")]
    NotAFile {
        /// What it is, in words.
        kind: &'static str,
    },
    /// Writing it would destroy an input.
    #[error("it is the same file as the input {}; choose another output", input.display())]
    IsInput {
        /// The input.
        input: PathBuf,
    },
    /// A run needs this name beside its output, and what lies there is no run's.
    #[error(
        "it needs the name {} beside it, and a file that no run wrote has it; move that file, or choose another output",
        by.display()
    )]
    Taken {
        /// The file.
        by: PathBuf,
    },
    /// Something lies there that no run made, or that was changed since.
    #[error(
        "it is a file that no command of these programs wrote, or that was changed since, so it is not replaced; choose another output, \
         or move the file"
    )]
    Foreign,
    /// What lies there was made by a command, and is nothing that this output may replace: rows with their record, or another format.
    #[error(
        "it is no file of the kind that is written here, so it is not replaced; choose another output, or move the file"
    )]
    OtherKind,
    /// A folder that is written whole has something in it.
    #[error("it is a folder with something in it; expected a new name or an empty folder")]
    NotEmpty,
    /// Something that is no folder has the name of one that is to be written.
    #[error("it is no folder; expected a new name or an empty folder")]
    NotAFolder,
    /// Records name files in JSON, which is UTF-8.
    #[error("its name is not UTF-8, so no record could name it; choose another name")]
    NotUtf8,
    /// The file that it leads to has a name that is not UTF-8, by its folder or by a link.
    #[error("it leads to {}, which is not UTF-8, so no record could name it; choose another folder", target.display())]
    TargetNotUtf8 {
        /// The file.
        target: PathBuf,
    },
    /// Two outputs go to one file.
    #[error("it is the same file as the output {}, or one that is kept beside it; choose another", other.display())]
    IsOutput {
        /// The other output.
        other: PathBuf,
    },
}
