//! What is learnt: everything, or the factors of a low-rank adapter beside some projections.
//!
//! It chooses projections by the names that a description has for them, and draws the first factors on the
//! host, so that they are the same on every device.

use std::collections::{BTreeMap, BTreeSet};

use judge_arch::Architecture;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use serde::Serialize;

use super::error::TrainError;
use crate::weights::lora_scale;

/// What is learnt. A score head that the loss reads is learnt with either.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tuning {
    /// All tensors of the model.
    Full,
    /// The factors of an adapter, while the model stays as it is.
    Lora(Lora),
}

impl Default for Tuning {
    fn default() -> Self {
        Self::Lora(Lora::default())
    }
}

/// A low-rank adapter: beside a matrix `W` of the folder, `scale * (x · Aᵀ) · Bᵀ` is added to `x · Wᵀ`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lora {
    /// Rows of `A` and columns of `B`. At least 1, at most the rank that the largest of the matrices may have; by default 16.
    pub rank: usize,
    /// The numerator of the scale. Positive, by default 32.
    pub alpha: f64,
    /// The matrices that get factors.
    pub targets: Targets,
    /// The blocks whose matrices get factors.
    pub blocks: Blocks,
    /// Whether the scale is `alpha / sqrt(rank)` and not `alpha / rank`. By default not.
    pub rslora: bool,
}

impl Default for Lora {
    fn default() -> Self {
        Self { rank: 16, alpha: 32.0, targets: Targets::default(), blocks: Blocks::default(), rslora: false }
    }
}

/// Which blocks are adapted. PEFT calls them `layers_to_transform`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocks {
    /// All of them.
    #[default]
    All,
    /// So many of the last ones: at least 1, at most all. What is below runs without a graph.
    Last(usize),
    /// These, counted from 0; at least one.
    Listed(Vec<usize>),
}

impl Blocks {
    /// Those of a model with so many, ascending.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for none, and for a block that is not there.
    pub(super) fn of(&self, n_layers: usize) -> Result<BTreeSet<usize>, TrainError> {
        let fault = |found: String, expected: String| Err(TrainError::setting("tuning.blocks", found, expected));
        match self {
            Self::All => Ok((0..n_layers).collect()),
            Self::Last(last) if (1..=n_layers).contains(last) => Ok((n_layers - last..n_layers).collect()),
            Self::Last(last) => fault(format!("the last {last}"), format!("1 to {n_layers} of {n_layers}")),
            Self::Listed(blocks) if blocks.is_empty() => fault("empty".to_owned(), "at least one block".to_owned()),
            Self::Listed(blocks) => match blocks.iter().find(|&&block| block >= n_layers) {
                Some(block) => fault(block.to_string(), format!("blocks 0 to {}", n_layers - 1)),
                None => Ok(blocks.iter().copied().collect()),
            },
        }
    }
}

/// Which matrices of a block get factors, by the names that the folder has for them. Matrices that the
/// folder keeps in one, such as Phi-3's `qkv_proj`, have one pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Targets {
    /// All projections of a block.
    #[default]
    AllLinear,
    /// Those whose names end with one of these, such as `q_proj` or `self_attn.q_proj`.
    Named(Vec<String>),
}

/// The projections that get factors, by their names without `.weight`.
pub(super) struct Selected {
    /// Their names.
    pub(super) stems: BTreeSet<String>,
    /// The rank of each.
    pub(super) rank: usize,
    /// The factor of each product.
    pub(super) scale: f32,
}

impl Lora {
    /// The factor of a product: `alpha / rank`, or `alpha / sqrt(rank)`.
    pub(super) fn scale(&self) -> f32 {
        lora_scale(self.alpha, self.rank, self.rslora)
    }

    /// The projections of a model that get factors.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for settings out of their range, and [`TrainError::NoTarget`] for a target that
    /// no projection has.
    pub(super) fn select(&self, spec: &Architecture) -> Result<Selected, TrainError> {
        let n_layers = spec.n_layers();
        if self.rank == 0 {
            return Err(TrainError::setting("tuning.rank", self.rank, "at least 1"));
        }
        if !(self.alpha > 0.0 && self.scale().is_finite() && self.scale() > 0.0) {
            return Err(TrainError::setting("tuning.alpha", self.alpha, "a positive number that f32 holds"));
        }
        let blocks = self.blocks.of(n_layers)?;
        let all: BTreeSet<String> = blocks.into_iter().flat_map(|block| projections(spec, block)).collect();
        let stems = match &self.targets {
            Targets::AllLinear => all,
            Targets::Named(targets) => {
                let is = |stem: &str, target: &str| {
                    stem.strip_suffix(target).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                };
                if let Some(target) = targets.iter().find(|target| !all.iter().any(|stem| is(stem, target))) {
                    return Err(TrainError::NoTarget { target: target.clone(), known: last_parts(&all) });
                }
                all.into_iter().filter(|stem| targets.iter().any(|target| is(stem, target))).collect()
            }
        };
        if stems.is_empty() {
            return Err(TrainError::setting("tuning.targets", "empty", "at least one name"));
        }
        // More adds nothing that a product can say, and there may be no memory for it.
        let shapes = (0..n_layers).flat_map(|block| spec.tensors_of_block(block));
        let adapted = shapes.filter(|(name, _)| name.strip_suffix(".weight").is_some_and(|stem| stems.contains(stem)));
        let most = adapted.filter_map(|(_, shape)| shape.into_iter().min()).max().unwrap_or_default();
        if self.rank > most {
            let expected = format!("at most {most}, the smaller side of the largest matrix");
            return Err(TrainError::setting("tuning.rank", self.rank, expected));
        }
        Ok(Selected { stems, rank: self.rank, scale: self.scale() })
    }
}

/// Names of the projections of a block, without `.weight`. All matrices of a dense block are projections:
/// norms have one axis, and the taps of convolutions three.
fn projections(spec: &Architecture, layer: usize) -> impl Iterator<Item = String> {
    let tensors = spec.tensors_of_block(layer).into_iter().filter(|(_, shape)| shape.len() == 2);
    tensors.filter_map(|(name, _)| Some(name.strip_suffix(".weight")?.to_owned()))
}

/// The last parts of dotted names, each once, sorted: what PEFT calls target modules.
pub(super) fn last_parts(stems: &BTreeSet<String>) -> Vec<String> {
    let last: BTreeSet<&str> = stems.iter().filter_map(|stem| stem.rsplit('.').next()).collect();
    last.into_iter().map(str::to_owned).collect()
}

/// The first factors of an adapter, by the names of their tensors: `A` uniform in `±1/sqrt(d_in)`, which is
/// PyTorch's `kaiming_uniform_` with `a = sqrt(5)`, as PEFT draws it, and `B` zero. `None` for a name that is
/// no factor's.
pub(super) fn first_factor(name: &str, shape: &[usize], rng: &mut ChaCha8Rng) -> Option<Vec<f32>> {
    let len = shape.iter().product();
    if name.ends_with(".lora_B.weight") {
        return Some(vec![0.0; len]);
    }
    let d_in = *shape.get(1).filter(|_| name.ends_with(".lora_A.weight"))?;
    let bound = 1.0 / (d_in as f64).sqrt();
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    Some((0..len).map(|_| ((2.0 * uniform() - 1.0) * bound) as f32).collect())
}

/// The projections that have factors, by their names without `.weight`, with the places of `A` and `B` in a
/// list of names.
pub(super) fn pairs<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, [usize; 2]> {
    let mut pairs: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for (place, name) in names.enumerate() {
        for (which, end) in [".lora_A.weight", ".lora_B.weight"].into_iter().enumerate() {
            if let Some(stem) = name.strip_suffix(end) {
                pairs.entry(stem).or_default()[which] = place;
            }
        }
    }
    pairs
}
