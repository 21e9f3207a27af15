//! The one decoder: every family is this code with another [`ModelSpec`].

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{DType, Device, Int, Tensor, TensorData, activation};
use half::bf16;
use judge_core::Layer;

use super::delta::{delta, short_conv};
use super::masks::{Masks, Sight};
use super::ops::{self, Attention};
use super::past::{KeysValues, Past};
use super::precision::{Precision, cast, widen};
use super::rotation::Rotation;
use super::stages::stages;
use super::token_inputs::{looked_up, token_inputs};
use crate::arch::{BlockSpec, HeadSpec, KeysSpec, LinearSpec, ModelSpec, NamedRows, NormSpec};
use crate::engine::block::{Block, Build, Conv, Delta, Experts, HeadWeights, Ops};
use crate::engine::token_inputs::TokenInputs;
use crate::weights::Table;
use crate::{Dtype, Error};

/// A decoder-only transformer. Weights keep the checkpoint's `[out, in]`.
#[derive(Module, Debug)]
pub(crate) struct Decoder {
    /// `[d_vocab, d_model]`.
    embedding: Param<Tensor<2>>,
    token_inputs: Option<TokenInputs<Linear, Norm>>,
    blocks: Vec<Block<Linear, Norm>>,
    /// `[d_model]`.
    norm: Param<Tensor<1>>,
    /// `[d_vocab, d_model]`; absent if it is the embedding.
    head: Option<Param<Tensor<2>>>,
    #[module(skip)]
    spec: Arc<ModelSpec>,
    #[module(skip)]
    precision: Precision,
    /// The blocks of each device: the first has the embedding too, the last the final norm and the head.
    #[module(skip)]
    stages: Vec<Range<usize>>,
    #[module(skip)]
    /// What each parameter was put together from.
    #[cfg_attr(not(feature = "train"), allow(dead_code, reason = "gradients are filed by it"))]
    stored: Vec<(ParamId, NamedRows)>,
}

/// A norm's weight: `[d_model]`, that of a head `[head_dim]`.
type Norm = Param<Tensor<1>>;

/// A product with a matrix `[d_out, d_in]`, and a bias `[d_out]` where there is one.
#[derive(Module, Debug)]
struct Linear {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
}

/// From the name and shape of a tensor to its values, row-major.
pub(crate) type Values<'a> = dyn FnMut(&str, &[usize]) -> Result<Vec<f32>, Error> + 'a;

/// Where a decoder's numbers come from.
pub(crate) trait Source {
    /// The values of a tensor, row-major.
    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error>;

    /// Puts the values of a matrix behind those in `to`, rounded to bf16.
    fn append_bf16(&mut self, name: &str, shape: [usize; 2], to: &mut Vec<bf16>) -> Result<(), Error> {
        to.extend(self.values(name, &shape)?.into_iter().map(bf16::from_f32));
        Ok(())
    }

    /// A matrix whose rows are looked up on the host.
    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error> {
        Ok(Table::new(shape[1], self.values(name, &shape)?))
    }
}

impl Source for Values<'_> {
    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        self(name, shape)
    }
}

impl Decoder {
    /// Builds the decoder that `spec` describes from a checkpoint's tensors, as [`ModelSpec::tensors`] lists
    /// them: projections that share their input are put below one another, Gemma's norm weights are stored as `1 + w`.
    ///
    /// All is f32; see [`with_precision`](Self::with_precision).
    #[cfg(any(test, feature = "train"))]
    pub(crate) fn new(spec: Arc<ModelSpec>, device: &Device, source: &mut Values<'_>) -> Result<Self, Error> {
        Self::with_precision(spec, std::slice::from_ref(device), Precision::FULL, source)
    }

    /// The same with as many bits as `precision` says, over one device or several, at least one and no more than blocks. Matrices
    /// go there one by one, in the dtype they have there; while one is read, the last few may still wait on the host for their copy.
    pub(crate) fn with_precision(
        spec: Arc<ModelSpec>,
        devices: &[Device],
        precision: Precision,
        source: &mut (impl Source + ?Sized),
    ) -> Result<Self, Error> {
        let stages = stages(&spec, devices.len());
        let mut build = Parameters { device: &devices[0], precision, source, stored: Vec::new() };
        let embedding = build.matrix(vec![(spec.embedding.clone(), spec.d_vocab)], spec.d_model)?;
        let inputs = spec.token_inputs.as_ref();
        let token_inputs = inputs.map(|inputs| TokenInputs::build(inputs, spec.n_layers(), &mut build)).transpose()?;
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
            HeadSpec::Embedding | HeadSpec::Labels(_) => None,
        };
        let stored = build.stored;
        Ok(Self { embedding, token_inputs, blocks, norm, head, spec, precision, stages, stored })
    }

    /// What each of its parameters was put together from: tensors of the checkpoint with their rows, below one another.
    #[cfg(feature = "train")]
    pub(crate) fn stored(&self) -> &[(ParamId, NamedRows)] {
        &self.stored
    }

    /// One number of each of its tensors, `[1]`, where the tensor is. A copy to a device that fails is not known before something of it is
    /// read.
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

    /// Where its embedding is, and so what takes tokens.
    pub(crate) fn device(&self) -> Device {
        self.embedding.val().device()
    }

    /// The device of each of its stages, in the order of a pass.
    pub(crate) fn devices(&self) -> Vec<Device> {
        self.stages.iter().map(|blocks| self.device_of(blocks)).collect()
    }

    fn device_of(&self, stage: &Range<usize>) -> Device {
        self.blocks[stage.start].first_linear().weight.val().device()
    }

    /// The stage that the states of a layer come from.
    pub(crate) fn stage_of(&self, layer: usize) -> usize {
        self.stages.iter().position(|blocks| layer <= blocks.end).unwrap_or(0)
    }

    /// What it was built from.
    pub(crate) fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Runs `tokens` `[batch, seq]`, which are integers on the host, through the blocks and shows `visit` each residual stream `[batch, seq, d_model]`
    /// as soon as it is there: 0 is the embedding, `i` the output of block `i` counted from 1, none of them normed.
    /// After [`ControlFlow::Break`] no further block is run and the result is `None`; otherwise it is the output of
    /// the last block.
    ///
    /// `rotations` cover the positions of `tokens`, one on the device of each stage; so are the streams. With a past, `tokens` follow
    /// what it holds: whole prompts at once, then one token at a time. Sequences of a batch are padded on the right; a position never sees a later one, so padding
    /// changes nothing before it.
    ///
    /// `entropies` are those of the new positions' attention; there are none of blocks that are not run.
    pub(crate) fn forward(
        &self,
        tokens: TensorData,
        rotations: &[Rotation],
        mut past: Option<&mut dyn Past>,
        mut entropies: Option<&mut Entropies>,
        visit: &mut dyn FnMut(usize, &Tensor<3>) -> ControlFlow<()>,
    ) -> Option<Tensor<3>> {
        let inputs = self.token_inputs.as_ref();
        let of_tokens = inputs.map(|inputs| looked_up(&inputs.table, &tokens, &self.device()));
        let tokens = Tensor::<2, Int>::from_data(tokens, &self.device());
        let [batch, seq] = tokens.dims();
        // [batch, seq] -> [batch * seq] -> [batch * seq, d_model] -> [batch, seq, d_model]
        let rows = widen(self.embedding.val().select(0, tokens.reshape([batch * seq])));
        let mut x = rows.reshape([batch, seq, self.spec.d_model]);
        if let Some(scale) = self.spec.embedding_scale {
            x = x.mul_scalar(scale.factor(self.precision.dtype()));
        }
        if visit(0, &x).is_break() {
            return None;
        }
        let mut token_inputs = of_tokens.and_then(|of_tokens| self.token_inputs(x.clone(), of_tokens));
        let mut shared: Vec<Option<KeysValues>> = vec![None; self.spec.n_layers()];
        debug_assert_eq!(rotations.len(), self.stages.len());
        for (blocks, rotation) in self.stages.iter().zip(rotations) {
            if blocks.start > 0 {
                let device = self.device_of(blocks);
                x = x.to_device(&device);
                token_inputs = token_inputs.map(|inputs| inputs.to_device(&device));
            }
            let sights: Vec<Sight> = self.spec.blocks[blocks.clone()].iter().map(Sight::of).collect();
            let masks = match past.as_ref().and_then(|past| past.masks(&sights, &x.device())) {
                Some(masks) => masks,
                None => Masks::of_windows(&sights, seq, &x.device()),
            };
            let past = past.as_mut().map(|past| &mut **past as &mut dyn Past);
            let mut ops = Composed {
                spec: &self.spec,
                precision: self.precision,
                rotation,
                masks,
                past,
                shared: &mut shared,
                token_inputs: token_inputs.clone(),
                entropies: entropies.as_deref_mut(),
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

    /// What all blocks get of tokens with these embeddings `[batch, seq, d_model]` and rows of the table.
    fn token_inputs(&self, x: Tensor<3>, of_tokens: Tensor<3>) -> Option<Tensor<3>> {
        let (inputs, spec) = (self.token_inputs.as_ref()?, self.spec.token_inputs.as_ref()?);
        let (projection, norm) = (inputs.projection.weight.val(), (inputs.norm.val(), self.spec.norm_eps));
        Some(token_inputs(spec, x, (of_tokens, inputs.table_factor), projection, norm))
    }

    /// The final norm, row by row. Keeps the shape `[batch, seq, d_model]`.
    pub(crate) fn final_norm(&self, x: Tensor<3>) -> Tensor<3> {
        let weight = self.norm.val();
        // States of another stage are normed where they are: the weight is one row.
        let weight = if self.is_split() { weight.to_device(&x.device()) } else { weight };
        ops::norm(self.spec.norm_kind, x, weight, self.spec.norm_eps)
    }

    /// Logits over the whole vocabulary, `[batch, seq, d_model]` to `[batch, seq, d_vocab]`, without the final soft-cap.
    /// They are f32 whatever the matrix is, within what a card makes of products in f32: a product gives its own dtype, and bf16 would
    /// make ties of what is none.
    #[cfg(any(test, feature = "train"))]
    pub(crate) fn logits(&self, states: Tensor<3>) -> Tensor<3> {
        self.logits_by(self.wide_head(), states)
    }

    /// The same by the head as [`wide_head`](Self::wide_head) has it.
    pub(crate) fn logits_by(&self, head: Tensor<2>, states: Tensor<3>) -> Tensor<3> {
        // A tied head is the embedding, on the first device.
        let states = if self.is_split() { states.to_device(&head.device()) } else { states };
        let logits = ops::linear(states, head, None);
        match self.spec.logit_scale {
            Some(scale) => logits.mul_scalar(scale),
            None => logits,
        }
    }

    /// The head in f32, `[d_vocab, d_model]`: a copy, unless it is f32 already.
    pub(crate) fn wide_head(&self) -> Tensor<2> {
        widen(self.head())
    }

    /// Rows of the output head in f32, shape `[rows.len(), d_model]`. Every row must exist.
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

    fn is_split(&self) -> bool {
        self.stages.len() > 1
    }

    fn head(&self) -> Tensor<2> {
        self.head.as_ref().unwrap_or(&self.embedding).val()
    }
}

/// A block's operations composed of Burn's, for one pass over `[batch, seq]` tokens on one device.
struct Composed<'a, 'p> {
    spec: &'a ModelSpec,
    precision: Precision,
    rotation: &'a Rotation,
    masks: Masks,
    past: Option<&'p mut (dyn Past + 'p)>,
    /// Keys and values of this pass that blocks to come look at, by block.
    shared: &'a mut [Option<KeysValues>],
    /// Of all blocks, `[batch, seq, n_layers * width]`.
    token_inputs: Option<Tensor<3>>,
    entropies: Option<&'a mut Entropies>,
}

impl Composed<'_, '_> {
    /// The keys and values that the queries of block `index` look at, `[batch, n_kv_heads, seq_keys, head_dim]` each. `part` gives the heads that begin so far behind
    /// the queries and their gates, `[batch, seq, n_kv_heads, head_dim]`; `rotated` norms and rotates keys.
    fn keys_values(
        &mut self,
        index: usize,
        device: &Device,
        part: impl Fn(usize) -> Tensor<4>,
        rotated: impl FnOnce(Tensor<4>) -> Tensor<4>,
    ) -> KeysValues {
        let (spec, attention) = (self.spec, self.precision.attention);
        let block = &spec.blocks[index];
        if let KeysSpec::Of(other) = block.keys
            && let Some((keys, values)) = self.shared[other].clone()
        {
            return (keys.to_device(device), values.to_device(device));
        }
        let values = match block.keys {
            KeysSpec::Own | KeysSpec::Of(_) => part(block.heads.d_key()),
            KeysSpec::AsValues => part(0),
        };
        let values = if block.norms_values { ops::norm_plain(values, spec.norm_eps) } else { values };
        let values = match spec.clip_qkv {
            Some(limit) => values.clamp(-limit, limit),
            None => values,
        };
        // [batch, seq, heads, head_dim] -> [batch, heads, seq, head_dim], twice
        let new = (cast(rotated(part(0)), attention).swap_dims(1, 2), cast(values, attention).swap_dims(1, 2));
        let all = match &mut self.past {
            Some(past) => past.extend(index, new, block.window), // -> [batch, n_kv_heads, seq_keys, head_dim]
            None => new,
        };
        if spec.blocks[index..].iter().any(|later| later.keys == KeysSpec::Of(index)) {
            self.shared[index] = Some(all.clone());
        }
        all
    }
}

/// Attention entropies that a pass is to bring.
pub(crate) struct Entropies {
    wanted: Vec<Layer>,
    /// Of each layer wanted, ascending, those of every position: `[batch, seq, n_heads]`.
    pub(crate) found: Vec<(Layer, Tensor<3>)>,
}

impl Entropies {
    /// Those of the blocks below these layers; `None` if there is no such layer.
    pub(crate) fn of(wanted: Vec<Layer>) -> Option<Self> {
        (!wanted.is_empty()).then(|| Self { wanted, found: Vec::new() })
    }
}

impl Ops for Composed<'_, '_> {
    /// `[batch, seq, width]`, of any float dtype; the residual stream is f32.
    type Rows = Tensor<3>;
    type Linear = Linear;
    type Norm = Norm;

    fn norm(&mut self, x: &Tensor<3>, weight: &Norm) -> Tensor<3> {
        ops::norm(self.spec.norm_kind, x.clone(), weight.val(), self.spec.norm_eps)
    }

    fn copy(&mut self, x: &Tensor<3>) -> Tensor<3> {
        x.clone()
    }

    fn linear(&mut self, x: Tensor<3>, linear: &Linear) -> Tensor<3> {
        ops::linear(x, linear.weight.val(), linear.bias.as_ref().map(Param::val))
    }

    fn attend(&mut self, index: usize, qkv: Tensor<3>, of_heads: HeadWeights<'_, Norm>) -> Tensor<3> {
        let spec = self.spec;
        let &BlockSpec { window, rope, is_gated, heads, .. } = &spec.blocks[index];
        let [batch, seq, _] = qkv.dims();
        let (head_dim, d_query, d_key) = (heads.head_dim, heads.d_query(), heads.d_key());
        let heads_of = |start: usize, width: usize, head: usize| {
            let part = qkv.clone().narrow(2, start, width); // -> [batch, seq, width]
            part.reshape([batch, seq, width / head, head]) // -> [batch, seq, heads, head]
        };
        let (queries, gates) = match is_gated {
            false => (heads_of(0, d_query, head_dim), None),
            true => {
                // Each query head with its gate: [batch, seq, n_heads, 2 * head_dim] -> [.., head_dim] twice
                let both = heads_of(0, 2 * d_query, 2 * head_dim);
                let gates = widen(both.clone().narrow(3, head_dim, head_dim));
                (both.narrow(3, 0, head_dim), Some(gates.reshape([batch, seq, d_query])))
            }
        };
        let d_before = if is_gated { 2 * d_query } else { d_query };
        let rotation = self.rotation;
        let rotated = |x: Tensor<4>, norm: Option<&Norm>| {
            ops::norm_rotate(
                x,
                norm.map(|weight| (weight.val(), spec.norm_eps)),
                spec.clip_qkv,
                rope.map(|rope| rotation.table(rope)),
            )
        };
        let queries = rotated(queries, of_heads.q_norm);
        let queries = match rope.and_then(|rope| rotation.table(rope).query_factors.clone()) {
            Some(factors) => queries * factors,
            None => queries,
        };
        let queries = queries.swap_dims(1, 2); // [batch, seq, n_heads, head_dim] -> [batch, n_heads, seq, head_dim]
        let (keys, values) = self.keys_values(
            index,
            &queries.device(),
            |start| heads_of(d_before + start, d_key, head_dim),
            |keys| rotated(keys, of_heads.k_norm),
        );
        let hidden = self.masks.get(Sight { window, n_kv_heads: heads.n_kv_heads });
        let sinks = of_heads.sinks.map(Param::val);
        let (scale, soft_cap) = (spec.attention_scale, spec.attention_soft_cap);
        let with = Attention { scale, soft_cap, hidden, sinks: sinks.as_ref() };
        let layer = Layer(index + 1);
        if let Some(entropies) = self.entropies.as_mut().filter(|entropies| entropies.wanted.contains(&layer)) {
            entropies.found.push((layer, ops::attention_entropy(queries.clone(), keys.clone(), with)));
        }
        let mixed = ops::attention(queries, keys, values, with); // [batch, n_heads, seq, head_dim]
        // [batch, n_heads, seq, head_dim] -> [batch, seq, n_heads, head_dim] -> [batch, seq, d_query]
        let mixed = mixed.swap_dims(1, 2).reshape([batch, seq, d_query]);
        match gates {
            Some(gates) => widen(mixed) * activation::sigmoid(gates),
            None => mixed,
        }
    }

    fn delta(&mut self, index: usize, x: Tensor<3>, rule: &Delta<Norm>) -> Tensor<3> {
        let Some(spec) = &self.spec.blocks[index].delta else { return x };
        let weights = Delta {
            conv: rule.conv.val(),
            dt_bias: rule.dt_bias.val(),
            a_log: rule.a_log.val(),
            norm: rule.norm.val(),
        };
        let [_, seq, _] = x.dims();
        let device = x.device();
        let before = self.past.as_ref().and_then(|past| past.memory(index));
        let is_there = self.past.as_ref().and_then(|past| past.is_there(seq, &device));
        let given = delta(x, (spec.shape, &weights, self.spec.norm_eps), before, is_there);
        if let Some(past) = &mut self.past {
            past.remember(index, given.rows, Some(given.heads));
        }
        given.values
    }

    fn short_conv(&mut self, index: usize, x: Tensor<3>, weights: &Conv<Norm>) -> Tensor<3> {
        let Some(conv) = &self.spec.blocks[index].conv else { return x };
        let before = self.past.as_ref().and_then(|past| past.memory(index));
        let [given, rows] = short_conv(x, weights.conv.val(), conv, before);
        if let Some(past) = &mut self.past {
            past.remember(index, rows, None);
        }
        given
    }

    fn gate(&mut self, gate_up: Tensor<3>) -> Tensor<3> {
        ops::gated_activation(gate_up, self.spec.activation)
    }

    /// Every expert takes every row, and what it makes of a row that is not its own is left out: shapes do not depend on the choice, and no device is
    /// waited for.
    fn mix(&mut self, x: Tensor<3>, logits: Tensor<3>, experts: &Experts<Linear, Norm>) -> Tensor<3> {
        let weights = ops::route(logits, experts.routing); // [batch, seq, n_experts]
        let weights = match &experts.scales {
            Some(scales) => weights * scales.val().unsqueeze(),
            None => weights,
        };
        let mut mixed = Tensor::zeros(x.dims(), (&x.device(), DType::F32));
        for (index, expert) in experts.experts.iter().enumerate() {
            let weight = weights.clone().narrow(2, index, 1); // [batch, seq, 1]
            let is_other = weight.clone().equal_elem(0.0).expand(x.dims());
            let y = widen(expert.forward(self, x.clone())); // [batch, seq, d_model]
            mixed = mixed + (y * weight).mask_fill(is_other, 0.0);
        }
        mixed
    }

    fn add_gated(&mut self, x: Tensor<3>, gate: Tensor<3>, y: Tensor<3>) -> Tensor<3> {
        widen(x) + activation::sigmoid(widen(gate)) * widen(y)
    }

    fn keep(&mut self, _: usize, x: Tensor<3>) -> Tensor<3> {
        x
    }

    fn sum(&mut self, x: Tensor<3>, y: Tensor<3>) -> Tensor<3> {
        widen(x) + widen(y)
    }

    fn gate_tokens(&mut self, index: usize, gate: Tensor<3>) -> Tensor<3> {
        let Some(inputs) = &self.token_inputs else { return gate };
        let width = gate.dims()[2];
        ops::activated(widen(gate), self.spec.activation) * inputs.clone().narrow(2, index * width, width)
    }

    fn scale(&mut self, x: Tensor<3>, factor: &Norm) -> Tensor<3> {
        x * factor.val().unsqueeze()
    }

    fn add(&mut self, x: Tensor<3>, y: Tensor<3>) -> Tensor<3> {
        match self.spec.residual_scale {
            Some(scale) => widen(x) + widen(y).mul_scalar(scale),
            None => widen(x) + widen(y),
        }
    }
}

/// Turns a checkpoint's tensors into parameters.
struct Parameters<'a, S: ?Sized> {
    device: &'a Device,
    precision: Precision,
    source: &'a mut S,
    /// What was made so far, and from which tensors.
    stored: Vec<(ParamId, NamedRows)>,
}

impl<S: Source + ?Sized> Build for Parameters<'_, S> {
    type Linear = Linear;
    type Norm = Norm;

    fn linear(&mut self, linear: &LinearSpec) -> Result<Linear, Error> {
        let bias = if linear.bias { Some(self.vector(linear.biases())?) } else { None };
        Ok(Linear { weight: self.matrix(linear.weights(), linear.d_in)?, bias })
    }

    fn router(&mut self, router: &LinearSpec) -> Result<Linear, Error> {
        let precision = std::mem::replace(&mut self.precision, Precision::FULL);
        let router = self.linear(router);
        self.precision = precision;
        router
    }

    fn norm(&mut self, norm: &NormSpec) -> Result<Norm, Error> {
        let values = self.source.values(&norm.name, &[norm.len])?.into_iter().map(|stored| norm.weight(stored));
        Ok(self.vector_of(vec![(norm.name.clone(), norm.len)], values.collect()))
    }

    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error> {
        self.source.table(name, shape)
    }

    fn dtype(&self) -> Dtype {
        self.precision.dtype()
    }

    fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Norm, Error> {
        let values = self.source.values(name, shape)?;
        Ok(self.vector_of(vec![(name.to_owned(), values.len())], values))
    }
}

impl<S: Source + ?Sized> Parameters<'_, S> {
    /// The values of several tensors of one axis behind one another.
    fn vector(&mut self, parts: NamedRows) -> Result<Param<Tensor<1>>, Error> {
        let mut values = Vec::new();
        for (name, len) in &parts {
            values.append(&mut self.source.values(name, &[*len])?);
        }
        Ok(self.vector_of(parts, values))
    }

    /// Numbers that were made of these tensors.
    fn vector_of(&mut self, parts: NamedRows, values: Vec<f32>) -> Param<Tensor<1>> {
        let len = values.len();
        let parameter = Param::from_data(TensorData::new(values, [len]), self.device);
        self.stored.push((parameter.id, parts));
        parameter
    }

    /// The rows of several matrices, by name and number of rows, below one another: `[rows, d_in]`.
    fn matrix(&mut self, parts: NamedRows, d_in: usize) -> Result<Param<Tensor<2>>, Error> {
        let parameter = self.matrix_of(&parts, d_in)?;
        self.stored.push((parameter.id, parts));
        Ok(parameter)
    }

    fn matrix_of(&mut self, parts: &[(String, usize)], d_in: usize) -> Result<Param<Tensor<2>>, Error> {
        let shape = [parts.iter().map(|(_, rows)| rows).sum(), d_in];
        if self.precision.products == DType::BF16 {
            let mut values: Vec<bf16> = Vec::with_capacity(shape[0] * d_in);
            for (name, rows) in parts {
                self.source.append_bf16(name, [*rows, d_in], &mut values)?;
            }
            // As `Param::from_data` does, which knows the device's default dtype only.
            let data = TensorData::new(values, shape);
            let tensor = self
                .device
                .memory_persistent_allocations(data, |data| Tensor::from_data(data, (self.device, DType::BF16)));
            return Ok(Param::from_tensor(tensor));
        }
        let mut values = Vec::with_capacity(shape[0] * d_in);
        for (name, rows) in parts {
            values.append(&mut self.source.values(name, &[*rows, d_in])?);
        }
        Ok(Param::from_data(TensorData::new(values, shape), self.device))
    }
}
