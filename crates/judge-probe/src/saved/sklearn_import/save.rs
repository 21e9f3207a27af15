//! From an imported classifier to a saved probe: what the pickle does not say, a person must.
//!
//! It decides which source wins: the pickle's metadata, where it has any, for signals, model and aspect. A contradiction in signals or
//! aspect is an error. The model's name is the metadata's; one given besides is not used.

use std::collections::BTreeMap;

use judge_core::{Layer, request::Signal};

use super::SklearnProbe;
use crate::{Error, ProbeOrigin, ProbedModel, SavedProbe, SavedProbeError, Validation};

/// What whoever imports a pickle knows of it, for pickles that do not say it themselves. It is trusted: only widths can be checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportedFrom {
    /// The model whose signals the features are. A pickle with INSPECTOR's metadata keeps the name of its own, without fingerprint: see
    /// [`SavedProbe::bound_to`].
    pub model: Option<ProbedModel>,
    /// What stands side by side in a row of features, in this order.
    ///
    /// May be empty for a pickle with metadata. With them it must be equal, order included.
    pub signals: Vec<(Layer, Signal)>,
    /// The aspect judged.
    ///
    /// Kept as the note `aspect`; it changes no prediction.
    pub aspect: Option<String>,
    /// The id of the template of the prompts.
    ///
    /// Kept as the note `template_id`. INSPECTOR's metadata do not have it.
    pub template_id: Option<String>,
}

impl SklearnProbe {
    /// The probe with its origin, of which INSPECTOR's metadata and `from` each know a part.
    ///
    /// # Errors
    ///
    /// [`SavedProbeError::Misfit`] where neither names the model or the signals, and where `from` contradicts the metadata; those of
    /// [`SavedProbe::new`].
    ///
    /// The notes say `source`, and where known `aspect`, `template_id`, `sklearn_version`, `classification`, `clf_name`, `timestamp`, and
    /// each of the search's best settings by its own name. The search's scores become the [`Validation`]. There is no hash of the data: a
    /// pickle does not hold them.
    pub fn into_saved(self, from: ImportedFrom) -> Result<SavedProbe, Error> {
        let ImportedFrom { model, mut signals, mut aspect, template_id } = from;
        let mut notes = BTreeMap::from([("source".to_owned(), "scikit-learn pickle".to_owned())]);
        let mut named = None;
        if let Some(metadata) = self.metadata {
            let pooled: Vec<(Layer, Signal)> =
                metadata.pooled.into_iter().map(|(layer, pooling)| (layer, Signal::State(pooling))).collect();
            if !signals.is_empty() && signals != pooled {
                let (expected, found) = (in_order(&pooled), in_order(&signals));
                return Err(SavedProbeError::Misfit(format!("fitted on {expected}, found {found}")).into());
            }
            if let Some(found) = aspect.filter(|aspect| *aspect != metadata.dimension) {
                let expected = metadata.dimension;
                return Err(SavedProbeError::Misfit(format!("the pickle judges {expected:?}, found {found:?}")).into());
            }
            (signals, aspect) = (pooled, Some(metadata.dimension));
            notes.insert("classification".to_owned(), metadata.classification);
            notes.insert("clf_name".to_owned(), metadata.clf_name);
            notes.extend(metadata.timestamp.map(|timestamp| ("timestamp".to_owned(), timestamp)));
            let (name, d_model) = (metadata.llm, metadata.d_model);
            named = Some(ProbedModel { name, revision: None, fingerprint: None, d_model, n_heads: None });
        }
        let no_origin = |missing: &str| {
            let cure = "so it cannot be saved for use on a model unless you name it";
            SavedProbeError::Misfit(format!("the pickle does not say {missing}, {cure}"))
        };
        if signals.is_empty() {
            return Err(no_origin("the layers and poolings that its features are of").into());
        }
        let model = named.or(model).ok_or_else(|| no_origin("the model whose states its features are"))?;
        notes.extend(aspect.map(|aspect| ("aspect".to_owned(), aspect)));
        notes.extend(template_id.map(|id| ("template_id".to_owned(), id)));
        notes.extend(self.sklearn_version.map(|version| ("sklearn_version".to_owned(), version)));
        let validation = self.search.map(|search| {
            notes.extend(search.best_params);
            Validation { scoring: search.scoring, mean: search.best_score, folds: search.fold_scores }
        });
        SavedProbe::new(self.probe, ProbeOrigin { model, signals, validation, data_hash: None, notes })
    }
}

impl TryFrom<SklearnProbe> for SavedProbe {
    type Error = Error;

    /// Of a pickle with INSPECTOR's metadata, which say what the features are of. It has no fingerprint: see
    /// [`bound_to`](Self::bound_to).
    fn try_from(imported: SklearnProbe) -> Result<Self, Error> {
        imported.into_saved(ImportedFrom::default())
    }
}

/// `last of layer 3, mean of layer 3`: each signal in its place.
fn in_order(signals: &[(Layer, Signal)]) -> String {
    let parts: Vec<String> = signals.iter().map(|(layer, signal)| format!("{} of {layer}", signal.as_str())).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}
