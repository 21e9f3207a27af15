//! One step of the optimiser, on host numbers. `Trainer::step` calls it for each trainable tensor.
//!
//! The arithmetic on elements is in f32, one element at a time, in the order of the formula below;
//! factors that all elements share are computed in f64 and rounded once.

use serde::Serialize;

use super::trainable::Trainable;

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019), as PyTorch computes it. Only
/// matrices decay: norms and biases, which have one dimension, do not.
///
/// ```text
/// m = beta1 * m + (1 - beta1) * g
/// v = beta2 * v + (1 - beta2) * g^2
/// x = x * (1 - rate * weight_decay)
///     - rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdamW {
    /// Decay of the gradient's running mean `m`, in [0, 1). By default 0.9.
    pub beta1: f64,
    /// Decay of the running mean `v` of its square, in [0, 1). By default 0.999.
    pub beta2: f64,
    /// Added to the root of the mean square. Positive; by default 1e-8.
    pub epsilon: f64,
    /// What is taken off a matrix at each step, as a fraction of the learning rate. Not negative;
    /// by default 0.
    pub weight_decay: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

/// A step of the optimiser.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// What a gradient is multiplied by first.
    pub(super) factor: f32,
    /// The learning rate.
    pub(super) learning_rate: f64,
    /// The number of the step, from 1.
    pub(super) step: u64,
}

impl AdamW {
    /// Moves a parameter by its gradient, which has its length.
    pub(super) fn update(&self, parameter: &mut Trainable, gradient: &[f32], by: Move) {
        let of = self.formula(parameter.shape.len() > 1, by);
        let moments = parameter.mean.iter_mut().zip(&mut parameter.square);
        for ((value, (mean, square)), g) in parameter.values.iter_mut().zip(moments).zip(gradient) {
            [*value, *mean, *square] = of([*value, *mean, *square], *g);
        }
    }

    /// Whether all numbers of a parameter are finite after [`update`](Self::update).
    pub(super) fn stays_finite(&self, parameter: &Trainable, gradient: &[f32], by: Move) -> bool {
        let of = self.formula(parameter.shape.len() > 1, by);
        let moments = parameter.mean.iter().zip(&parameter.square);
        let mut all = parameter.values.iter().zip(moments).zip(gradient);
        all.all(|((&value, (&mean, &square)), &g)| of([value, mean, square], g).iter().all(|x| x.is_finite()))
    }

    /// What one number and its moments become by its gradient.
    fn formula(&self, is_matrix: bool, by: Move) -> impl Fn([f32; 3], f32) -> [f32; 3] {
        let Move { factor, learning_rate, step } = by;
        let decay = if is_matrix { (1.0 - learning_rate * self.weight_decay) as f32 } else { 1.0 };
        // Steps beyond i32 leave a bias below the smallest f64.
        let exponent = i32::try_from(step).unwrap_or(i32::MAX);
        let rate = (learning_rate / (1.0 - self.beta1.powi(exponent))) as f32;
        let root_bias = (1.0 - self.beta2.powi(exponent)).sqrt() as f32;
        let (beta1, beta2, epsilon) = (self.beta1 as f32, self.beta2 as f32, self.epsilon as f32);
        let (new1, new2) = ((1.0 - self.beta1) as f32, (1.0 - self.beta2) as f32);
        move |[value, mean, square], g| {
            let g = factor * g;
            let mean = beta1 * mean + new1 * g;
            let square = beta2 * square + new2 * g * g;
            [value * decay - rate * mean / (square.sqrt() / root_bias + epsilon), mean, square]
        }
    }
}
