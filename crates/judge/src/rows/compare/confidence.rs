//! A probe of how likely a judge's verdicts are right, and the judge that it was trained on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use judge_core::ModelInfo;
use judge_data::Settings;
use judge_probe::SavedProbe;

use crate::judge_record::{of_judge, other_judge};
use crate::probes::{JUDGE_NOTE, read_saved};

/// The probe, with what it knows of its judge.
pub(super) struct Confidence {
    path: PathBuf,
    /// BLAKE3 of the file.
    pub(super) file: String,
    pub(super) probe: Arc<SavedProbe>,
    judge: Settings,
}

impl Confidence {
    /// Of a file of `judge probe train --verdicts`.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let (probe, file) = read_saved(path)?;
        let Some(judge) = probe.origin().notes.get(JUDGE_NOTE) else {
            bail!(
                "--confidence: {} does not say of which judge's verdicts it is; make one with `judge probe train --verdicts`",
                path.display()
            );
        };
        let judge = serde_json::from_str(judge).with_context(|| format!("the judge of {}", path.display()))?;
        Ok(Self { path: path.to_path_buf(), file, probe: Arc::new(probe), judge })
    }

    /// That these settings are of the judge that it was trained on.
    pub(super) fn check_judge(&self, settings: &Settings) -> Result<()> {
        let Some(difference) = other_judge(&self.judge, &of_judge(settings)) else { return Ok(()) };
        bail!(
            "--confidence: {} was trained on verdicts of another judge: {difference}; ask that judge, or train a probe of this one",
            self.path.display()
        )
    }

    /// That the model is the judge's.
    pub(super) fn check_model(&self, model: &ModelInfo) -> Result<()> {
        let checked = self.probe.check_model(model);
        checked.with_context(|| format!("--confidence: {} is of another model's verdicts", self.path.display()))
    }
}
