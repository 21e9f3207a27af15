//! Classifiers that scikit-learn fitted, from their pickles, without Python.
//!
//! It owns the way from a pickle's tree to a [`FittedProbe`]: which of scikit-learn's objects may stand where, and which of their
//! attributes are read. Reading bytes is [`pickle`](crate::pickle)'s; predicting is the probe's. Nothing is fitted here, and attributes
//! that predictions do not depend on (`n_iter_`, `C`, random states) are not read.
//!
//! The tree that is walked:
//!
//! ```text
//! {"model": M, "metadata": {...}}, beside them no other object,  or  M
//! M = GridSearchCV or RandomizedSearchCV(best_estimator_ = M), Pipeline([StandardScaler or PCA, ...] M)  or  C
//! C = LogisticRegression, LogisticRegressionCV, LinearSVC or SVC(kernel="linear")
//! ```
//!
//! The tests compare with predictions of the scikit-learn release that wrote each pickle. Attributes are checked against each other and
//! never trusted to agree: the file may be damaged, edited, or made to be expensive.

mod classifier;
mod error;
mod metadata;
mod place;
mod save;

pub use error::ImportError;
pub use metadata::InspectorMetadata;
pub use save::ImportedFrom;

use std::collections::HashMap;

use place::Place;

use crate::pickle::{self, Limits, Object, Value};
use crate::{
    Error, FittedClassifier, FittedEstimator, FittedPca, FittedProbe, FittedStandardScaler, FittedTransformer, Matrix,
    Precision, ProbeStage,
};

/// What a pickle of scikit-learn's held.
///
/// Only `probe` is needed for predicting. The rest is provenance, copied as the file states it.
#[derive(Debug, Clone, PartialEq)]
pub struct SklearnProbe {
    /// Scaler and classifier.
    pub probe: FittedProbe,
    /// The release that fitted the classifier, where it says so.
    ///
    /// `_sklearn_version` of the classifier, `None` for a pickle without it.
    pub sklearn_version: Option<String>,
    /// What a grid search found, where there was one.
    ///
    /// Its scores are those of the winner among many candidates and so too high as an estimate.
    pub search: Option<Search>,
    /// What INSPECTOR's program writes beside the model, where it was.
    pub metadata: Option<InspectorMetadata>,
    /// Other entries of the dictionary that held the model, such as numbers and arrays, which are not read and not applied: the keys of
    /// eight at most, each cut at 100 characters.
    pub unread: Vec<String>,
}

/// The outcome of scikit-learn's `GridSearchCV` or `RandomizedSearchCV`.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What was scored: scikit-learn's name of the scorer, or `score` for the classifier's own, accuracy; of a scorer made from a function,
    /// the function's name; of several, the one that chose.
    pub scoring: String,
    /// Mean score over the folds of the best setting.
    ///
    /// Greater is better, as for all of scikit-learn's scorers; losses are negated. Unweighted by the size of the folds.
    pub best_score: f64,
    /// Its score on each fold.
    ///
    /// `split0_test_score`, `split1_test_score` and so on at `best_index_`, `[n_splits_]`. They must be finite.
    pub fold_scores: Vec<f64>,
    /// The best setting: names and values as Python prints them.
    ///
    /// In the file's order. Of an object it is the name of the class.
    pub best_params: Vec<(String, String)>,
}

impl SklearnProbe {
    /// Reads a pickle (protocol 2 to 5), written by `pickle.dump` or `joblib.dump` and perhaps compressed by gzip or zlib, of a fitted
    /// `LogisticRegression`, `LogisticRegressionCV`, `LinearSVC` or linear `SVC`, by itself, in a `Pipeline` behind a `StandardScaler` and
    /// a `PCA`, and either of these in a `GridSearchCV` or `RandomizedSearchCV`; or of a dictionary with such a `model` and, as INSPECTOR's
    /// program saves it, its `metadata`. A scaler or another object beside them is refused, since it would not be applied. Fitted by
    /// releases 1.0 to 1.9. Classes must be whole numbers.
    ///
    /// Nothing in the pickle is run: see [`pickle`](crate::pickle). `precision` is that of the features which the probe will be given; as
    /// the release of scikit-learn that fitted the probe would, its scaler keeps to it, and since release 1.8 means and scales are rounded
    /// to it too. What a PCA makes of the features is in double precision, and so is a scaler after it.
    ///
    /// A support vector machine's vectors are folded into one weight vector for every two classes.
    ///
    /// # Errors
    ///
    /// [`Error::Pickle`] for what is no such pickle or too large; [`Error::Import`] where an attribute is missing, of another type or
    /// shape, contradicts another, holds numbers that are not finite, or asks for behaviour that is not followed;
    /// [`Error::InvalidParameter`] for a scale that is not above 0 or a mean beyond the precision's range.
    pub fn from_pickle(bytes: &[u8], limits: &Limits, precision: Precision) -> Result<Self, Error> {
        let bytes = pickle::decompress(bytes, limits)?;
        let tree = pickle::read(&bytes, limits)?;
        let root = Place::root(&tree);
        let (model, metadata, unread) = match root.value {
            Value::Dict(entries) => match root.find("model") {
                Some(model) => (model, root.find("metadata"), unread(&root, entries)?),
                None => return Err(not_a_model(&root, entries).into()),
            },
            _ => (root, None, Vec::new()),
        };
        // A search may hold a pipeline, and a pipeline may end in a search.
        let (mut found, mut before, mut fitted) = (None, Vec::new(), model);
        loop {
            let class = fitted.object()?.class();
            if SEARCHES.contains(&class) {
                let outer = found.take();
                found = Some(outer.map_or_else(|| search(&fitted), Ok)?);
                fitted = fitted.get("best_estimator_")?;
            } else if class == "sklearn.pipeline.Pipeline" {
                let (earlier, last) = steps(&fitted)?;
                before.extend(earlier);
                fitted = last;
            } else {
                break;
            }
        }
        let classifier = classifier::classifier(&fitted, limits)?;
        let mut stages = Vec::new();
        let mut width = classifier.n_features();
        for (index, place) in before.iter().enumerate().rev() {
            // A PCA gives double precision, whatever it is given.
            let reduced = before[..index].iter().any(|earlier| earlier.object().is_ok_and(|of| of.class() == PCA));
            let stage = stage(place, width, if reduced { Precision::F64 } else { precision })?;
            width = stage.n_features_in();
            stages.insert(0, stage);
        }
        let n_classes = classifier.classes().len();
        Ok(Self {
            metadata: metadata.map(|place| InspectorMetadata::read(&place, n_classes, width)).transpose()?,
            probe: FittedProbe::new(stages, classifier, precision)?,
            sklearn_version: fitted.find("_sklearn_version").map(|version| version.text()).transpose()?,
            search: found,
            unread,
        })
    }
}

/// The keys of what stands beside a model and its metadata in a dictionary and is not None, as Python prints them.
///
/// What they are for is not known. An object, also in a list or dictionary of its own, is for the features or another model, and without it
/// predictions could be others: an error.
fn unread(root: &Place<'_, '_>, entries: &[(Value<'_>, Value<'_>)]) -> Result<Vec<String>, ImportError> {
    let mut keys = Vec::new();
    for (key, value) in entries {
        if matches!(key, Value::Str("model" | "metadata")) || *value == Value::None {
            continue;
        }
        let key: String = metadata::printed(key).chars().take(100).collect();
        if let Some(object) = object_in(value) {
            let problem = format!(
                "{} beside the model would not be applied: save the model alone, or both as one, \
                 sklearn.pipeline.make_pipeline(scaler, model)",
                object.class()
            );
            return Err(root.within(value, &format!(".{key}")).error(problem));
        }
        if keys.len() < 8 {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// The first object that a value is or holds.
fn object_in<'v, 'a>(value: &'v Value<'a>) -> Option<&'v Object<'a>> {
    match value {
        Value::Object(object) => Some(object),
        Value::List(items) | Value::Tuple(items) => items.iter().find_map(object_in),
        Value::Dict(entries) => entries.iter().find_map(|(_, value)| object_in(value)),
        _ => None,
    }
}

/// What is wrong with a dictionary of other things.
///
/// The keys help to see which file it is. They are a stranger's text: eight keys of 100 characters at most.
fn not_a_model(root: &Place<'_, '_>, entries: &[(Value<'_>, Value<'_>)]) -> ImportError {
    let text = |key: &Value<'_>| match key {
        Value::Str(text) => Some(text.chars().take(100).collect::<String>()),
        _ => None,
    };
    let keys: Vec<String> = entries.iter().filter_map(|(key, _)| text(key)).take(8).collect();
    root.error(format!(
        "expected a fitted scikit-learn object, or a dictionary with one as its entry \"model\"; found a dictionary of {keys:?}"
    ))
}

/// Searches that keep the estimator that they found best.
const SEARCHES: [&str; 2] =
    ["sklearn.model_selection._search.GridSearchCV", "sklearn.model_selection._search.RandomizedSearchCV"];

/// The steps of a pipeline, the last one apart.
///
/// Steps that are None or `"passthrough"` are skipped, as the pipeline does. Names of steps do not matter.
fn steps<'p, 'a>(pipeline: &Place<'p, 'a>) -> Result<(Vec<Place<'p, 'a>>, Place<'p, 'a>), ImportError> {
    let all = pipeline.get("steps")?;
    let mut steps = Vec::new();
    for step in all.items()? {
        let [_name, object] = step.items()?.try_into().map_err(|_| step.unexpected("a name and an object"))?;
        if !matches!(object.value, Value::None | Value::Str("passthrough")) {
            steps.push(object);
        }
    }
    let last = steps.pop().ok_or_else(|| all.missing())?;
    Ok((steps, last))
}

/// Features along principal components.
const PCA: &str = "sklearn.decomposition._pca.PCA";

/// What stands before a classifier, and how many features it makes.
fn stage(place: &Place<'_, '_>, n_features_out: usize, precision: Precision) -> Result<ProbeStage, Error> {
    match place.object()?.class() {
        "sklearn.preprocessing._data.StandardScaler" => Ok(scaler(place, n_features_out, precision)?.into()),
        PCA => Ok(pca(place, n_features_out)?.into()),
        _ => Err(place.unexpected("a StandardScaler or a PCA before the classifier").into()),
    }
}

/// `(x − mean_) · components_ᵀ`, without whitening.
fn pca(place: &Place<'_, '_>, n_components: usize) -> Result<FittedPca, Error> {
    place.check_off("whiten", "components that are not whitened")?;
    let components = place.get("components_")?;
    let [_, n_features] = components.shape()?;
    let values = components.floats(&[n_components, n_features])?;
    FittedPca::from_parts(
        place.get("mean_")?.floats(&[n_features])?,
        Matrix::new(values, n_features)?,
        place.get("explained_variance_")?.floats(&[n_components])?,
        place.get("explained_variance_ratio_")?.floats(&[n_components])?,
    )
}

/// `(x − mean_) / scale_`. With `with_mean=False` the mean is 0, with `with_std=False` the scale is 1, which changes no bit of the
/// features.
///
/// `scale_` is read and not derived from `var_`: scikit-learn sets it to 1 for features that are constant. Since release 1.8 means and scales
/// are brought to the features' precision before they are used.
fn scaler(place: &Place<'_, '_>, n_features: usize, precision: Precision) -> Result<FittedStandardScaler, Error> {
    classifier::check_n_features(place, n_features)?;
    let vector = |switch: &str, name: &str, without: f64| -> Result<Vec<f64>, ImportError> {
        if place.get(switch)?.flag()? { place.get(name)?.floats(&[n_features]) } else { Ok(vec![without; n_features]) }
    };
    let mut mean = vector("with_mean", "mean_", 0.0)?;
    let mut scale = vector("with_std", "scale_", 1.0)?;
    if precision != Precision::F64 && classifier::release(place)? >= (1, 8) {
        mean.iter_mut().chain(&mut scale).for_each(|parameter| *parameter = precision.round(*parameter));
    }
    FittedStandardScaler::from_parts(mean, scale)
}

/// Folds of a search, at most: a pickle could name an array of its own size once more with every few bytes.
const MOST_FOLDS: usize = 1_000;

/// Scores of a search, those of all settings on all folds, at most.
///
/// Sharing makes it necessary: in a pickle every fold can refer to one array, each decoded anew.
const MOST_SCORES: usize = 1 << 22;

/// What is kept of a search: one number for each fold, at `best_index_`, and the winning settings.
///
/// `cv_results_` is put into a map first, so that the cost is that of its entries plus the scores, not their product. Scores of
/// candidates that lost may be NaN, as those of failed fits are.
fn search(place: &Place<'_, '_>) -> Result<Search, ImportError> {
    let index = place.get("best_index_")?.count()?;
    let results = place.get("cv_results_")?;
    let Value::Dict(entries) = results.value else { return Err(results.unexpected("a dictionary")) };
    let by_name: HashMap<&str, &Value<'_>> = entries
        .iter()
        .filter_map(|(name, value)| match name {
            Value::Str(name) => Some((*name, value)),
            _ => None,
        })
        .collect();
    let splits = place.get("n_splits_")?;
    let n_splits = splits.count()?;
    if n_splits > MOST_FOLDS {
        return Err(splits.count_error("folds at most", MOST_FOLDS, n_splits));
    }
    // Of several scores, the one that chose.
    let several = place.find("multimetric_").is_some_and(|several| *several.value == Value::Bool(true));
    let refit = place.find("refit").filter(|_| several).map(|refit| refit.text()).transpose()?;
    let metric = refit.as_deref().unwrap_or("score");
    let (mut fold_scores, mut n_scores) = (Vec::new(), 0_usize);
    for fold in 0..n_splits {
        let name = format!("split{fold}_test_{metric}");
        let Some(value) = by_name.get(name.as_str()) else {
            return Err(results.within(results.value, &format!(".{name}")).missing());
        };
        let scores = results.within(value, &format!(".{name}"));
        let Value::Array(array) = scores.value else { return Err(scores.unexpected("an array")) };
        n_scores = n_scores.saturating_add(array.shape().iter().product());
        if n_scores > MOST_SCORES {
            return Err(scores.count_error("scores at most", MOST_SCORES, n_scores));
        }
        fold_scores.push(scores.float_at(index)?);
    }
    let params = place.get("best_params_")?;
    let Value::Dict(entries) = params.value else { return Err(params.unexpected("a dictionary")) };
    let best_params = entries.iter().map(|(name, value)| {
        let Value::Str(name) = name else { return Err(params.unexpected("a dictionary of names")) };
        Ok(((*name).to_owned(), metadata::printed(value)))
    });
    let scoring = match (&refit, place.find("scoring")) {
        (Some(chosen), _) => chosen.clone(),
        (None, None) => "score".to_owned(),
        (None, Some(scoring)) => {
            // Of a scorer, the function that it was made from.
            let function = scoring.find("_score_func");
            metadata::printed(function.as_ref().unwrap_or(&scoring).value)
        }
    };
    Ok(Search {
        scoring,
        best_score: place.get("best_score_")?.number()?,
        fold_scores,
        best_params: best_params.collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// What takes 17 minutes if every fold walks over all names, or over one shared array, is refused or done at once.
    #[test]
    fn a_search_costs_no_more_than_its_size() {
        let names: Vec<String> = (0..200_000).map(|fold| format!("split{fold}_test_score")).collect();
        let entries: Vec<(Value<'_>, Value<'_>)> =
            names.iter().map(|name| (Value::Str(name), Value::Float(0.5))).collect();
        let search_of = |n_splits: i64| {
            let attributes = vec![
                (Value::Str("best_index_"), Value::Int(0)),
                (Value::Str("cv_results_"), Value::Dict(entries.clone())),
                (Value::Str("n_splits_"), Value::Int(n_splits)),
            ];
            let value = Value::Dict(attributes);
            let started = Instant::now();
            let problem = search(&Place::root(&value)).unwrap_err();
            assert!(started.elapsed() < Duration::from_secs(10));
            problem
        };
        assert_eq!(search_of(200_000).problem, "expected 1000 folds at most, found 200000");
        assert!(search_of(1_000).problem.starts_with("expected an array, found"));
    }
}
