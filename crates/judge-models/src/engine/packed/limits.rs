//! What a kernel's instructions could do at most, and what attention does of it: for the benchmark `products`.

use std::hint::black_box;
use std::time::Instant;

use super::attention::{Queries, Settings, Sight};
use super::gather::attend;
use super::kernel::Supported;
use super::keys::{KeyShape, Keys};
use super::lines::Lines;
use super::tile::{LANES, Shape, Word, Words, multiply_add};
#[cfg(target_arch = "x86_64")]
use super::unit::{HasUnit, PAIRS, ROWS, Sums};

/// Operations per second of a kernel's own block of a product on all of rayon's threads, once: rows and a panel that stay in the nearest cache.
pub(crate) fn rate_near(kernel: Supported) -> f64 {
    const TIMES: usize = 2_000;
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
        let shape = Shape { rows: 12, words: WORDS, lanes: LANES };
        for _ in 0..TIMES {
            multiply_add(kernel, Word::Pair, shape, Words { data: black_box(&a), stride: WORDS }, b, &mut sums, LANES);
        }
        black_box(&sums);
        2 * TIMES * 12 * 2 * WORDS * LANES
    })
}

/// Operations per second of the matrix unit on all of rayon's threads, once, on what is in its registers; `None` where the kernel does not use
/// it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn rate_in_registers(kernel: Supported) -> Option<f64> {
    let unit = HasUnit::of(kernel)?;
    Some(on_all_threads(|| unit.hold().multiply_registers(20_000)))
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn rate_in_registers(_: Supported) -> Option<f64> {
    None
}

/// Operations per second of what each thread does so many of.
fn on_all_threads(work: impl Fn() -> usize + Sync) -> f64 {
    let start = Instant::now();
    let operations: usize = rayon::broadcast(|_| work()).into_iter().sum();
    operations as f64 / start.elapsed().as_secs_f64()
}

/// Attention of a whole sequence to itself, to be timed.
pub(crate) struct Attention {
    settings: Settings<'static>,
    seq: usize,
    keys: Keys,
    qkv: Lines<f32>,
    out: Lines<f32>,
}

impl Attention {
    /// With heads as Qwen3-0.6B has them: 16 of 128 coordinates, for 8 key heads.
    pub(crate) fn new(kernel: Supported, seq: usize) -> Self {
        let shape = KeyShape { n_kv_heads: 8, head_dim: 128, word: Word::Pair };
        let sight = Sight::Before(None);
        let settings = Settings { kernel, n_heads: 16, shape, scale: 0.1, soft_cap: None, sight, sinks: None };
        let stride = Self::stride(settings);
        let mut qkv = Lines::zeros(seq * stride);
        qkv.iter_mut().enumerate().for_each(|(i, x)| *x = (i % 29) as f32 / 14.0 - 1.0);
        let mut keys = Keys::alike(shape, None, seq, 1);
        keys.write(0, &qkv[settings.n_heads * shape.head_dim..], stride, seq);
        Self { settings, seq, keys, qkv, out: Lines::zeros(seq * settings.n_heads * shape.head_dim) }
    }

    fn stride(settings: Settings<'_>) -> usize {
        (settings.n_heads + 2 * settings.shape.n_kv_heads) * settings.shape.head_dim
    }

    /// Operations per second, once: of the products that a query makes with the keys it sees and their values, no others.
    pub(crate) fn rate(&mut self) -> f64 {
        let Settings { n_heads, shape, .. } = self.settings;
        let queries = Queries { keys: &self.keys, position: 0, row: 0, count: self.seq };
        let start = Instant::now();
        attend(self.settings, 0, &[queries], &self.qkv, Self::stride(self.settings), &mut self.out);
        let seen = self.seq * (self.seq + 1) / 2;
        (4 * seen * n_heads * shape.head_dim) as f64 / start.elapsed().as_secs_f64()
    }
}
