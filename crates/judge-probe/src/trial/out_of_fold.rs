//! The number that each reading gives to a row of which it has learnt nothing.

use judge_core::fit::{Graded, LayerWeightFit};
use judge_core::lager::{LayerTable, LayerWeights, States, TableOrigin, Variant};
use judge_core::{Layer, request::Signal};
use judge_metrics::correlation::spearman;

use super::error::TrialError;
use super::reading::{ReadAs, Reading, SIGNAL};
use super::rows::Trial;
use crate::selection::cross_validation::select;
use crate::training::RowSignals;
use crate::{
    Error, FeatureFamily, FittedProbe, IntoProbe, LayerSelection, LayerView, Matrix, OnScale, Pipeline,
    RegressionScoring, Ridge, SelectedLayers, Split, StandardScaler,
};

/// Penalties that a probe chooses from, in powers of ten: standardised features of some hundred rows are between no penalty and all of it.
const ALPHAS: [f64; 5] = [1e1, 1e2, 1e3, 1e4, 1e5];

/// Whole grades above the lowest that a probe has classes for.
const LONG_SCALE: i64 = 100;

/// What is kept of a reading to judge with.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// It has learnt nothing.
    Nothing,
    /// The layer that agrees best with people.
    Layer(Layer),
    /// Layer weights.
    Weights(Box<LayerWeights>),
    /// A probe of the [signal](SIGNAL) of this layer, whose number is the grade that it predicts.
    Probe(Layer, Box<FittedProbe>),
}

/// Why a reading has no numbers: it is the rows', or whoever has the signals cannot give them.
pub(super) enum Failed<E> {
    /// The rows do not define it.
    Undefined(Error),
    /// The comparison ends.
    Ends(E),
}

impl<E: From<Error>> From<Error> for Failed<E> {
    fn from(error: Error) -> Self {
        match error {
            Error::NoScore { .. } | Error::ManySplits { .. } | Error::FewSplits { .. } => Self::Undefined(error),
            error => Self::Ends(error.into()),
        }
    }
}

/// What the rows do not define, of layers and their weights.
fn undefined<E>(reason: String) -> Failed<E> {
    Failed::Undefined(TrialError::Weights(reason).into())
}

/// The number of each row, by what the splits' other rows have taught.
pub(super) fn values<S: RowSignals>(
    trial: &Trial,
    read_as: &ReadAs<'_, S>,
    splits: &[Split],
) -> Result<Vec<f64>, Failed<S::Error>> {
    let mut values = vec![0.0; trial.grades.len()];
    match read_as {
        ReadAs::Plain(known) | ReadAs::Baseline(known) => values.clone_from(known),
        ReadAs::ChosenLayer(layers) => {
            for split in splits {
                let grades = trial.of(&split.train);
                let layer = best_layer(layers, &split.train, &grades).map_err(undefined)?;
                let column = |rows: &[usize]| Matrix::new(select(&layers[layer], rows), 1);
                // No grade has a part in standard scores: the mean of the grades learnt from is the lower the higher the fold's own is, and
                // would hide what a reading knows.
                let scaler = column(&split.train).and_then(|numbers| StandardScaler::default().fit(&numbers));
                let scores = scaler.and_then(|scaler| scaler.transform(&column(&split.test)?))?;
                split.test.iter().zip(scores.values()).for_each(|(&row, &score)| values[row] = score);
            }
        }
        ReadAs::Weights { tables, origin, targets } => {
            for split in splits {
                let weights = fitted(tables, targets, origin, &split.train).map_err(undefined)?;
                for &row in &split.test {
                    let score = weights.score(Variant::WeightedExpected, &tables[row], &origin.scale);
                    values[row] = score.map_err(|error| Error::from(TrialError::Weights(error.to_string())))?.score;
                }
            }
        }
        ReadAs::Probe { layers, signals } => {
            let all: Vec<usize> = (0..trial.grades.len()).collect();
            let source = |layer: Layer, signal: &Signal| matrix(*signals, &all, layer, *signal);
            let nested = selection(layers).nested(source, &trial.grades, splits, |rows| trial.inner(rows))?;
            for (split, outer) in splits.iter().zip(nested) {
                // For the same reason less the mean grade, which the intercept is of standardised features.
                let mean = mean(&trial.of(&split.train));
                split.test.iter().zip(outer.predicted.labels).for_each(|(&row, value)| values[row] = value - mean);
            }
        }
    }
    Ok(values)
}

impl Trial {
    /// What a reading comes to when it learns from all rows: what is kept of it to judge with.
    ///
    /// # Errors
    ///
    /// As [`compare`](Self::compare).
    pub fn keep<S: RowSignals>(&self, reading: &Reading<'_, S>) -> Result<Kept, S::Error> {
        self.check(std::slice::from_ref(reading))?;
        let all: Vec<usize> = (0..self.grades.len()).collect();
        let kept = match &reading.read_as {
            ReadAs::Plain(_) | ReadAs::Baseline(_) => Ok(Kept::Nothing),
            ReadAs::ChosenLayer(layers) => {
                best_layer(layers, &all, &self.grades).map(|layer| Kept::Layer(Layer(layer))).map_err(undefined)
            }
            ReadAs::Weights { tables, targets, origin } => {
                fitted(tables, targets, origin, &all).map(|weights| Kept::Weights(Box::new(weights))).map_err(undefined)
            }
            ReadAs::Probe { layers, signals } => probe(self, layers, *signals, &all),
        };
        kept.map_err(|failed| match failed {
            Failed::Undefined(error) => error.into(),
            Failed::Ends(error) => error,
        })
    }
}

fn probe<S: RowSignals>(trial: &Trial, layers: &[Layer], signals: &S, all: &[usize]) -> Result<Kept, Failed<S::Error>> {
    let source = |layer: Layer, signal: &Signal| matrix(signals, all, layer, *signal);
    let selected: SelectedLayers<_, _, _> = selection(layers).select(source, &trial.grades, &trial.inner(all)?)?;
    let fitted = selected.fit(source, &trial.grades)?;
    let (low, high) = trial
        .grades
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &grade| (low.min(grade), high.max(grade)));
    let (low, high) = (low.floor() as i64, high.ceil() as i64);
    // Classes only bound what is predicted; of a long scale its ends are enough.
    let classes: Vec<i64> = if high - low <= LONG_SCALE { (low..=high).collect() } else { vec![low, high] };
    let probe = fitted.on_scale(&classes)?.into_probe()?;
    let layer = selected.chosen.first().map_or(Layer(0), |view| view.layer);
    Ok(Kept::Probe(layer, Box::new(probe)))
}

fn matrix<S: RowSignals>(
    signals: &S,
    rows: &[usize],
    layer: Layer,
    signal: Signal,
) -> Result<Matrix, Failed<S::Error>> {
    signals.matrix(rows, layer, &[signal]).map_err(Failed::Ends)
}

/// One layer and one penalty, by how well their numbers rank held-out rows.
fn selection(
    layers: &[Layer],
) -> LayerSelection<Signal, FeatureFamily, Pipeline<StandardScaler, Ridge>, RegressionScoring> {
    let view = |&layer: &Layer| LayerView { layer, reading: SIGNAL, family: FeatureFamily::State };
    let ridge =
        |alpha| Pipeline { transformer: StandardScaler::default(), estimator: Ridge { alpha, ..Ridge::default() } };
    LayerSelection {
        views: layers.iter().map(view).collect(),
        estimators: ALPHAS.map(ridge).to_vec(),
        scoring: RegressionScoring::Spearman,
        top_k: 1,
    }
}

/// The layer whose numbers agree best on these rows, or why there is none.
fn best_layer(layers: &[Vec<f64>], rows: &[usize], grades: &[f64]) -> Result<usize, String> {
    let mut best: Option<(usize, f64)> = None;
    let mut undefined = "no layer was read".to_owned();
    for (layer, numbers) in layers.iter().enumerate() {
        match spearman(&select(numbers, rows), grades) {
            Ok(found) if best.is_none_or(|(_, most)| found.estimate > most) => best = Some((layer, found.estimate)),
            Ok(_) => {}
            Err(error) => undefined = error.to_string(),
        }
    }
    best.map(|(layer, _)| layer).ok_or(undefined)
}

fn fitted(
    tables: &[LayerTable],
    targets: &[f64],
    origin: &TableOrigin,
    rows: &[usize],
) -> Result<LayerWeights, String> {
    let graded = |&row: &usize| Graded { table: tables[row].clone(), human: targets[row] };
    let items: Vec<Graded> = rows.iter().map(graded).collect();
    let fit = LayerWeightFit { states: States::All, ..LayerWeightFit::paper() };
    fit.fit(&items, origin).map_err(|error| error.to_string())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
