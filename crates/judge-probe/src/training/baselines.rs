//! What predicts classes without the model's states.
//!
//! It owns the three baselines that learn from the same rows as the probe: `majority`, `surface` and `tfidf`. The fourth,
//! `prompted`, learns nothing and is in `predictions`; how they compare with the probe is in `held_out`. The untuned baselines
//! of an artefact report are another thing, see `artefacts`: they do not depend on a probe's settings.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::slice;

use super::GradedRow;
use crate::{
    ClassWeight, Error, Estimator, FittedEstimator, FittedTfidfVectorizer, GridSearch, LogisticRegression, Matrix,
    Pipeline, Predictions, Scoring, Split, SplitScores, StandardScaler, TfidfVectorizer, surface_features,
};

/// What learns from surface features and from words: as simple as the simplest probe, so that a difference is one of features.
///
/// For words the scaler divides each weight by its deviation over the texts learnt from, so that C acts on features of one size
/// whatever they count.
type Learner = Pipeline<StandardScaler, LogisticRegression>;
/// What both learners are once fitted: a scaler and a logistic regression.
type Fitted = <Learner as Estimator>::Fitted;

/// Learnt from the same rows as a probe, C chosen in the same folds.
pub(super) struct Baselines {
    /// The most frequent class, of equals the smallest.
    /// It comes from the rows trained on alone, so that it may be rare among those tested on.
    majority: i64,
    /// On lengths, overlaps and the like.
    surface: Fitted,
    /// The words that occur in the rows trained on, and how rare each is.
    words: FittedTfidfVectorizer,
    /// On those words.
    tfidf: Fitted,
}

impl Baselines {
    /// `c` are the values to choose from; classes and folds are of the rows in `train`, of which there is one or more.
    ///
    /// The cost is that of two grid searches, C × folds fits each, over 8 surface features and over as many words as the texts
    /// have. The words are a dense matrix `[n_rows, n_words]` in double precision; of many long responses it may take more
    /// memory than a layer's states.
    ///
    /// # Errors
    ///
    /// [`Error::NoWords`] where no response has a word; [`Error::NoScore`] where no C has a score in every fold; those of the
    /// classifier.
    pub(super) fn fit(
        rows: &[GradedRow],
        train: &[usize],
        classes: &[i64],
        folds: &[Split],
        c: &[f64],
    ) -> Result<Self, Error> {
        let mut counts: HashMap<i64, usize> = HashMap::new();
        classes.iter().for_each(|&class| *counts.entry(class).or_default() += 1);
        // The order of the hash map does not show: of equal counts the smallest class wins.
        let majority = counts.into_iter().max_by_key(|&(class, count)| (count, Reverse(class)));
        let logistic = |&c: &f64| Pipeline {
            transformer: StandardScaler::default(),
            estimator: LogisticRegression { c, class_weight: ClassWeight::Balanced, ..LogisticRegression::default() },
        };
        let search = GridSearch { candidates: c.iter().map(logistic).collect(), scoring: Scoring::MacroF1 };
        let surface = search.fit(&surface(rows, train)?, classes, folds)?.estimator;
        let texts = responses(rows, train);
        // C first, by words learnt within each fold; then words and weights anew from all rows trained on, as the probe has it.
        let learner = best_with_words(&search, &texts, classes, folds)?;
        let words = TfidfVectorizer::default().fit(&texts)?;
        let tfidf = learner.fit(&words.transform(&texts)?, classes)?;
        Ok(Self { majority: majority.map_or(0, |(class, _)| class), surface, words, tfidf })
    }

    /// What each baseline says of the rows in `tested`, by name. The majority has no probabilities, so it has no Spearman either: its numbers are all equal.
    ///
    /// Names are keys of the report's JSON. Words that no response trained on has are ignored.
    pub(super) fn predict(
        &self,
        rows: &[GradedRow],
        tested: &[usize],
    ) -> Result<Vec<(String, Predictions<i64>)>, Error> {
        let words = self.words.transform(&responses(rows, tested))?;
        Ok(vec![
            ("majority".to_owned(), vec![self.majority; tested.len()].into()),
            ("surface".to_owned(), self.surface.predictions(&surface(rows, tested)?)?),
            ("tfidf".to_owned(), self.tfidf.predictions(&words)?),
        ])
    }
}

/// The candidate with the highest mean score where words, too, are learnt within each fold; of equal ones the first.
///
/// [`GridSearch`] alone would learn the words, and how rare they are, from the held-out part too. So each fold has features of
/// its own, and is searched as if it were the only one. `texts` and `classes` are those of the rows trained on, `[n_train]`;
/// `folds` are positions among them. A candidate without a score in some fold has no mean and is not chosen, as in
/// [`GridSearch`].
///
/// # Errors
///
/// [`Error::NoScore`] where no candidate has a mean; [`Error::NoWords`] where a fold has no word to learn.
fn best_with_words(
    search: &GridSearch<Learner>,
    texts: &[&str],
    classes: &[i64],
    folds: &[Split],
) -> Result<Learner, Error> {
    let mut scores = vec![SplitScores::default(); search.candidates.len()];
    for fold in folds {
        let learnt: Vec<&str> = fold.train.iter().map(|&row| texts[row]).collect();
        let features = TfidfVectorizer::default().fit(&learnt)?.transform(texts)?;
        let of_fold = search.scores(&features, classes, slice::from_ref(fold))?;
        for (scores, of_fold) in scores.iter_mut().zip(of_fold.candidates) {
            scores.by_split.extend(of_fold.by_split);
        }
    }
    let mut best: Option<(f64, &Learner)> = None;
    for (candidate, scores) in search.candidates.iter().zip(&scores) {
        if let Some(mean) = scores.mean()
            && best.is_none_or(|(highest, _)| mean > highest)
        {
            best = Some((mean, candidate));
        }
    }
    let unscored = Error::NoScore { n_candidates: search.candidates.len(), n_splits: folds.len() };
    best.map(|(_, learner)| *learner).ok_or(unscored)
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
