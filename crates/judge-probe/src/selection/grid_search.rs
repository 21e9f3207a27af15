//! The choice among settings by cross-validation, and an honest estimate of what the choosing yields.

use serde::{Deserialize, Serialize};

use crate::selection::cross_validation::{SplitData, in_each_split};
use crate::selection::scoring::score_of;
use crate::{Error, Estimator, FittedEstimator, Matrix, Predictions, Scorer, Scoring, Split, SplitScores};

/// Chooses among settings by cross-validation, as `sklearn.model_selection.GridSearchCV`: the one with the highest mean score over the
/// splits; of equal ones the first, so list the simplest first.
///
/// All that a candidate learns, scaling included, it learns from a split's `train` alone, if it is a [`Pipeline`](crate::Pipeline) of
/// its steps. The score of the candidate chosen is that of the best of many, and too high for that reason:
/// [`nested`](Self::nested) gives an honest one.
#[doc(alias = "GridSearchCV")]
#[derive(Debug, Clone, PartialEq)]
pub struct GridSearch<E, S = Scoring> {
    /// The settings to choose from, in order.
    #[doc(alias = "param_grid")]
    pub candidates: Vec<E>,
    /// What they are compared by: a [`Scorer`] of the candidates' labels.
    pub scoring: S,
}

/// The scores of each candidate of a [`GridSearch`], and which is best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchScores {
    /// Scores of each candidate, in their order.
    pub candidates: Vec<SplitScores>,
    /// The position of the best.
    pub best: usize,
    /// Its mean score over the splits.
    pub best_mean: f64,
    /// The standard deviation of its score over the splits, dividing by their number.
    pub best_deviation: f64,
}

/// What a [`GridSearch`] chose, fitted to all rows.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedGridSearch<E: Estimator> {
    /// How it was chosen.
    pub scores: SearchScores,
    /// The settings chosen.
    pub settings: E,
    /// These settings fitted to all rows.
    pub estimator: E::Fitted,
}

/// One outer split of [`GridSearch::nested`].
#[derive(Debug, Clone, PartialEq)]
pub struct NestedSplit<L> {
    /// The search among the rows learnt from.
    pub search: SearchScores,
    /// What its choice predicts for each row of the outer `test`, in their order.
    pub predicted: Predictions<L>,
    /// The score of these predictions.
    pub score: Option<f64>,
}

impl SearchScores {
    /// From the scores of all candidates in each split. The first of equal means is best; a candidate without a score in some split is not.
    ///
    /// [`Error::NoScore`] where none has a mean.
    pub(crate) fn of(by_split: &[Vec<Option<f64>>], n_candidates: usize) -> Result<Self, Error> {
        let candidates: Vec<SplitScores> = (0..n_candidates)
            .map(|candidate| SplitScores { by_split: by_split.iter().map(|scores| scores[candidate]).collect() })
            .collect();
        let mut best = None;
        for (candidate, scores) in candidates.iter().enumerate() {
            if let Some((mean, deviation)) = scores.mean().zip(scores.deviation())
                && best.is_none_or(|(_, best, _)| mean > best)
            {
                best = Some((candidate, mean, deviation));
            }
        }
        let (best, best_mean, best_deviation) =
            best.ok_or(Error::NoScore { n_candidates, n_splits: by_split.len() })?;
        Ok(Self { candidates, best, best_mean, best_deviation })
    }
}

impl<E: Estimator, S: Scorer<E::Label>> GridSearch<E, S> {
    /// Scores every candidate on every split. Splits are worked on in parallel, the candidates of one together
    /// ([`Estimator::fit_each`]); results do not depend on the number of threads.
    ///
    /// A candidate whose score is undefined in a split is not chosen.
    ///
    /// # Errors
    ///
    /// Those of [`cross_val_score`](crate::cross_val_score), where [`Error::InCandidate`] names the candidate that cannot be fitted;
    /// [`Error::NoScore`] without candidates or splits, and where the score of every candidate is undefined in some split.
    pub fn scores(&self, features: &Matrix, labels: &[E::Label], splits: &[Split]) -> Result<SearchScores, Error> {
        let by_split = in_each_split(features, labels, splits, |_, data| self.scores_in(&data))?;
        SearchScores::of(&by_split, self.candidates.len())
    }

    /// The best candidate, fitted to all rows (`refit=True`).
    ///
    /// # Errors
    ///
    /// Those of [`scores`](Self::scores); [`Error::InCandidate`] if the best cannot be fitted to all rows.
    pub fn fit(&self, features: &Matrix, labels: &[E::Label], splits: &[Split]) -> Result<FittedGridSearch<E>, Error> {
        let scores = self.scores(features, labels, splits)?;
        let settings = self.candidates[scores.best].clone();
        let estimator = settings.fit(features, labels).map_err(|error| in_candidate(scores.best, error))?;
        Ok(FittedGridSearch { scores, settings, estimator })
    }

    /// Searches anew within the training rows of each outer split and tests the choice on rows that had no part in it: the scores are
    /// those of choosing and fitting together.
    ///
    /// `inner` splits the training rows of an outer split, whose positions among all rows it is given, into splits of positions among
    /// them (0 to their number).
    ///
    /// # Errors
    ///
    /// Those of [`fit`](Self::fit) and of `inner`, inside [`Error::InSplit`] with the outer split.
    ///
    /// ```
    /// # use judge_probe::{Error, GridSearch, LogisticRegression, Matrix, Scoring, StratifiedKFold};
    /// # fn main() -> Result<(), Error> {
    /// let rows: Vec<[f64; 2]> = (0..40).map(|i| [f64::from(i % 10), f64::from(i % 7)]).collect();
    /// let labels: Vec<i64> = (0..40).map(|i| i64::from(i % 10 > 4)).collect();
    /// let features = Matrix::from_rows(&rows)?;
    ///
    /// let candidates = [0.01, 1.0].map(|c| LogisticRegression { c, ..LogisticRegression::default() }).to_vec();
    /// let search = GridSearch { candidates, scoring: Scoring::MacroF1 };
    /// let folds = StratifiedKFold::default();
    /// let outer = folds.split(&labels)?;
    /// let inner = |rows: &[usize]| folds.split(&rows.iter().map(|&row| labels[row]).collect::<Vec<_>>());
    /// for split in search.nested(&features, &labels, &outer, inner)? {
    ///     assert_eq!(split.score, Some(1.0));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn nested(
        &self,
        features: &Matrix,
        labels: &[E::Label],
        outer: &[Split],
        inner: impl Fn(&[usize]) -> Result<Vec<Split>, Error> + Sync,
    ) -> Result<Vec<NestedSplit<E::Label>>, Error> {
        in_each_split(features, labels, outer, |split, data| {
            let chosen = self.fit(&data.train, &data.train_labels, &inner(&split.train)?)?;
            let predicted = chosen.estimator.predictions(&data.test)?;
            let score = score_of(&self.scoring, &data.test_labels, &predicted)?;
            Ok(NestedSplit { search: chosen.scores, predicted, score })
        })
    }

    /// The score of each candidate on one split.
    fn scores_in(&self, data: &SplitData<E::Label>) -> Result<Vec<Option<f64>>, Error> {
        let fitted = E::fit_each(&self.candidates, &data.train, &data.train_labels);
        if fitted.len() != self.candidates.len() {
            return Err(Error::FittedCount { expected: self.candidates.len(), found: fitted.len() });
        }
        let score = |fitted: Result<E::Fitted, Error>| {
            score_of(&self.scoring, &data.test_labels, &fitted?.predictions(&data.test)?)
        };
        let named = |(candidate, fitted)| score(fitted).map_err(|error| in_candidate(candidate, error));
        fitted.into_iter().enumerate().map(named).collect()
    }
}

pub(crate) fn in_candidate(candidate: usize, error: Error) -> Error {
    Error::InCandidate { candidate, error: Box::new(error) }
}
