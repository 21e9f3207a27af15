//! The choice of layers, poolings and feature families, greedy: views are ranked alone, then the best layers are tried one by one and kept
//! where that helps.

use judge_core::Layer;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::estimators::parameters::check_rows;
use crate::selection::cross_validation::{check_splits, select};
use crate::selection::scoring::score_of;
use crate::{
    Block, Blocks, Error, Estimator, FittedBlocks, FittedEstimator, FittedPipeline, GridSearch, Matrix, Pipeline,
    Predictions, Scorer, Scoring, SearchScores, Split, Transformer,
};

/// One thing that a probe may read: a layer, how its states are pooled, and what becomes features of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LayerView<V, T> {
    /// The layer.
    pub layer: Layer,
    /// What is read there, such as a [`Signal`](judge_core::request::Signal) or a [`Pooling`](judge_core::request::Pooling).
    pub reading: V,
    /// What becomes of it, fitted within each split.
    pub family: T,
}

/// Chooses layers, poolings and feature families by cross-validation, as the INSPECTOR paper describes (its published code leaves it to
/// the eye, on test rows).
///
/// 1. Every view is scored alone; of the estimators' settings the best counts, by the rule of [`GridSearch`].
/// 2. Views are ranked by mean score; ties go to the smaller deviation over splits, then to the earlier view. The best view of each of
///    the `top_k` best layers stays.
/// 3. Starting from the best, the others are tried in order: a view's features join those chosen if that raises the mean score, or
///    leaves it and lowers the deviation. All else equal, fewer layers win.
///
/// Rows, labels and splits must be those to learn from: test rows have no part in a selection. Its score is that of the best of many
/// and too high for that reason; [`nested`](Self::nested) gives an honest one.
///
/// ```
/// use judge_core::{Layer, request::Pooling};
/// use judge_probe::{
///     Error, FeatureFamily, LayerSelection, LayerView, LogisticRegression, Matrix, Pipeline, Scoring, StandardScaler, StratifiedKFold,
/// };
///
/// # fn main() -> Result<(), Error> {
/// // Of four layers only layer 2 tells the labels apart.
/// let labels: Vec<i64> = (0..60).map(|row| i64::from(row % 3 == 0)).collect();
/// let source = |layer: Layer, _: &Pooling| {
///     let told = |row: i64| if layer.0 == 2 { labels[row as usize] as f64 } else { 0.0 };
///     Matrix::from_rows((0..60).map(|row| [(row * row % 7) as f64, (row % 5) as f64 / 9.0 + told(row)]))
/// };
///
/// let family = FeatureFamily::State;
/// let views = (0..4).map(|layer| LayerView { layer: Layer(layer), reading: Pooling::Mean, family });
/// let probe = |c| Pipeline {
///     transformer: StandardScaler::default(),
///     estimator: LogisticRegression { c, ..LogisticRegression::default() },
/// };
/// let selection = LayerSelection {
///     views: views.collect(),
///     estimators: [0.1, 1.0].map(probe).to_vec(),
///     scoring: Scoring::MacroF1,
///     top_k: 5,
/// };
/// let splits = StratifiedKFold { n_splits: 5, shuffle: Some(42) }.split(&labels)?;
/// let selected = selection.select(source, &labels, &splits)?;
/// assert_eq!(selected.chosen.len(), 1);
/// assert_eq!((selected.chosen[0].layer, selected.scores.best_mean), (Layer(2), 1.0));
/// let fitted = selected.fit(source, &labels)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSelection<V, T, E, S = Scoring> {
    /// What may be read.
    pub views: Vec<LayerView<V, T>>,
    /// Settings to choose from for each set of views, in order.
    pub estimators: Vec<E>,
    /// What is maximised: a [`Scorer`] of the estimators' labels.
    pub scoring: S,
    /// Most layers that a probe may read, at least 1; the paper's 5.
    pub top_k: usize,
}

/// What a [`LayerSelection`] chose, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectedLayers<V, T, E> {
    /// The views chosen, in the order in which they joined; so are their features.
    pub chosen: Vec<LayerView<V, T>>,
    /// The settings chosen for the estimator.
    pub estimator: E,
    /// How all settings fared on the views chosen; `best` are the settings chosen. It is the score of the best of many.
    pub scores: SearchScores,
    /// Every view with its scores, in the order of the views: a figure of score by layer needs no more.
    pub scan: Vec<ScoredView<V, T>>,
    /// Positions of the best views of as many layers, best first.
    pub ranking: Vec<usize>,
    /// The sets of views tried, in order; the first is the best view alone.
    pub steps: Vec<SelectionStep>,
}

/// A view and its scores by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoredView<V, T> {
    /// The view.
    pub view: LayerView<V, T>,
    /// Scores of each of the estimators' settings; `None` if for each of them some split's score is undefined.
    pub scores: Option<SearchScores>,
}

/// A set of views that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectionStep {
    /// Positions of the views.
    pub views: Vec<usize>,
    /// Scores of each of the estimators' settings.
    pub scores: Option<SearchScores>,
    /// Whether it is better than what was chosen before.
    pub kept: bool,
}

/// One outer split of [`LayerSelection::nested`].
#[derive(Debug, Clone, PartialEq)]
pub struct NestedSelection<V, T, E: Estimator> {
    /// What was chosen, from the rows learnt from alone.
    pub selected: SelectedLayers<V, T, E>,
    /// What the choice predicts for each row of the outer `test`, in their order.
    pub predicted: Predictions<E::Label>,
    /// The score of these predictions; `None` where it is undefined.
    pub score: Option<f64>,
}

impl<V, T, E, S> LayerSelection<V, T, E, S>
where
    V: Clone + Send + Sync,
    T: Transformer + Send,
    E: Estimator + Send,
    S: Scorer<E::Label> + Clone,
{
    /// Selects among the views. `source` hands out what is read at a layer, `[n_rows, any]`, row for row with the labels; it is called
    /// for several views at once, and once more for the best. Results do not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// What `source` returns; [`Error::InViews`] with what an estimator reports; [`Error::NoScore`] where no view has a score;
    /// [`Error::NoLayers`] for a `top_k` of 0. Of several errors, the first view's.
    pub fn select<X: From<Error> + Send>(
        &self,
        source: impl Fn(Layer, &V) -> Result<Matrix, X> + Sync,
        labels: &[E::Label],
        splits: &[Split],
    ) -> Result<SelectedLayers<V, T, E>, X> {
        if self.top_k == 0 {
            return Err(Error::NoLayers.into());
        }
        let read = |view: usize| source(self.views[view].layer, &self.views[view].reading);
        let score_alone = |view: usize| Ok(self.score(&[view], &[read(view)?], labels, splits)?);
        let scores: Vec<Result<_, X>> = (0..self.views.len()).into_par_iter().map(score_alone).collect();
        let scores = scores.into_iter().collect::<Result<Vec<Option<SearchScores>>, X>>()?;

        let ranking = self.ranking(&scores);
        let unscored = Error::NoScore { n_candidates: scores.len() * self.estimators.len(), n_splits: splits.len() };
        let (&first, rest) = ranking.split_first().ok_or(unscored.clone())?;
        let mut best = scores[first].clone().ok_or(unscored)?;
        let mut steps = vec![SelectionStep { views: vec![first], scores: Some(best.clone()), kept: true }];
        let (mut chosen, mut matrices) = (vec![first], vec![read(first)?]);
        for &view in rest {
            chosen.push(view);
            matrices.push(read(view)?);
            let scores = self.score(&chosen, &matrices, labels, splits)?;
            let better = scores.clone().filter(|scores| quality(scores) > quality(&best));
            steps.push(SelectionStep { views: chosen.clone(), scores, kept: better.is_some() });
            if let Some(better) = better {
                best = better;
            } else {
                chosen.pop();
                matrices.pop();
            }
        }
        let scored = |(view, scores): (&LayerView<V, T>, _)| ScoredView { view: view.clone(), scores };
        Ok(SelectedLayers {
            chosen: chosen.into_iter().map(|view| self.views[view].clone()).collect(),
            estimator: self.estimators[best.best].clone(),
            scores: best,
            scan: self.views.iter().zip(scores).map(scored).collect(),
            ranking,
            steps,
        })
    }

    /// Selects anew within the training rows of each outer split, and tests the probe selected on rows that had no part in it: the scores
    /// are those of selecting and fitting together, and the predictions are what a calibrator may be fitted to.
    ///
    /// `source` hands out all rows, as for [`select`](Self::select), of which each outer split takes its own. `inner` splits the training
    /// rows of an outer split, whose positions among all rows it is given, into splits of positions among them (0 to their number). Outer
    /// splits are worked on one after another, the views of each in parallel.
    ///
    /// # Errors
    ///
    /// Those of [`select`](Self::select), of `inner` and of [`SelectedLayers::fit`]; [`Error::Split`] for outer splits that
    /// do not fit the rows.
    ///
    /// ```
    /// # use judge_core::{Layer, request::Pooling};
    /// # use judge_probe::{Error, FeatureFamily, LayerSelection, LayerView, Matrix, RegressionScoring, Ridge, KFold};
    /// # fn main() -> Result<(), Error> {
    /// // The mean of three people's scores follows the states of layer 1.
    /// let people: Vec<f64> = (0..60).map(|row| 1.0 + f64::from(row * 7 % 13) / 3.0).collect();
    /// let source = |layer: Layer, _: &Pooling| -> Result<Matrix, Error> {
    ///     let told = |row: usize| if layer == Layer(1) { people[row] } else { 0.0 };
    ///     Matrix::from_rows((0..60).map(|row| [told(row), (row * row % 7) as f64]))
    /// };
    /// let family = FeatureFamily::State;
    /// let view = |layer| LayerView { layer: Layer(layer), reading: Pooling::Mean, family };
    /// let selection = LayerSelection {
    ///     views: (0..3).map(view).collect(),
    ///     estimators: [0.1, 1.0].map(|alpha| Ridge { alpha, ..Ridge::default() }).to_vec(),
    ///     scoring: RegressionScoring::Spearman,
    ///     top_k: 2,
    /// };
    /// let folds = KFold { n_splits: 3, shuffle: Some(0) };
    /// let inner = |rows: &[usize]| folds.split(rows.len());
    /// for outer in selection.nested(source, &people, &folds.split(60)?, inner)? {
    ///     assert_eq!(outer.selected.chosen[0].layer, Layer(1));
    ///     assert!(outer.score > Some(0.99));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn nested<X: From<Error> + Send>(
        &self,
        source: impl Fn(Layer, &V) -> Result<Matrix, X> + Sync,
        labels: &[E::Label],
        outer: &[Split],
        inner: impl Fn(&[usize]) -> Result<Vec<Split>, Error>,
    ) -> Result<Vec<NestedSelection<V, T, E>>, X> {
        check_splits(outer, labels.len())?;
        let of_split = |split: &Split| {
            let rows = |rows: &[usize], layer: Layer, reading: &V| -> Result<Matrix, X> {
                let all = source(layer, reading)?;
                check_rows(all.n_rows(), "labels", labels.len())?;
                Ok(all.select_rows(rows)?)
            };
            let learnt = |layer: Layer, reading: &V| rows(&split.train, layer, reading);
            let train_labels = select(labels, &split.train);
            let selected = self.select(learnt, &train_labels, &inner(&split.train)?)?;
            let fitted = selected.fit(learnt, &train_labels)?;
            let tested = selected.features(|layer, reading| rows(&split.test, layer, reading))?;
            let predicted = fitted.predictions(&tested)?;
            let score = score_of(&self.scoring, &select(labels, &split.test), &predicted)?;
            Ok(NestedSelection { selected, predicted, score })
        };
        outer.iter().map(of_split).collect()
    }

    /// The scores of each of the estimators' settings on these views side by side.
    fn score(
        &self,
        views: &[usize],
        matrices: &[Matrix],
        labels: &[E::Label],
        splits: &[Split],
    ) -> Result<Option<SearchScores>, Error> {
        let in_views = |error| Error::InViews { views: views.to_vec(), error: Box::new(error) };
        let families = views.iter().map(|&view| self.views[view].family.clone());
        let transformer = blocks(families, matrices);
        let candidates = self
            .estimators
            .iter()
            .map(|estimator| Pipeline { transformer: transformer.clone(), estimator: estimator.clone() });
        let search = GridSearch { candidates: candidates.collect(), scoring: self.scoring.clone() };
        match Matrix::beside(matrices).and_then(|features| search.scores(&features, labels, splits)) {
            Ok(scores) => Ok(Some(scores)),
            Err(Error::NoScore { .. }) => Ok(None),
            Err(error) => Err(in_views(error)),
        }
    }

    /// Positions of the best view of each of the `top_k` best layers, best first.
    fn ranking(&self, scores: &[Option<SearchScores>]) -> Vec<usize> {
        let mut scored: Vec<(usize, (f64, f64))> =
            scores.iter().enumerate().filter_map(|(view, scores)| Some((view, quality(scores.as_ref()?)))).collect();
        // Stable, and finite: scores are.
        scored.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
        let mut ranking: Vec<usize> = Vec::new();
        for (view, _) in scored {
            if ranking.len() < self.top_k
                && ranking.iter().all(|&other| self.views[other].layer != self.views[view].layer)
            {
                ranking.push(view);
            }
        }
        ranking
    }
}

/// What a chosen probe is once fitted: each view's features by its family, then the estimator.
pub type FittedLayerProbe<T, E> = FittedPipeline<FittedBlocks<<T as Transformer>::Fitted>, <E as Estimator>::Fitted>;

impl<V, T: Transformer, E: Estimator> SelectedLayers<V, T, E> {
    /// The features of the views chosen, side by side, as [`fit`](Self::fit) learns from them: of any rows, those to predict as well.
    ///
    /// # Errors
    ///
    /// What `source` returns; [`Error::Beside`] where views differ in their rows.
    pub fn features<X: From<Error>>(&self, source: impl Fn(Layer, &V) -> Result<Matrix, X>) -> Result<Matrix, X> {
        Ok(Matrix::beside(&self.matrices(source)?)?)
    }

    /// Fits the choice to all rows that it was made from.
    ///
    /// # Errors
    ///
    /// Those of [`features`](Self::features) and of the estimator.
    pub fn fit<X: From<Error>>(
        &self,
        source: impl Fn(Layer, &V) -> Result<Matrix, X>,
        labels: &[E::Label],
    ) -> Result<FittedLayerProbe<T, E>, X> {
        let matrices = self.matrices(source)?;
        let transformer = blocks(self.chosen.iter().map(|view| view.family.clone()), &matrices);
        let probe = Pipeline { transformer, estimator: self.estimator.clone() };
        Ok(probe.fit(&Matrix::beside(&matrices)?, labels)?)
    }

    fn matrices<X>(&self, source: impl Fn(Layer, &V) -> Result<Matrix, X>) -> Result<Vec<Matrix>, X> {
        self.chosen.iter().map(|view| source(view.layer, &view.reading)).collect()
    }
}

/// One block for each of the matrices, which stand side by side.
fn blocks<T>(families: impl Iterator<Item = T>, matrices: &[Matrix]) -> Blocks<T> {
    let block = |(transformer, matrix): (T, &Matrix)| Block { n_features: matrix.n_features(), transformer };
    Blocks { blocks: families.zip(matrices).map(block).collect() }
}

/// Greater for a higher mean, then for a smaller deviation.
fn quality(scores: &SearchScores) -> (f64, f64) {
    (scores.best_mean, -scores.best_deviation)
}
