//! A multi-layer perceptron, trained with Burn.
//!
//! Here are settings, their checks, the passes over the rows and when they end. `network` holds the weights and makes
//! Adam's steps, `loss` gets gradients from Burn, and what is fitted is a `DenseClassifier`, which does without.

mod error;
mod loss;
mod network;

pub use error::MlpError;

use crate::estimators::labels::EncodedLabels;
use crate::estimators::parameters::{check_alpha, check_positive};
use crate::matrices::products::check_squares;
use crate::numpy::numpy_random::NumpyRandom;
use crate::selection::cross_validation::select;
use crate::{
    DecisionRule, DenseClassifier, Error, Estimator, FittedClassifier, FittedEstimator, Matrix, Predictions, Split,
    TestSize,
};
use loss::Batch;
use network::Network;

/// A multi-layer perceptron with rectified units, as `sklearn.neural_network.MLPClassifier(solver="adam")`: layers of
/// functions max(0, w·x + b), one upon another, and multinomial logistic regression on the last.
///
/// It minimises the mean of −ln p(yᵢ | xᵢ) plus alpha ‖W‖² / (2 n) over batches of n rows by Adam's steps. Initial weights, batches
/// and steps are scikit-learn's for the same seed, so that loss and weights are equal but for rounding. Two things differ: held-out rows
/// are stratified for any number of classes (there for two alone), and passes that run out are an error (there a warning).
///
/// Gradients are Burn's, in double precision on the processor; what was fitted predicts without Burn. Standardise the features first: the
/// steps are the same for all weights.
///
/// ```
/// use judge_probe::{Estimator, FittedEstimator, Matrix, MlpClassifier};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// // Which no linear function tells apart.
/// let features = Matrix::from_rows([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])?;
/// let settings = MlpClassifier { hidden_layer_sizes: vec![16], learning_rate_init: 0.01, ..MlpClassifier::default() };
/// let fitted = settings.fit(&features, &[0, 1, 1, 0])?;
/// assert_eq!(fitted.predict(&features)?, [0, 1, 1, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MlpClassifier {
    /// Units of each hidden layer, from the features on; without any it is logistic regression.
    /// Each size is at least 1 ([`MlpError::NoUnits`]).
    pub hidden_layer_sizes: Vec<usize>,
    /// Strength of the penalty on weights, not on intercepts; at least 0.
    /// The penalty of a batch is divided by the batch's rows, as scikit-learn does, so that smaller batches penalise
    /// more.
    pub alpha: f64,
    /// Rows of a batch, at least 1; the last batch of a pass may have fewer.
    /// More than there are rows makes one batch of them all.
    pub batch_size: usize,
    /// Length of Adam's steps; above 0.
    /// Adam divides each gradient by its running size, so that a step changes a weight by about this much, however large
    /// the loss.
    pub learning_rate_init: f64,
    /// Passes over the rows after which fitting gives up.
    /// Those of all rows, not steps: a pass has n_rows / batch_size steps, rounded up. Reaching it is
    /// [`MlpError::NotSettled`].
    pub max_iter: usize,
    /// The least improvement of the loss, or of the score of rows held out, that counts; above 0.
    /// An improvement is over the best pass so far, not over the last one.
    pub tol: f64,
    /// Fitting ends when more passes than this, in a row, have not brought it.
    /// So there are at least `n_iter_no_change` + 2 passes: the first always improves.
    pub n_iter_no_change: usize,
    /// Rows to hold out, drawn from each class in proportion: the accuracy on them then decides on the end, and the weights of the first of
    /// the best passes are kept. Otherwise the loss decides, and those of the last pass are. Rows held out are not learnt from.
    /// scikit-learn's default share, `validation_fraction`, is 0.1.
    pub early_stopping: Option<TestSize>,
    /// Of initial weights, rows held out and batches (`random_state`).
    /// One generator serves all three in that order, as one `RandomState` does in scikit-learn.
    pub seed: u32,
}

impl Default for MlpClassifier {
    /// scikit-learn's: one hidden layer of 100 units, alpha 1e-4, batch_size 200, learning_rate_init 1e-3, tol 1e-4, n_iter_no_change 10,
    /// no early stopping; but max_iter 1,000 instead of 200, and seed 0.
    fn default() -> Self {
        Self {
            hidden_layer_sizes: vec![100],
            alpha: 1e-4,
            batch_size: 200,
            learning_rate_init: 1e-3,
            max_iter: 1000,
            tol: 1e-4,
            n_iter_no_change: 10,
            early_stopping: None,
            seed: 0,
        }
    }
}

/// A fitted [`MlpClassifier`]: its layers and its training history.
///
/// It predicts as its [`DenseClassifier`] does and converts into one, which is what a saved probe keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedMlpClassifier {
    /// Of the last pass, or with early stopping of the first of the best ones.
    classifier: DenseClassifier,
    /// One value a pass, all finite.
    loss_curve: Vec<f64>,
    /// One accuracy a pass, from 0 to 1.
    validation_scores: Option<Vec<f64>>,
}

impl FittedMlpClassifier {
    /// The layers.
    pub fn classifier(&self) -> &DenseClassifier {
        &self.classifier
    }

    /// The loss of each pass over the rows: the mean over its batches, each before its step.
    ///
    /// Penalty included, batches weighed by their rows. Its length is the number of passes. Without early stopping it
    /// need not fall: the last `n_iter_no_change` + 1 passes brought no improvement by `tol`.
    pub fn loss_curve(&self) -> &[f64] {
        &self.loss_curve
    }

    /// The accuracy on rows held out after each pass; `None` where none were.
    ///
    /// The greatest, at its first occurrence, is that of the weights kept.
    pub fn validation_scores(&self) -> Option<&[f64]> {
        self.validation_scores.as_deref()
    }
}

impl From<FittedMlpClassifier> for DenseClassifier {
    /// The layers; the curves are dropped.
    fn from(fitted: FittedMlpClassifier) -> Self {
        fitted.classifier
    }
}

impl MlpClassifier {
    /// Every setting but `max_iter` and `early_stopping`, before anything is drawn: `max_iter` 0 ends in
    /// [`MlpError::NotSettled`], and `early_stopping` is checked against the rows when they are split.
    fn check(&self) -> Result<(), Error> {
        check_alpha(self.alpha)?;
        check_positive("tol", self.tol)?;
        check_positive("learning_rate_init", self.learning_rate_init)?;
        if self.batch_size == 0 {
            return Err(MlpError::NoBatch.into());
        }
        match self.hidden_layer_sizes.iter().position(|&size| size == 0) {
            Some(layer) => Err(MlpError::NoUnits { layer }.into()),
            None => Ok(()),
        }
    }

    /// One pass over the rows in this order; returns its loss.
    ///
    /// It steps after each batch, so later batches are judged by weights that earlier ones have changed.
    fn pass(
        &self,
        network: &mut Network,
        (features, labels): (&Matrix, &EncodedLabels),
        order: &[usize],
    ) -> Result<f64, MlpError> {
        let mut sum = 0.0;
        for rows in order.chunks(self.batch_size) {
            let (loss, gradients) = loss::of_batch(network, Batch::of(features, labels, rows), self.alpha)?;
            sum += loss * rows.len() as f64;
            network.step(&gradients, self.learning_rate_init);
        }
        Ok(sum / order.len() as f64)
    }
}

/// Rows held out, and the accuracy on them after each pass.
struct HeldOut {
    features: Matrix,
    labels: Vec<i64>,
    /// One for each pass done.
    scores: Vec<f64>,
}

impl HeldOut {
    /// The accuracy of this classifier, which is also kept.
    fn score(&mut self, classifier: &DenseClassifier) -> Result<f64, Error> {
        let predicted = classifier.predict(&self.features)?;
        let right = predicted.iter().zip(&self.labels).filter(|(ours, label)| ours == label).count();
        let accuracy = right as f64 / self.labels.len() as f64;
        self.scores.push(accuracy);
        Ok(accuracy)
    }
}

impl Estimator for MlpClassifier {
    type Label = i64;
    type Fitted = FittedMlpClassifier;

    /// # Errors
    ///
    /// [`Error::RowCount`], [`Error::OneClass`], [`Error::OutOfRange`], [`Error::Overflow`]; [`Error::Mlp`] for sizes of 0 and where
    /// training does not come to its end; with early stopping [`Error::TestCount`], [`Error::SmallClass`] and [`Error::SmallPart`].
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<Self::Fitted, Error> {
        // Settings first: an error in them should not depend on the rows.
        self.check()?;
        let encoded = EncodedLabels::new(features, labels)?;
        check_squares(features)?;
        // Draws in scikit-learn's order: initial weights, rows held out, then a permutation for each pass.
        let mut random = NumpyRandom::new(self.seed);
        let n_functions = DecisionRule::Logistic.n_functions(encoded.classes.len());
        let mut network = Network::glorot(features.n_features(), &self.hidden_layer_sizes, n_functions, &mut random)?;
        let (mut order, mut held_out) = match self.early_stopping {
            None => ((0..labels.len()).collect(), None),
            Some(size) => {
                let Split { train, test } = size.stratified(labels, &mut random)?;
                let (features, labels) = (features.select_rows(&test)?, select(labels, &test));
                (train, Some(HeldOut { features, labels, scores: Vec::new() }))
            }
        };

        let (mut loss_curve, mut best, mut n_idle) = (Vec::new(), f64::NEG_INFINITY, 0);
        let mut best_on_held_out = None;
        while n_idle <= self.n_iter_no_change {
            if loss_curve.len() == self.max_iter {
                let (max_iter, n_iter_no_change, tol) = (self.max_iter, self.n_iter_no_change, self.tol);
                return Err(MlpError::NotSettled { max_iter, n_idle, n_iter_no_change, tol }.into());
            }
            // Shuffled on top of the last order, as scikit-learn does.
            order = select(&order, &random.permutation(order.len()));
            let loss = self.pass(&mut network, (features, &encoded), &order)?;
            loss_curve.push(loss);
            if !(loss.is_finite() && network.is_finite()) {
                return Err(MlpError::Diverged { n_iter: loss_curve.len() }.into());
            }
            // The greater the better in both cases.
            let goodness = match &mut held_out {
                None => -loss,
                Some(held_out) => {
                    let classifier = network.classifier(&encoded.classes)?;
                    let score = held_out.score(&classifier)?;
                    // Without `tol`: the best weights are kept, however little better they are.
                    if score > best {
                        best_on_held_out = Some(classifier);
                    }
                    score
                }
            };
            n_idle = if goodness < best + self.tol { n_idle + 1 } else { 0 };
            best = best.max(goodness);
        }
        let classifier = best_on_held_out.map_or_else(|| network.classifier(&encoded.classes), Ok)?;
        Ok(FittedMlpClassifier { classifier, loss_curve, validation_scores: held_out.map(|held_out| held_out.scores) })
    }
}

impl FittedEstimator for FittedMlpClassifier {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.classifier.n_features()
    }

    /// Of two classes the second where its log-odds are above 0; else the most probable, the first of equals.
    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        self.classifier.predict(features)
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Predictions::of_classifier(self, features)
    }
}

impl FittedClassifier for FittedMlpClassifier {
    fn classes(&self) -> &[i64] {
        self.classifier.classes()
    }

    /// Of two classes the log-odds of the second; of more each class's logarithm of its probability, but for a number that all share.
    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.classifier.decision_function(features)
    }

    /// Always some.
    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        self.classifier.predict_proba(features)
    }
}
