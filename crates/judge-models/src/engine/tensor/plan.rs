//! Which sequences run together, and in what shapes. Pure arithmetic on lengths; `schedule.rs` gives
//! it the jobs of a group.
//!
//! ```text
//! sequences (prompt, new), longest prompt first          batches: rows × (seq + new), each at most max_tokens
//!   (500, 0) × 70, step 16, 16,384 tokens        ─►      32 × 512, 32 × 512, 6 × 512
//! ```
//!
//! Sequences in order of length are cut where that is cheapest. The price of a cut is a pass, that
//! of no cut is padding; both are counted in positions. Of all ways to cut the order the cheapest
//! is found, by the recursion of shortest paths:
//!
//! ```text
//! price[i] = min over j > i of  pass · (1 + new tokens) + (j - i) · (seq + new) + price[j]
//! ```
//!
//! There is no search for kernels, so many shapes of batches cost no more than few.

/// In which shapes a device is given its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shapes {
    /// Prompts are padded to a multiple of it, and so is the room for new tokens. 0 is taken for 1.
    pub(crate) step: usize,
    /// What a pass costs besides its positions, in positions. Decides how much padding is worth a
    /// pass, and which prefix is worth a pass of its own.
    pub(crate) pass: usize,
}

impl Shapes {
    /// For GPUs. The weights are read once in a pass: an H100 multiplies some 300 positions by them
    /// in the time that it takes to read them in bf16 (989 TFLOP/s and 3.35 TB/s in NVIDIA's data
    /// sheet, two operations and two bytes a weight).
    pub(crate) const CUDA: Self = Self { step: 16, pass: 256 };

    /// The next multiple of the step; 0 stays 0.
    pub(crate) fn up(self, len: usize) -> usize {
        len.next_multiple_of(self.step.max(1))
    }
}

/// A sequence, as far as planning goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    /// Tokens of the prompt that its pass feeds.
    pub(crate) prompt: usize,
    /// Most tokens that are written behind it.
    pub(crate) new: usize,
}

/// Sequences that share forward passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Indices of the sequences in the list that was planned; each is one row.
    pub(crate) members: Vec<usize>,
    /// Positions that each prompt is padded to.
    pub(crate) seq: usize,
}

/// Puts sequences into batches of at most `max_tokens` positions, padding and new tokens included. A sequence that has more
/// runs alone. Each sequence is in exactly one batch.
///
/// Sequences that may write about as much (to a factor of 2) are neighbours, and among them those
/// of like lengths, the longest first: one long text does not take the room of other batches. Of
/// equally cheap plans the one with the largest first batch is taken, then the largest second one,
/// and so on. Sequences of equal length keep their order.
pub(crate) fn plan(sequences: &[Length], shapes: Shapes, max_tokens: usize) -> Vec<Batch> {
    let mut order: Vec<usize> = (0..sequences.len()).collect();
    let about = |new: usize| if new == 0 { 0 } else { new.next_power_of_two() };
    order.sort_by_key(|&index| {
        let Length { prompt, new } = sequences[index];
        std::cmp::Reverse((about(new), prompt))
    });
    // From the end: the price of all sequences from one on, and where their first batch ends.
    let mut prices = vec![0_usize; order.len() + 1];
    let mut ends = vec![0_usize; order.len()];
    for start in (0..order.len()).rev() {
        let mut best = usize::MAX;
        let (mut seq, mut new) = (0, 0);
        for end in start + 1..=order.len() {
            let last = sequences[order[end - 1]];
            (seq, new) = (seq.max(shapes.up(last.prompt)), new.max(last.new));
            let rows = end - start;
            if rows > 1 && rows * (seq + shapes.up(new)) > max_tokens {
                break;
            }
            let price = shapes.pass * (1 + new) + rows * (seq + shapes.up(new)) + prices[end];
            if price <= best {
                (best, ends[start]) = (price, end);
            }
        }
        prices[start] = best;
    }
    let mut batches = Vec::new();
    let mut start = 0;
    while let Some(&end) = ends.get(start) {
        let members = order[start..end].to_vec();
        let longest = members.iter().map(|&member| sequences[member].prompt).max().unwrap_or(0);
        batches.push(Batch { members, seq: shapes.up(longest) });
        start = end;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(prompts: &[usize]) -> Vec<Length> {
        prompts.iter().map(|&prompt| Length { prompt, new: 0 }).collect()
    }

    /// Positions of padding for one of all positions.
    fn waste(sequences: &[Length], batches: &[Batch]) -> f64 {
        let computed: usize = batches.iter().map(|batch| batch.members.len() * batch.seq).sum();
        1.0 - sequences.iter().map(|length| length.prompt).sum::<usize>() as f64 / computed as f64
    }

    #[test]
    fn each_sequence_is_in_one_batch_that_holds_it() {
        let sequences: Vec<Length> = (0..57).map(|i| Length { prompt: 1 + i * 37 % 91, new: i % 4 * 7 }).collect();
        for (step, max_tokens) in [(1, 1), (8, 100), (16, 300), (128, 16_384), (7, 64)] {
            for pass in [0, 8, 256] {
                let shapes = Shapes { step, pass };
                let batches = plan(&sequences, shapes, max_tokens);
                let mut seen = vec![0; sequences.len()];
                for batch in &batches {
                    for &member in &batch.members {
                        seen[member] += 1;
                        assert!(sequences[member].prompt <= batch.seq);
                    }
                    assert_eq!(batch.seq % step, 0);
                    let new = batch.members.iter().map(|&member| shapes.up(sequences[member].new)).max().unwrap();
                    let positions = batch.members.len() * (batch.seq + new);
                    assert!(positions <= max_tokens || batch.members.len() == 1, "{batch:?}");
                }
                assert_eq!(seen, vec![1; sequences.len()]);
            }
        }
        assert_eq!(plan(&[], Shapes { step: 8, pass: 8 }, 100), []);
    }

    #[test]
    fn equal_lengths_share_one_shape() {
        let batches = plan(&reads(&[500; 70]), Shapes::CUDA, 16_384);
        let shapes: Vec<_> = batches.iter().map(|batch| (batch.members.len(), batch.seq)).collect();
        assert_eq!(shapes, [(32, 512), (32, 512), (6, 512)]);
    }

    #[test]
    fn the_cheapest_plan_is_found() {
        // 4 rows of 100 and 4 of 60: apart they cost 2 passes and 640 positions, together one pass and 800.
        let sequences = reads(&[100, 60, 100, 60, 100, 60, 100, 60]);
        let rows = |pass| -> Vec<usize> {
            let batches = plan(&sequences, Shapes { step: 1, pass }, 1000);
            batches.iter().map(|batch| batch.members.len()).collect()
        };
        assert_eq!((rows(159), rows(161)), (vec![4, 4], vec![8]));
    }

    #[test]
    fn one_long_text_does_not_shrink_other_batches() {
        let mut sequences = vec![Length { prompt: 200, new: 50 }; 32];
        let rows = |sequences: &[Length]| {
            let batches = plan(sequences, Shapes::CUDA, 32 * (208 + 64));
            batches.iter().map(|batch| batch.members.len()).collect::<Vec<_>>()
        };
        assert_eq!(rows(&sequences), [32]);
        sequences.insert(7, Length { prompt: 200, new: 4000 });
        assert_eq!(rows(&sequences), [1, 32]);
    }

    /// The ragged prompts of `scripts/gpu/check.py`, of which there are 64 lengths in turn
    /// (`workloads`), and the equal ones: 512 tokens.
    #[test]
    fn less_than_a_twentieth_of_judge_prompts_is_padding() {
        let lengths = [
            429, 523, 401, 559, 473, 531, 457, 424, 461, 392, 490, 515, 591, 540, 576, 313, 492, 587, 456, 546, 302,
            357, 480, 339, 457, 515, 326, 274, 300, 383, 517, 541, 526, 487, 325, 621, 392, 309, 467, 388, 578, 372,
            534, 588, 525, 497, 452, 576, 317, 442, 427, 596, 328, 568, 495, 431, 450, 410, 399, 342, 359, 336, 596,
            517,
        ];
        // The more prompts there are, the less padding.
        for (count, most, passes) in [(64, 0.05, 7), (256, 0.03, 12), (1024, 0.02, 22)] {
            let sequences: Vec<Length> = reads(&lengths).into_iter().cycle().take(count).collect();
            let batches = plan(&sequences, Shapes::CUDA, 32_768);
            let wasted = waste(&sequences, &batches);
            assert!(wasted < most && batches.len() <= passes, "{count}: {wasted} in {} passes", batches.len());
            let equal = reads(&vec![512; count]);
            assert_eq!(waste(&equal, &plan(&equal, Shapes::CUDA, 32_768)), 0.0);
        }
    }
}
