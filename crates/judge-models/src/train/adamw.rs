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

impl AdamW {
    /// Step number `step`, counted from 1, with the gradient `factor * gradient`, where `gradient`
    /// has the parameter's length.
    pub(super) fn update(
        &self,
        parameter: &mut Trainable,
        gradient: &[f32],
        factor: f32,
        learning_rate: f64,
        step: u64,
    ) {
        let decay = if parameter.shape.len() > 1 { (1.0 - learning_rate * self.weight_decay) as f32 } else { 1.0 };
        // Steps beyond i32 leave a bias below the smallest f64.
        let exponent = i32::try_from(step).unwrap_or(i32::MAX);
        let rate = (learning_rate / (1.0 - self.beta1.powi(exponent))) as f32;
        let root_bias = (1.0 - self.beta2.powi(exponent)).sqrt() as f32;
        let (beta1, beta2, epsilon) = (self.beta1 as f32, self.beta2 as f32, self.epsilon as f32);
        let (new1, new2) = ((1.0 - self.beta1) as f32, (1.0 - self.beta2) as f32);
        let moments = parameter.mean.iter_mut().zip(&mut parameter.square);
        for ((value, (mean, square)), g) in parameter.values.iter_mut().zip(moments).zip(gradient) {
            let g = factor * g;
            *mean = beta1 * *mean + new1 * g;
            *square = beta2 * *square + new2 * g * g;
            *value = *value * decay - rate * *mean / (square.sqrt() / root_bias + epsilon);
        }
    }
}
