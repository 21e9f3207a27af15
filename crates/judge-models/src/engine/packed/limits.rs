//! What a kernel's instructions could do at most, and what attention does of it: for the benchmark
//! `products`, through `speeds.rs`. Compiled with the feature `bench` alone.
//!
//! Each function makes its inputs, times one run on all of rayon's threads, and returns operations
//! per second, where a multiply-add counts as two. The caller repeats it and takes the best.
//! Products of packed weights, which are compared with these limits, are timed by `rate.rs`.

use std::hint::black_box;
use std::time::Instant;

use super::attention::{Mask, Queries, Settings};
use super::gather::attend;
use super::kv_cache::{KeyShape, KvCache};
use super::lines::Lines;
use super::supported::Supported;
use super::tile::{LANES, Shape, Word, Words, multiply_add};
#[cfg(target_arch = "x86_64")]
use super::unit::{HasUnit, PAIRS, ROWS, Sums};

/// Operations per second of a kernel's own block of a product, on all of rayon's threads, timed
/// once. Rows and panel, at most 16 KiB each, stay in the nearest cache: an upper bound of what a
/// product can reach with this body. Numbers are zeros.
pub(crate) fn rate_near(kernel: Supported) -> f64 {
    /// Blocks that each thread multiplies.
    const TIMES: usize = 2_000;
    /// Words of a row: 256 coordinates in bf16.
    const WORDS: usize = 128;
    on_all_threads(|| {
        let (a, b) = (Lines::zeros(32 * WORDS), Lines::zeros(WORDS * LANES));
        let b = Words { data: &b, stride: LANES };
        #[cfg(target_arch = "x86_64")]
        if let Some(unit) = HasUnit::of(kernel) {
            let unit = unit.hold();
            let (first, second) = a.as_chunks::<{ ROWS * PAIRS }>().0.split_at(WORDS / PAIRS);
            let mut sums = [Sums::ZERO; 2];
            for time in 0..TIMES {
                unit.multiply((black_box(first), Some(second)), b, false, &mut sums[time % 2], &[]);
            }
            black_box(&sums);
            return 2 * TIMES * 32 * 2 * WORDS * LANES;
        }
        let mut sums = vec![0.0; 12 * LANES];
        let shape = Shape::added(12, WORDS, LANES);
        for _ in 0..TIMES {
            multiply_add(kernel, Word::Pair, shape, Words { data: black_box(&a), stride: WORDS }, b, &mut sums, LANES);
        }
        black_box(&sums);
        2 * TIMES * 12 * 2 * WORDS * LANES
    })
}

/// Operations per second of the matrix unit on what is in its registers, on all of rayon's threads,
/// timed once: the limit of the instruction itself. `None` where the kernel does not use the unit.
#[cfg(target_arch = "x86_64")]
pub(crate) fn rate_in_registers(kernel: Supported) -> Option<f64> {
    let unit = HasUnit::of(kernel)?;
    Some(on_all_threads(|| unit.hold().multiply_registers(20_000)))
}

/// Other processors have no such unit.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn rate_in_registers(_: Supported) -> Option<f64> {
    None
}

/// Lets each of rayon's threads do `work`, which returns how many operations that were, and returns
/// their sum per second of wall time.
fn on_all_threads(work: impl Fn() -> usize + Sync) -> f64 {
    let start = Instant::now();
    let operations: usize = rayon::broadcast(|_| work()).into_iter().sum();
    operations as f64 / start.elapsed().as_secs_f64()
}

/// Causal attention of a whole sequence to itself in one block, to be timed.
pub(crate) struct Attention {
    /// Those of the block.
    settings: Settings<'static>,
    /// Positions of the sequence.
    seq: usize,
    /// Its keys and values, written beforehand.
    keys: KvCache,
    /// Rows of queries, keys and values, `[seq, stride]`.
    qkv: Lines<f32>,
    /// What the queries gather, `[seq, n_heads, head_dim]`.
    out: Lines<f32>,
}

impl Attention {
    /// A sequence of `seq` positions with heads as Qwen3-0.6B has them: 16 query heads of 128
    /// coordinates for 8 key heads, in bf16. Numbers are in [-1, 1].
    pub(crate) fn new(kernel: Supported, seq: usize) -> Self {
        let shape = KeyShape { n_kv_heads: 8, head_dim: 128, word: Word::Pair };
        let mask = Mask::Causal(None);
        let settings = Settings { kernel, n_heads: 16, shape, scale: 0.1, soft_cap: None, mask, sinks: None };
        let stride = Self::stride(settings);
        let mut qkv = Lines::zeros(seq * stride);
        qkv.iter_mut().enumerate().for_each(|(i, x)| *x = (i % 29) as f32 / 14.0 - 1.0);
        let mut keys = KvCache::alike(shape, None, seq, 1);
        keys.write(0, &qkv[settings.n_heads * shape.head_dim..], stride, seq);
        Self { settings, seq, keys, qkv, out: Lines::zeros(seq * settings.n_heads * shape.head_dim) }
    }

    /// Numbers of a row of queries, keys and values.
    fn stride(settings: Settings<'_>) -> usize {
        (settings.n_heads + 2 * settings.shape.n_kv_heads) * settings.shape.head_dim
    }

    /// Operations per second of one run: those of each query's products with the keys that it sees
    /// and with their values, `4 · head_dim` for each query head and key, and no others. What the
    /// body computes of masked keys is not counted.
    pub(crate) fn rate(&mut self) -> f64 {
        let Settings { n_heads, shape, .. } = self.settings;
        let queries = Queries { keys: &self.keys, position: 0, row: 0, count: self.seq };
        let start = Instant::now();
        attend(self.settings, 0, &[queries], &self.qkv, Self::stride(self.settings), &mut self.out);
        let seen = self.seq * (self.seq + 1) / 2;
        (4 * seen * n_heads * shape.head_dim) as f64 / start.elapsed().as_secs_f64()
    }
}
