//! The head of an encoder's sequence classifier, for gradients. Served heads are `judge_core::reward::RewardHead`,
//! which computes in f64 (`reward_head.rs`).

use burn::module::Module;
use burn::tensor::{DType, Tensor};
use judge_arch::{EncoderHeadSpec, HeadStepSpec};
use judge_core::reward::HeadActivation;
use judge_kernels::functions::{Activation, NormKind};

use super::ops;
use super::parameters::{Linear, Norm, Parameters, Source};
use super::precision::Precision;
use super::projection::project;
use crate::Error;
use crate::engine::block::Build;

/// What becomes of a state of the last layer.
#[derive(Module, Debug)]
pub(crate) struct Head {
    /// What comes before the labels, in this order.
    steps: Vec<Step>,
    /// `[labels, d_model]`.
    out: Linear,
}

/// One step, of `d_model` numbers to as many.
#[derive(Module, Debug)]
enum Step {
    /// A map.
    Linear(Linear),
    /// A norm.
    Norm(Normed),
    /// A function of each coordinate.
    Activation(Function),
}

/// A norm of a head.
#[derive(Module, Debug)]
struct Normed {
    /// Its weight.
    weight: Norm,
    /// Added to the variance.
    #[module(skip)]
    eps: f64,
}

/// A function of a head.
#[derive(Module, Debug)]
struct Function {
    /// Which it is.
    #[module(skip)]
    function: HeadActivation,
}

impl Head {
    /// Builds the head that `spec` describes.
    pub(super) fn build<S: Source + ?Sized>(
        spec: &EncoderHeadSpec,
        build: &mut Parameters<'_, S>,
    ) -> Result<Self, Error> {
        let mut steps = Vec::with_capacity(spec.steps.len());
        for step in &spec.steps {
            steps.push(match step {
                HeadStepSpec::Linear(map) => Step::Linear(build.linear(map)?),
                HeadStepSpec::Norm(norm, eps) => Step::Norm(Normed { weight: build.norm(norm)?, eps: *eps }),
                HeadStepSpec::Activation(function) => Step::Activation(Function { function: *function }),
            });
        }
        Ok(Self { steps, out: build.linear(&spec.out)? })
    }

    /// A number for each label, `[places, labels]`, of states `[places, d_model]`.
    pub(crate) fn forward(&self, states: Tensor<2>) -> Tensor<2> {
        let mut x = states.unsqueeze::<3>(); // -> [1, places, d_model]
        for step in &self.steps {
            x = match step {
                Step::Linear(linear) => project(x, linear, Precision::FULL),
                Step::Norm(norm) => ops::norm(NormKind::LayerNorm, x, norm.weight.val(), norm.eps, DType::F32),
                Step::Activation(Function { function }) => match function {
                    HeadActivation::Tanh => x.tanh(),
                    HeadActivation::Gelu => ops::activated(x, Activation::Gelu),
                    HeadActivation::GeluTanh => ops::activated(x, Activation::GeluTanh),
                    HeadActivation::Relu => ops::activated(x, Activation::Relu),
                    HeadActivation::Silu => ops::activated(x, Activation::Silu),
                },
            };
        }
        project(x, &self.out, Precision::FULL).squeeze_dim::<2>(0)
    }
}
