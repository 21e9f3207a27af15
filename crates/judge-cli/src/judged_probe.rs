//! A probe that was trained on what one judge was asked, and the judge that it belongs to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use judge_core::ModelInfo;
use judge_data::Settings;
use judge_probe::SavedProbe;

use crate::judge_record::{of_judge, other_judge};
use crate::probes::{JUDGE_NOTE, read_saved};

/// The probe, with what it knows of its judge.
pub struct JudgedProbe {
    /// The option that names it.
    option: &'static str,
    path: PathBuf,
    /// BLAKE3 of the file.
    pub file: String,
    /// What judges.
    pub probe: Arc<SavedProbe>,
    judge: Settings,
}

impl JudgedProbe {
    /// The file that an option names, which `made_by` makes.
    ///
    /// # Errors
    /// If it cannot be read, or is a probe of no judge.
    pub fn read(option: &'static str, path: &Path, made_by: &str) -> Result<Self> {
        let (probe, file) = read_saved(path)?;
        let Some(judge) = probe.origin().notes.get(JUDGE_NOTE) else {
            let path = path.display();
            bail!("{option}: {path} does not say of which judge it is; make one with `{made_by}`");
        };
        let judge = serde_json::from_str(judge).with_context(|| format!("the judge of {}", path.display()))?;
        Ok(Self { option, path: path.to_path_buf(), file, probe: Arc::new(probe), judge })
    }

    /// That these settings are of the judge that it was trained on.
    ///
    /// # Errors
    /// In what they differ.
    pub fn check_judge(&self, settings: &Settings) -> Result<()> {
        let Some(difference) = other_judge(&self.judge, &of_judge(settings)) else { return Ok(()) };
        let (option, path) = (self.option, self.path.display());
        bail!(
            "{option}: {path} was trained on another judge: {difference}; ask that judge, or train a probe of this one"
        )
    }

    /// That the model is the judge's.
    ///
    /// # Errors
    /// If it is another.
    pub fn check_model(&self, model: &ModelInfo) -> Result<()> {
        let checked = self.probe.check_model(model);
        checked.with_context(|| format!("{}: {} is of another model", self.option, self.path.display()))
    }
}
