//! What can go wrong with the hub and its cache. What goes wrong with a service is `api::ApiError`.

use std::path::PathBuf;

/// Why the hub, or what was fetched of it, is no model's folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// A file of the cache could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file of the cache could not be written or removed, or its folder could not be made.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The hub could not be reached, or it refused.
    #[error("cannot fetch {repo} at revision {revision} from the hub: {source}")]
    Refused {
        /// The repository, `ORG/NAME`.
        repo: String,
        /// Branch, tag or commit.
        revision: String,
        /// What the hub or the network client says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The hub named something other than a commit for a revision.
    #[error("the hub says that {repo} is at {found:?}, which is no commit")]
    Commit {
        /// The repository, `ORG/NAME`.
        repo: String,
        /// What it named.
        found: String,
    },
    /// The hub has no such file, or none of a model.
    #[error("{repo} has no {wanted}; the hub offers {}", listed(.offered))]
    NoFile {
        /// The repository, `ORG/NAME`.
        repo: String,
        /// The file that was looked for, or a description where several would do.
        wanted: String,
        /// The names of the repository's files.
        offered: Vec<String>,
    },
    /// A file of the hub is not what the hub says it is, or would be stored outside its place.
    #[error("{repo}: {file}: {problem}")]
    File {
        /// The repository, `ORG/NAME`.
        repo: String,
        /// The file's name in the repository.
        file: String,
        /// What is wrong.
        problem: HubFileProblem,
    },
}

/// How many names of files a message shows.
const SHOWN: usize = 30;

/// Names of files, as the end of a message.
fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "no file".to_owned(),
        count if count > SHOWN => format!("{} and {} more files", names[..SHOWN].join(", "), count - SHOWN),
        _ => names.join(", "),
    }
}

/// What is wrong with a file of the hub. The first two are found before a byte is fetched, the
/// others after the download.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HubFileProblem {
    /// Its content has a name, used for a file in the cache, that is no single plain one and might
    /// lead elsewhere.
    #[error("the hub calls its content {etag:?}, which is no name of a file")]
    Name {
        /// The name that the hub gave.
        etag: String,
    },
    /// The hub offers it from another commit than the one asked for.
    #[error("the hub sent commit {found:?}, expected {expected}")]
    Commit {
        /// The commit asked for.
        expected: String,
        /// The commit that the hub names.
        found: String,
    },
    /// More than the stated number of bytes arrived.
    #[error("downloaded {found} bytes or more, expected {expected}; what came is deleted")]
    Size {
        /// Bytes that the hub states.
        expected: u64,
        /// Bytes that arrived before no more were read.
        found: u64,
    },
    /// Other bytes arrived than those of the stated sum.
    #[error("downloaded content has SHA-256 {found}, expected {expected}; what came is deleted")]
    Checksum {
        /// The SHA-256 that the hub states, in hexadecimal digits.
        expected: String,
        /// The SHA-256 of what arrived.
        found: String,
    },
}
