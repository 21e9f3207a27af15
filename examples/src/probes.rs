//! Probe files: our own, and scikit-learn's pickles.

use std::path::Path;

use anyhow::{Context, Result};
use judge_probe::pickle::Limits;
use judge_probe::{FittedProbe, Precision, SavedProbe, SklearnProbe};

/// What a probe file held.
pub enum ProbeFile {
    /// This project's format.
    Saved(Box<SavedProbe>),
    /// A pickle.
    Sklearn(Box<SklearnProbe>),
}

impl ProbeFile {
    /// Reads a file of either kind, told apart by their first bytes. `precision` is that of the features that a pickle's probe will be given; our
    /// own files name theirs.
    ///
    /// # Errors
    /// If the file cannot be read, or is neither.
    pub fn read(path: &Path, precision: Precision) -> Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read the probe {}", path.display()))?;
        let read = || -> Result<Self, judge_probe::Error> {
            if is_safetensors(&bytes) {
                return Ok(Self::Saved(Box::new(SavedProbe::from_bytes(&bytes)?)));
            }
            Ok(Self::Sklearn(Box::new(SklearnProbe::from_pickle(&bytes, &Limits::default(), precision)?)))
        };
        read().with_context(|| format!("{} cannot be used as a probe", path.display()))
    }

    /// What judges features.
    #[must_use]
    pub fn probe(&self) -> &FittedProbe {
        match self {
            Self::Saved(saved) => saved.probe(),
            Self::Sklearn(imported) => &imported.probe,
        }
    }
}

/// A safetensors file begins with the length of its header, then the header, which is JSON. As a pickle this would be of no known protocol or
/// cut short.
fn is_safetensors(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk().map(|&length| u64::from_le_bytes(length));
    length.is_some_and(|length| length <= bytes.len() as u64) && bytes.get(8) == Some(&b'{')
}
