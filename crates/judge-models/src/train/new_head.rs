//! A head of an encoder whose folder is no sequence classifier, as transformers makes one.
//!
//! What comes before the labels is the folder's where it has it under the same name, such as BERT's pooler. All else is
//! drawn on the host, so that it is the same on every machine: matrices from a normal distribution, biases 0, norms 1.

use std::collections::BTreeSet;
use std::f64::consts::TAU;
use std::sync::Arc;

use judge_arch::{Architecture, EncoderHeadSpec, EncoderSpec, HeadDraws, HeadStepSpec};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::checked;
use crate::folder::Folder;
use crate::weights::Store;
use crate::{Dtype, Error};

/// The first numbers of a new head.
pub(super) struct NewHead {
    /// The folder's tensors by the names of the family's classifiers.
    folder: Box<dyn Store>,
    /// How matrices are drawn.
    draws: HeadDraws,
    /// Names of the tensors of the map to the labels.
    out: BTreeSet<String>,
    /// Names of norms' weights.
    ones: BTreeSet<String>,
}

impl NewHead {
    /// A new head, `head`, of the encoder that `spec` describes together with it.
    pub(super) fn of(
        folder: &Folder,
        spec: &Arc<EncoderSpec>,
        head: &EncoderHeadSpec,
        draws: HeadDraws,
    ) -> Result<Self, Error> {
        let norm = |step: &HeadStepSpec| match step {
            HeadStepSpec::Norm(norm, _) => Some(norm.name.clone()),
            HeadStepSpec::Linear(_) | HeadStepSpec::Activation(_) => None,
        };
        Ok(Self {
            folder: checked::store(folder, &Architecture::Encoder(Arc::clone(spec)))?,
            draws,
            out: head.out.tensors().into_iter().map(|(name, _)| name).collect(),
            ones: head.steps.iter().filter_map(norm).collect(),
        })
    }

    /// The first numbers of one of its tensors.
    pub(super) fn values(&mut self, name: &str, shape: &[usize], rng: &mut ChaCha8Rng) -> Result<Vec<f32>, Error> {
        let is_out = self.out.contains(name);
        if !is_out && self.folder.has(name) {
            return Ok(self.folder.take(name, shape, Dtype::F32)?);
        }
        let len = shape.iter().product();
        Ok(match shape {
            [_, _] => {
                let std = if is_out { self.draws.out } else { self.draws.steps };
                let cutoff = self.draws.cutoff.unwrap_or(f64::INFINITY);
                (0..len).map(|_| (std * normal(rng, cutoff)) as f32).collect()
            }
            _ => vec![if self.ones.contains(name) { 1.0 } else { 0.0 }; len],
        })
    }
}

/// A number of the standard normal distribution within `cutoff` of 0, by the method of Box and Muller (1958).
fn normal(rng: &mut ChaCha8Rng, cutoff: f64) -> f64 {
    // Of (0, 1], so that the logarithm is finite.
    let mut uniform = || ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    loop {
        let radius = libm::sqrt(-2.0 * libm::log(uniform()));
        let x = radius * libm::cos(TAU * uniform());
        if x.abs() <= cutoff {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn draws_have_the_moments_of_a_normal_distribution() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let n = 40_000;
        for (cutoff, variance) in [(f64::INFINITY, 1.0), (2.0, 0.773_741)] {
            let all: Vec<f64> = (0..n).map(|_| normal(rng, cutoff)).collect();
            let mean = |f: &dyn Fn(f64) -> f64| all.iter().map(|&x| f(x)).sum::<f64>() / f64::from(n);
            assert!(mean(&|x| x).abs() < 0.02 && (mean(&|x| x * x) - variance).abs() < 0.03, "{cutoff}");
            // A normal distribution's share within one standard deviation.
            if cutoff.is_infinite() {
                assert!((mean(&|x| f64::from(x.abs() < 1.0)) - 0.682_69).abs() < 0.01);
            }
            assert!(all.iter().all(|x| x.abs() <= cutoff));
        }
    }
}
