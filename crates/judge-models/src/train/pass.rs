//! One forward pass over a batch, and what a loss reads of it.
//!
//! Of a decoder only positions that are read go through the last block's MLP, the final norm and a head; of an encoder
//! the one state of a sequence that its head reads:
//!
//! ```text
//! tokens [batch, seq] ─► blocks ─► states [places, d_model] ─┬► logits        [places, d_vocab], soft-capped
//!                          │                                 ├► label_logits  [places, labels], as LAGER reads them
//!                          └► inner layers [places, d_model] ┘► scores        [places, labels of the head]
//! ```

use std::collections::HashMap;

use burn::tensor::Tensor;
use judge_core::request::TokenId;
use judge_core::{Layer, Lens};

use super::base::Tuned;
use super::batch::Batch;
use super::network::Network;
use crate::Error;
use crate::engine::tensor::decoder::Decoder;

/// What a pass brought: states at the places of all sequences, one sequence after another.
pub struct Reads {
    /// The network, for its norm and heads, and what is learnt outside of it.
    tuned: Tuned,
    /// After the last block and the final norm, `[places, d_model]`; of an encoder one state of each sequence.
    last: Tensor<2>,
    /// Other layers that the loss reads, `[places, d_model]`, without the norm.
    inner: HashMap<Layer, Tensor<2>>,
}

/// What a pass begins with: the streams of sequences side by side, `[batch, seq, d_model]`.
pub(super) struct Entry {
    /// The first block that runs.
    pub(super) block: usize,
    /// What goes into it.
    pub(super) input: Tensor<3>,
    /// The streams before it that a loss reads.
    pub(super) inner: HashMap<Layer, Tensor<3>>,
}

/// Where a pass begins without anything computed before.
pub(super) fn embedded(network: &Network, batch: &Batch) -> Entry {
    Entry { block: 0, input: network.embed(batch), inner: HashMap::new() }
}

impl Entry {
    /// Runs further blocks, up to `end`, and keeps those of `layers` before the last that it passes.
    pub(super) fn advance(mut self, network: &Network, batch: &Batch, end: usize, layers: &[Layer]) -> Self {
        let (n_layers, inner) = (network.n_layers(), &mut self.inner);
        let mut keep = |layer: usize, stream: &Tensor<3>| {
            if layer < n_layers && layers.contains(&Layer(layer)) {
                inner.insert(Layer(layer), stream.clone());
            }
        };
        keep(self.block, &self.input);
        self.input = network.run_blocks(self.block..end, self.input, batch, &mut keep);
        self.block = end;
        self
    }
}

/// Runs sequences, each of which reads something, and keeps the states of `layers` and the last.
pub(super) fn run(tuned: Tuned, batch: &Batch, entry: Entry, layers: &[Layer]) -> Reads {
    let Entry { input, inner, .. } = entry.advance(&tuned.network, batch, tuned.network.n_layers(), layers);
    let last = tuned.network.last(input, batch);
    let inner = inner.into_iter().map(|(layer, stream)| (layer, batch.read(stream))).collect();
    Reads { tuned, last, inner }
}

impl Reads {
    /// The decoder, for its head over the vocabulary.
    ///
    /// # Errors
    /// [`Error::NothingRead`] for an encoder, of which no loss here asks for it.
    fn decoder(&self) -> Result<&Decoder, Error> {
        match &self.tuned.network {
            Network::Decoder(decoder) => Ok(decoder),
            Network::Encoder(_) => Err(Error::NothingRead),
        }
    }

    /// Logits over the vocabulary as text is generated from them, `[places, d_vocab]`: with the model's scale,
    /// bias and final soft-cap.
    ///
    /// # Errors
    /// [`Error::NothingRead`] for an encoder.
    pub(super) fn logits(&self) -> Result<Tensor<2>, Error> {
        let decoder = self.decoder()?;
        let logits = decoder.logits(self.last.clone().unsqueeze()).squeeze_dim::<2>(0);
        Ok(match decoder.spec().final_soft_cap {
            Some(cap) => logits.div_scalar(cap).tanh().mul_scalar(cap),
            None => logits,
        })
    }

    /// The numbers whose softmax weighs the layers, `[layers, 1]`; `None` where they are not learnt.
    pub(super) fn layer_weights(&self) -> Option<Tensor<2>> {
        self.tuned.layer_weights.clone()
    }

    /// Logits of labels as `reading/labels.rs` gives them, `[places, labels]` of each layer: no soft-cap, and the last
    /// layer is normed under both lenses.
    ///
    /// # Errors
    /// [`Error::NothingRead`] for an encoder.
    pub(super) fn label_logits(
        &self,
        labels: &[TokenId],
        layers: impl Iterator<Item = Layer>,
        lens: Lens,
    ) -> Result<Vec<Tensor<2>>, Error> {
        let decoder = self.decoder()?;
        let rows = decoder.head_rows(labels).transpose(); // -> [d_model, labels]
        let bias = decoder.head_biases(labels);
        let at = |layer: Layer| {
            let states = match (self.inner.get(&layer), lens) {
                (None, _) => self.last.clone(),
                (Some(inner), Lens::Raw) => inner.clone(),
                (Some(inner), Lens::Normed) => decoder.final_norm(inner.clone().unsqueeze()).squeeze_dim::<2>(0),
            };
            let logits = states.matmul(rows.clone());
            match &bias {
                Some(bias) => logits + bias.clone().unsqueeze(),
                None => logits,
            }
        };
        Ok(layers.map(at).collect())
    }

    /// What the head of labels makes of the last layer, `[places, labels]`.
    ///
    /// # Errors
    /// [`Error::NothingRead`] without such a head, for which no loss here asks then.
    pub(super) fn scores(&self) -> Result<Tensor<2>, Error> {
        if let Network::Encoder(encoder) = &self.tuned.network {
            return Ok(encoder.head().ok_or(Error::NothingRead)?.forward(self.last.clone()));
        }
        let score = self.tuned.score.as_ref().ok_or(Error::NothingRead)?;
        Ok(self.last.clone().matmul(score.clone().transpose()))
    }
}
