//! What a block computes, on the tensors of one pass: the operations of
//! [`Block::forward`](crate::engine::block::Block::forward), composed of Burn's.
//!
//! [`ComposedOps`] joins what `decoder.rs` has prepared for a pass (masks, rotations, the past)
//! with the bodies in `ops.rs`, `delta.rs` and `mamba.rs`. It knows where heads lie in a projection's rows and
//! which block looks at whose keys. It holds no weight; those come with each call.
//!
//! ```text
//! attend:   qkv ─► heads ─► norm, clamp, rotate ─► queries ───────────────┐
//!              │                               └─► keys ──┐               ├─► ops::attention ─► · sigmoid(gate)
//!              └─► values ─► (norm), clamp ───────────────┴► Slots::extend ┘
//!                                                               └─► kept for blocks with KeysSpec::Of
//! ```
//!
//! Every operation takes rows in any float dtype and keeps the residual stream in f32.

use burn::module::Param;
use burn::tensor::{DType, Int, Tensor, TensorData, activation};
use judge_arch::{BlockSpec, DeltaSpec, KeysSpec, ModelSpec};
use judge_core::Layer;

use super::choices::Choices;
use super::delta::{Given, delta, short_conv};
use super::host::host_within;
use super::mamba::mamba;
use super::masks::{MaskKind, Masks};
use super::operands::{Attention, HeadNorm, Heads};
use super::ops;
use super::parameters::{Linear, Norm};
use super::precision::{Precision, cast, widen};
use super::projection::{project, project_onto, taken};
use super::rotation::Rotation;
use super::slots::{KeysValues, Memory, Slots};
use crate::engine::block::{Conv, Delta, Experts, HeadWeights, Input, Mamba, Ops};

/// A block's operations for one pass over `[batch, seq]` tokens, as far as the blocks of one device
/// go. [`Decoder::forward`](super::decoder::Decoder::forward) makes one for each device.
pub(super) struct ComposedOps<'a, 'p> {
    /// The description of the whole model; operations look up their block by its index.
    pub(super) spec: &'a ModelSpec,
    /// Says in which dtype queries, keys and values are kept.
    pub(super) precision: Precision,
    /// Cosines and sines of this pass's positions, on this device.
    pub(super) rotation: &'a Rotation,
    /// The masks of this device's blocks, besides the causal one.
    pub(super) masks: Masks,
    /// Keys, values and memories of earlier passes; `None` if this pass is the only one.
    pub(super) past: Option<&'p mut Slots>,
    /// `[n_layers]`: the keys and values of blocks that a later block looks at, earlier passes
    /// included; nothing for all others. One list serves the whole pass, since such a block may be
    /// on another device.
    pub(super) shared: &'a mut [Vec<KeysValues>],
    /// The token inputs of all blocks, `[batch, seq, n_layers * width]`, on this device; `None` if
    /// the model has none.
    pub(super) token_inputs: Option<Tensor<3>>,
    /// Where attention entropies go, if any are wanted.
    pub(super) entropies: Option<&'a mut Entropies>,
    /// The rows of `[batch * seq]` that go on behind attention in one block, the last of the pass,
    /// on its device; `None`: all rows go on in all blocks.
    pub(super) kept: Option<(usize, Tensor<1, Int>)>,
}

impl ComposedOps<'_, '_> {
    /// The model's norm of each row, in `dtype`.
    fn normed(&self, x: &Tensor<3>, weight: &Norm, dtype: DType) -> Tensor<3> {
        ops::norm(self.spec.norm_kind, x.clone(), weight.val(), self.spec.norm_eps, dtype)
    }

    /// What the rest of a block after attention gets: the rows that are kept, `[1, kept, width]`, in the
    /// last block of a pass that keeps some, else all, `[batch, seq, width]`.
    fn keep_rows(&self, index: usize, x: Tensor<3>) -> Tensor<3> {
        let Some((_, rows)) = self.kept.as_ref().filter(|(block, _)| *block == index) else { return x };
        let [batch, seq, width] = x.dims();
        let [kept] = rows.dims();
        x.reshape([batch * seq, width]).select(0, rows.clone()).reshape([1, kept, width])
    }

    /// Lets rows through what has states of heads, on from what it remembers, and keeps what it then remembers.
    ///
    /// Padding must not change the state that later passes start from, so the past says where it
    /// is. Without a past no state outlives the pass, and padding behind a sequence does no harm.
    fn with_memory(
        &mut self,
        index: usize,
        x: Tensor<3>,
        run: impl FnOnce(Tensor<3>, Option<Memory>, Option<Tensor<3>>) -> Given,
    ) -> Tensor<3> {
        let before = self.past.as_ref().and_then(|past| past.memory(index));
        let is_there = self.past.as_ref().and_then(|past| past.is_there(x.dims()[1], &x.device()));
        let given = run(x, before, is_there);
        if let Some(past) = &mut self.past {
            past.remember(index, given.rows, Some(given.heads));
        }
        self.keep_rows(index, given.values)
    }

    /// The keys and values that the queries of block `index` look at, in the order of their
    /// positions, in the dtype of [`Precision::products`]; [`Slots::extend`] has the shapes.
    /// Earlier positions come from the past; a block that looks at another's keys gets that
    /// block's, moved to the device of `qkv` where they are elsewhere.
    ///
    /// The rows of `qkv` have keys and values behind `d_before` columns of queries. `keys` says what
    /// becomes of keys. Values are divided by their root mean square where the family does so, then
    /// clamped, and never rotated.
    fn keys_values(&mut self, index: usize, qkv: &Tensor<3>, d_before: usize, keys: Heads<'_>) -> Vec<KeysValues> {
        let (spec, dtype) = (self.spec, self.precision.products);
        let block = &spec.blocks[index];
        if let KeysSpec::Of(other) = block.keys
            && !self.shared[other].is_empty()
        {
            let (shared, device) = (self.shared[other].iter().cloned(), qkv.device());
            return shared.map(|(keys, values)| (keys.to_device(&device), values.to_device(&device))).collect();
        }
        let first = match block.keys {
            KeysSpec::Own | KeysSpec::Of(_) => d_before + block.heads.d_key(),
            KeysSpec::AsValues => d_before,
        };
        let norm = if block.norms_values { HeadNorm::Plain } else { HeadNorm::Absent };
        let values = Heads { first, norm, rotation: None, ..keys };
        // [n_kv_heads, batch, 1, seq, head_dim] -> [n_kv_heads, batch, seq, head_dim]
        let new = [Heads { first: d_before, ..keys }, values].map(|of| ops::heads(qkv, of, dtype).squeeze_dim(2));
        let new = new.into();
        let all = match &mut self.past {
            Some(past) => past.extend(index, new),
            None => vec![new],
        };
        if spec.blocks[index..].iter().any(|later| later.keys == KeysSpec::Of(index)) {
            self.shared[index] = all.clone();
        }
        all
    }
}

/// The attention entropies that a pass is to bring, and those that it has brought.
pub(crate) struct Entropies {
    /// Layers whose entropies are wanted, ascending. Layer `i` means the attention of block
    /// `i - 1`, counted from 0.
    wanted: Vec<Layer>,
    /// For each wanted layer whose block was run, ascending: the entropies of all positions in
    /// nats, padding included, `[batch, seq, n_heads]` in f32.
    pub(crate) found: Vec<(Layer, Tensor<3>)>,
}

impl Entropies {
    /// Asks for the attention entropies of the blocks below these layers; `None` if there is no
    /// such layer.
    pub(crate) fn of(wanted: Vec<Layer>) -> Option<Self> {
        (!wanted.is_empty()).then(|| Self { wanted, found: Vec::new() })
    }
}

impl Ops for ComposedOps<'_, '_> {
    /// `[batch, seq, width]`, of any float dtype: products give the dtype of their matrix,
    /// attention may give that of its keys, all else gives f32. So the residual stream is f32.
    type Rows = Tensor<3>;
    type Linear = Linear;
    type Norm = Norm;

    fn norm(&mut self, x: &Tensor<3>, weight: &Norm) -> Tensor<3> {
        self.normed(x, weight, DType::F32)
    }

    /// A second handle on the same tensor; no numbers are copied.
    fn copy(&mut self, x: &Tensor<3>) -> Tensor<3> {
        x.clone()
    }

    fn linear(&mut self, input: Input<'_, Tensor<3>, Norm>, linear: &Linear, onto: Option<Tensor<3>>) -> Tensor<3> {
        let x = match input {
            Input::Rows(x) => x,
            Input::Of(x) => x.clone(),
            Input::Normed(x, weight) => self.normed(x, weight, taken(linear)),
        };
        match onto {
            Some(onto) => project_onto(x, linear, onto, self.spec.residual_scale, self.precision),
            None => project(x, linear, self.precision),
        }
    }

    fn activated(&mut self, input: Input<'_, Tensor<3>, Norm>, linear: &Linear, next: &Linear) -> Tensor<3> {
        let y = self.linear(input, linear, None);
        ops::gated_activation(y, next.weight.dims()[1], self.spec.activation, taken(next))
    }

    /// Attention and, where layer `index + 1` is wanted, its entropy from the same queries and
    /// keys. Without a gate the result has the dtype that [`ops::attention`] gives, with one it is
    /// f32.
    fn attend(&mut self, index: usize, qkv: Tensor<3>, of_heads: HeadWeights<'_, Norm>) -> Tensor<3> {
        let spec = self.spec;
        let &BlockSpec { window, rope, is_gated, heads, .. } = &spec.blocks[index];
        let [batch, seq, _] = qkv.dims();
        let (head_dim, d_query) = (heads.head_dim, heads.d_query());
        // In a gated block each query head has its gate behind it.
        let (step, d_before) = if is_gated { (2 * head_dim, 2 * d_query) } else { (head_dim, d_query) };
        let gates = is_gated.then(|| {
            // [batch, seq, n_heads, 2 * head_dim] -> [batch, seq, n_heads, head_dim] -> [batch, seq, d_query]
            let both = qkv.clone().narrow(2, 0, d_before).reshape([batch, seq, d_query / head_dim, step]);
            widen(both.narrow(3, head_dim, head_dim)).reshape([batch, seq, d_query])
        });
        let rotation = self.rotation;
        let [q_norm, k_norm] = [of_heads.q_norm, of_heads.k_norm].map(|norm| norm.map(Param::val));
        let weighted = |norm| Option::map_or(norm, HeadNorm::Absent, HeadNorm::Weighted);
        let of_queries = Heads {
            first: 0,
            step,
            heads: d_query / head_dim,
            group: d_query / head_dim / heads.n_kv_heads,
            head_dim,
            norm: weighted(q_norm.as_ref()),
            eps: spec.norm_eps,
            limit: spec.clip_qkv,
            rotation: rope.map(|rope| rotation.table(rope)),
            are_queries: true,
        };
        let queries = ops::heads(&qkv, of_queries, self.precision.products);
        let of_keys = Heads {
            step: head_dim,
            heads: heads.n_kv_heads,
            group: 1,
            norm: weighted(k_norm.as_ref()),
            are_queries: false,
            ..of_queries
        };
        let keys_values = self.keys_values(index, &qkv, d_before, of_keys);
        let hidden = self.masks.get(MaskKind { window, n_kv_heads: heads.n_kv_heads });
        let sinks = of_heads.sinks.map(Param::val);
        let (scale, soft_cap) = (spec.attention_scale, spec.attention_soft_cap);
        let with = Attention { scale, soft_cap, hidden, sinks: sinks.as_ref(), precision: self.precision };
        let layer = Layer(index + 1);
        if let Some(entropies) = self.entropies.as_mut().filter(|entropies| entropies.wanted.contains(&layer)) {
            entropies.found.push((layer, ops::attention_entropy(queries.clone(), &keys_values, with)));
        }
        let mixed = ops::attention(queries, &keys_values, with);
        // [n_kv_heads, batch, group, seq, head_dim] -> [batch, seq, n_kv_heads, group, head_dim] -> [batch, seq, d_query]
        let mixed = mixed.permute([1, 3, 0, 2, 4]).reshape([batch, seq, d_query]);
        let mixed = match gates {
            Some(gates) => widen(mixed) * activation::sigmoid(gates),
            None => mixed,
        };
        self.keep_rows(index, mixed)
    }

    /// The rows as they are if the block has no delta rule, which
    /// [`Block::forward`](crate::engine::block::Block::forward) never asks for.
    fn delta(&mut self, index: usize, x: Tensor<3>, rule: &Delta<Norm>) -> Tensor<3> {
        let (spec, eps) = (self.spec, self.spec.norm_eps);
        let Some(DeltaSpec { shape, .. }) = &spec.blocks[index].delta else { return x };
        self.with_memory(index, x, |x, before, is_there| delta(x, (*shape, rule, eps), before, is_there))
    }

    /// The rows as they are if the block has no state space, which is never asked for.
    fn mamba(&mut self, index: usize, x: Tensor<3>, weights: &Mamba<Norm>) -> Tensor<3> {
        let (spec, eps) = (self.spec, self.spec.norm_eps);
        let Some(spec) = spec.blocks[index].state_space() else { return x };
        self.with_memory(index, x, |x, before, is_there| mamba(x, (spec, weights, eps), before, is_there))
    }

    /// The rows as they are if the block has no convolution, which is never asked for. The past
    /// cuts the rows that it remembers before the padding.
    fn short_conv(&mut self, index: usize, x: Tensor<3>, weights: &Conv<Norm>) -> Tensor<3> {
        let Some(conv) = &self.spec.blocks[index].conv else { return x };
        let before = self.past.as_ref().and_then(|past| past.memory(index));
        let [given, rows] = short_conv(x, weights.conv.val(), conv, before);
        if let Some(past) = &mut self.past {
            past.remember(index, rows, None);
        }
        self.keep_rows(index, given)
    }

    /// The sum over the experts that the router chooses for each row, in the experts' order. An expert takes its own rows alone, so
    /// the host has to know the choice, and waits for the device once in a block.
    ///
    /// ```text
    /// weights [rows, n_experts] ─► host ─► rows of each expert ─► expert ─► one below the other, [choices, d_model]
    /// row by row: its first choice · weight + its second choice · weight …
    /// ```
    ///
    /// A weight that is NaN is not 0, so it reaches the sum.
    fn mix(&mut self, x: Tensor<3>, logits: Tensor<3>, experts: &Experts<Linear, Norm>) -> Tensor<3> {
        let weights = ops::route(logits, experts.routing, experts.choice_bias.as_ref().map(Param::val)); // [batch, seq, n_experts]
        let weights = match &experts.scales {
            Some(scales) => weights * scales.val().unsqueeze(),
            None => weights,
        };
        let ([batch, seq, d_model], n_experts) = (x.dims(), experts.experts.len());
        let (rows, device) = (batch * seq, x.device());
        let weights = weights.reshape([rows * n_experts]);
        let choices = Choices::of(&host_within(weights.clone().detach()), n_experts);
        let index = |of: &[i32]| Tensor::<1, Int>::from_data(TensorData::from(of), &device);
        // Experts are alike: what the first multiplies, all do.
        let dtype = experts.experts.first().map_or(DType::F32, |expert| taken(&expert.gate_up));
        let x = cast(x.reshape([rows, d_model]), dtype);
        let mut made = Vec::new();
        for (own, expert) in choices.rows.iter().zip(&experts.experts).filter(|(own, _)| !own.is_empty()) {
            let own = x.clone().select(0, index(own)).unsqueeze::<3>();
            made.push(expert.forward(self, Input::Of(&own)).squeeze_dim::<2>(0)); // -> [own rows, d_model]
        }
        // A row that has fewer choices than others is given this one.
        made.push(Tensor::zeros([1, d_model], (&device, made.first().map_or(DType::F32, Tensor::dtype))));
        let made = Tensor::cat(made, 0);
        let mut mixed = Tensor::zeros([rows, d_model], (&device, DType::F32));
        for (at, weight) in &choices.of_rows {
            let weight = weights.clone().select(0, index(weight)).unsqueeze_dim(1); // [rows, 1]
            mixed = mixed + widen(made.clone().select(0, index(at))) * weight;
        }
        mixed.reshape([batch, seq, d_model])
    }

    fn add_gated(&mut self, x: Tensor<3>, gate: Tensor<3>, y: Tensor<3>) -> Tensor<3> {
        widen(x) + activation::sigmoid(widen(gate)) * widen(y)
    }

    fn keep(&mut self, index: usize, x: Tensor<3>) -> Tensor<3> {
        self.keep_rows(index, x)
    }

    fn sum(&mut self, x: Tensor<3>, y: Tensor<3>, norm: Option<&Norm>) -> Tensor<3> {
        let y = match norm {
            Some(norm) => self.norm(&y, norm),
            None => y,
        };
        ops::added(x, y, None)
    }

    /// The gate as it is if the model has no token inputs, which
    /// [`Block::forward`](crate::engine::block::Block::forward) never asks for.
    fn gate_tokens(&mut self, index: usize, gate: Tensor<3>) -> Tensor<3> {
        let Some(inputs) = &self.token_inputs else { return gate };
        let width = gate.dims()[2];
        let inputs = self.keep_rows(index, inputs.clone().narrow(2, index * width, width));
        ops::activated(widen(gate), self.spec.activation) * inputs
    }

    fn scale(&mut self, x: Tensor<3>, factor: &Norm) -> Tensor<3> {
        x * factor.val().unsqueeze()
    }

    fn add(&mut self, x: Tensor<3>, y: Tensor<3>, norm: Option<&Norm>) -> Tensor<3> {
        let y = match norm {
            Some(norm) => self.norm(&y, norm),
            None => y,
        };
        ops::added(x, y, self.spec.residual_scale)
    }
}
