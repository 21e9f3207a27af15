use judge_core::Layer;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Block, Blocks, Classifier, Error, FittedBlocks, FittedPipeline, GridSearch, Matrix, Pipeline, Scoring};
use crate::{SearchScores, Split, Transformer};

/// One thing that a probe may read: a layer, how its states are pooled, and what becomes features of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LayerView<V, T> {
    /// The layer.
    pub layer: Layer,
    /// What is read there, such as a [`Signal`](judge_core::Signal) or a [`Pooling`](judge_core::Pooling).
    pub reading: V,
    /// What becomes of it, fitted within each split.
    pub family: T,
}

/// Chooses layers, poolings and feature families by cross-validation, as the INSPECTOR paper describes (its published code leaves it to
/// the eye, on test rows).
///
/// 1. Every view is scored alone; of the classifiers' settings the best counts, by the rule of [`GridSearch`].
/// 2. Views are ranked by mean score; ties go to the smaller deviation over splits, then to the earlier view. The best view of each of
///    the `top_k` best layers stays.
/// 3. Starting from the best, the others are tried in order: a view's features join those chosen if that raises the mean score, or
///    leaves it and lowers the deviation. All else equal, fewer layers win.
///
/// Rows, labels and splits must be those to learn from: test rows have no part in a selection. Its score is that of the best of many
/// and too high for that reason; select anew in each outer split to see how well selected probes do.
///
/// ```
/// use judge_core::{Layer, Pooling};
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
///     classifier: LogisticRegression { c, ..LogisticRegression::default() },
/// };
/// let selection = LayerSelection {
///     views: views.collect(),
///     classifiers: [0.1, 1.0].map(probe).to_vec(),
///     scoring: Scoring::MacroF1,
///     top_k: 5,
/// };
/// let splits = StratifiedKFold { n_splits: 5, shuffle: Some(42) }.split(&labels)?;
/// let selected = selection.select(source, &labels, &splits)?;
/// assert_eq!(selected.chosen.len(), 1);
/// assert_eq!(selected.chosen[0].layer, Layer(2));
/// let fitted = selected.fit(source, &labels)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSelection<V, T, C> {
    /// What may be read.
    pub views: Vec<LayerView<V, T>>,
    /// Settings to choose from for each set of views, in order.
    pub classifiers: Vec<C>,
    /// What is maximised.
    pub scoring: Scoring,
    /// Most layers that a probe may read, at least 1; the paper's 5.
    pub top_k: usize,
}

/// What a [`LayerSelection`] chose, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectedLayers<V, T, C> {
    /// The views chosen, in the order in which they joined; so are their features.
    pub chosen: Vec<LayerView<V, T>>,
    /// The settings chosen for the classifier.
    pub classifier: C,
    /// Every view with its scores, in the order of the views: a figure of score by layer needs no more.
    pub scan: Vec<ScoredView<V, T>>,
    /// Positions of the best views of as many layers, best first.
    pub ranking: Vec<usize>,
    /// The sets of views tried, in order; the first is the best view alone.
    pub steps: Vec<SelectionStep>,
}

/// A view and how it fared alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoredView<V, T> {
    /// The view.
    pub view: LayerView<V, T>,
    /// Scores of each of the classifiers' settings; `None` if for each of them some split's score is undefined.
    pub scores: Option<SearchScores>,
}

/// A set of views that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectionStep {
    /// Positions of the views.
    pub views: Vec<usize>,
    /// Scores of each of the classifiers' settings.
    pub scores: Option<SearchScores>,
    /// Whether it is better than what was chosen before.
    pub kept: bool,
}

impl<V, T, C> LayerSelection<V, T, C>
where
    V: Clone + Send + Sync,
    T: Transformer + Send,
    C: Classifier + Send,
{
    /// Selects among the views. `source` hands out what is read at a layer, `[n_rows, any]`, row for row with the labels; it is called
    /// for several views at once, and once more for the best. Results do not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// What `source` returns; [`Error::InViews`] with what a classifier reports; [`Error::NoScore`] where no view has a score;
    /// [`Error::NoLayers`] for a `top_k` of 0. Of several errors, the first view's.
    pub fn select<E: From<Error> + Send>(
        &self,
        source: impl Fn(Layer, &V) -> Result<Matrix, E> + Sync,
        labels: &[i64],
        splits: &[Split],
    ) -> Result<SelectedLayers<V, T, C>, E> {
        if self.top_k == 0 {
            return Err(Error::NoLayers.into());
        }
        let read = |view: usize| source(self.views[view].layer, &self.views[view].reading);
        let score_alone = |view: usize| Ok(self.score(&[view], &[read(view)?], labels, splits)?);
        let scores: Vec<Result<_, E>> = (0..self.views.len()).into_par_iter().map(score_alone).collect();
        let scores = scores.into_iter().collect::<Result<Vec<Option<SearchScores>>, E>>()?;

        let ranking = self.ranking(&scores);
        let unscored = Error::NoScore { n_candidates: scores.len() * self.classifiers.len(), n_splits: splits.len() };
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
            classifier: self.classifiers[best.best].clone(),
            scan: self.views.iter().zip(scores).map(scored).collect(),
            ranking,
            steps,
        })
    }

    /// The scores of each of the classifiers' settings on these views side by side.
    fn score(
        &self,
        views: &[usize],
        matrices: &[Matrix],
        labels: &[i64],
        splits: &[Split],
    ) -> Result<Option<SearchScores>, Error> {
        let in_views = |error| Error::InViews { views: views.to_vec(), error: Box::new(error) };
        let families = views.iter().map(|&view| self.views[view].family.clone());
        let transformer = blocks(families, matrices);
        let candidates = self
            .classifiers
            .iter()
            .map(|classifier| Pipeline { transformer: transformer.clone(), classifier: classifier.clone() });
        let search = GridSearch { candidates: candidates.collect(), scoring: self.scoring };
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

/// What a chosen probe is once fitted: each view's features by its family, then the classifier.
pub type FittedLayerProbe<T, C> = FittedPipeline<FittedBlocks<<T as Transformer>::Fitted>, <C as Classifier>::Fitted>;

impl<V, T: Transformer, C: Classifier> SelectedLayers<V, T, C> {
    /// The features of the views chosen, side by side, as [`fit`](Self::fit) learns from them: of any rows, those to predict as well.
    ///
    /// # Errors
    ///
    /// What `source` returns; [`Error::Beside`] where views differ in their rows.
    pub fn features<E: From<Error>>(&self, source: impl Fn(Layer, &V) -> Result<Matrix, E>) -> Result<Matrix, E> {
        Ok(Matrix::beside(&self.matrices(source)?)?)
    }

    /// Fits the choice to all rows that it was made from.
    ///
    /// # Errors
    ///
    /// Those of [`features`](Self::features) and of the classifier.
    pub fn fit<E: From<Error>>(
        &self,
        source: impl Fn(Layer, &V) -> Result<Matrix, E>,
        labels: &[i64],
    ) -> Result<FittedLayerProbe<T, C>, E> {
        let matrices = self.matrices(source)?;
        let transformer = blocks(self.chosen.iter().map(|view| view.family.clone()), &matrices);
        let probe = Pipeline { transformer, classifier: self.classifier.clone() };
        Ok(probe.fit(&Matrix::beside(&matrices)?, labels)?)
    }

    fn matrices<E>(&self, source: impl Fn(Layer, &V) -> Result<Matrix, E>) -> Result<Vec<Matrix>, E> {
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
