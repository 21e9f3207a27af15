//! The one decoder of this path: every family is this code with another [`ModelSpec`].
//!
//! It owns where weights lie and the order of blocks, and goes from tokens to residual streams:
//!
//! ```text
//! tokens ─► embedding · embedding_scale ─► visit(0) ─► block 0 ─► visit(1) ─► … ─► visit(n_layers)
//!                  └─► token inputs of all blocks (Gemma 4) ─────────┘
//! with several stages:  device 0: embedding, blocks 0..a │ device 1: blocks a..b │ last: …, norm, own head
//! ```
//!
//! The order inside a block belongs to `engine/block.rs`, the operations to `block_ops.rs`. What is
//! read of a stream is up to the visitor, which is `reads.rs` for requests. The final norm and the
//! head are methods here, which callers apply to the rows that they need.
//!
//! A model with a head of labels has no logits over a vocabulary. `reading/check.rs` refuses
//! requests for them, so the methods for logits are never called for it; they would multiply by
//! the embedding.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use judge_arch::{HeadSpec, ModelSpec};

use super::block_ops::{ComposedOps, Entropies};
use super::host::host_within;
use super::masks::{MaskKind, Masks};
use super::ops;
#[cfg(test)]
use super::parameters::Values;
use super::parameters::{Linear, Norm, Parameters, Source, Stored};
use super::precision::{Precision, widen};
use super::rotation::Rotation;
use super::slots::{KeysValues, Slots};
use super::stages::stages;
use super::token_inputs::{looked_up, token_inputs};
use crate::Error;
use crate::engine::block::{Block, Build};
use crate::engine::token_inputs::TokenInputs;

/// A decoder-only transformer. Matrices keep the checkpoint's `[out, in]`.
///
/// It is built once and not changed. Training runs copies that share all parameters but those that
/// are trained.
#[derive(Module, Debug)]
pub(crate) struct Decoder {
    /// `[d_vocab, d_model]`, on the first device.
    embedding: Param<Tensor<2>>,
    /// A row for each position, `[positions, d_model]`, added to the embedding, on its device; `None`
    /// where positions are rotations.
    positions: Option<Param<Tensor<2>>>,
    /// What makes the token inputs of all blocks; `None` in most families. The projection is on the
    /// first device, the table on the host.
    token_inputs: Option<TokenInputs<Linear, Norm>>,
    /// `[n_layers]`, in the order of a pass, each on the device of its stage.
    blocks: Vec<Block<Linear, Norm>>,
    /// The final norm's weight, `[d_model]`, on the last device.
    norm: Param<Tensor<1>>,
    /// The output head, `[d_vocab, d_model]`, on the last device; `None` if it is the embedding, or
    /// if the model has a head of labels.
    head: Option<Param<Tensor<2>>>,
    /// `[d_vocab]`, added to logits over the vocabulary; `None` in most families.
    head_bias: Option<Param<Tensor<1>>>,
    /// What the decoder was built from.
    #[module(skip)]
    spec: Arc<ModelSpec>,
    /// What is narrower than f32.
    #[module(skip)]
    precision: Precision,
    /// The blocks of each device, in the order of a pass: none is empty, and together they are
    /// `0..n_layers`.
    #[module(skip)]
    stages: Vec<Range<usize>>,
    /// The tensors of the checkpoint that each parameter was made from.
    #[module(skip)]
    #[cfg_attr(not(feature = "train"), allow(dead_code, reason = "gradients are filed by it"))]
    stored: Vec<Stored>,
}

/// The tokens of a pass.
pub(crate) enum Fed {
    /// Of the host, `[batch, seq]`, integers.
    Host(TensorData),
    /// One of each sequence, as a device has chosen it: `[batch]` in f32, which holds every id below 2^24.
    Chosen(Box<Tensor<1>>),
}

impl Fed {
    /// The tokens on a device, `[batch, seq]`.
    pub(crate) fn on(&self, device: &Device) -> Tensor<2, Int> {
        match self {
            Self::Host(tokens) => Tensor::from_data(tokens.clone(), device),
            Self::Chosen(tokens) => Tensor::clone(tokens).to_device(device).int().unsqueeze_dim(1),
        }
    }

    /// Their number: rows, and tokens of each.
    #[cfg(test)]
    pub(super) fn dims(&self) -> [usize; 2] {
        self.on(&Device::flex()).dims()
    }

    /// The tokens on the host, row-major. Waits for the device that chose them.
    pub(super) fn ids(&self) -> Vec<usize> {
        match self {
            Self::Host(tokens) => tokens.iter::<i64>().map(|id| id as usize).collect(),
            Self::Chosen(tokens) => host_within(Tensor::clone(tokens)).into_iter().map(|id| id as usize).collect(),
        }
    }
}

/// What a pass has besides its tokens. By default it is over whole sequences, of which nothing is
/// kept for later.
#[derive(Default)]
pub(crate) struct Pass<'p> {
    /// What earlier passes computed, and takes what this one computes: a prefix or whole prompts
    /// first, then one token at a time.
    pub(crate) past: Option<&'p mut Slots>,
    /// Gets the attention entropies of this pass's positions, as far as blocks are run.
    pub(crate) entropies: Option<&'p mut Entropies>,
    /// A block, and the rows of `[batch * seq]` that go on behind its attention, at least one: the
    /// stream behind it is `[1, rows, d_model]`. It must be the last block that is run.
    pub(crate) kept: Option<(usize, &'p [i32])>,
}

impl Decoder {
    /// Builds the decoder that `spec` describes, in f32 on one device: the reference in tests.
    ///
    /// `source` gives the values of each tensor of [`ModelSpec::tensors`] once. Projections that
    /// share their input are put below one another, and a norm's stored `w` becomes the weight that
    /// [`NormSpec`](judge_arch::NormSpec) makes of it.
    #[cfg(test)]
    pub(crate) fn new(spec: Arc<ModelSpec>, device: &Device, source: &mut Values<'_>) -> Result<Self, Error> {
        Self::with_precision(spec, std::slice::from_ref(device), Precision::FULL, source)
    }

    /// Builds the decoder that `spec` describes with as many bits as `precision` says, over one
    /// device or several: at least one, and no more than blocks.
    ///
    /// Matrices go to their device one by one, in the dtype that they have there. While one is
    /// read, the last few may still wait on the host for their copy.
    ///
    /// # Errors
    /// Those of `source`. A copy to a device that fails may show later only; see
    /// [`corners`](Self::corners).
    pub(crate) fn with_precision(
        spec: Arc<ModelSpec>,
        devices: &[Device],
        precision: Precision,
        source: &mut (impl Source + ?Sized),
    ) -> Result<Self, Error> {
        let stages = stages(&spec, devices.len());
        let mut build = Parameters { device: &devices[0], precision, source, stored: Vec::new() };
        let embedding = build.matrix(vec![(spec.embedding.clone(), spec.d_vocab)], spec.d_model)?;
        let table = |(name, rows): &(String, usize)| vec![(name.clone(), *rows)];
        let positions = spec.positions.as_ref().map(|rows| build.matrix(table(rows), spec.d_model)).transpose()?;
        let inputs = spec.token_inputs.as_ref();
        let token_inputs = inputs
            .map(|inputs| TokenInputs::build(inputs, spec.n_layers(), precision.dtype(), &mut build))
            .transpose()?;
        let mut blocks = Vec::with_capacity(spec.n_layers());
        for (stage, device) in stages.iter().zip(devices) {
            build.device = device;
            for block in stage.clone() {
                blocks.push(Block::build(&spec.blocks[block], &mut build)?);
            }
        }
        let norm = build.norm(&spec.norm)?;
        let head = match &spec.head {
            HeadSpec::Own(name) => Some(build.matrix(vec![(name.clone(), spec.d_vocab)], spec.d_model)?),
            HeadSpec::Embedding | HeadSpec::Labels(_) | HeadSpec::Absent(_) => None,
        };
        let head_bias = spec.head_bias().map(|name| build.numbers(name, &[spec.d_vocab])).transpose()?;
        let stored = build.stored;
        Ok(Self { embedding, positions, token_inputs, blocks, norm, head, head_bias, spec, precision, stages, stored })
    }

    /// The tensors of the checkpoint that each parameter was made from. Training puts numbers into
    /// parameters and cuts their gradients by this list.
    #[cfg(feature = "train")]
    pub(crate) fn stored(&self) -> &[Stored] {
        &self.stored
    }

    /// The first number of each parameter, `[1]`, on the parameter's device. Reading them shows
    /// whether all copies to devices have succeeded, which is not known before.
    pub(crate) fn corners(&self) -> Vec<Tensor<1>> {
        struct Corners(Vec<Tensor<1>>);
        impl ModuleVisitor for Corners {
            fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
                self.0.push(parameter.val().slice([(); D].map(|()| 0..1)).reshape([1])); // [.., d] -> [.., 1] -> [1]
            }
        }
        let mut corners = Corners(Vec::new());
        self.visit(&mut corners);
        corners.0
    }

    /// The device of the embedding, where a pass begins.
    pub(crate) fn device(&self) -> Device {
        self.embedding.val().device()
    }

    /// The device of each stage, in the order of a pass.
    pub(crate) fn devices(&self) -> Vec<Device> {
        self.stages.iter().map(|blocks| self.device_of(blocks)).collect()
    }

    /// The device of the blocks of a stage.
    fn device_of(&self, stage: &Range<usize>) -> Device {
        let first = self.blocks[stage.start].first_linear();
        first.map_or_else(|| self.device(), |linear| linear.weight.val().device())
    }

    /// The stage on whose device the residual stream of a layer is: layer 0, the embedding, is on
    /// the first, layer `i` where block `i - 1` is.
    pub(crate) fn stage_of(&self, layer: usize) -> usize {
        self.stages.iter().position(|blocks| layer <= blocks.end).unwrap_or(0)
    }

    /// What the decoder was built from.
    pub(crate) fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Runs `tokens` `[batch, seq]` through the blocks and shows `visit`
    /// each residual stream `[batch, seq, d_model]` as soon as it is queued: 0 is the embedding,
    /// `i` the output of block `i` counted from 1, none of them normed. After
    /// [`ControlFlow::Break`] no further block is run.
    ///
    /// Returns the output of the last block; `None` after a break.
    ///
    /// - `rotations` cover the positions of `tokens`, one on the device of each stage. Streams are
    ///   on these devices too.
    /// - `pass` says what there is besides whole sequences, of which nothing is kept.
    ///
    /// Sequences of a batch are padded on the right. A position never sees a later one, so padding
    /// changes nothing before it; what streams have at padding is of no use.
    ///
    /// # Panics
    /// Burn may panic where a device fails. Requests run within
    /// [`on_device`](super::host::on_device).
    pub(crate) fn forward(
        &self,
        tokens: &Fed,
        rotations: &[Rotation],
        pass: Pass<'_>,
        visit: &mut dyn FnMut(usize, &Tensor<3>) -> ControlFlow<()>,
    ) -> Option<Tensor<3>> {
        let Pass { mut past, mut entropies, kept } = pass;
        let inputs = self.token_inputs.as_ref();
        let placed = tokens.on(&self.device());
        let inputs = inputs.map(|inputs| (inputs, looked_up(&inputs.table, &tokens.ids(), &placed)));
        let mut x = self.embed(placed, rotations.first());
        let [_, seq, _] = x.dims();
        if visit(0, &x).is_break() {
            return None;
        }
        let mut token_inputs =
            inputs.and_then(|(inputs, found)| token_inputs(&self.spec, inputs, x.clone(), found, self.precision));
        let mut shared: Vec<Vec<KeysValues>> = vec![Vec::new(); self.spec.n_layers()];
        debug_assert_eq!(rotations.len(), self.stages.len());
        for (blocks, rotation) in self.stages.iter().zip(rotations) {
            if blocks.start > 0 {
                let device = self.device_of(blocks);
                x = x.to_device(&device);
                token_inputs = token_inputs.map(|inputs| inputs.to_device(&device));
            }
            let kinds: Vec<MaskKind> = self.spec.blocks[blocks.clone()]
                .iter()
                .filter(|block| block.has_attention())
                .map(MaskKind::of)
                .collect();
            let masks = match &past {
                Some(past) => past.masks(&kinds, &x.device()),
                None => Masks::of_windows(&kinds, 0, seq, &x.device()),
            };
            let kept = kept.as_ref().filter(|(block, _)| blocks.contains(block));
            let kept = kept.map(|(block, rows)| (*block, Tensor::from_data(TensorData::from(*rows), &x.device())));
            let mut ops = ComposedOps {
                spec: &self.spec,
                precision: self.precision,
                rotation,
                masks,
                past: past.as_deref_mut(),
                shared: &mut shared,
                token_inputs: token_inputs.clone(),
                entropies: entropies.as_deref_mut(),
                kept,
            };
            for index in blocks.clone() {
                x = self.blocks[index].forward(&mut ops, index, x);
                if visit(index + 1, &x).is_break() {
                    return None;
                }
            }
        }
        Some(x)
    }

    /// The residual stream of layer 0, `[batch, seq, d_model]`, of `tokens` `[batch, seq]` on the first device. `rotation` is
    /// that device's, which has the positions.
    pub(crate) fn embed(&self, tokens: Tensor<2, Int>, rotation: Option<&Rotation>) -> Tensor<3> {
        let [batch, seq] = tokens.dims();
        // [batch, seq] -> [batch * seq] -> [batch * seq, d_model] -> [batch, seq, d_model]
        let rows = widen(self.embedding.val().select(0, tokens.reshape([batch * seq])));
        let mut x = rows.reshape([batch, seq, self.spec.d_model]);
        if let Some(scale) = self.spec.embedding_scale {
            x = x.mul_scalar(scale.factor(self.precision.dtype()));
        }
        match (&self.positions, rotation) {
            (Some(positions), Some(rotation)) => x + learned(positions.val(), rotation.places()),
            _ => x,
        }
    }

    /// The residual stream after some successive blocks, from the one before them, as [`forward`](Self::forward)
    /// computes it over whole sequences of a model on one device without token inputs. `visit` is shown the stream
    /// after each block. In the model's last block the rows `kept` go on, as in [`Pass::kept`].
    #[cfg(feature = "train")]
    pub(crate) fn run_blocks(
        &self,
        blocks: Range<usize>,
        mut x: Tensor<3>,
        rotation: &Rotation,
        kept: &[i32],
        visit: &mut dyn FnMut(usize, &Tensor<3>),
    ) -> Tensor<3> {
        let [_, seq, _] = x.dims();
        let specs = self.spec.blocks[blocks.clone()].iter();
        let kinds: Vec<MaskKind> = specs.filter(|block| block.has_attention()).map(MaskKind::of).collect();
        let mut ops = ComposedOps {
            spec: &self.spec,
            precision: self.precision,
            rotation,
            masks: Masks::of_windows(&kinds, 0, seq, &x.device()),
            past: None,
            shared: &mut vec![Vec::new(); self.spec.n_layers()],
            token_inputs: None,
            entropies: None,
            kept: Some((self.spec.n_layers() - 1, Tensor::from_data(TensorData::from(kept), &x.device()))),
        };
        for index in blocks {
            x = self.blocks[index].forward(&mut ops, index, x);
            visit(index + 1, &x);
        }
        x
    }

    /// The final norm of each position. Keeps the shape `[batch, seq, d_model]` and the device;
    /// gives f32.
    pub(crate) fn final_norm(&self, x: Tensor<3>) -> Tensor<3> {
        let weight = self.norm.val();
        // States of another stage are normed where they are: the weight is one row.
        let weight = if self.is_split() { weight.to_device(&x.device()) } else { weight };
        ops::norm(self.spec.norm_kind, x, weight, self.spec.norm_eps, DType::F32)
    }

    /// Logits over the whole vocabulary, `[batch, seq, d_model]` to `[batch, seq, d_vocab]`,
    /// without the final soft-cap, on the head's device. The states are normed already, in f32.
    ///
    /// They are f32 whatever the head is, within what a GPU makes of products in f32: a product
    /// gives the dtype of its matrix, and in bf16 different logits would become equal.
    pub(crate) fn logits(&self, states: Tensor<3>) -> Tensor<3> {
        let head = self.head();
        // A tied head is the embedding, on the first device.
        let states = if self.is_split() { states.to_device(&head.device()) } else { states };
        let bias = self.head_bias.as_ref().map(|bias| bias.val().to_device(&head.device()));
        let logits = ops::linear_wide(states, head, bias, self.precision);
        match self.spec.logit_scale {
            Some(scale) => logits.mul_scalar(scale),
            None => logits,
        }
    }

    /// Rows of the output head in f32, `[rows.len(), d_model]`, with `logit_scale` in them, on the
    /// head's device. Every row must exist.
    pub(crate) fn head_rows(&self, rows: &[u32]) -> Tensor<2> {
        let rows: Vec<i64> = rows.iter().map(|&row| i64::from(row)).collect();
        let head = self.head();
        let rows = Tensor::<1, Int>::from_data(TensorData::from(rows.as_slice()), &head.device());
        let rows = widen(head.select(0, rows)); // [d_vocab, d_model] -> [rows, d_model]
        match self.spec.logit_scale {
            Some(scale) => rows.mul_scalar(scale),
            None => rows,
        }
    }

    /// The biases of these rows of the head, `[rows.len()]`, with `logit_scale` in them; `None` if the
    /// head has none. Every row must exist.
    pub(crate) fn head_biases(&self, rows: &[u32]) -> Option<Tensor<1>> {
        let bias = self.head_bias.as_ref()?.val();
        let rows: Vec<i64> = rows.iter().map(|&row| i64::from(row)).collect();
        let rows = Tensor::<1, Int>::from_data(TensorData::from(rows.as_slice()), &bias.device());
        Some(bias.select(0, rows).mul_scalar(self.spec.logit_scale.unwrap_or(1.0)))
    }

    /// Whether there is more than one device, so that states and weights may have to move to meet.
    fn is_split(&self) -> bool {
        self.stages.len() > 1
    }

    /// The matrix that makes logits, `[d_vocab, d_model]` in its own dtype: the head, or the
    /// embedding where the two are tied.
    fn head(&self) -> Tensor<2> {
        self.head.as_ref().unwrap_or(&self.embedding).val()
    }
}

/// The rows of a table `[positions, d_model]` for these positions, `[1, seq]` or `[batch, 1]`, with
/// the width as third axis. Padding may lie behind the end of the table; it gets the last row.
fn learned(table: Tensor<2>, places: &Tensor<2, Int>) -> Tensor<3> {
    let ([rows, d_model], [batch, seq]) = (table.dims(), places.dims());
    let places = places.clone().clamp_max(rows as i64 - 1).reshape([batch * seq]);
    widen(table.select(0, places)).reshape([batch, seq, d_model])
}
