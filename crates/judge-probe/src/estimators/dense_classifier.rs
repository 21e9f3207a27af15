//! Fitted hidden layers before a linear classifier. How they are trained is `mlp`'s business; this applies them, without Burn.
//!
//! A layer is applied by `linear_functions`, so that a row's result is the same alone and in a batch.

use std::borrow::Cow;

use crate::estimators::linear_functions::linear_functions;
use crate::estimators::parameters::{check_count, check_each};
use crate::{Error, FittedClassifier, FittedEstimator, LinearClassifier, Matrix, Predictions};

/// A layer of rectified linear units: max(0, w·x + b) for each unit.
///
/// The only activation: scikit-learn's `activation="relu"`, which is its default.
#[derive(Debug, Clone, PartialEq)]
pub struct HiddenLayer {
    weights: Matrix,
    intercepts: Vec<f64>,
}

impl HiddenLayer {
    /// A layer from its units' weights `[n_units, n_inputs]` and intercepts `[n_units]`.
    ///
    /// # Errors
    ///
    /// [`Error::ParameterCount`] for other than one intercept a unit; [`Error::InvalidParameter`] for one that is not finite.
    pub fn from_parts(weights: Matrix, intercepts: Vec<f64>) -> Result<Self, Error> {
        check_count("intercepts", weights.n_rows(), intercepts.len())?;
        check_each("intercept", &intercepts, f64::is_finite)?;
        Ok(Self { weights, intercepts })
    }

    /// `[n_units, n_inputs]`.
    pub fn weights(&self) -> &Matrix {
        &self.weights
    }

    /// One a unit.
    pub fn intercepts(&self) -> &[f64] {
        &self.intercepts
    }

    /// `[n_rows, n_inputs]` to `[n_rows, n_units]`.
    fn transform(&self, inputs: &Matrix) -> Result<Matrix, Error> {
        let functions = linear_functions(inputs, &self.weights, &self.intercepts)?;
        Matrix::new(functions.values().iter().map(|value| value.max(0.0)).collect(), functions.n_features())
    }
}

/// Hidden layers, if any, and a linear classifier that judges what the last one makes of the features: what a multi-layer perceptron is
/// once it is fitted, and without hidden layers a [`LinearClassifier`].
///
/// ```
/// use judge_probe::{DecisionRule, DenseClassifier, FittedEstimator, HiddenLayer, LinearClassifier, Matrix};
///
/// // Units max(0, x) and max(0, -x) add up to |x|; class 1 is where that is above 2.
/// let hidden = HiddenLayer::from_parts(Matrix::from_rows([[1.0], [-1.0]])?, vec![0.0, 0.0])?;
/// let sum = Matrix::from_rows([[1.0, 1.0]])?;
/// let output = LinearClassifier::from_parts(DecisionRule::Logistic, vec![0, 1], sum, vec![-2.0])?;
/// let classifier = DenseClassifier::from_parts(vec![hidden], output)?;
/// assert_eq!(classifier.predict(&Matrix::from_rows([[-3.0], [0.5], [3.0]])?)?, [1, 0, 1]);
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DenseClassifier {
    hidden: Vec<HiddenLayer>,
    /// Takes as many features as the last hidden layer has units.
    output: LinearClassifier,
}

impl DenseClassifier {
    /// A classifier from its layers, from the features on.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`] where a layer, or the classifier, does not take what the layer before it gives.
    pub fn from_parts(hidden: Vec<HiddenLayer>, output: LinearClassifier) -> Result<Self, Error> {
        let inputs = hidden.iter().skip(1).map(|layer| layer.weights.n_features()).chain([output.n_features()]);
        match hidden.iter().map(|layer| layer.weights.n_rows()).zip(inputs).find(|(given, taken)| given != taken) {
            Some((found, expected)) => Err(Error::FeatureCount { expected, found }),
            None => Ok(Self { hidden, output }),
        }
    }

    /// The layers before the classifier, from the features on.
    pub fn hidden(&self) -> &[HiddenLayer] {
        &self.hidden
    }

    /// The linear classifier after the last layer.
    pub fn output(&self) -> &LinearClassifier {
        &self.output
    }

    /// See [`FittedProbe::scores`](crate::FittedProbe::scores).
    pub(crate) fn scores(&self, features: &Matrix) -> Result<Option<Vec<f64>>, Error> {
        self.output.scores(self.images(features)?.as_ref())
    }

    /// What the classifier at the end meets.
    ///
    /// The features themselves, borrowed, where there are no hidden layers. Images of earlier layers are dropped on the
    /// way.
    fn images<'a>(&self, features: &'a Matrix) -> Result<Cow<'a, Matrix>, Error> {
        let image = |inputs: Cow<'a, Matrix>, layer: &HiddenLayer| layer.transform(&inputs).map(Cow::Owned);
        self.hidden.iter().try_fold(Cow::Borrowed(features), image)
    }
}

impl<C: Into<LinearClassifier>> From<C> for DenseClassifier {
    /// Without hidden layers.
    fn from(linear: C) -> Self {
        Self { hidden: Vec::new(), output: linear.into() }
    }
}

impl FittedEstimator for DenseClassifier {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.hidden.first().map_or(self.output.n_features(), |layer| layer.weights.n_features())
    }

    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        self.output.predict(self.images(features)?.as_ref())
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Predictions::of_classifier(self, features)
    }
}

impl FittedClassifier for DenseClassifier {
    fn classes(&self) -> &[i64] {
        self.output.classes()
    }

    /// Besides what the trait says, [`Error::NonFiniteFeature`] where a unit overflows: row and unit.
    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.output.decision_function(self.images(features)?.as_ref())
    }

    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        self.output.predict_proba(self.images(features)?.as_ref())
    }
}
