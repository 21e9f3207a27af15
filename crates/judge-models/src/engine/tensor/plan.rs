//! Which sequences run together, and in what shapes. Pure arithmetic on lengths; `run.rs` gives it
//! the jobs of a group and runs the batches in their order.
//!
//! ```text
//! sequences (prompt, new), longest prompt first          batches: rows × (seq + new), each at most max_tokens
//!   (500, 0) × 70, step 128, 16,384 tokens       ─►      32 × 512, 32 × 512, 6 × 512
//! ```

/// Which shapes a device is given. Each new one may cost a search for the fastest kernels, so there
/// are few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shapes {
    /// Prompts are padded to a multiple of it, and so is the room for new tokens. 0 is taken for 1.
    pub(crate) step: usize,
}

impl Shapes {
    /// For GPUs: Burn's attention on matrix units takes prompts whose length is a multiple of 128.
    pub(crate) const CUDA: Self = Self { step: 128 };

    /// The next multiple of the step; 0 stays 0.
    fn up(self, len: usize) -> usize {
        len.next_multiple_of(self.step.max(1))
    }
}

/// Sequences that share forward passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Indices of the sequences in the list that was planned, longest prompt first; each is one
    /// row.
    pub(crate) members: Vec<usize>,
    /// Positions that each prompt is padded to.
    pub(crate) seq: usize,
    /// Room for new tokens behind each prompt; 0 if no member writes.
    pub(crate) new: usize,
}

/// Puts sequences, given as lengths of prompts and numbers of new tokens, into batches of at most
/// `max_tokens` positions, padding and new tokens included. A sequence that has more runs alone.
/// Each sequence is in exactly one batch.
///
/// The longest prompts come first: neighbours then differ least in length, and memory that is
/// enough for the first batch is enough for all. Sequences of equal length keep their order.
/// Numbers of members are powers of two, or one and a half times such a power, so that there are
/// few shapes without a row of padding.
pub(crate) fn plan(sequences: &[(usize, usize)], shapes: Shapes, max_tokens: usize) -> Vec<Batch> {
    let mut order: Vec<usize> = (0..sequences.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(sequences[index].0));
    let mut batches = Vec::new();
    let mut rest = order.as_slice();
    while let Some(&longest) = rest.first() {
        let seq = shapes.up(sequences[longest].0);
        let (mut fit, mut most_new) = (0, 0);
        for &member in rest {
            most_new = sequences[member].1.max(most_new);
            if fit > 0 && (seq + shapes.up(most_new)) * (fit + 1) > max_tokens {
                break;
            }
            fit += 1;
        }
        let (members, after) = rest.split_at(round_down(fit));
        let new = shapes.up(members.iter().map(|&member| sequences[member].1).max().unwrap_or(0));
        batches.push(Batch { members: members.to_vec(), seq, new });
        rest = after;
    }
    batches
}

/// The largest number of the form `2^k` or `3 · 2^k` that is at most `count`, which must be at
/// least 1.
fn round_down(count: usize) -> usize {
    let power = 1 << count.ilog2();
    let half_more = power + power / 2;
    if half_more <= count { half_more } else { power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_rows_are_few() {
        let rounded: Vec<usize> = (1..=16).map(round_down).collect();
        assert_eq!(rounded, [1, 2, 3, 4, 4, 6, 6, 8, 8, 8, 8, 12, 12, 12, 12, 16]);
    }

    #[test]
    fn each_sequence_is_in_one_batch_that_holds_it() {
        let sequences: Vec<(usize, usize)> = (0..57).map(|i| (1 + i * 37 % 91, i % 4)).collect();
        for (step, max_tokens) in [(1, 1), (8, 100), (16, 300), (128, 16_384), (7, 64)] {
            let batches = plan(&sequences, Shapes { step }, max_tokens);
            let mut seen = vec![0; sequences.len()];
            for batch in &batches {
                for &member in &batch.members {
                    seen[member] += 1;
                    assert!(sequences[member].0 <= batch.seq && sequences[member].1 <= batch.new);
                }
                assert_eq!((batch.seq % step, batch.new % step), (0, 0));
                let positions = batch.members.len() * (batch.seq + batch.new);
                assert!(positions <= max_tokens || batch.members.len() == 1, "{batch:?}");
            }
            assert_eq!(seen, vec![1; sequences.len()]);
            assert!(batches.is_sorted_by_key(|batch| std::cmp::Reverse(batch.seq)));
        }
        assert_eq!(plan(&[], Shapes { step: 8 }, 100), []);
    }

    #[test]
    fn equal_lengths_share_one_shape() {
        let batches = plan(&[(500, 0); 70], Shapes::CUDA, 16_384);
        let shapes: Vec<_> = batches.iter().map(|batch| (batch.members.len(), batch.seq)).collect();
        assert_eq!(shapes, [(32, 512), (32, 512), (6, 512)]);
    }
}
