//! Sequences of some examples in one forward pass, and what a loss reads of it.
//!
//! Sequences are padded on the right to the longest; under a causal mask that changes nothing before it.
//! Only positions that are read go through the last block's MLP, the final norm and a head:
//!
//! ```text
//! tokens [batch, seq] ─► blocks ─► states [places, d_model] ─┬► logits        [places, d_vocab], soft-capped
//!                          │                                 ├► label_logits  [places, labels], as LAGER reads them
//!                          └► inner layers [places, d_model] ┘► scores        [places, labels of the score head]
//! ```

use std::collections::HashMap;

use burn::tensor::{Device, Int, Tensor, TensorData};
use judge_core::request::TokenId;
use judge_core::{Layer, Lens};

use super::base::Tuned;
use crate::Error;
use crate::arch::ModelSpec;
use crate::engine::tensor::decoder::Decoder;
use crate::engine::tensor::rotation::Rotation;

/// A sequence of an example, and the positions that its loss reads, ascending.
pub struct Sequence<'e> {
    /// Its tokens.
    pub(super) tokens: &'e [TokenId],
    /// Positions whose states are read.
    pub(super) places: Vec<usize>,
}

impl<'e> Sequence<'e> {
    /// A sequence that is read at its end. It has one token at least.
    pub(super) fn read_at_end(tokens: &'e [TokenId]) -> Self {
        Self { tokens, places: vec![tokens.len() - 1] }
    }

    /// How many of its positions a pass runs over: behind the last place nothing is needed.
    pub(super) fn needed(&self) -> usize {
        self.places.last().map_or(1, |&place| place + 1)
    }

    /// The sequence without the padding at its end, where a score head passes it over, as `reading/jobs.rs` does.
    /// Such a sequence is read at its end.
    pub(super) fn without(self, padding: Option<TokenId>) -> Self {
        let Some(padding) = padding else { return self };
        let end = self.tokens.iter().rposition(|&token| token != padding).unwrap_or(0) + 1;
        Self::read_at_end(&self.tokens[..end])
    }
}

/// What a pass brought: states at the places of all sequences, one sequence after another.
pub struct Reads {
    /// The decoder, for its norm and heads.
    decoder: Decoder,
    /// `[n_labels, d_model]`.
    score: Option<Tensor<2>>,
    /// After the last block and the final norm, `[places, d_model]`.
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
    /// The streams before it that a loss reads, by their layers.
    pub(super) inner: HashMap<usize, Tensor<3>>,
}

/// Sequences as a decoder takes them.
pub(super) struct Batch {
    /// `[batch, seq]`, padded on the right.
    pub(super) tokens: TensorData,
    /// Cosines and sines, which are constants.
    pub(super) rotation: Rotation,
    /// The rows of `[batch * seq]` that are read, one sequence after another.
    pub(super) rows: Vec<i32>,
}

impl Batch {
    /// Puts sequences, of which each reads something, side by side.
    pub(super) fn of(sequences: &[Sequence<'_>], spec: &ModelSpec) -> Self {
        let seq = sequences.iter().map(Sequence::needed).max().unwrap_or(1);
        let ids = sequences.iter().flat_map(|sequence| {
            let tokens = &sequence.tokens[..sequence.needed()];
            tokens.iter().map(|&token| i64::from(token)).chain(std::iter::repeat_n(0, seq - tokens.len()))
        });
        let rows = sequences
            .iter()
            .enumerate()
            .flat_map(|(row, sequence)| sequence.places.iter().map(move |place| (row * seq + place) as i32));
        let lengths: Vec<usize> = sequences.iter().map(|sequence| sequence.tokens.len()).collect();
        Self {
            tokens: TensorData::new(ids.collect::<Vec<_>>(), [sequences.len(), seq]),
            rotation: Rotation::of_lengths(&spec.ropes, &lengths, seq, &Device::flex()),
            rows: rows.collect(),
        }
    }

    /// What is read of a stream: `[batch, seq, d_model]` to `[places, d_model]`.
    fn read(&self, stream: Tensor<3>) -> Tensor<2> {
        let [batch, seq, d_model] = stream.dims();
        let rows = Tensor::<1, Int>::from_data(TensorData::from(self.rows.as_slice()), &stream.device());
        stream.reshape([batch * seq, d_model]).select(0, rows)
    }

    /// What a loss reads of the streams of some inner layers and of the last block's rows `[1, places, d_model]`.
    pub(super) fn reads(&self, tuned: Tuned, last: Tensor<3>, inner: HashMap<Layer, Tensor<3>>) -> Reads {
        let Tuned { decoder, score } = tuned;
        let last = decoder.final_norm(last).squeeze_dim::<2>(0);
        let inner = inner.into_iter().map(|(layer, stream)| (layer, self.read(stream))).collect();
        Reads { decoder, score, last, inner }
    }
}

/// Where a pass begins without anything computed before.
pub(super) fn embedded(decoder: &Decoder, batch: &Batch) -> Entry {
    let input = decoder.embed(batch.tokens.clone(), Some(&batch.rotation));
    Entry { block: 0, input, inner: HashMap::new() }
}

/// Runs sequences, each of which reads something, and keeps the states of `layers` and the last.
pub(super) fn run(tuned: Tuned, batch: &Batch, entry: Entry, layers: &[Layer]) -> Reads {
    let n_layers = tuned.decoder.spec().n_layers();
    let Entry { block, input, inner } = entry;
    let mut inner: HashMap<Layer, Tensor<3>> =
        inner.into_iter().map(|(layer, stream)| (Layer(layer), stream)).collect();
    let mut keep = |layer: usize, stream: &Tensor<3>| {
        if layer < n_layers && layers.contains(&Layer(layer)) {
            inner.insert(Layer(layer), stream.clone());
        }
    };
    keep(block, &input);
    let last = tuned.decoder.run_blocks(block..n_layers, input, &batch.rotation, &batch.rows, &mut keep);
    batch.reads(tuned, last, inner)
}

impl Reads {
    /// Logits over the vocabulary as text is generated from them, `[places, d_vocab]`: with the model's scale,
    /// bias and final soft-cap.
    pub(super) fn logits(&self) -> Tensor<2> {
        let logits = self.decoder.logits(self.last.clone().unsqueeze()).squeeze_dim::<2>(0);
        match self.decoder.spec().final_soft_cap {
            Some(cap) => logits.div_scalar(cap).tanh().mul_scalar(cap),
            None => logits,
        }
    }

    /// Logits of labels as `reading/labels.rs` gives them, `[places, labels]`, of each layer times its weight
    /// and added up: no soft-cap, and the last layer is normed under both lenses.
    pub(super) fn label_logits(&self, labels: &[TokenId], layers: &[(Layer, f64)], lens: Lens) -> Tensor<2> {
        let rows = self.decoder.head_rows(labels).transpose(); // -> [d_model, labels]
        let bias = self.decoder.head_biases(labels);
        let at = |&(layer, weight): &(Layer, f64)| {
            let states = match (self.inner.get(&layer), lens) {
                (None, _) => self.last.clone(),
                (Some(inner), Lens::Raw) => inner.clone(),
                (Some(inner), Lens::Normed) => self.decoder.final_norm(inner.clone().unsqueeze()).squeeze_dim::<2>(0),
            };
            let logits = states.matmul(rows.clone());
            let logits = match &bias {
                Some(bias) => logits + bias.clone().unsqueeze(),
                None => logits,
            };
            logits.mul_scalar(weight)
        };
        let [places, _] = self.last.dims();
        let zeros = || Tensor::zeros([places, labels.len()], &self.last.device());
        layers.iter().map(at).reduce(|sum, one| sum + one).unwrap_or_else(zeros)
    }

    /// What the score head makes of the last layer, `[places, labels]`.
    ///
    /// # Errors
    /// [`Error::NothingRead`] without a score head, for which no loss here asks then.
    pub(super) fn scores(&self) -> Result<Tensor<2>, Error> {
        let score = self.score.as_ref().ok_or(Error::NothingRead)?;
        Ok(self.last.clone().matmul(score.clone().transpose()))
    }
}
