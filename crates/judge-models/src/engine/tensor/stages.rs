//! Which blocks lie on which device, where a model is spread over several.
//!
//! A decoder is cut into stages: runs of successive blocks, one for each device, in the order of a
//! pass. The embedding goes with the first, the final norm and an own head with the last. The cut
//! makes the heaviest stage as light as can be, in weights; devices are taken to have memory alike.
//!
//! ```text
//! embedding 30, twelve blocks of 10, end 30, three devices:
//!   30 + 3 × 10  │  6 × 10  │  3 × 10 + 30        heaviest: 60
//! ```
//!
//! `decoder.rs` builds by the [`stages`]; `batch_size.rs` asks how heavy the [`heaviest`] is.

use std::ops::Range;

use judge_arch::{HeadSpec, ModelSpec};

/// How many weights the parts of a decoder have, in the order of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Weights {
    /// The embedding and the projection of token inputs, which lie with the first block. The table
    /// of token inputs is on the host and does not count.
    embedding: usize,
    /// `[n_layers]`.
    blocks: Vec<usize>,
    /// The final norm, and the head where it is not the embedding; they lie with the last block.
    end: usize,
}

impl Weights {
    /// Counts the weights of a model from the shapes of its tensors.
    fn of(spec: &ModelSpec) -> Self {
        let count =
            |shapes: Vec<(String, Vec<usize>)>| shapes.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
        let table = spec.d_vocab * spec.d_model;
        let inputs = spec.token_inputs.as_ref().map(|inputs| &inputs.projection);
        let projection = inputs
            .map_or(0, |projection| projection.stems.iter().map(|(_, rows)| rows * projection.d_in).sum::<usize>());
        Self {
            embedding: table + projection,
            blocks: spec.blocks.iter().map(|block| count(block.tensors())).collect(),
            end: spec.norm.len + if matches!(spec.head, HeadSpec::Own(_)) { table } else { 0 },
        }
    }

    /// Cuts the blocks into `count` runs, none empty, and gives the weight of the heaviest, which
    /// no other cut makes lighter. There must be at least `count` blocks.
    ///
    /// The result is the fill of the least limit that all runs keep, which bisection finds:
    /// [`fill`](Self::fill) exceeds a limit only if every cut does.
    fn cut(&self, count: usize) -> (Vec<Range<usize>>, usize) {
        let (mut low, mut high) = (0, self.embedding + self.blocks.iter().sum::<usize>() + self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fill(count, middle).1 <= middle { high = middle } else { low = middle + 1 }
        }
        self.fill(count, high)
    }

    /// `count` runs and the weight of the heaviest. Each run but the last takes blocks up to
    /// `limit` in weight, or a single block that is heavier, and leaves one block for each run
    /// after it. The last takes what is left, so it may exceed the limit.
    fn fill(&self, count: usize, limit: usize) -> (Vec<Range<usize>>, usize) {
        let (mut runs, mut heaviest) = (Vec::with_capacity(count), 0);
        let (mut start, mut weight) = (0, self.embedding);
        for after in (0..count).rev() {
            let mut end = start;
            // Each run after this one needs a block.
            while end < self.blocks.len() - after && (after == 0 || end == start || weight + self.blocks[end] <= limit)
            {
                weight += self.blocks[end];
                end += 1;
            }
            if after == 0 {
                weight += self.end;
            }
            heaviest = heaviest.max(weight);
            runs.push(start..end);
            (start, weight) = (end, 0);
        }
        (runs, heaviest)
    }
}

/// The blocks of each of `count` devices, in the order of a pass: runs of blocks, none empty, such
/// that the device with most weights has as few as can be. `count` is at least 1 and at most the
/// number of blocks.
pub(crate) fn stages(spec: &ModelSpec, count: usize) -> Vec<Range<usize>> {
    Weights::of(spec).cut(count).0
}

/// The number of weights of the [stage](stages) that has most of them, embedding and head included.
pub(crate) fn heaviest(spec: &ModelSpec, count: usize) -> usize {
    Weights::of(spec).cut(count).1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn heaviest_of(weights: &Weights, runs: &[Range<usize>]) -> usize {
        let load = |(index, run): (usize, &Range<usize>)| {
            let ends =
                if index == 0 { weights.embedding } else { 0 } + if index + 1 == runs.len() { weights.end } else { 0 };
            ends + weights.blocks[run.clone()].iter().sum::<usize>()
        };
        runs.iter().enumerate().map(load).max().unwrap()
    }

    /// The lightest heaviest run of all ways to cut `blocks[start..]` into `count` runs, by trying
    /// them.
    fn best(weights: &Weights, start: usize, count: usize) -> usize {
        let first = if start == 0 { weights.embedding } else { 0 };
        if count == 1 {
            return first + weights.blocks[start..].iter().sum::<usize>() + weights.end;
        }
        (start + 1..=weights.blocks.len() + 1 - count)
            .map(|end| (first + weights.blocks[start..end].iter().sum::<usize>()).max(best(weights, end, count - 1)))
            .min()
            .unwrap()
    }

    proptest! {
        #[test]
        fn every_block_is_in_one_run_and_no_cut_is_better(
            blocks in prop::collection::vec(0_usize..20, 1..10),
            embedding in 0_usize..60,
            end in 0_usize..60,
            count in 1_usize..10,
        ) {
            let count = count.min(blocks.len());
            let weights = Weights { embedding, blocks, end };
            let (runs, weight) = weights.cut(count);
            prop_assert_eq!(runs.len(), count);
            prop_assert!(runs.iter().all(|run| !run.is_empty()));
            let numbers: Vec<usize> = runs.iter().cloned().flatten().collect();
            prop_assert_eq!(numbers, (0..weights.blocks.len()).collect::<Vec<_>>());
            prop_assert_eq!(heaviest_of(&weights, &runs), best(&weights, 0, count));
            prop_assert_eq!(weight, best(&weights, 0, count));
        }
    }

    #[test]
    fn a_wide_embedding_takes_the_place_of_blocks() {
        let weights = Weights { embedding: 30, blocks: vec![10; 12], end: 30 };
        assert_eq!(weights.cut(2).0, [0..6, 6..12]);
        assert_eq!(weights.cut(3).0, [0..3, 3..9, 9..12]);
    }

    #[test]
    fn all_weights_of_a_model_are_counted() {
        for tied in [false, true] {
            let config = json!({
                "model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 3,
                "num_attention_heads": 2, "vocab_size": 11, "rms_norm_eps": 1e-6, "max_position_embeddings": 32,
                "tie_word_embeddings": tied,
            });
            let weights = Weights::of(&ModelSpec::from_json(&config).unwrap());
            let block = 4 * 8 * 8 + 3 * 8 * 16 + 2 * 8;
            let end = 8 + if tied { 0 } else { 88 };
            assert_eq!(weights, Weights { embedding: 88, blocks: vec![block; 3], end });
        }
    }
}
