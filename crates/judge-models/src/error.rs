//! The crate's error.
//!
//! Variants of [`Error`] say where (a path, a repository, a device) and hold a problem that says
//! what was expected and found. Problems that only one part of the crate has are defined there
//! (`ConfigProblem`, `DevicesProblem`, `TrainProblem`); what goes wrong with files of weights and adapters, with texts and
//! tokens, with the hub and with services has the errors of their crates inside. What is one item's own fault is not an error but
//! `judge_core::Unscored`.

use std::path::PathBuf;

use judge_hub::error::HubError;
use judge_kernels::supported::NoKernel;
use judge_text::error::Error as TextError;
use judge_weights::error::Error as WeightsError;

use crate::{CudaProblem, DevicesProblem, RerankFormProblem};

/// What to do about a model's name that is an address, or begins with a `~` that the shell has left.
fn mend(name: &str) -> &'static str {
    match name {
        _ if name.contains("://") => "; give ORG/NAME alone, without the address before it",
        _ if name.starts_with('~') => "; in quotes the shell leaves ~ as it is: write the home folder out",
        _ => "",
    }
}

/// Everything that can go wrong while a model is found, loaded or run, apart from what is one
/// item's own fault ([`Unscored`](judge_core::Unscored)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be written or removed, or its folder could not be made.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A folder is to be written where there is something. Nothing was changed.
    #[error("{path} exists: name a folder that does not, or an empty one", path = path.display())]
    OutputExists {
        /// The path that was to be written.
        path: PathBuf,
    },
    /// A folder is to be written that another process is writing. Nothing was changed.
    #[error("another process is writing {path}: let it end, or name another folder", path = path.display())]
    OutputHeld {
        /// The path that was to be written.
        path: PathBuf,
    },
    /// The head of labels and the model do not go together.
    #[error("the model's head of labels: {source}")]
    Head {
        /// What does not fit.
        source: judge_core::Error,
    },
    /// A file of a decision model is not what it must be.
    #[error("{path}: {problem}", path = path.display())]
    Decision {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: judge_core::decision::DecisionProblem,
    },
    /// `config.json` does not describe a model that this crate can build.
    #[error("{path}: {problem}", path = path.display())]
    Config {
        /// The `config.json`.
        path: PathBuf,
        /// What is wrong.
        problem: crate::ConfigProblem,
    },
    /// A folder or a file cannot be read, is not what it should be, or asks for something that this crate does not do.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A file of packed weights ([`LoadOptions::packed_cache`](crate::LoadOptions::packed_cache)) is not
    /// what was written.
    #[error("{path}: {problem}: delete the file, and it is written again", path = path.display())]
    PackedCache {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: PackedCacheProblem,
    },
    /// A text cannot become tokens, or a folder does not say how.
    #[error(transparent)]
    Text(TextError),
    /// A GPU was asked for in a build that cannot use it.
    #[error("{device} was asked for, but this build cannot use it: it lacks the feature `{}` of judge-models", device.feature())]
    NotInBuild {
        /// The device asked for.
        device: crate::Device,
    },
    /// wgpu lists fewer GPUs than the index needs.
    #[error("{device} was asked for, but wgpu lists {found} GPUs on this machine, numbered from 0")]
    NoAdapter {
        /// The device asked for.
        device: crate::Device,
        /// GPUs that it lists.
        found: usize,
    },
    /// A GPU was asked for that cannot be used.
    #[error("{device} was asked for, but {problem}")]
    Cuda {
        /// The device asked for.
        device: crate::Device,
        /// What is missing.
        problem: CudaProblem,
    },
    /// One model cannot be spread over the devices named.
    #[error("devices {}: {problem}", crate::device::names(.devices))]
    Devices {
        /// The devices asked for, in their order.
        devices: Vec<crate::Device>,
        /// Why not.
        problem: DevicesProblem,
    },
    /// A text is not the name of a device.
    #[error("{found:?} is no device, expected cpu, cuda:INDEX or wgpu:INDEX")]
    UnknownDevice {
        /// The text.
        found: String,
    },
    /// A text is not the name of a form of weights.
    #[error("{found:?} is no form of weights: expected as-stored or int8")]
    UnknownWeightForm {
        /// The text.
        found: String,
    },
    /// A kernel was asked for whose instructions this processor lacks.
    #[error(transparent)]
    NoKernel(#[from] NoKernel),
    /// The Jinja template of a decision's prompt leaves out what is decided about, so that all prompts would be the same.
    #[error("the template of a prompt does not name `state`, which is what is decided about")]
    PromptWithoutState,
    /// A folder, and what is given beside it, do not say how documents are scored.
    #[error("{}{problem}", path.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display())))]
    Rerank {
        /// The folder or the file; `None` for what is given alone.
        path: Option<PathBuf>,
        /// What is missing or wrong.
        problem: RerankFormProblem,
    },
    /// A prompt cannot be tokenised where its tokens themselves were asked for: the template
    /// refuses it, or it has none.
    #[error("the prompt cannot be read: {unscored}")]
    Prompt {
        /// The reason that an item with this prompt would get.
        unscored: judge_core::Unscored,
    },
    /// An operation on a device failed, or numbers could not be read back from it; a GPU may have
    /// no memory left.
    #[error("an operation on the device failed: {source}")]
    Device {
        /// What the device's runtime says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The weights of a model did not all arrive on its device, whose memory may be too small.
    #[error("the model's weights did not all reach the device, whose memory may be too small for them: {source}")]
    Upload {
        /// What reading some of them back brought.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A pass brought no state to generate from, or a model without a head over a vocabulary was
    /// asked for one. Says that this crate is wrong, not its input.
    #[error("the forward pass brought no state")]
    NothingRead,
    /// A model's name is neither a folder or file that exists nor a hub id.
    #[error(
        "{found:?} is neither a folder or GGUF file nor a hub id of the form ORG/NAME, ORG/NAME@REVISION or ORG/NAME:FILE.gguf{}",
        mend(.found)
    )]
    ModelName {
        /// The name that was given.
        found: String,
    },
    /// Offline, and the hub's cache does not have the model, or not all of it.
    #[error("{repo} at revision {revision} is not (or not wholly) in {cache}, and offline mode (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE) forbids fetching it; a GGUF file that is there can be named as ORG/NAME:FILE", cache = cache.display())]
    NotInCache {
        /// The repository, `ORG/NAME`.
        repo: String,
        /// Branch, tag or commit.
        revision: String,
        /// The cache that was looked into.
        cache: PathBuf,
    },
    /// The model is not in the cache, and this build cannot fetch models.
    #[error("{repo} is not in the cache, and this build cannot fetch it: it lacks the feature `hub` of judge-models")]
    NoHub {
        /// The repository, `ORG/NAME`.
        repo: String,
    },
    /// The hub does not give a model. What cannot be read or written is [`WeightsError::Read`] and [`Error::Write`].
    #[error(transparent)]
    Hub(HubError),
    /// A service cannot be asked, or did not answer.
    #[cfg(feature = "api")]
    #[error(transparent)]
    Api(#[from] crate::ApiError),
}

impl Error {
    /// The error for a file that a folder of these files must have and has not.
    pub(crate) fn missing_file(folder: PathBuf, wanted: &'static str, found: Vec<String>) -> Self {
        Self::Weights(WeightsError::MissingFile { folder, wanted, found })
    }
}

impl From<judge_core::Unscored> for Error {
    fn from(unscored: judge_core::Unscored) -> Self {
        Self::Prompt { unscored }
    }
}

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        match error {
            TextError::Weights(error) => Self::Weights(*error),
            TextError::Prompt { unscored } => Self::Prompt { unscored },
            other => Self::Text(other),
        }
    }
}

impl From<HubError> for Error {
    fn from(error: HubError) -> Self {
        match error {
            HubError::Read { path, source } => Self::Weights(WeightsError::Read { path, source }),
            HubError::Write { path, source } => Self::Write { path, source },
            other => Self::Hub(other),
        }
    }
}

/// What is wrong with a file of packed weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackedCacheProblem {
    /// It does not end with an index of what it holds.
    #[error(
        "expected packed weights with an index at their end, found a file that is cut off, or one that is not packed weights"
    )]
    Damaged,
    /// It does not hold a matrix of the model where that should be.
    #[error("expected the matrix {name} in its place, found another or none")]
    Matrix {
        /// The first tensor that the matrix is made of.
        name: String,
    },
}
