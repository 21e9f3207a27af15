//! Numbers that products are tested on. Compiled for tests alone.

/// `count` numbers in [-2, 2), always the same for a seed.
pub(crate) fn numbers(seed: u64, count: usize) -> Vec<f32> {
    (0..count as u64)
        .map(|i| {
            let mixed = (seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd134_2543_de82_ef95);
            ((mixed >> 40) as f32 / (1 << 23) as f32 - 1.0) * 2.0
        })
        .collect()
}
