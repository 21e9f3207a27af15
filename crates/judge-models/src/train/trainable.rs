//! One tensor that is learnt.

/// The name of the parameters of layer weights, which no folder of a model has.
pub(super) const LAYER_WEIGHTS: &str = "layer_weights";

/// What the names of an adapter's factors end with.
const FACTORS: [&str; 2] = [".lora_A.weight", ".lora_B.weight"];

/// One tensor that is learnt, and the optimiser's moments of it. The three lists are row-major and of the
/// same length.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trainable {
    /// Its name in a Hugging Face folder, or in an adapter without PEFT's prefix.
    pub(super) name: String,
    /// Its shape there.
    pub(super) shape: Vec<usize>,
    /// The numbers that are learnt, as a folder stores them.
    pub(super) values: Vec<f32>,
    /// Running mean of the gradient, from 0.
    pub(super) mean: Vec<f32>,
    /// Running mean of the gradient's square, from 0.
    pub(super) square: Vec<f32>,
}

impl Trainable {
    /// A tensor before the first step.
    pub(super) fn new(name: impl Into<String>, shape: &[usize], values: Vec<f32>) -> Self {
        let zeros = vec![0.0; values.len()];
        Self { name: name.into(), shape: shape.to_vec(), values, mean: zeros.clone(), square: zeros }
    }

    /// Whether it is a factor of an adapter, not a tensor of the model.
    pub(super) fn is_factor(&self) -> bool {
        FACTORS.iter().any(|end| self.name.ends_with(end))
    }

    /// Whether a folder that is written has it.
    pub(super) fn is_written(&self) -> bool {
        self.name != LAYER_WEIGHTS
    }

    /// The name of the model's tensor that it is or that it is beside.
    pub(super) fn of(&self) -> String {
        let stem = FACTORS.into_iter().find_map(|end| self.name.strip_suffix(end));
        stem.map_or_else(|| self.name.clone(), |stem| format!("{stem}.weight"))
    }
}
