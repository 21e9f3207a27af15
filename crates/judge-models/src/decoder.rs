//! The one decoder: every family is this code with another [`DecoderConfig`].

use std::ops::ControlFlow;
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use crate::Error;
use crate::block::{Block, Build, HeadNorms, Ops};
use crate::cache::Cache;
use crate::config::{DecoderConfig, Part};
use crate::ops::{self, Attention};
use crate::rope::Rotation;

/// A decoder-only transformer. Weights keep the checkpoint's `[out, in]`.
#[derive(Module, Debug)]
pub(crate) struct Decoder {
    /// `[d_vocab, d_model]`.
    embedding: Param<Tensor<2>>,
    blocks: Vec<Block<Linear, Norm>>,
    /// `[d_model]`.
    norm: Param<Tensor<1>>,
    /// `[d_vocab, d_model]`; absent if it is the embedding.
    head: Option<Param<Tensor<2>>>,
    #[module(skip)]
    config: Arc<DecoderConfig>,
}

/// A norm's weight: `[d_model]`, that of a head `[head_dim]`.
type Norm = Param<Tensor<1>>;

/// A product with a matrix `[d_out, d_in]`, and a bias `[d_out]` where there is one.
#[derive(Module, Debug)]
struct Linear {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
}

/// Where a decoder's numbers come from: name and shape of a tensor to its values, row-major.
pub(crate) type Source<'a> = dyn FnMut(&str, &[usize]) -> Result<Vec<f32>, Error> + 'a;

impl Decoder {
    /// Builds the decoder that `config` describes from a checkpoint's tensors, as [`DecoderConfig::tensors`] lists
    /// them: projections that share their input are put below one another, Gemma's norm weights are stored as `1 + w`.
    pub(crate) fn new(config: Arc<DecoderConfig>, device: &Device, source: &mut Source<'_>) -> Result<Self, Error> {
        let mut build = Parameters { config: &config, device, source };
        let table = [config.d_vocab, config.d_model];
        let embedding = build.tensor("model.embed_tokens.weight", table)?;
        let blocks =
            (0..config.n_layers).map(|block| Block::build(&config, block, &mut build)).collect::<Result<_, _>>()?;
        let norm = build.norm("model.norm.weight", config.d_model)?;
        let head = if config.tied { None } else { Some(build.tensor("lm_head.weight", table)?) };
        Ok(Self { embedding, blocks, norm, head, config })
    }

    /// Where its parameters are.
    pub(crate) fn device(&self) -> Device {
        self.embedding.val().device()
    }

    /// What it was built from.
    #[cfg(test)]
    pub(crate) fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Runs `tokens` `[batch, seq]` through the blocks and shows `visit` each residual stream `[batch, seq, d_model]`
    /// as soon as it is there: 0 is the embedding, `i` the output of block `i` counted from 1, none of them normed.
    /// After [`ControlFlow::Break`] no further block is run and the result is `None`; otherwise it is the output of
    /// the last block.
    ///
    /// `rotation` covers the positions of `tokens`. With a cache (one sequence only) `tokens` follow what the cache
    /// holds: the whole prompt at once, then one token at a time. Sequences of a batch are padded on the right; a
    /// position never sees a later one, so padding changes nothing before it.
    pub(crate) fn forward(
        &self,
        tokens: Tensor<2, Int>,
        rotation: &Rotation,
        cache: Option<&mut Cache>,
        visit: &mut dyn FnMut(usize, &Tensor<3>) -> ControlFlow<()>,
    ) -> Option<Tensor<3>> {
        let [batch, seq] = tokens.dims();
        // [batch, seq] -> [batch * seq] -> [batch * seq, d_model] -> [batch, seq, d_model]
        let mut x =
            self.embedding.val().select(0, tokens.reshape([batch * seq])).reshape([batch, seq, self.config.d_model]);
        if let Some(scale) = self.config.embedding_scale {
            x = x.mul_scalar(scale);
        }
        let masks = WindowMasks::new(&self.config.windows, seq, &x.device());
        let mut ops = Composed { config: &self.config, rotation, masks, cache };
        if visit(0, &x).is_break() {
            return None;
        }
        for (index, block) in self.blocks.iter().enumerate() {
            x = block.forward(&mut ops, index, x);
            if visit(index + 1, &x).is_break() {
                return None;
            }
        }
        Some(x)
    }

    /// The final norm, row by row. Keeps the shape `[batch, seq, d_model]`.
    pub(crate) fn final_norm(&self, x: Tensor<3>) -> Tensor<3> {
        ops::rms_norm(x, self.norm.val(), self.config.norm_eps)
    }

    /// Logits over the whole vocabulary, `[batch, seq, d_model]` to `[batch, seq, d_vocab]`, without the final soft-cap.
    pub(crate) fn logits(&self, states: Tensor<3>) -> Tensor<3> {
        ops::linear(states, self.head(), None)
    }

    /// Rows of the output head, shape `[rows.len(), d_model]`. Every row must exist.
    pub(crate) fn head_rows(&self, rows: &[u32]) -> Tensor<2> {
        let rows: Vec<i64> = rows.iter().map(|&row| i64::from(row)).collect();
        let head = self.head();
        let rows = Tensor::<1, Int>::from_data(TensorData::from(rows.as_slice()), &head.device());
        head.select(0, rows) // [d_vocab, d_model] -> [rows, d_model]
    }

    fn head(&self) -> Tensor<2> {
        self.head.as_ref().unwrap_or(&self.embedding).val()
    }
}

/// A block's operations composed of Burn's, for one pass over `[batch, seq]` tokens.
struct Composed<'a> {
    config: &'a DecoderConfig,
    rotation: &'a Rotation,
    masks: WindowMasks,
    cache: Option<&'a mut Cache>,
}

impl Ops for Composed<'_> {
    /// `[batch, seq, width]`.
    type Rows = Tensor<3>;
    type Linear = Linear;
    type Norm = Norm;

    fn norm(&mut self, x: &Tensor<3>, weight: &Norm) -> Tensor<3> {
        ops::rms_norm(x.clone(), weight.val(), self.config.norm_eps)
    }

    fn linear(&mut self, x: Tensor<3>, linear: &Linear) -> Tensor<3> {
        ops::linear(x, linear.weight.val(), linear.bias.as_ref().map(Param::val))
    }

    fn attend(&mut self, index: usize, qkv: Tensor<3>, norms: HeadNorms<'_, Norm>) -> Tensor<3> {
        let config = self.config;
        let window = config.windows[index];
        let [batch, seq, _] = qkv.dims();
        let (d_query, d_key) = (config.d_query(), config.d_key());
        let heads = |start: usize, width: usize| {
            let part = qkv.clone().narrow(2, start, width); // -> [batch, seq, width]
            part.reshape([batch, seq, width / config.head_dim, config.head_dim]) // -> [batch, seq, heads, head_dim]
        };
        let rotated = |x: Tensor<4>, norm: Option<&Norm>| {
            ops::norm_rotate(x, norm.map(|weight| (weight.val(), config.norm_eps)), self.rotation)
        };
        // [batch, seq, heads, head_dim] -> [batch, heads, seq, head_dim], three times
        let queries = rotated(heads(0, d_query), norms.queries).swap_dims(1, 2);
        let keys = rotated(heads(d_query, d_key), norms.keys).swap_dims(1, 2);
        let values = heads(d_query + d_key, d_key).swap_dims(1, 2);
        let (keys, values) = match self.cache.as_deref_mut() {
            Some(cache) => cache.extend(index, keys, values, window), // -> [1, n_kv_heads, seq_keys, head_dim]
            None => (keys, values),
        };
        let hidden = self.masks.get(window);
        let with = Attention { scale: config.attention_scale, soft_cap: config.attention_soft_cap, hidden };
        let mixed = ops::attention(queries, keys, values, with); // [batch, n_heads, seq, head_dim]
        // [batch, n_heads, seq, head_dim] -> [batch, seq, n_heads, head_dim] -> [batch, seq, d_query]
        mixed.swap_dims(1, 2).reshape([batch, seq, d_query])
    }

    fn gate(&mut self, gate_up: Tensor<3>) -> Tensor<3> {
        ops::gated_activation(gate_up, self.config.activation)
    }

    fn keep(&mut self, _: usize, x: Tensor<3>) -> Tensor<3> {
        x
    }

    fn add(&mut self, x: Tensor<3>, y: Tensor<3>) -> Tensor<3> {
        x + y
    }
}

/// For each window shorter than the sequence, what lies before it. Causality is attention's own.
struct WindowMasks(Vec<(usize, Tensor<4, Bool>)>);

impl WindowMasks {
    fn new(windows: &[Option<usize>], seq: usize, device: &Device) -> Self {
        let mut masks: Vec<(usize, Tensor<4, Bool>)> = Vec::new();
        for &window in windows.iter().flatten() {
            if window < seq && masks.iter().all(|(known, _)| *known != window) {
                let hidden: Vec<bool> =
                    (0..seq).flat_map(|query| (0..seq).map(move |key| key + window <= query)).collect();
                masks.push((window, Tensor::from_data(TensorData::new(hidden, [1, 1, seq, seq]), device)));
            }
        }
        Self(masks)
    }

    fn get(&self, window: Option<usize>) -> Option<&Tensor<4, Bool>> {
        self.0.iter().find(|(known, _)| Some(*known) == window).map(|(_, mask)| mask)
    }
}

/// Turns a checkpoint's tensors into parameters.
struct Parameters<'a, 's> {
    config: &'a DecoderConfig,
    device: &'a Device,
    source: &'a mut Source<'s>,
}

impl Build for Parameters<'_, '_> {
    type Linear = Linear;
    type Norm = Norm;

    fn linear(&mut self, block: usize, parts: &[Part], d_in: usize, bias: bool) -> Result<Linear, Error> {
        let d_out = parts.iter().map(|&(_, rows)| rows).sum();
        let mut weights = Vec::with_capacity(d_out * d_in);
        let mut biases = Vec::new();
        for &(stem, rows) in parts {
            weights.append(&mut (self.source)(&format!("model.layers.{block}.{stem}.weight"), &[rows, d_in])?);
            if bias {
                biases.append(&mut (self.source)(&format!("model.layers.{block}.{stem}.bias"), &[rows])?);
            }
        }
        let weight = Param::from_data(TensorData::new(weights, [d_out, d_in]), self.device);
        let bias = bias.then(|| Param::from_data(TensorData::new(biases, [d_out]), self.device));
        Ok(Linear { weight, bias })
    }

    fn norm(&mut self, name: &str, len: usize) -> Result<Param<Tensor<1>>, Error> {
        let mut weight = (self.source)(name, &[len])?;
        if self.config.norm_offset {
            weight.iter_mut().for_each(|w| *w += 1.0);
        }
        Ok(Param::from_data(TensorData::new(weight, [len]), self.device))
    }
}

impl Parameters<'_, '_> {
    fn tensor(&mut self, name: &str, shape: [usize; 2]) -> Result<Param<Tensor<2>>, Error> {
        Ok(Param::from_data(TensorData::new((self.source)(name, &shape)?, shape), self.device))
    }
}
