//! The weights in training, as numbers of the host, and how a step of Adam changes them.
//!
//! It draws the initial weights, makes Adam's steps and turns into the classifier that is saved. Batches and the end of
//! training are the module above's, gradients `loss`'s. Memory is three numbers a weight: itself and two running means.

use super::MlpError;
use crate::numpy::numpy_random::NumpyRandom;
use crate::{DecisionRule, DenseClassifier, Error, HiddenLayer, LinearClassifier, Matrix};

/// Adam's decay of the running mean of gradients, of their squares, and what is added to the root of the latter, as Kingma and Ba (2015)
/// and scikit-learn have them. They are no settings here; scikit-learn's are `beta_1`, `beta_2` and `epsilon`.
const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// A multi-layer perceptron while it is trained: `[n_features] → hidden sizes → functions that decide`, rectified in between. The loss and
/// its gradients come from `loss`, by Burn; the numbers stay here, in double precision, so that a step and what is saved do not depend on a
/// tensor library.
pub(super) struct Network {
    /// From the features on.
    /// Each takes what the one before gives.
    hidden: Vec<Layer>,
    /// Its units are the functions that decide.
    /// 1 unit of two classes, else one a class.
    output: Layer,
    /// Adam corrects its means for how few steps they are over.
    /// All parameters have taken equally many.
    steps_done: u64,
}

/// Units, each a linear function of the layer before.
pub(super) struct Layer {
    /// Units of the layer before, or features.
    pub(super) n_inputs: usize,
    /// At least 1.
    pub(super) n_units: usize,
    /// `[n_units, n_inputs]`.
    pub(super) weights: Parameter,
    /// `[n_units]`.
    pub(super) intercepts: Parameter,
}

/// Numbers that are learnt, and Adam's running means of their gradients and of the squares of these.
pub(super) struct Parameter {
    /// What is learnt.
    pub(super) values: Vec<f64>,
    /// The running mean of gradients, from 0.
    mean: Vec<f64>,
    /// That of their squares, likewise.
    square: Vec<f64>,
}

/// Of a layer's weights and of its intercepts.
/// In that order, each with as many numbers as the parameter has.
pub(super) type LayerGradient = [Vec<f64>; 2];

impl Network {
    /// Weights and intercepts uniform in ±√(6 / (n_inputs + n_units)) (Glorot and Bengio 2010), drawn in scikit-learn's order.
    ///
    /// The order is from the features on, of each layer first all weights and then the intercepts. [`MlpError::NoRoom`]
    /// where the weights of a layer cannot be allocated.
    pub(super) fn glorot(
        n_features: usize,
        hidden_sizes: &[usize],
        n_functions: usize,
        random: &mut NumpyRandom,
    ) -> Result<Self, MlpError> {
        let (mut hidden, mut n_inputs) = (Vec::with_capacity(hidden_sizes.len()), n_features);
        for &n_units in hidden_sizes {
            hidden.push(Layer::glorot(n_inputs, n_units, random)?);
            n_inputs = n_units;
        }
        Ok(Self { hidden, output: Layer::glorot(n_inputs, n_functions, random)?, steps_done: 0 })
    }

    /// From the features to the functions.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.hidden.iter().chain([&self.output])
    }

    /// A step of Adam down these gradients, one a layer.
    ///
    /// The length is learning_rate_init √(1 − β₂ᵗ) / (1 − β₁ᵗ) for the t-th step, which corrects both means at once.
    pub(super) fn step(&mut self, gradients: &[LayerGradient], learning_rate_init: f64) {
        self.steps_done += 1;
        let steps = self.steps_done as f64;
        let rate = learning_rate_init * (1.0 - BETA_2.powf(steps)).sqrt() / (1.0 - BETA_1.powf(steps));
        for (layer, [of_weights, of_intercepts]) in self.hidden.iter_mut().chain([&mut self.output]).zip(gradients) {
            layer.weights.step(of_weights, rate);
            layer.intercepts.step(of_intercepts, rate);
        }
    }

    /// Whether all weights and all that steps depend on are finite.
    pub(super) fn is_finite(&self) -> bool {
        self.layers().all(|layer| layer.weights.is_finite() && layer.intercepts.is_finite())
    }

    /// The classifier that it is by now.
    ///
    /// A copy of all weights. [`Error::NonFiniteFeature`] or [`Error::InvalidParameter`] where they are not finite.
    pub(super) fn classifier(&self, classes: &[i64]) -> Result<DenseClassifier, Error> {
        let hidden =
            self.hidden.iter().map(|layer| HiddenLayer::from_parts(layer.matrix()?, layer.intercepts.values.clone()));
        let (coefficients, intercepts) = (self.output.matrix()?, self.output.intercepts.values.clone());
        let output = LinearClassifier::from_parts(DecisionRule::Logistic, classes.to_vec(), coefficients, intercepts)?;
        DenseClassifier::from_parts(hidden.collect::<Result<_, Error>>()?, output)
    }
}

impl Layer {
    /// One layer, with running means of 0.
    fn glorot(n_inputs: usize, n_units: usize, random: &mut NumpyRandom) -> Result<Self, MlpError> {
        let n_weights = n_inputs.saturating_mul(n_units);
        let bound = (6.0 / (n_inputs as f64 + n_units as f64)).sqrt();
        let mut drawn = Vec::new();
        drawn.try_reserve_exact(n_weights).map_err(|_| MlpError::NoRoom { n_units, n_inputs })?;
        drawn.extend((0..n_weights).map(|_| random.uniform(-bound, bound)));
        // Drawn input by input, kept unit by unit.
        let of_unit = |unit: usize| drawn[unit..].iter().step_by(n_units).copied();
        let weights = Parameter::new((0..n_units).flat_map(of_unit).collect());
        let intercepts = Parameter::new((0..n_units).map(|_| random.uniform(-bound, bound)).collect());
        Ok(Self { n_inputs, n_units, weights, intercepts })
    }

    /// The weights as they are saved. [`Error::NonFiniteFeature`] where training has run away.
    fn matrix(&self) -> Result<Matrix, Error> {
        Matrix::new(self.weights.values.clone(), self.n_inputs)
    }
}

impl Parameter {
    /// Before the first step.
    fn new(values: Vec<f64>) -> Self {
        let zeros = vec![0.0; values.len()];
        Self { values, mean: zeros.clone(), square: zeros }
    }

    /// Kingma and Ba's algorithm 1, in the order of operations of its section 2: the correction of both means is in `rate`.
    fn step(&mut self, gradient: &[f64], rate: f64) {
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((value, (mean, square)), g) in self.values.iter_mut().zip(moments).zip(gradient) {
            *mean = BETA_1 * *mean + (1.0 - BETA_1) * g;
            *square = BETA_2 * *square + (1.0 - BETA_2) * (g * g);
            *value -= rate * *mean / (square.sqrt() + EPSILON);
        }
    }

    /// The means count too: one that has overflowed spoils every later step.
    fn is_finite(&self) -> bool {
        let finite = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
        finite(&self.values) && finite(&self.mean) && finite(&self.square)
    }
}
