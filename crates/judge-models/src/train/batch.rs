//! Sequences of some examples side by side, as a network takes them.
//!
//! They are padded on the right to the longest. Under a causal mask that changes nothing before it, and attention to
//! both sides hides it.

use burn::tensor::{Device, Int, Tensor, TensorData};
use judge_arch::Architecture;
use judge_core::request::TokenId;

use crate::engine::tensor::rotation::Rotation;

/// A sequence of an example, and the positions that its loss reads, ascending.
pub struct Sequence<'e> {
    /// Its tokens.
    pub(super) tokens: &'e [TokenId],
    /// The type of each token; empty where all are 0.
    pub(super) types: &'e [u32],
    /// Positions whose states are read. An encoder runs over all positions up to the last of them, and its head decides
    /// which state is read.
    pub(super) places: Vec<usize>,
}

impl<'e> Sequence<'e> {
    /// A sequence that is read at its end. It has one token at least.
    pub(super) fn read_at_end(tokens: &'e [TokenId]) -> Self {
        Self { tokens, types: &[], places: vec![tokens.len() - 1] }
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

/// Sequences as a network takes them.
pub(super) struct Batch {
    /// `[batch, seq]`, padded on the right.
    pub(super) tokens: TensorData,
    /// The type of each token, 0 at padding.
    pub(super) types: Vec<i64>,
    /// Tokens of each sequence.
    pub(super) lengths: Vec<usize>,
    /// Cosines and sines, which are constants.
    pub(super) rotation: Rotation,
    /// The rows of `[batch * seq]` that are read, one sequence after another.
    pub(super) rows: Vec<i32>,
}

impl Batch {
    /// Puts sequences, of which each reads something, side by side.
    pub(super) fn of(sequences: &[Sequence<'_>], spec: &Architecture) -> Self {
        let seq = sequences.iter().map(Sequence::needed).max().unwrap_or(1);
        let ids = sequences.iter().flat_map(|sequence| {
            let tokens = &sequence.tokens[..sequence.needed()];
            tokens.iter().map(|&token| i64::from(token)).chain(std::iter::repeat_n(0, seq - tokens.len()))
        });
        let types = sequences.iter().flat_map(|sequence| {
            let types = sequence.types.iter().map(|&kind| i64::from(kind));
            types.chain(std::iter::repeat(0)).take(seq)
        });
        let rows = sequences
            .iter()
            .enumerate()
            .flat_map(|(row, sequence)| sequence.places.iter().map(move |place| (row * seq + place) as i32));
        let lengths: Vec<usize> = sequences.iter().map(|sequence| sequence.tokens.len()).collect();
        Self {
            tokens: TensorData::new(ids.collect::<Vec<_>>(), [sequences.len(), seq]),
            types: types.collect(),
            rotation: Rotation::of_lengths(spec.ropes(), &lengths, seq, &Device::flex()),
            rows: rows.collect(),
            lengths,
        }
    }

    /// What is read of a stream: `[batch, seq, d_model]` to `[places, d_model]`.
    pub(super) fn read(&self, stream: Tensor<3>) -> Tensor<2> {
        let [batch, seq, d_model] = stream.dims();
        let rows = Tensor::<1, Int>::from_data(TensorData::from(self.rows.as_slice()), &stream.device());
        stream.reshape([batch * seq, d_model]).select(0, rows)
    }
}
