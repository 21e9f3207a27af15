//! Probe files: our own, and scikit-learn's pickles; and probes with the prompts that they were fitted on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use judge_core::{
    ModelInfo, PromptTemplate,
    inspector::{Aspect, InspectorJudge, InspectorSettings},
};
use judge_probe::pickle::Limits;
use judge_probe::{FittedProbe, Precision, SavedProbe, SklearnProbe};
use serde_json::{Value, json};

use crate::args::model_args::{ModelArgs, read_template};
use crate::terminal::options::offered;

/// The note of a probe that says how likely a judge is right: what of a run's settings made the verdicts that it was trained on.
pub const JUDGE_NOTE: &str = "judge";

/// The fields that a row judged by probes has besides the input's and the aspects'.
pub const JUDGED: [&str; 4] = ["total_score", "expected_total", "probabilities", "unscored"];

/// Refuses an aspect that is called as another field of the rows which are judged of it.
///
/// # Errors
/// Its name.
pub fn check_aspect(aspect: &str) -> Result<()> {
    let others = JUDGED.join(", ");
    ensure!(
        !JUDGED.contains(&aspect),
        "an aspect cannot be called {aspect:?}: judged rows have a field for each aspect beside {others}; give it another name"
    );
    Ok(())
}

/// What a probe file held.
pub enum ProbeFile {
    /// This project's format.
    Saved(Box<SavedProbe>),
    /// A pickle.
    Sklearn(Box<SklearnProbe>),
}

impl ProbeFile {
    /// Reads a file of either kind, told apart by their first bytes.
    /// `precision` is that of the features that a pickle's probe will be given; our
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

/// Reads a saved probe, and the BLAKE3 of its file.
///
/// # Errors
/// If the file cannot be read, or is none.
pub fn read_saved(path: &Path) -> Result<(SavedProbe, String)> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read the probe {}", path.display()))?;
    let probe = SavedProbe::from_bytes(&bytes).with_context(|| format!("{} is no probe", path.display()))?;
    Ok((probe, blake3::hash(&bytes).to_hex().to_string()))
}

/// A safetensors file begins with the length of its header, then the header, which is JSON.
/// As a pickle this would be of no known protocol or
/// cut short.
fn is_safetensors(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk().map(|&length| u64::from_le_bytes(length));
    length.is_some_and(|length| length <= bytes.len() as u64) && bytes.get(8) == Some(&b'{')
}

/// A probe with the prompt that it was fitted on.
pub struct PromptedProbe {
    /// What it judges.
    pub aspect: String,
    /// BLAKE3 of the file.
    file: String,
    probe: Arc<SavedProbe>,
    template: PromptTemplate,
}

impl PromptedProbe {
    /// Reads probe files and folders of them, the five published aspects in their order and others behind them.
    /// `templates` is a folder of ASPECT.json, the prompts; without it those
    /// beside the probes, and for probes that name no prompt, because they were fitted on prompts as they are, `plain`.
    ///
    /// # Errors
    /// If a file is no probe, two have one aspect, or the prompt of one is not there or not the one that it was fitted on.
    pub fn read(probes: &[PathBuf], templates: Option<&Path>, plain: Option<&PromptTemplate>) -> Result<Vec<Self>> {
        let mut paths = Vec::new();
        for path in probes {
            if !path.is_dir() {
                paths.push(path.clone());
                continue;
            }
            let mut inside = Vec::new();
            for entry in std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))? {
                let entry = entry?.path();
                if entry.extension().is_some_and(|extension| extension == "safetensors") {
                    inside.push(entry);
                }
            }
            ensure!(!inside.is_empty(), "{} has no probes (*.safetensors)", path.display());
            inside.sort();
            paths.extend(inside);
        }
        let mut judged: BTreeMap<(usize, String), Self> = BTreeMap::new();
        for path in paths {
            let (probe, file) = read_saved(&path)?;
            let notes = &probe.origin().notes;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let aspect = notes.get("aspect").cloned().unwrap_or(stem);
            let id = notes.get("template_id").map(String::as_str);
            let template = template(templates, plain, &path, &aspect, id)?;
            // The five in the published order, others behind them.
            let place = Aspect::ALL.iter().position(|known| known.as_str() == aspect).unwrap_or(Aspect::ALL.len());
            let entry = Self { aspect: aspect.clone(), file, probe: Arc::new(probe), template };
            if judged.insert((place, aspect.clone()), entry).is_some() {
                bail!("{}: there are two probes of the aspect {aspect:?}", path.display());
            }
        }
        Ok(judged.into_values().collect())
    }

    /// The prompt.
    #[must_use]
    pub fn template(&self) -> &PromptTemplate {
        &self.template
    }

    /// The judge that it makes of a model.
    ///
    /// # Errors
    /// If it was fitted on another model.
    pub fn judge(&self, args: &ModelArgs, model: &ModelInfo) -> Result<InspectorJudge> {
        let template = args.dress_template(self.template.clone());
        let settings = InspectorSettings { aspect: self.aspect.clone(), template, probe: self.probe.clone() };
        InspectorJudge::new(settings, model).with_context(|| format!("the probe of {}", self.aspect))
    }

    /// What of probes decides about a row.
    #[must_use]
    pub fn settings(probes: &[Self]) -> Value {
        let of = |one: &Self| (one.aspect.clone(), json!({"probe": one.file, "template": one.template.id()}));
        Value::Object(probes.iter().map(of).collect())
    }
}

/// The template that a probe was fitted with.
fn template(
    templates: Option<&Path>,
    plain: Option<&PromptTemplate>,
    probe: &Path,
    aspect: &str,
    id: Option<&str>,
) -> Result<PromptTemplate> {
    let named = templates.map(|folder| folder.join(format!("{aspect}.json")));
    let beside = probe.with_extension("template.json");
    let template = match named {
        Some(path) => read_template(&path)?,
        None if beside.exists() => read_template(&beside)?,
        None => match (aspect.parse::<Aspect>(), plain) {
            (Ok(aspect), _) if id == Some(aspect.template().id()) => aspect.template(),
            (_, Some(plain)) if id.is_none() => plain.clone(),
            _ => bail!(
                "{} does not say which prompt it was fitted on: put the prompt beside it as {}{}",
                probe.display(),
                beside.display(),
                offered([format!(", or give --templates, a folder with {aspect}.json")]).unwrap_or_default()
            ),
        },
    };
    if let Some(id) = id {
        ensure!(template.id() == id, "{} was fitted on another prompt than the template given", probe.display());
    }
    Ok(template)
}
