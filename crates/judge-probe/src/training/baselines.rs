//! What predicts classes without the model's states.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::slice;

use super::GradedRow;
use crate::{
    ClassWeight, Error, Estimator, FittedEstimator, FittedTfidfVectorizer, GridSearch, LogisticRegression, Matrix,
    Pipeline, Predictions, Scoring, Split, SplitScores, StandardScaler, TfidfVectorizer, surface_features,
};

/// What learns from surface features and from words: as simple as the simplest probe, so that a difference is one of features.
type Learner = Pipeline<StandardScaler, LogisticRegression>;
type Fitted = <Learner as Estimator>::Fitted;

/// Learnt from the same rows as a probe, C chosen in the same folds.
pub(super) struct Baselines {
    /// The most frequent class, of equals the smallest.
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
    pub(super) fn fit(
        rows: &[GradedRow],
        train: &[usize],
        classes: &[i64],
        folds: &[Split],
        c: &[f64],
    ) -> Result<Self, Error> {
        let mut counts: HashMap<i64, usize> = HashMap::new();
        classes.iter().for_each(|&class| *counts.entry(class).or_default() += 1);
        let majority = counts.into_iter().max_by_key(|&(class, count)| (count, Reverse(class)));
        let logistic = |&c: &f64| Pipeline {
            transformer: StandardScaler::default(),
            estimator: LogisticRegression { c, class_weight: ClassWeight::Balanced, ..LogisticRegression::default() },
        };
        let search = GridSearch { candidates: c.iter().map(logistic).collect(), scoring: Scoring::MacroF1 };
        let surface = search.fit(&surface(rows, train)?, classes, folds)?.estimator;
        let texts = responses(rows, train);
        let learner = best_with_words(&search, &texts, classes, folds)?;
        let words = TfidfVectorizer::default().fit(&texts)?;
        let tfidf = learner.fit(&words.transform(&texts)?, classes)?;
        Ok(Self { majority: majority.map_or(0, |(class, _)| class), surface, words, tfidf })
    }

    /// What each baseline says of the rows in `tested`, by name. The majority has no probabilities, so it has no Spearman either: its numbers are all equal.
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
fn responses<'a>(rows: &'a [GradedRow], of: &[usize]) -> Vec<&'a str> {
    of.iter().map(|&row| rows[row].response.as_str()).collect()
}

/// [`surface_features`](crate::surface_features) of these rows.
fn surface(rows: &[GradedRow], of: &[usize]) -> Result<Matrix, Error> {
    let questions: Vec<&str> = of.iter().map(|&row| rows[row].question.as_str()).collect();
    surface_features(&questions, &responses(rows, of))
}
