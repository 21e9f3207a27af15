//! Blocks with the state space of Mamba-2: their sizes by the fields that most families have, and the
//! names of their tensors.
//!
//! A family reads [`MambaConfig`] or fields of its own names, and puts a [`MambaFields`] into
//! `DecoderFields::mamba`; `DecoderFields::spec` then describes each block.

use serde::Deserialize;
use serde_json::{Value, json};

use super::ConfigProblem;
use super::checks::{kernel, size};
use super::spec::{GatedNorm, LinearSpec, MambaShape, MambaSpec};

/// Blocks with a state space, which are alike.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MambaFields {
    /// The blocks, `[n_layers]`.
    pub(super) is_in: Vec<bool>,
    /// Whether it is beside attention and not in its place (Falcon-H1).
    pub(super) is_beside: bool,
    /// Sizes.
    pub(super) shape: MambaShape,
    /// The least time that passes at a position.
    pub(super) least_time: f32,
    /// What the names of its tensors begin with, below `model.layers.N.`.
    pub(super) part: &'static str,
    /// Whether the convolution has a bias.
    pub(super) conv_bias: bool,
    /// Whether the projections before and after it have biases.
    pub(super) bias: [bool; 2],
    /// Where the norm of the output is, if there is one.
    pub(super) norm: Option<GatedNorm>,
    /// Factors on what it takes: `z`, `x`, `B`, `C` and `dt`.
    pub(super) factors: [f32; 5],
    /// Factor on what it adds to the residual stream.
    pub(super) out_factor: f32,
}

impl MambaFields {
    /// The projections before and after it. `stem` makes a full name of one below the layer.
    pub(super) fn linears(&self, stem: &dyn Fn(&str) -> String, d_model: usize) -> [LinearSpec; 2] {
        let linear = |name: &str, rows: usize, d_in: usize, bias: bool| {
            LinearSpec::plain(vec![(stem(&format!("{}.{name}", self.part)), rows)], d_in, bias)
        };
        let ([before, after], shape) = (self.bias, self.shape);
        let parts = [shape.d_inner(), shape.d_inner(), shape.d_groups(), shape.d_groups(), shape.n_heads];
        let factors: Vec<(usize, f32)> = parts.into_iter().zip(self.factors).collect();
        [
            linear("in_proj", shape.width(), d_model, before).with_factors(&factors),
            linear("out_proj", d_model, shape.d_inner(), after).with_factors(&[(d_model, self.out_factor)]),
        ]
    }

    /// The state space itself. `stem` makes a full name of one below the layer.
    pub(super) fn spec(&self, stem: &dyn Fn(&str) -> String) -> MambaSpec {
        let name = |name: &str| stem(&format!("{}.{name}", self.part));
        MambaSpec {
            shape: self.shape,
            least_time: self.least_time,
            conv: name("conv1d.weight"),
            conv_bias: self.conv_bias.then(|| name("conv1d.bias")),
            dt_bias: name("dt_bias"),
            a_log: name("A_log"),
            d: name("D"),
            norm: self.norm.map(|place| (name("norm.weight"), place)),
        }
    }
}

/// The fields of a state space under the names of Granite 4 and Falcon-H1.
#[derive(Deserialize)]
pub(super) struct MambaConfig {
    /// Heads.
    mamba_n_heads: usize,
    /// Groups of heads that share what is written and read.
    mamba_n_groups: usize,
    /// Coordinates of what is written and read.
    mamba_d_state: usize,
    /// Coordinates of a head.
    mamba_d_head: HeadDim,
    /// Positions that the convolution sees.
    mamba_d_conv: usize,
    /// The inner width as a multiple of `hidden_size`.
    mamba_expand: usize,
    /// Whether the convolution has a bias.
    pub(super) mamba_conv_bias: bool,
    /// Whether the projection before it has a bias; in Granite the one after it too.
    pub(super) mamba_proj_bias: bool,
}

/// The width of a head.
#[derive(Deserialize)]
#[serde(untagged)]
enum HeadDim {
    /// As it is stated.
    Stated(usize),
    /// What fills the inner width.
    Auto(Auto),
}

/// The word for a width that follows from others.
#[derive(Deserialize)]
enum Auto {
    /// `auto`.
    #[serde(rename = "auto")]
    Auto,
}

impl MambaConfig {
    /// What transformers takes where a file is silent.
    pub(super) fn defaults() -> Value {
        json!({
            "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_head": "auto", "mamba_d_conv": 4,
            "mamba_expand": 2, "mamba_conv_bias": true, "mamba_proj_bias": false
        })
    }

    /// The sizes, where all heads together are `d_inner` wide, or by default `mamba_expand * d_model`.
    ///
    /// # Errors
    /// [`ConfigProblem::Value`] for a size out of its range and heads that do not fill the width.
    pub(super) fn shape(&self, d_model: usize, d_inner: Option<usize>) -> Result<MambaShape, ConfigProblem> {
        let expand = size("mamba_expand", self.mamba_expand, 1 << 8)?;
        let d_inner = d_inner.unwrap_or(expand * d_model);
        let n_heads = size("mamba_n_heads", self.mamba_n_heads, 1 << 16)?;
        let head_dim = match self.mamba_d_head {
            HeadDim::Auto(Auto::Auto) => d_inner / n_heads,
            HeadDim::Stated(head_dim) => head_dim,
        };
        if n_heads.checked_mul(head_dim) != Some(d_inner) {
            let found = format!("{n_heads}, of {head_dim} coordinates each");
            let expected = format!("heads of {d_inner} coordinates together");
            return Err(ConfigProblem::value("mamba_n_heads", found, expected));
        }
        Ok(MambaShape {
            n_heads,
            head_dim: size("mamba_d_head", head_dim, 1 << 16)?,
            n_groups: groups("mamba_n_groups", self.mamba_n_groups, n_heads)?,
            d_state: size("mamba_d_state", self.mamba_d_state, 1 << 16)?,
            kernel: kernel("mamba_d_conv", self.mamba_d_conv)?,
        })
    }
}

/// Checks a number of groups: a divisor of the number of heads.
///
/// # Errors
/// [`ConfigProblem::Value`] for any other number.
pub(super) fn groups(field: &'static str, found: usize, n_heads: usize) -> Result<usize, ConfigProblem> {
    match size(field, found, n_heads)? {
        groups if n_heads.is_multiple_of(groups) => Ok(groups),
        _ => Err(ConfigProblem::value(field, found, format!("a divisor of the {n_heads} heads"))),
    }
}

/// Checks that `time_step_limit` limits nothing: from 0 (or below) to infinity, as in published files.
/// transformers applies other limits to prompts and not to tokens that it writes.
///
/// # Errors
/// [`ConfigProblem::Unsupported`] for other limits.
pub(super) fn check_time_step_limit(fields: &Value) -> Result<(), ConfigProblem> {
    let Some(found) = fields.get("time_step_limit").filter(|found| !found.is_null()) else { return Ok(()) };
    let is_infinite = |most: &Value| *most == json!("Infinity") || *most == json!({ "__float__": "Infinity" });
    match found.as_array().map(Vec::as_slice) {
        Some([least, most]) if least.as_f64().is_some_and(|least| least <= 0.0) && is_infinite(most) => Ok(()),
        _ => Err(ConfigProblem::Unsupported { field: "time_step_limit", found: found.to_string() }),
    }
}
