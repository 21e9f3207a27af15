//! What predicts classes without the model's states.
//!
//! It owns the three baselines that learn from the same rows as the probe: `majority`, `surface` and `tfidf`. The fourth,
//! `prompted`, learns nothing and is in `predictions`; how they compare with the probe is in `held_out`. The untuned baselines
//! of an artefact report are another thing, see `artefacts`: they do not depend on a probe's settings.

use super::GradedRow;
use crate::artefacts::most_frequent;
use crate::preprocessing::tfidf::if_words;
use crate::selection::cross_validation::{in_parallel, select};
use crate::selection::grid_search::{SearchScores, in_candidate};
use crate::selection::scoring::score_of;
use crate::{
    ClassWeight, Error, Estimator, FittedEstimator, FittedTfidfVectorizer, GridSearch, LinearClassifier,
    LogisticRegression, Matrix, Pipeline, Predictions, Scoring, Split, StandardScaler, TfidfVectorizer,
    surface_features,
};

/// What learns from surface features: as simple as the simplest probe, so that a difference is one of features.
type OnSurface = Pipeline<StandardScaler, LogisticRegression>;

/// The values of C that are tried on words. They are not the probe's: those suit features of deviation 1, of which
/// a row has a squared length of as many as there are, while the TF-IDF weights of a text have length 1 whatever the number of words.
const C_OF_WORDS: [f64; 4] = [0.1, 1.0, 10.0, 100.0];

/// Learnt from the same rows as a probe, C chosen in the same folds.
pub(super) struct Baselines {
    /// The most frequent class, of equals the smallest.
    /// It comes from the rows trained on alone, so that it may be rare among those tested on.
    majority: i64,
    /// On lengths, overlaps and the like.
    surface: <OnSurface as Estimator>::Fitted,
    /// The words that occur in the rows trained on and how rare each is, and what has learnt from them, which no scaler touches;
    /// `None` where some fold has no words to learn from.
    tfidf: Option<(FittedTfidfVectorizer, LinearClassifier)>,
}

impl Baselines {
    /// `c` are the values that surface features choose from; classes and folds are of the rows in `train`, of which there is one or more.
    ///
    /// The cost is that of two grid searches, C × folds fits each, over 8 surface features and over the words of the texts. These are kept
    /// sparse, so that a fold takes 12 bytes for each distinct word of each text.
    ///
    /// # Errors
    ///
    /// [`Error::NoScore`] where no C has a score in every fold; those of the classifier.
    pub(super) fn fit(
        rows: &[GradedRow],
        train: &[usize],
        classes: &[i64],
        folds: &[Split],
        c: &[f64],
    ) -> Result<Self, Error> {
        let on_surface = |&c: &f64| Pipeline { transformer: StandardScaler::default(), estimator: logistic(c) };
        let search = GridSearch { candidates: c.iter().map(on_surface).collect(), scoring: SCORING };
        let surface = search.fit(&surface(rows, train)?, classes, folds)?.estimator;
        let texts = responses(rows, train);
        // C first, by words learnt within each fold; then words and weights anew from all rows trained on, as the probe has it.
        let on_words = |learner: LogisticRegression| {
            let words = TfidfVectorizer::default().fit(&texts)?;
            let fitted = learner.fit_sparse(&words.transform(&texts)?, classes)?;
            Ok::<_, Error>((words, fitted))
        };
        let tfidf = if_words(best_on_words(&texts, classes, folds))?.map(on_words).transpose()?;
        Ok(Self { majority: most_frequent(classes.iter().copied()), surface, tfidf })
    }

    /// What each baseline says of the rows in `tested`, by name; of `tfidf` only where there were words. The majority has no
    /// probabilities, so it has no Spearman either: its numbers are all equal.
    ///
    /// Names are keys of the report's JSON. Words that no response trained on has are ignored.
    pub(super) fn predict(
        &self,
        rows: &[GradedRow],
        tested: &[usize],
    ) -> Result<Vec<(String, Predictions<i64>)>, Error> {
        let mut predicted = vec![
            ("majority".to_owned(), vec![self.majority; tested.len()].into()),
            ("surface".to_owned(), self.surface.predictions(&surface(rows, tested)?)?),
        ];
        if let Some((words, fitted)) = &self.tfidf {
            let words = words.transform(&responses(rows, tested))?;
            predicted.push(("tfidf".to_owned(), fitted.sparse_predictions(&words)?));
        }
        Ok(predicted)
    }
}

/// What C is chosen by.
const SCORING: Scoring = Scoring::MacroF1;

/// Classes that count the same, as the probe has them.
fn logistic(c: f64) -> LogisticRegression {
    LogisticRegression { c, class_weight: ClassWeight::Balanced, ..LogisticRegression::default() }
}

/// Of [`C_OF_WORDS`] the learner with the highest mean score where words, too, are learnt within each fold; of equal ones the first.
///
/// [`GridSearch`] would learn the words, and how rare they are, from the held-out part too. `texts` and `classes` are those of
/// the rows trained on, `[n_train]`; `folds` are positions among them. A candidate without a score in some fold has no mean and
/// is not chosen, as in [`GridSearch`].
///
/// # Errors
///
/// [`Error::NoScore`] where no candidate has a mean; [`Error::InSplit`] with [`Error::NoWords`] where a fold has no word to learn,
/// or with what the classifier reports.
fn best_on_words(texts: &[&str], classes: &[i64], folds: &[Split]) -> Result<LogisticRegression, Error> {
    let candidates = C_OF_WORDS.map(logistic);
    let by_fold = in_parallel(folds, |fold| {
        let learnt = select(texts, &fold.train);
        let words = TfidfVectorizer::default().fit(&learnt)?;
        let (train, test) = (words.transform(&learnt)?, words.transform(&select(texts, &fold.test))?);
        let (learnt, observed) = (select(classes, &fold.train), select(classes, &fold.test));
        let fitted = LogisticRegression::fit_each_sparse(&candidates, &train, &learnt);
        let score = |fitted: Result<LinearClassifier, Error>| {
            score_of(&SCORING, &observed, &fitted?.sparse_predictions(&test)?)
        };
        let named = |(candidate, fitted)| score(fitted).map_err(|error| in_candidate(candidate, error));
        fitted.into_iter().enumerate().map(named).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(candidates[SearchScores::of(&by_fold, candidates.len())?.best])
}

/// The texts that words are counted in.
/// Where the question is not known this is all of the prompt: see [`GradedRow::response`].
fn responses<'a>(rows: &'a [GradedRow], of: &[usize]) -> Vec<&'a str> {
    of.iter().map(|&row| rows[row].response.as_str()).collect()
}

/// [`surface_features`](crate::surface_features) of these rows.
/// `[of.len(), 8]`. A row without a known question has 0 for the three features that need one.
fn surface(rows: &[GradedRow], of: &[usize]) -> Result<Matrix, Error> {
    let questions: Vec<&str> = of.iter().map(|&row| rows[row].question.as_str()).collect();
    surface_features(&questions, &responses(rows, of))
}
