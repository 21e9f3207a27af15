use super::Parameter;

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019), as PyTorch computes it. Only matrices decay.
#[derive(Clone, Debug, PartialEq)]
pub struct AdamW {
    /// Decay of the gradient's running mean, in [0, 1).
    pub beta1: f64,
    /// Decay of its running mean square, in [0, 1).
    pub beta2: f64,
    /// Added to the root of the mean square. Positive.
    pub epsilon: f64,
    /// What is taken off a matrix at each step, as a fraction of the learning rate. Not negative.
    pub weight_decay: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weight_decay: 0.1 }
    }
}

impl AdamW {
    /// Step number `step`, counted from 1, with the gradient `factor * gradient`.
    pub(super) fn update(
        &self,
        parameter: &mut Parameter,
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
